use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use reqwest::header::HeaderValue;

use super::*;
use crate::llm::http::{Auth, Secret};

fn endpoint() -> Endpoint {
    let key = Some(Secret::new("sk-secret-key"));
    Endpoint::new("mine", "https://api.example.com/v1", Auth::Bearer, key, Some("MINE_KEY"), &BTreeMap::new()).unwrap()
}

fn refusal(status: u16, headers: &[(&'static str, &str)], body: &str) -> ProviderError {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    of_response(&endpoint(), status, &map, body, "https://api.example.com/v1/chat/completions")
}

#[track_caller]
fn check(status: u16, body: &str, expected: ErrorKind) {
    assert_eq!(refusal(status, &[], body).kind, expected, "{status} {body}");
}

#[test]
fn every_provider_s_words_for_a_history_that_is_too_long_are_known() {
    for message in [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
        "the request exceeds the available context size. try increasing the context size",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Please reduce the length of the messages or completion.",
    ] {
        let body = serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        check(400, &body, ErrorKind::ContextTooLong);
    }
    check(400, r#"{"error":{"message":"too much","code":"context_length_exceeded"}}"#, ErrorKind::ContextTooLong);
}

#[test]
fn a_status_and_its_body_become_the_kind_that_says_what_to_do() {
    check(401, r#"{"error":{"message":"Incorrect API key"}}"#, ErrorKind::Authentication);
    check(403, "", ErrorKind::Authentication);
    check(402, r#"{"error":{"message":"Insufficient credits","code":402}}"#, ErrorKind::Quota);
    check(400, r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#, ErrorKind::Quota);
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        ErrorKind::Quota,
    );
    check(429, r#"{"error":{"message":"Rate limit reached"}}"#, ErrorKind::RateLimit { after: None });
    check(404, r#"{"error":"model \"x\" not found, try pulling it first"}"#, ErrorKind::UnknownModel);
    check(
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#,
        ErrorKind::UnknownModel,
    );
    check(400, r#"{"error":{"message":"foo is not a valid model ID","code":400}}"#, ErrorKind::UnknownModel);
    check(404, "404 page not found", ErrorKind::BadRequest);
    check(422, r#"{"detail":[{"msg":"field required"}]}"#, ErrorKind::BadRequest);
    check(
        413,
        r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ErrorKind::BadRequest,
    );
    check(500, "oops", ErrorKind::Overloaded { after: None });
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ErrorKind::Overloaded { after: None },
    );
    check(502, "<html><body>Bad gateway</body></html>", ErrorKind::Overloaded { after: None });
    check(429, r#"[{"error":{"message":"slow","status":"RESOURCE_EXHAUSTED"}}]"#, ErrorKind::RateLimit { after: None });
}

#[test]
fn the_wait_is_read_as_seconds_milliseconds_or_date() {
    let after = |name: &'static str, value: &str| match refusal(429, &[(name, value)], "{}").kind {
        ErrorKind::RateLimit { after } => after,
        other => panic!("{other:?}"),
    };
    assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
    assert_eq!(after("retry-after", "1.5"), Some(Duration::from_millis(1500)));
    assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
    assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
    assert_eq!(after("retry-after", "soon"), None);
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
    let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
    assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(30)));
}

#[test]
fn an_error_says_who_what_and_what_to_do_but_never_the_key() {
    let error = refusal(401, &[], r#"{"error":{"message":"Incorrect API key provided: sk-secret-key."}}"#);
    assert_eq!(
        error.to_string(),
        "mine: api.example.com does not accept the key (401): Incorrect API key provided: [key]"
    );
    assert_eq!(error.hint.as_deref(), Some("check the key in MINE_KEY; `super-agent doctor --probe` tries it"));
    let error = refusal(404, &[], "");
    assert_eq!(error.to_string(), "mine: api.example.com knows no `/v1/chat/completions` (404)");
    let error = refusal(
        400,
        &[],
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"bad tool\"}}"}}}"#,
    );
    assert_eq!(error.message, "api.example.com refuses the request (400): Provider returned error: bad tool");
}

#[test]
fn an_error_inside_a_stream_is_typed_by_its_words_or_code() {
    let kind = |value: Value| in_stream(&endpoint(), &value).kind;
    let overloaded =
        serde_json::json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(kind(overloaded), ErrorKind::Overloaded { after: None });
    assert_eq!(kind(serde_json::json!({"message": "x", "code": 429})), ErrorKind::RateLimit { after: None });
    assert_eq!(kind(serde_json::json!({"message": "x", "code": "401"})), ErrorKind::Authentication);
    assert_eq!(kind(serde_json::json!({"message": "x"})), ErrorKind::Overloaded { after: None });
    assert_eq!(
        kind(serde_json::json!({"type": "invalid_request_error", "message": "prompt is too long: 3 tokens > 2"})),
        ErrorKind::ContextTooLong
    );
    assert_eq!(kind(Value::Null), ErrorKind::Overloaded { after: None });
}
