//! One HTTP client for all providers: timeouts, proxies, redirects that never carry a key away,
//! bounded bodies, streams that are watched for stalls. Knows no protocol; what a refusal means
//! is read in `refusal`.

mod endpoint;
mod refusal;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, NoProxy, Proxy, RequestBuilder, Response, StatusCode};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{ErrorKind, ProviderError};
use super::sse::{SseEvent, SseParser};
use crate::config::HttpConfig;

pub use endpoint::{Auth, Endpoint, Secret};
pub use refusal::in_stream as refusal_in_stream;

/// Most of one answer, as it is sent.
pub const LARGEST_ANSWER: usize = 256 * 1024 * 1024;

/// Most that is read of a body that is not a stream (lists of models, whole answers).
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Most that is read of a refusal.
const LARGEST_REFUSAL: usize = 64 * 1024;

/// How long the text of a refusal is waited for.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Hosts that are never reached through a proxy.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// The client. Made when it is first needed: loading the system's certificates takes time, and a
/// server on this machine needs none.
#[derive(Debug)]
pub struct Http {
    config: HttpConfig,
    proxies: ProxySettings,
    secure: OnceLock<Result<Client, String>>,
    plain: OnceLock<Result<Client, String>>,
}

#[derive(Clone, Debug, Default)]
struct ProxySettings {
    http: Option<(String, String)>,
    https: Option<(String, String)>,
    bypass: String,
}

impl ProxySettings {
    /// As every other tool reads them: upper or lower case, the protocol's own before `ALL_PROXY`.
    fn read(env: &BTreeMap<String, String>) -> Self {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| {
                let value = env.get(*name)?.trim();
                (!value.is_empty()).then(|| ((*name).to_owned(), value.to_owned()))
            })
        };
        let bypass = first(&["NO_PROXY", "no_proxy"]).map_or(String::new(), |(_, value)| value);
        Self {
            http: first(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
            https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
            bypass: if bypass.is_empty() { LOOPBACK.to_owned() } else { format!("{LOOPBACK},{bypass}") },
        }
    }
}

impl Http {
    /// A client with these timeouts and the proxies of `env`.
    pub fn new(config: &HttpConfig, env: &BTreeMap<String, String>) -> Self {
        Self {
            config: config.clone(),
            proxies: ProxySettings::read(env),
            secure: OnceLock::new(),
            plain: OnceLock::new(),
        }
    }

    /// Posts JSON and returns the answer as it begins to arrive.
    ///
    /// # Errors
    /// Anything but a success, typed.
    ///
    /// # Cancellation
    /// Dropping the future, or what it returned, closes the connection.
    pub async fn post<'a>(
        &self,
        endpoint: &'a Endpoint,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Incoming<'a>, ProviderError> {
        let url = endpoint.url(path);
        let request = self.client(endpoint)?.post(&url).header(CONTENT_TYPE, "application/json").body(body);
        self.send(endpoint, request, &url).await
    }

    /// Gets a JSON document.
    ///
    /// # Errors
    /// Anything but a success with JSON in it, typed.
    pub async fn get_json(&self, endpoint: &Endpoint, path: &str) -> Result<serde_json::Value, ProviderError> {
        let url = endpoint.url(path);
        let request = self.client(endpoint)?.get(&url);
        let incoming = self.send(endpoint, request, &url).await?;
        let bytes = incoming.whole().await?;
        serde_json::from_slice(&bytes).map_err(|_| endpoint.not_json(&bytes))
    }

