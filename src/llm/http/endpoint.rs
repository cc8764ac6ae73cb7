//! Where a provider is and how it knows us: address, key, headers. Makes errors that name the
//! provider and never hold the key.

use std::collections::BTreeMap;
use std::fmt;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::llm::error::{ErrorKind, ProviderError};
use crate::stdx::bounded;

/// A key. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// In which header the key travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer,
    /// `x-api-key: …`.
    ApiKeyHeader,
}

/// One provider's address.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    base: Url,
    host: String,
    key_variable: Option<String>,
    has_key: bool,
    headers: HeaderMap,
    secrets: Vec<Secret>,
}

impl Endpoint {
    /// An endpoint at `base_url`. `headers` are sent with every request, after the key's, so that
    /// they can replace it.
    ///
    /// # Errors
    /// When the address is none, or the key or a header can't be sent.
    pub fn new(
        provider: &str,
        base_url: &str,
        auth: Auth,
        key: Option<Secret>,
        key_variable: Option<&str>,
        headers: &BTreeMap<String, String>,
    ) -> Result<Self, ProviderError> {
        let bad = |kind, message: String| ProviderError::new(provider, kind, message);
        let base = parse_base(base_url).map_err(|why| {
            bad(ErrorKind::BadRequest, format!("base_url `{}` is not an address: {why}", without_password(base_url)))
                .hint("write it like `https://api.example.com/v1`")
        })?;
        let mut map = HeaderMap::new();
        if let Some(key) = &key {
            let (name, value) = match auth {
                Auth::Bearer => (AUTHORIZATION, format!("Bearer {}", key.expose())),
                Auth::ApiKeyHeader => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
            };
            map.insert(name, sensitive(&value).ok_or_else(|| bad_key(provider, key_variable))?);
        }
        let mut secrets: Vec<Secret> = key.iter().cloned().collect();
        for (name, value) in headers {
            let header = HeaderName::try_from(name.as_str()).ok().zip(sensitive(value));
            let (name, header_value) = header.ok_or_else(|| {
                bad(ErrorKind::BadRequest, format!("header `{name}` of [providers.{provider}] can't be sent"))
            })?;
            map.insert(name, header_value);
            if value.len() >= 8 {
                secrets.push(Secret::new(value.trim_start_matches("Bearer ").trim()));
            }
        }
        let host = match (base.host_str().unwrap_or(""), base.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        Ok(Self {
            provider: provider.to_owned(),
            base,
            host,
            key_variable: key_variable.map(str::to_owned),
            has_key: key.is_some(),
            headers: map,
            secrets,
        })
    }

    /// The address of `path` below the base.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Host and, when it is not the usual one, port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether TLS is used.
    pub fn is_secure(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// What is sent with every request.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Adds a header unless the configuration set it.
    pub fn default_header(&mut self, name: &'static str, value: &'static str) {
        self.headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }

    /// An error of this provider, without keys.
    pub fn error(&self, kind: ErrorKind, message: impl AsRef<str>) -> ProviderError {
        ProviderError::new(self.provider.clone(), kind, self.redact(message.as_ref()))
    }

    /// What to do about a key that is not accepted.
    pub fn key_hint(&self) -> String {
        match (&self.key_variable, self.has_key) {
            (Some(variable), true) => format!("check the key in {variable}; `super-agent doctor --probe` tries it"),
            (Some(variable), false) => format!("set {variable} to a key of this provider"),
            (None, _) => format!("set api_key_env of [providers.{}] to the variable that holds the key", self.provider),
        }
    }

    /// What to do when nothing listens.
    pub fn not_running_hint(&self) -> String {
        if self.provider == "ollama" {
            return "start it with `ollama serve`, or set OLLAMA_HOST to where it runs".to_owned();
        }
        format!("is the server running? Its address is base_url of [providers.{}]", self.provider)
    }

    /// An answer that is a web page: not an API at all, or a portal in between.
    pub fn web_page(&self, text: &str) -> ProviderError {
        let title = title_of(text).map_or(String::new(), |title| format!(" (“{title}”)"));
        self.error(ErrorKind::BadRequest, format!("{} answered with a web page{title}, not as an API does", self.host))
            .hint(self.base_hint())
    }

    /// An answer that is not JSON.
    pub fn not_json(&self, body: &[u8]) -> ProviderError {
        let text = String::from_utf8_lossy(bounded_bytes(body));
        if text.trim_start().starts_with('<') {
            return self.web_page(&text);
        }
        let start = bounded::first_line(&text, 80);
        self.error(ErrorKind::Malformed, format!("{} answered with something that is not JSON: `{start}`", self.host))
    }

    /// What to do when the address is not that of an API.
    pub fn base_hint(&self) -> String {
        format!(
            "check base_url of [providers.{}]: it is the address before `/chat/completions` or `/v1/messages`",
            self.provider
        )
    }

    /// `text` without keys: whole ones, and those a provider quotes with stars in their middle.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            let key = secret.expose();
            if key.len() < 4 {
                continue;
            }
            text = text.replace(key, "[key]");
            let start = bounded::prefix(key, 4);
            while let Some(at) = text.find(start) {
                let end = text[at..]
                    .find(|c: char| c.is_whitespace() || "\"'`,;)".contains(c))
                    .map_or(text.len(), |n| at + n);
                if !text[at..end].contains('*') {
                    break;
                }
                text.replace_range(at..end, "[key]");
            }
        }
        text
    }
}

