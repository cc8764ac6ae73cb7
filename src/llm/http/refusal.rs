//! What a provider's refusal means: status, body and headers become one typed error (B106). Also
//! reads errors that arrive inside a stream. Every provider words things its own way; the table of
//! phrases below is what they are known to say.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::endpoint::Endpoint;
use crate::llm::error::{ErrorKind, ProviderError};
use crate::stdx::bounded;

/// How a history that is too long is called.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "maximum model length",
    "maximum prompt length",
    "prompt is too long",
    "prompt too long",
    "reduce the length of the messages",
    "exceeds the context window",
    "context window exceeds",
];

/// How it is called that money or quota is used up.
const USED_UP: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "credit balance is too low",
    "insufficient credits",
    "insufficient balance",
];

/// How a model that does not exist is called, besides 404.
const NO_SUCH_MODEL: &[&str] = &[
    "model_not_found",
    "is not a valid model",
    "invalid model",
    "unknown model",
    "model does not exist",
    "no such model",
];

/// What a provider said when it refused.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    message: String,
    /// Its own words for the kind: code and type.
    words: String,
    /// A status inside the body.
    status: Option<u16>,
}

/// The error of a whole response that is not a success.
pub fn of_response(endpoint: &Endpoint, status: u16, headers: &HeaderMap, body: &str, url: &str) -> ProviderError {
    let after = retry_after(headers, Timestamp::now());
    let Some(said) = read(body) else {
        return of_text(endpoint, status, after, body, url);
    };
    let kind = kind_of(status, &said, after);
    finish(endpoint, kind, &said.message, Some(status))
}

/// The error that arrived as `error` inside a stream that began well.
pub fn in_stream(endpoint: &Endpoint, error: &Value) -> ProviderError {
    let said = read_value(error).unwrap_or_else(|| Said { message: error.to_string(), ..Said::default() });
    let status = said.status.or_else(|| status_of_words(&said.words)).unwrap_or(500);
    finish(endpoint, kind_of(status, &said, None), &said.message, None)
}

/// A body that is no error object: text, a web page, or nothing.
fn of_text(endpoint: &Endpoint, status: u16, after: Option<Duration>, body: &str, url: &str) -> ProviderError {
    let is_page = body.trim_start().starts_with('<');
    if status == 404 || status == 405 {
        return endpoint
            .error(ErrorKind::BadRequest, format!("{} knows no {} ({status})", endpoint.host(), path_of(url)))
            .hint(endpoint.base_hint());
    }
    let said = Said { message: body.to_owned(), ..Said::default() };
    let kind = kind_of(status, &said, after);
    let text = if is_page { "a web page instead of a reason" } else { body };
    finish(endpoint, kind, text, Some(status))
}