    async fn send<'a>(
        &self,
        endpoint: &'a Endpoint,
        request: RequestBuilder,
        url: &str,
    ) -> Result<Incoming<'a>, ProviderError> {
        let deadline = Instant::now() + self.config.first_byte_timeout;
        let sent = timeout_at(deadline, request.headers(endpoint.headers().clone()).send()).await;
        let response = match sent {
            Err(_) => return Err(self.no_first_byte(endpoint)),
            Ok(Err(error)) => return Err(self.not_sent(endpoint, &error)),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(Incoming {
                endpoint,
                response,
                deadline,
                first_byte: self.config.first_byte_timeout,
                idle: self.config.idle_timeout,
                received: 0,
            });
        }
        Err(refused(endpoint, response, url).await)
    }

    fn client(&self, endpoint: &Endpoint) -> Result<&Client, ProviderError> {
        let slot = if endpoint.is_secure() { &self.secure } else { &self.plain };
        slot.get_or_init(|| self.build(endpoint.is_secure()))
            .as_ref()
            .map_err(|why| endpoint.error(ErrorKind::BadRequest, format!("the HTTP client can't be made: {why}")))
    }

    fn build(&self, secure: bool) -> Result<Client, String> {
        // Fails only when one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("super-agent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.config.connect_timeout)
            .redirect(Policy::custom(|attempt| if stays_at_home(&attempt) { attempt.follow() } else { attempt.stop() }))
            .no_proxy();
        if !secure {
            builder = builder.tls_certs_only([]);
        }
        let bypass = NoProxy::from_string(&self.proxies.bypass);
        for (setting, is_secure) in [(&self.proxies.http, false), (&self.proxies.https, true)] {
            let Some((variable, address)) = setting else { continue };
            let proxy = if is_secure { Proxy::https(address) } else { Proxy::http(address) };
            // The address may hold a password: only the variable is named.
            let proxy = proxy.map_err(|_| format!("{variable} does not hold a proxy's address"))?;
            builder = builder.proxy(proxy.no_proxy(bypass.clone()));
        }
        builder.build().map_err(|error| causes(&error.without_url()))
    }

    fn no_first_byte(&self, endpoint: &Endpoint) -> ProviderError {
        no_first_byte(endpoint, self.config.first_byte_timeout)
    }

    fn not_sent(&self, endpoint: &Endpoint, error: &reqwest::Error) -> ProviderError {
        let host = endpoint.host();
        if error.is_timeout() {
            let seconds = self.config.connect_timeout.as_secs();
            return endpoint
                .error(ErrorKind::Network, format!("no connection to {host} within {seconds} s"))
                .hint("check the network and the proxy (HTTPS_PROXY, NO_PROXY), or raise http.connect_timeout");
        }
        let why = causes(error);
        if why.contains("dns error") || error.is_dns() {
            return endpoint
                .error(ErrorKind::Network, format!("the address of {host} can't be found (DNS)"))
                .hint("check the network, the proxy (HTTPS_PROXY) and base_url");
        }
        if has_io_error(error, std::io::ErrorKind::ConnectionRefused) {
            return endpoint
                .error(ErrorKind::Network, format!("{host} refuses the connection"))
                .hint(endpoint.not_running_hint());
        }
        if is_tls(error) {
            return endpoint
                .error(ErrorKind::Network, format!("no secure connection to {host}: {why}"))
                .hint("check the system's certificates, the clock and any proxy that opens TLS");
        }
        endpoint.error(ErrorKind::Network, format!("the request to {host} failed: {why}"))
    }
}

/// Only to the same server and only with the request unchanged: headers of providers carry keys
/// that no client knows to take off.
fn stays_at_home(attempt: &Attempt<'_>) -> bool {
    let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same_server = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    keeps_method && same_server && attempt.previous().len() <= 5
}

fn no_first_byte(endpoint: &Endpoint, limit: Duration) -> ProviderError {
    endpoint
        .error(ErrorKind::Network, format!("{} did not begin to answer within {} s", endpoint.host(), limit.as_secs()))
        .hint("a slow model needs a longer http.first_byte_timeout")
}

async fn refused(endpoint: &Endpoint, response: Response, url: &str) -> ProviderError {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    if response.status().is_redirection() {
        return redirected(endpoint, status, &headers);
    }
    let body = timeout(REFUSAL_TIMEOUT, read_at_most(response, LARGEST_REFUSAL)).await.unwrap_or_default();
    refusal::of_response(endpoint, status, &headers, &String::from_utf8_lossy(&body), url)
}

fn redirected(endpoint: &Endpoint, status: u16, headers: &HeaderMap) -> ProviderError {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("an unknown address");
    let target = target.split(['?', '#']).next().unwrap_or(target);
    endpoint.error(ErrorKind::BadRequest, format!("{} redirects to {target} ({status})", endpoint.host())).hint(
        format!(
            "the key is not sent elsewhere unasked; if that is the right address, set base_url of [providers.{}] to it",
            endpoint.provider
        ),
    )
}

async fn read_at_most(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]);
    }
    body
}

/// An answer on its way.
#[derive(Debug)]
pub struct Incoming<'a> {
    endpoint: &'a Endpoint,
    response: Response,
    deadline: Instant,
    first_byte: Duration,
    idle: Duration,
    received: usize,
}

/// What takes the events of a stream.
pub trait EventSink: Send {
    /// Takes one event; `Ok(false)`: the answer is complete, read no further.
    ///
    /// # Errors
    /// When the event is an error or makes no sense.
    fn event(&mut self, event: &SseEvent<'_>) -> Result<bool, ProviderError>;

    /// Takes an answer that came as one JSON document although a stream was asked for.
    ///
    /// # Errors
    /// When it is an error or makes no sense.
    fn whole(&mut self, document: &str) -> Result<(), ProviderError>;

    /// Whether the answer is complete but for what may be missed (usage, the end marker).
    fn is_complete(&self) -> bool;
}

impl Incoming<'_> {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// A stall, a broken connection, or too much.
    async fn next(&mut self) -> Result<Option<impl Deref<Target = [u8]> + use<>>, ProviderError> {
        let is_first = self.received == 0;
        let deadline = if is_first { self.deadline } else { Instant::now() + self.idle };
        let chunk = match timeout_at(deadline, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(self.broke(&error)),
            Err(_) if is_first => return Err(no_first_byte(self.endpoint, self.first_byte)),
            Err(_) => return Err(self.stalled()),
        };
        if let Some(chunk) = &chunk {
            self.received += chunk.len();
            if self.received > LARGEST_ANSWER {
                let limit = LARGEST_ANSWER / 1024 / 1024;
                return Err(self.endpoint.error(
                    ErrorKind::BadRequest,
                    format!("the answer of {} is over {limit} MB", self.endpoint.host()),
                ));
            }
        }
        Ok(chunk)
    }

