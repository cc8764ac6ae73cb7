//! OpenAI Chat Completions, streaming: OpenAI itself, OpenRouter, Ollama, vLLM, llama.cpp and
//! whatever else speaks it, each with its own deviations.

mod request;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::Provider;
use super::chat::{Answer, Delta, Request};
use super::error::{ErrorKind, ProviderError};
use super::http::{Endpoint, Http};
use super::listing;
use super::tool_ids::IdRule;

/// A provider that speaks Chat Completions.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    http: Arc<Http>,
    ids: IdRule,
    /// What each model was found not to take.
    quirks: Mutex<BTreeMap<String, Quirks>>,
}

/// What a model or its server does not take. Learned from its refusal, so that no table of model
/// names has to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quirks {
    no_temperature: bool,
    /// `max_completion_tokens` in place of `max_tokens`.
    completion_tokens: bool,
    no_stream_options: bool,
}

impl Quirks {
    /// What to leave out after `error`, when that is what it is about and still in the request.
    fn learn(self, error: &ProviderError) -> Option<Self> {
        if error.kind != ErrorKind::BadRequest {
            return None;
        }
        let says = |word: &str| error.message.contains(word);
        if !self.completion_tokens && says("max_tokens") && says("max_completion_tokens") {
            return Some(Self { completion_tokens: true, ..self });
        }
        if !self.no_temperature && says("temperature") {
            return Some(Self { no_temperature: true, ..self });
        }
        if !self.no_stream_options && says("stream_options") {
            return Some(Self { no_stream_options: true, ..self });
        }
        None
    }
}

impl OpenAi {
    /// A provider at `endpoint`.
    pub fn new(endpoint: Endpoint, http: Arc<Http>) -> Self {
        let ids = if endpoint.host().ends_with("mistral.ai") { IdRule::NineCharacters } else { IdRule::OpenAi };
        Self { endpoint, http, ids, quirks: Mutex::default() }
    }

    fn quirks(&self, model: &str) -> Quirks {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }

    fn remember(&self, model: &str, quirks: Quirks) {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), quirks);
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    /// A refusal of one parameter is answered at once by leaving it out; that is no retry of the
    /// same call.
    async fn call(
        &self,
        request: &Request,
        on_delta: &(dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    ) -> Result<Answer, ProviderError> {
        let mut quirks = self.quirks(&request.model);
        let incoming = loop {
            let body = request::body(request, quirks, self.ids);
            let error = match self.http.post(&self.endpoint, "/chat/completions", body).await {
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
        let document: Value = self.http.get_json(&self.endpoint, "/models").await?;
        listing::names(&document).ok_or_else(|| {
            self.endpoint.error(ErrorKind::Malformed, format!("{} lists no models", self.endpoint.host()))
        })
    }
}
