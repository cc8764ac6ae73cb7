//! What can go wrong with a provider, typed by what can be done about it (B106).

use std::time::Duration;

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The key is missing, wrong or not allowed to do this (401, 403).
    Authentication,
    /// Quota or money is used up; waiting does not help.
    Quota,
    /// Too many requests (429), with the wait the provider asks for.
    RateLimit {
        /// From `Retry-After`, when given.
        after: Option<Duration>,
    },
    /// The provider is overloaded or has a fault of its own (5xx, 529).
    Overloaded {
        /// From `Retry-After`, when given.
        after: Option<Duration>,
    },
    /// The request is wrong (400, 413, 422).
    BadRequest,
    /// The history does not fit the model's window.
    ContextTooLong,
    /// There is no such model (404).
    UnknownModel,
    /// Not reachable: refused, DNS, TLS, proxy, reset, timed out.
    Network,
    /// The stream ended early or made no sense.
    Malformed,
    /// A scenario asked for something that did not happen, or has no turn left.
    Scenario,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// The provider's name.
    pub provider: String,
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What happened, for a person: lower case, no full stop, no key in it.
    pub message: String,
    /// What to do about it, when that is known.
    pub hint: Option<String>,
}

impl ProviderError {
    /// A failure of `provider`.
    pub fn new(provider: impl Into<String>, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { provider: provider.into(), kind, message: message.into(), hint: None }
    }

    /// The same with the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the same call may succeed later, and the wait that was asked for.
    pub fn retryable(&self) -> Option<Option<Duration>> {
        match &self.kind {
            ErrorKind::RateLimit { after } | ErrorKind::Overloaded { after } => Some(*after),
            ErrorKind::Network | ErrorKind::Malformed => Some(None),
            ErrorKind::Authentication
            | ErrorKind::Quota
            | ErrorKind::BadRequest
            | ErrorKind::ContextTooLong
            | ErrorKind::UnknownModel
            | ErrorKind::Scenario => None,
        }
    }
}
