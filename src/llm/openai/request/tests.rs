use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::llm::chat::{Caller, ImageUrl, ProviderData, ToolCall, ToolSpec};

fn request(messages: Vec<ChatMessage>) -> Request {
    Request {
        model: "m".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [ToolSpec { name: "read".into(), description: "d".into(), parameters: json!({"type": "object"}) }]
            .into(),
        allow_tool_calls: true,
        temperature: Some(0.3),
        max_output_tokens: Some(50),
        caller: Caller::default(),
    }
}

fn sent(request: &Request, quirks: Quirks) -> Value {
    serde_json::from_slice(&body(request, quirks, IdRule::OpenAi)).unwrap()
}

fn conversation() -> Vec<ChatMessage> {
    let image = Part::ImageUrl { image_url: ImageUrl { url: "data:image/png;base64,aGk=".into() } };
    let mut call = ChatMessage::text(ChatRole::Assistant, "");
    call.content = None;
    call.tool_calls = vec![ToolCall::new("a", "read", "{\"p\": 1}"), ToolCall::new("a", "read", "half {")];
    vec![
        ChatMessage::text(ChatRole::System, "be good"),
        ChatMessage::text(ChatRole::User, "go"),
        call,
        ChatMessage::tool_result("a", Content::Parts(vec![Part::Text { text: "one".into() }, image])),
        ChatMessage::tool_result("a", Content::Text("two".into())),
        ChatMessage::text(ChatRole::Assistant, "done"),
        ChatMessage::text(ChatRole::User, "more"),
    ]
}

#[test]
fn a_conversation_is_sent_as_it_is_stored_but_for_what_servers_refuse() {
    let body = sent(&request(conversation()), Quirks::default());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"p\": 1}"}},
                {"id": "call_2", "type": "function",
                 "function": {"name": "read", "arguments": "{\"arguments_as_written\":\"half {\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": "two"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the tool results above:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "more"},
        ])
    );
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.3), &json!(50)));
    assert_eq!(body.get("tool_choice"), None);
}

#[test]
fn what_a_server_does_not_take_is_left_out() {
    let quirks = Quirks { no_temperature: true, completion_tokens: true, no_stream_options: true };
    let mut request = request(conversation());
    request.allow_tool_calls = false;
    let body = sent(&request, quirks);
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["model", "stream", "max_completion_tokens", "tools", "tool_choice", "messages"]);
    assert_eq!(body["tool_choice"], "none");
}

#[test]
fn a_longer_history_begins_with_the_same_bytes() {
    let bytes = |upto: usize| {
        let body = body(&request(conversation()[..upto].to_vec()), Quirks::default(), IdRule::OpenAi);
        body.strip_suffix(b"]}").unwrap().to_vec()
    };
    for (shorter, longer) in [(2, 5), (5, 7), (2, 7)] {
        assert!(bytes(longer).starts_with(&bytes(shorter)), "{shorter} is no beginning of {longer}");
    }
}

#[test]
fn reasoning_goes_back_to_its_own_model_only() {
    let mut answer = ChatMessage::text(ChatRole::Assistant, "hi");
    let raw = json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]});
    answer.provider_data = Some(ProviderData { protocol: PROTOCOL.into(), model: "m".into(), raw: raw.clone() });
    let message = |answer: ChatMessage| sent(&request(vec![answer]), Quirks::default())["messages"][0].clone();
    assert_eq!(message(answer.clone())["reasoning_details"], raw["reasoning_details"]);
    answer.provider_data.as_mut().unwrap().model = "other".into();
    assert_eq!(message(answer), json!({"role": "assistant", "content": "hi"}));
}
