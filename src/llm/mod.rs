//! Models: the chat vocabulary, the one trait every provider implements, and the adapters.
//! Knows nothing of traces, sessions or tools; a request is messages and schemas, an answer is a
//! message. The stored form is the OpenAI message form (B102); adapters convert on the way out.

mod anthropic;
pub mod chat;
pub mod error;
mod http;
mod listing;
mod openai;
pub mod prices;
pub mod registry;
pub mod retry;
pub mod scripted;
pub mod sse;
mod tool_ids;
mod wire;

use async_trait::async_trait;

use chat::{Answer, Delta, Request};
use error::ProviderError;

/// A way to call models.
#[async_trait]
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// Its name in the configuration, the part before `/` of a model reference.
    fn name(&self) -> &str;

    /// Whether it plays a scenario instead of asking a model.
    fn is_scripted(&self) -> bool {
        false
    }

    /// Calls the model once, handing each piece to `on_delta` as it arrives. No retry happens here.
    ///
    /// # Errors
    /// Typed by what can be done about it. Nothing of a failed answer may be used.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    async fn call(
        &self,
        request: &Request,
        on_delta: &(dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    ) -> Result<Answer, ProviderError>;

    /// The models that this key may use, as the provider lists them.
    ///
    /// # Errors
    /// As for [`Provider::call`].
    async fn models(&self) -> Result<Vec<String>, ProviderError>;
}