    /// Reads the events of a stream into `sink`.
    ///
    /// # Errors
    /// Those of the sink, a stall, a broken connection, or an answer that is no stream at all.
    pub async fn events(mut self, sink: &mut dyn EventSink) -> Result<(), ProviderError> {
        let shape = self.shape();
        let mut parser = SseParser::default();
        let mut outcome = Ok(true);
        let mut is_first = true;
        loop {
            let piece = match self.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // Nothing is lost when only the end marker is missing.
                Err(_) if sink.is_complete() => return Ok(()),
                Err(error) => return Err(error),
            };
            if std::mem::take(&mut is_first) && shape.is_document(&piece) {
                return self.document(piece.to_vec(), sink).await;
            }
            parser
                .push(&piece, &mut |event| {
                    outcome = sink.event(event);
                    matches!(outcome, Ok(true))
                })
                .map_err(|error| self.endpoint.error(ErrorKind::Malformed, error.to_string()))?;
            if !std::mem::replace(&mut outcome, Ok(true))? {
                return Ok(());
            }
        }
        parser.finish(&mut |event| {
            outcome = sink.event(event);
            matches!(outcome, Ok(true))
        });
        match outcome {
            Ok(_) => Ok(()),
            Err(_) if sink.is_complete() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn document(mut self, mut body: Vec<u8>, sink: &mut dyn EventSink) -> Result<(), ProviderError> {
        self.rest_into(&mut body).await?;
        let text = String::from_utf8_lossy(&body);
        if text.trim_start().starts_with('<') {
            return Err(self.endpoint.web_page(&text));
        }
        sink.whole(&text)
    }

    /// The whole body of an answer that is not a stream.
    ///
    /// # Errors
    /// A stall, a broken connection, or too much.
    pub async fn whole(mut self) -> Result<Vec<u8>, ProviderError> {
        let mut body = Vec::new();
        self.rest_into(&mut body).await?;
        Ok(body)
    }

    async fn rest_into(&mut self, body: &mut Vec<u8>) -> Result<(), ProviderError> {
        while let Some(piece) = self.next().await? {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_BODY {
                let limit = LARGEST_BODY / 1024 / 1024;
                return Err(self.endpoint.error(
                    ErrorKind::BadRequest,
                    format!("the body from {} is over {limit} MB", self.endpoint.host()),
                ));
            }
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        let declared = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        if declared.contains("event-stream") {
            Shape::Events
        } else if declared.contains("json") || declared.contains("html") {
            Shape::Document
        } else {
            Shape::Undeclared
        }
    }

    fn stalled(&self) -> ProviderError {
        let seconds = self.idle.as_secs();
        self.endpoint
            .error(
                ErrorKind::Network,
                format!("{} stopped mid-answer: nothing came for {seconds} s", self.endpoint.host()),
            )
            .hint("a slow model needs a longer http.idle_timeout")
    }

    fn broke(&self, error: &reqwest::Error) -> ProviderError {
        let host = self.endpoint.host();
        self.endpoint.error(ErrorKind::Network, format!("the connection to {host} broke mid-answer: {}", causes(error)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Events,
    Document,
    Undeclared,
}

impl Shape {
    fn is_document(self, first_piece: &[u8]) -> bool {
        match self {
            Self::Events => false,
            Self::Document => true,
            Self::Undeclared => {
                matches!(first_piece.iter().find(|b| !b.is_ascii_whitespace()), Some(b'{' | b'<'))
            }
        }
    }
}

/// The last two reasons of an error, without its address: the outer ones only say that a request
/// failed.
fn causes(error: &reqwest::Error) -> String {
    let mut reasons: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if reasons.last().is_none_or(|before| !before.contains(&text)) {
            reasons.push(text);
        }
        source = cause.source();
    }
    match reasons.as_slice() {
        [] => "no reason given".to_owned(),
        [only] => only.clone(),
        [.., outer, inner] => format!("{outer}: {inner}"),
    }
}

fn has_io_error(error: &reqwest::Error, kind: std::io::ErrorKind) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == kind) {
            return true;
        }
        source = cause.source();
    }
    false
}

fn is_tls(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if cause.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        source = cause.source();
    }
    false
}