fn parse_base(base_url: &str) -> Result<Url, String> {
    let url = Url::parse(base_url.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it does not begin with http:// or https://".to_owned());
    }
    if url.host_str().unwrap_or("").is_empty() {
        return Err("it has no host".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must end before `?` and `#`".to_owned());
    }
    Ok(url)
}

/// Text for an error: an address may hold `user:password@`.
fn without_password(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://…{}", &address[..scheme], &address[at..]),
        _ => address.to_owned(),
    }
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn bad_key(provider: &str, variable: Option<&str>) -> ProviderError {
    let variable = variable.unwrap_or("its variable");
    ProviderError::new(provider, ErrorKind::Authentication, format!("the key in {variable} can't be sent in a header"))
        .hint("it holds a line break or another character that no key has; copy it again")
}

fn bounded_bytes(body: &[u8]) -> &[u8] {
    &body[..body.len().min(4096)]
}

fn title_of(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let title = bounded::first_line(&page[start..end], 60);
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base_url: &str) -> Endpoint {
        let headers = BTreeMap::from([("X-Team".to_owned(), "Bearer team-secret-1".to_owned())]);
        let key = Some(Secret::new("sk-abcdef123456"));
        Endpoint::new("mine", base_url, Auth::Bearer, key, Some("MINE_KEY"), &headers).unwrap()
    }

    #[test]
    fn no_key_survives_in_an_error_or_a_debug_form() {
        let endpoint = endpoint("https://api.example.com/v1/");
        let text = "key sk-abcdef123456 and sk-ab*****3456, header team-secret-1 but sk-abc is no key";
        assert_eq!(endpoint.redact(text), "key [key] and [key], header [key] but sk-abc is no key");
        assert!(!format!("{endpoint:?}").contains("abcdef"));
        assert!(!format!("{endpoint:?}").contains("team-secret"));
    }

    #[test]
    fn addresses_are_joined_with_one_slash() {
        assert_eq!(endpoint("https://api.example.com/v1/").url("/models"), "https://api.example.com/v1/models");
        assert_eq!(endpoint("http://127.0.0.1:8080").url("/models"), "http://127.0.0.1:8080/models");
        assert_eq!(endpoint("http://127.0.0.1:8080").host(), "127.0.0.1:8080");
    }

    #[test]
    fn a_wrong_address_or_key_is_named_without_its_secret() {
        for bad in ["api.example.com", "ftp://a.b", "https://a.b/?x=1", "", "https://"] {
            let error = Endpoint::new("mine", bad, Auth::Bearer, None, None, &BTreeMap::new()).unwrap_err();
            assert!(error.message.starts_with("base_url `"), "{bad}: {error}");
        }
        let error = Endpoint::new("mine", "nope://u:secret@h", Auth::Bearer, None, None, &BTreeMap::new()).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        let key = Some(Secret::new("sk-a\nb"));
        let error =
            Endpoint::new("mine", "https://a.b", Auth::Bearer, key, Some("MINE_KEY"), &BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), "mine: the key in MINE_KEY can't be sent in a header");
    }

    #[test]
    fn a_web_page_is_known_by_its_title() {
        let error = endpoint("https://api.example.com").web_page("<HTML><head><Title a>\n Sign in </title>");
        assert_eq!(error.message, "api.example.com answered with a web page (“Sign in”), not as an API does");
    }
}
