//! Calls a provider again when the failure may pass: backoff with jitter, the provider's own wait
//! first (B106). Knows nothing of HTTP; the kinds of error decide.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Provider;
use super::chat::{Answer, Delta, Request};
use super::error::ProviderError;
use crate::stdx::random::Random;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// A provider that asks for a longer wait than this is not waited for.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(15 * 60);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The provider failed, for good or too often.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The token fired.
    #[error("stopped")]
    Cancelled,
}

/// Told before each wait. It also means: discard what streamed so far of this answer, the next
/// try begins anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// Tries that failed, from 1.
    pub attempt: u32,
    /// Tries in all.
    pub attempts: u32,
    /// How long is waited.
    pub wait: Duration,
    /// What went wrong.
    pub error: ProviderError,
}

/// How a call is repeated.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy<'a> {
    /// Tries in all, at least 1.
    pub attempts: u32,
    /// Spreads the waits of those who failed together.
    pub random: &'a dyn Random,
}

/// Calls `provider` until it answers, fails for good, or has failed `policy.attempts` times.
/// Deltas of a try that failed don't count: when `on_retry` is called, or an error is returned,
/// discard them.
///
/// # Errors
/// The last failure, or [`CallError::Cancelled`].
///
/// # Cancellation
/// Returns at once when `cancel` fires; the connection is closed. Dropping the future does the same.
pub async fn call_with_retry(
    provider: &dyn Provider,
    request: &Request,
    policy: RetryPolicy<'_>,
    cancel: &CancellationToken,
    on_delta: &(dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    on_retry: &(dyn Fn(RetryNotice) + Send + Sync),
) -> Result<Answer, CallError> {
    let attempts = policy.attempts.max(1);
    let mut attempt = 1;
    loop {
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallError::Cancelled),
            answer = provider.call(request, on_delta) => answer,
        };
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(wait) = next_wait(&error, attempt, policy.random) else { return Err(error.into()) };
        if attempt >= attempts {
            return Err(gave_up(error, attempts).into());
        }
        on_retry(RetryNotice { attempt, attempts, wait, error });
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallError::Cancelled),
            () = tokio::time::sleep(wait) => {}
        }
        attempt += 1;
    }
}

fn gave_up(mut error: ProviderError, attempts: u32) -> ProviderError {
    if attempts > 1 {
        error.message = format!("{} (tried {attempts} times)", error.message);
    }
    error
}

/// The wait before the next try; `None` when trying again is of no use. A provider's own wait is
/// kept and lengthened by up to a tenth, never shortened.
fn next_wait(error: &ProviderError, attempt: u32, random: &dyn Random) -> Option<Duration> {
    let spread = (random.next() % 1_000) as f64 / 1_000.0;
    match error.retryable()? {
        Some(asked) if asked > LONGEST_ASKED_WAIT => None,
        Some(asked) => Some(asked.mul_f64(1.0 + spread / 10.0)),
        None => {
            let doubled = FIRST_WAIT.saturating_mul(1 << (attempt - 1).min(10)).min(LONGEST_BACKOFF);
            Some(doubled.mul_f64(0.5 + spread / 2.0))
        }
    }
}

#[cfg(test)]
mod tests;