fn finish(endpoint: &Endpoint, kind: ErrorKind, message: &str, status: Option<u16>) -> ProviderError {
    let said = bounded::preview(message.trim().trim_end_matches('.'), 600).replace(['\r', '\n'], " ");
    let status = status.map_or(String::new(), |status| format!(" ({status})"));
    let host = endpoint.host();
    let what = match &kind {
        ErrorKind::Authentication => format!("{host} does not accept the key{status}"),
        ErrorKind::Quota => format!("the quota at {host} is used up{status}"),
        ErrorKind::RateLimit { .. } => format!("{host} asks to slow down{status}"),
        ErrorKind::Overloaded { .. } => format!("{host} is overloaded or has a fault{status}"),
        ErrorKind::ContextTooLong => format!("the history is too long for the model{status}"),
        ErrorKind::UnknownModel => format!("{host} has no such model{status}"),
        ErrorKind::BadRequest | ErrorKind::Network | ErrorKind::Malformed | ErrorKind::Scenario => {
            format!("{host} refuses the request{status}")
        }
    };
    let text = if said.is_empty() { what } else { format!("{what}: {said}") };
    let error = endpoint.error(kind.clone(), text);
    match hint_of(endpoint, &kind, &said) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn hint_of(endpoint: &Endpoint, kind: &ErrorKind, said: &str) -> Option<String> {
    match kind {
        ErrorKind::Authentication => Some(endpoint.key_hint()),
        ErrorKind::Quota => Some(format!("check plan and billing at {}, or choose another model", endpoint.provider)),
        ErrorKind::UnknownModel => Some("choose another with --model PROVIDER/MODEL".to_owned()),
        ErrorKind::ContextTooLong => {
            Some("choose a model with a larger window, or let it be compacted earlier".to_owned())
        }
        ErrorKind::BadRequest if said.contains("not support tools") => {
            Some("choose a model that can call tools".to_owned())
        }
        ErrorKind::RateLimit { .. }
        | ErrorKind::Overloaded { .. }
        | ErrorKind::BadRequest
        | ErrorKind::Network
        | ErrorKind::Malformed
        | ErrorKind::Scenario => None,
    }
}

fn kind_of(status: u16, said: &Said, after: Option<Duration>) -> ErrorKind {
    let text = format!("{} {}", said.words, said.message).to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if matches!(status, 400 | 413 | 422 | 500) && says(TOO_LONG) {
        return ErrorKind::ContextTooLong;
    }
    // One provider words a limit per minute like a used-up quota; then it also says when to come back.
    let used_up = says(USED_UP) || (status == 429 && after.is_none() && text.contains("exceeded your current quota"));
    if status == 402 || (matches!(status, 400 | 403 | 429) && used_up) {
        return ErrorKind::Quota;
    }
    match status {
        401 | 403 => ErrorKind::Authentication,
        404 if text.contains("model") => ErrorKind::UnknownModel,
        400 if says(NO_SUCH_MODEL) => ErrorKind::UnknownModel,
        429 => ErrorKind::RateLimit { after },
        408 | 409 | 425 | 500.. => ErrorKind::Overloaded { after },
        _ => ErrorKind::BadRequest,
    }
}

/// The status that an error's own word stands for.
fn status_of_words(words: &str) -> Option<u16> {
    const KNOWN: &[(&str, u16)] = &[
        ("overloaded", 529),
        ("rate_limit", 429),
        ("insufficient_quota", 429),
        ("authentication", 401),
        ("permission", 403),
        ("not_found", 404),
        ("request_too_large", 413),
        ("billing", 402),
        ("timeout", 504),
        ("invalid_request", 400),
        ("context_length_exceeded", 400),
        ("api_error", 500),
        ("server_error", 500),
    ];
    KNOWN.iter().find(|(word, _)| words.contains(word)).map(|(_, status)| *status)
}

fn read(body: &str) -> Option<Said> {
    read_value(&serde_json::from_str(body).ok()?)
}

/// Understands `{error: {message, type, code}}`, `{error: "…"}`, `{message}`, `{detail}`, and any
/// of these in a list.
fn read_value(value: &Value) -> Option<Said> {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let outer = value.as_object()?;
    let error = outer.get("error").unwrap_or(value);
    let message = match error {
        Value::String(text) => text.clone(),
        Value::Object(error) => {
            ["message", "detail", "error_description", "msg"].iter().find_map(|key| error.get(*key)).map(text_of)?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let words: Vec<&str> = ["type", "code", "status"].iter().filter_map(|key| error.get(key)?.as_str()).collect();
    let code = error.get("code").or_else(|| error.get("status"));
    let status = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    Some(Said {
        message: with_upstream(message, error),
        words: words.join(" "),
        status: status.and_then(|status| u16::try_from(status).ok()).filter(|status| (300..600).contains(status)),
    })
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A go-between says little itself; what the provider behind it said is in `metadata.raw`.
fn with_upstream(message: String, error: &Value) -> String {
    let Some(raw) = error.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) else {
        return message;
    };
    let upstream = read(raw).map_or_else(|| raw.to_owned(), |said| said.message);
    format!("{message}: {upstream}")
}

/// The wait a provider asks for: milliseconds, seconds or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(n) = value.parse::<f64>() {
        return seconds(n);
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn seconds(n: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(n.max(0.0)).ok()
}

fn path_of(url: &str) -> String {
    reqwest::Url::parse(url).map_or_else(|_| url.to_owned(), |url| format!("`{}`", url.path()))
}

#[cfg(test)]
mod tests;
