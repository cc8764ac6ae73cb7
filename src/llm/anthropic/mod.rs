//! Anthropic Messages, streaming: Anthropic itself and those who speak its protocol.

mod request;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::Provider;
use super::chat::{Answer, Delta, Request};
use super::error::{ErrorKind, ProviderError};
use super::http::{Endpoint, Http};
use super::listing;

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// A provider that speaks Anthropic Messages.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    http: Arc<Http>,
    /// What each model was found not to take.
    quirks: Mutex<BTreeMap<String, Quirks>>,
}

/// What a model does not take. Learned from its refusal, so that no table of model names has to
/// be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quirks {
    no_temperature: bool,
    /// The most tokens it may be asked for, when the usual number was too high.
    most_tokens: Option<u32>,
}

impl Quirks {
    /// What to change after `error`, when that is what it is about and not changed yet.
    fn learn(self, error: &ProviderError) -> Option<Self> {
        if error.kind != ErrorKind::BadRequest {
            return None;
        }
        if self.most_tokens.is_none() && error.message.contains("max_tokens") {
            return Some(Self { most_tokens: Some(most_tokens_in(&error.message)), ..self });
        }
        if !self.no_temperature && error.message.contains("temperature") {
            return Some(Self { no_temperature: true, ..self });
        }
        None
    }
}

/// The limit in `max_tokens: 32000 > 8192, which is the maximum allowed`; every model takes 4096.
fn most_tokens_in(message: &str) -> u32 {
    let after = message.split_once("> ").map_or("", |(_, after)| after);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(4096)
}

impl Anthropic {
    /// A provider at `endpoint`.
    pub fn new(mut endpoint: Endpoint, http: Arc<Http>) -> Self {
        endpoint.default_header("anthropic-version", VERSION);
        Self { endpoint, http, quirks: Mutex::default() }
    }

    fn quirks(&self, model: &str) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }

    fn remember(&self, model: &str, quirks: Quirks) {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), quirks);
    }
}

#[async_trait]
impl Provider for Anthropic {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    /// A refusal of one parameter is answered at once by changing it; that is no retry of the
    /// same call.
    async fn call(
        &self,
        request: &Request,
        on_delta: &(dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    ) -> Result<Answer, ProviderError> {
        let mut quirks = self.quirks(&request.model);
        let incoming = loop {
            let body = request::body(request, quirks);
            let error = match self.http.post(&self.endpoint, "/v1/messages", body).await {
                Ok(incoming) => break incoming,
                Err(error) => error,
            };
            let Some(learned) = quirks.learn(&error) else {
                return Err(listing::with_known_models(error, &request.model, self).await);
            };
            quirks = learned;
            self.remember(&request.model, quirks);
        };
        let mut assembler = stream::Assembler::new(&self.endpoint, on_delta);
        incoming.events(&mut assembler).await?;
        assembler.finish(request)
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        let document = self.http.get_json(&self.endpoint, "/v1/models?limit=1000").await?;
        listing::names(&document).ok_or_else(|| {
            self.endpoint.error(ErrorKind::Malformed, format!("{} lists no models", self.endpoint.host()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_learned_from_the_refusal_once() {
        let refusal = |message: &str| ProviderError::new("a", ErrorKind::BadRequest, message);
        let learned = Quirks::default().learn(&refusal("max_tokens: 32000 > 8192, which is the maximum")).unwrap();
        assert_eq!(learned.most_tokens, Some(8192));
        assert_eq!(learned.learn(&refusal("max_tokens: 8192 is wrong")), None);
        assert_eq!(Quirks::default().learn(&refusal("max_tokens too large")).unwrap().most_tokens, Some(4096));
        assert!(learned.learn(&refusal("`temperature` is deprecated")).unwrap().no_temperature);
        assert_eq!(Quirks::default().learn(&ProviderError::new("a", ErrorKind::Network, "max_tokens")), None);
    }
}
