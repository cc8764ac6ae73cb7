use std::collections::BTreeMap;
use std::sync::Mutex;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::llm::chat::Caller;
use crate::llm::http::Auth;

fn endpoint() -> Endpoint {
    Endpoint::new("mine", "https://api.example.com/v1", Auth::Bearer, None, None, &BTreeMap::new()).unwrap()
}

fn request() -> Request {
    Request {
        model: "m".into(),
        messages: Vec::new(),
        tools: [].into(),
        allow_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        caller: Caller::default(),
    }
}

/// Feeds each value as one event, then `[DONE]` unless told otherwise.
fn assemble(events: &[Value], done: bool) -> (Result<Answer, ProviderError>, Vec<String>) {
    let endpoint = endpoint();
    let deltas = Mutex::new(Vec::new());
    let record = |delta: Delta<'_>| deltas.lock().unwrap().push(format!("{delta:?}"));
    let mut assembler = Assembler::new(&endpoint, &record);
    let mut outcome = Ok(true);
    let end = [json!("[DONE]")];
    for event in events.iter().chain(if done { &end[..] } else { &[] }) {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        outcome = assembler.event(&SseEvent { name: "".into(), data: data.into() });
        if outcome.is_err() {
            break;
        }
    }
    let answer = match outcome {
        Ok(_) => assembler.finish(&request()),
        Err(error) => Err(error),
    };
    (answer, deltas.into_inner().unwrap())
}

fn delta(delta: Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(pieces: &[Value]) -> Vec<Value> {
    let mut events: Vec<Value> = pieces.iter().map(|piece| delta(json!({ "tool_calls": [piece] }))).collect();
    events.push(finish("tool_calls"));
    events
}

#[track_caller]
fn check_calls(pieces: &[Value], expected: &[(&str, &str, &str)]) {
    let (answer, _) = assemble(&calls(pieces), true);
    let answer = answer.unwrap();
    let got: Vec<(&str, &str, &str)> = answer
        .message
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), call.function.name.as_str(), call.function.arguments.as_str()))
        .collect();
    assert_eq!(got, expected);
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert_eq!(answer.message.content, None);
}

#[test]
fn text_reasoning_and_usage_are_gathered() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}});
    let events = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "hm"})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        finish("stop"),
        usage,
    ];
    let (answer, deltas) = assemble(&events, true);
    let answer = answer.unwrap();
    assert_eq!(answer.message, ChatMessage::text(ChatRole::Assistant, "Hello"));
    assert_eq!(answer.finish, FinishReason::Stop);
    let expected =
        Usage { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 4, cache_write_tokens: 0, reasoning_tokens: 2 };
    assert_eq!(answer.usage, Some(expected));
    assert_eq!(deltas, ["Thinking(\"hm\")", "Text(\"Hel\")", "Text(\"lo\")"]);
}

#[test]
fn calls_in_pieces_are_put_together() {
    check_calls(
        &[
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"p\":"}}),
            json!({"index": 1, "id": "b", "function": {"name": "list", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "1}"}}),
            json!({"index": 1, "function": {"arguments": "{}"}}),
        ],
        &[("a", "read", "{\"p\":1}"), ("b", "list", "{}")],
    );
}

