use std::collections::BTreeMap;
use std::sync::Mutex;

use pretty_assertions::assert_eq;

use super::*;
use crate::llm::chat::Caller;
use crate::llm::http::Auth;

fn endpoint() -> Endpoint {
    Endpoint::new("anthropic", "https://api.example.com", Auth::ApiKeyHeader, None, None, &BTreeMap::new()).unwrap()
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

fn assemble(events: &[Value]) -> (Result<Answer, ProviderError>, Vec<String>) {
    let endpoint = endpoint();
    let deltas = Mutex::new(Vec::new());
    let record = |delta: Delta<'_>| deltas.lock().unwrap().push(format!("{delta:?}"));
    let mut assembler = Assembler::new(&endpoint, &record);
    for event in events {
        if let Err(error) = assembler.event(&SseEvent { name: "".into(), data: event.to_string().into() }) {
            return (Err(error), deltas.into_inner().unwrap());
        }
    }
    (assembler.finish(&request()), deltas.into_inner().unwrap())
}

fn start(index: usize, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

fn thinking_then_call() -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "zz"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I look."})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"p\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "1}"})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}})),
        stop(4),
    ];
    events.extend(end("tool_use"));
    events
}

#[test]
fn text_calls_usage_and_thinking_are_gathered() {
    let (answer, deltas) = assemble(&thinking_then_call());
    let answer = answer.unwrap();
    assert_eq!(answer.message.plain_text(), "I look.");
    assert_eq!(
        answer.message.tool_calls,
        [ToolCall::new("toolu_1", "read", "{\"p\":1}"), ToolCall::new("toolu_2", "list", "{}")]
    );
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    let expected =
        Usage { prompt_tokens: 10, completion_tokens: 9, cached_tokens: 5, cache_write_tokens: 2, reasoning_tokens: 0 };
    assert_eq!(answer.usage, Some(expected));
    let data = answer.message.provider_data.unwrap();
    assert_eq!((data.protocol.as_str(), data.model.as_str()), ("anthropic", "m"));
    assert_eq!(
        data.raw,
        json!({"blocks": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "zz"},
            {"text_bytes": 7},
            {"tool_call": 0},
            {"tool_call": 1},
        ]})
    );
    assert_eq!(
        deltas,
        [
            "Thinking(\"h\")",
            "Thinking(\"m\")",
            "Text(\"I look.\")",
            "ToolCall { index: 0, name: Some(\"read\"), arguments: \"\" }",
            "ToolCall { index: 0, name: None, arguments: \"{\\\"p\\\":\" }",
            "ToolCall { index: 0, name: None, arguments: \"1}\" }",
            "ToolCall { index: 1, name: Some(\"list\"), arguments: \"\" }",
        ]
    );
}

#[test]
fn a_stream_that_ends_early_is_no_answer() {
    let events = thinking_then_call();
    let cut = &events[..events.len() - 2];
    assert_eq!(assemble(cut).0.unwrap_err().to_string(), "anthropic: api.example.com stopped mid-answer");
    assert!(assemble(&events[..events.len() - 1]).0.is_ok(), "only the end marker is missing");
}

#[test]
fn errors_inside_a_stream_are_typed() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(assemble(&[error]).0.unwrap_err().kind, ErrorKind::Overloaded { after: None });
}

#[test]
fn a_plain_answer_keeps_nothing_for_its_provider() {
    let mut events = vec![delta(0, json!({"type": "text_delta", "text": "begun without a start"}))];
    events.extend(end("max_tokens"));
    let answer = assemble(&events).0.unwrap();
    assert_eq!(answer.message, ChatMessage::text(ChatRole::Assistant, "begun without a start"));
    assert_eq!(answer.finish, FinishReason::Length);
    let mut events = vec![
        start(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "cut off"})),
    ];
    events.extend(end("max_tokens"));
    assert_eq!(assemble(&events).0.unwrap().message.provider_data, None);
}

#[test]
fn a_whole_document_is_an_answer_too() {
    let endpoint = endpoint();
    let mut assembler = Assembler::new(&endpoint, &|_| {});
    let document = json!({"content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}});
    assembler.whole(&document.to_string()).unwrap();
    let answer = assembler.finish(&request()).unwrap();
    assert_eq!(answer.message.tool_calls, [ToolCall::new("t", "n", "{\"a\":1}")]);
    assert_eq!(answer.usage.unwrap().completion_tokens, 2);
}