#[test]
fn every_known_deviation_of_calls_is_understood() {
    // The index restarts, or is always 0, but the ids differ.
    check_calls(
        &[
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\":1}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "list", "arguments": "{}"}}),
        ],
        &[("a", "read", "{\"p\":1}"), ("b", "list", "{}")],
    );
    // No ids at all, whole arguments in one piece, the same index.
    check_calls(
        &[
            json!({"index": 0, "function": {"name": "read", "arguments": "{\"p\":\"}\"}"}}),
            json!({"index": 0, "function": {"name": "read", "arguments": "{\"p\":2}"}}),
        ],
        &[("call_0_0", "read", "{\"p\":\"}\"}"), ("call_0_1", "read", "{\"p\":2}")],
    );
    // No index, arguments in pieces.
    check_calls(
        &[
            json!({"id": "a", "function": {"name": "read", "arguments": "{\"p\""}}),
            json!({"function": {"arguments": ":1}"}}),
            json!({"id": "b", "function": {"name": "list"}}),
        ],
        &[("a", "read", "{\"p\":1}"), ("b", "list", "{}")],
    );
    // Id and name repeated with every piece; the name late; arguments as an object; an index as text.
    check_calls(
        &[
            json!({"index": 0, "id": "a"}),
            json!({"index": 0, "id": "a", "function": {"name": "read"}}),
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}),
            json!({"index": "1", "id": "", "function": {"name": "list", "arguments": {"deep": [1]}}}),
        ],
        &[("a", "read", "{}"), ("call_0_1", "list", "{\"deep\":[1]}")],
    );
    // The same id twice is made unique.
    check_calls(
        &[
            json!({"index": 0, "id": "call", "function": {"name": "read", "arguments": "{}"}}),
            json!({"index": 1, "id": "call", "function": {"name": "list", "arguments": "{}"}}),
        ],
        &[("call", "read", "{}"), ("call_0_1", "list", "{}")],
    );
}

#[test]
fn an_answer_is_complete_with_a_finish_reason_or_the_end_marker() {
    let text = delta(json!({"content": "hi"}));
    assert!(assemble(&[text.clone(), finish("stop")], false).0.is_ok());
    assert!(assemble(std::slice::from_ref(&text), true).0.is_ok());
    let error = assemble(&[text], false).0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Malformed);
    assert_eq!(error.to_string(), "mine: api.example.com stopped mid-answer");
    assert_eq!(assemble(&[], true).0.unwrap_err().kind, ErrorKind::Malformed);
}

#[test]
fn a_finish_reason_follows_from_what_was_said() {
    let call = json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}});
    let mut events = calls(&[call]);
    *events.last_mut().unwrap() = finish("stop");
    assert_eq!(assemble(&events, true).0.unwrap().finish, FinishReason::ToolCalls);
    let cut = [delta(json!({"content": "hi"})), finish("length")];
    assert_eq!(assemble(&cut, true).0.unwrap().finish, FinishReason::Length);
    let nameless = calls(&[json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})]);
    assert_eq!(assemble(&nameless, true).0.unwrap_err().kind, ErrorKind::Malformed);
}

#[test]
fn errors_inside_a_stream_are_typed() {
    let begun = delta(json!({"content": "hi"}));
    let error = |event: Value| assemble(&[begun.clone(), event], true).0.unwrap_err().kind;
    let overloaded = json!({"error": {"message": "busy", "code": 502}});
    assert_eq!(error(overloaded), ErrorKind::Overloaded { after: None });
    let inside =
        json!({"choices": [{"delta": {}, "error": {"message": "slow", "code": 429}, "finish_reason": "error"}]});
    assert_eq!(error(inside), ErrorKind::RateLimit { after: None });
    assert_eq!(error(finish("error")), ErrorKind::Overloaded { after: None });
    assert_eq!(error(json!("<html>")), ErrorKind::BadRequest);
    assert_eq!(error(json!("{\"choices\":")), ErrorKind::Malformed);
}

#[test]
fn a_whole_document_is_an_answer_too() {
    let endpoint = endpoint();
    let mut assembler = Assembler::new(&endpoint, &|_| {});
    let document = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
    assembler.whole(&document.to_string()).unwrap();
    assert_eq!(assembler.finish(&request()).unwrap().message.plain_text(), "hi");
}

#[test]
fn what_the_model_wants_back_is_kept() {
    let call = json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}});
    let events = [
        delta(json!({"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]})),
        delta(json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"}]})),
        delta(json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "zz"}]})),
        delta(json!({"tool_calls": [call]})),
        finish("tool_calls"),
    ];
    let data = assemble(&events, true).0.unwrap().message.provider_data.unwrap();
    assert_eq!(
        data.raw,
        json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 1, "data": "zz"},
        ]})
    );
    let mut events = calls(&[json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}})]);
    events.insert(0, delta(json!({"reasoning_content": "hm"})));
    let data = assemble(&events, true).0.unwrap().message.provider_data.unwrap();
    assert_eq!(data.raw, json!({"reasoning_content": "hm"}));
}
