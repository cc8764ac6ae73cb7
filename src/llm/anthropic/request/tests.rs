use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::llm::chat::{Caller, ImageUrl, ProviderData, ToolSpec};

fn request(messages: Vec<ChatMessage>) -> Request {
    let tool =
        |name: &str| ToolSpec { name: name.into(), description: "d".into(), parameters: json!({"type": "object"}) };
    Request {
        model: "claude-x".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [tool("read"), tool("list")].into(),
        allow_tool_calls: true,
        temperature: Some(0.3),
        max_output_tokens: None,
        caller: Caller::default(),
    }
}

fn sent(request: &Request) -> Value {
    serde_json::from_slice(&body(request, Quirks::default())).unwrap()
}

fn calling(text: &str, calls: &[(&str, &str)]) -> ChatMessage {
    let mut message = ChatMessage::text(ChatRole::Assistant, text);
    message.tool_calls = calls.iter().map(|(id, arguments)| ToolCall::new(*id, "read", *arguments)).collect();
    message
}

fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage::tool_result(id, Content::Text(text.into()))
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::text(ChatRole::User, text)
}

fn conversation() -> Vec<ChatMessage> {
    vec![
        ChatMessage::text(ChatRole::System, "be good"),
        user("go"),
        calling("", &[("call_a", "{\"p\":1}"), ("functions.read:1", "half {")]),
        result("call_a", "one"),
        result("functions.read:1", ""),
        ChatMessage::text(ChatRole::System, "plan"),
        calling("  ", &[("toolu_9", "")]),
        result("toolu_9", "three"),
    ]
}

const MARK: fn() -> Value = || json!({"type": "ephemeral"});

#[test]
fn a_conversation_is_sent_in_the_provider_s_form() {
    let body = sent(&request(conversation()));
    assert_eq!(body["system"], json!([{"type": "text", "text": "be good", "cache_control": MARK()}]));
    assert_eq!(body["tools"][1], json!({"name": "list", "description": "d", "input_schema": {"type": "object"}}));
    assert_eq!(body["max_tokens"], 32_000);
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_a", "name": "read", "input": {"p": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"arguments_as_written": "half {"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "toolu_2"},
                {"type": "text", "text": "<system-message>\nplan\n</system-message>", "cache_control": MARK()},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_9", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_9", "content": "three", "cache_control": MARK()},
            ]},
        ])
    );
}

#[test]
fn a_longer_history_begins_with_the_same_bytes_but_for_cache_marks() {
    let messages = |upto: usize| {
        let body = String::from_utf8(body(&request(conversation()[..upto].to_vec()), Quirks::default())).unwrap();
        let body = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        body.strip_suffix("]}").unwrap().to_owned()
    };
    // Where the model is asked: before each answer, and at the end.
    for (shorter, longer) in [(2, 6), (6, 8), (2, 8)] {
        assert!(messages(longer).starts_with(&messages(shorter)), "{shorter} is no beginning of {longer}");
    }
}

#[test]
fn thinking_goes_back_to_its_own_model_only_and_in_its_place() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let mut answer = calling("I look.", &[("toolu_1", "{}")]);
    answer.provider_data = Some(ProviderData {
        protocol: PROTOCOL.into(),
        model: "claude-x".into(),
        raw: json!({"blocks": [thought, {"text_bytes": 7}, thought, {"tool_call": 0}]}),
    });
    let blocks = |answer: ChatMessage, model: &str| {
        let mut request = request(vec![user("go"), answer, result("toolu_1", "r")]);
        request.model = model.into();
        sent(&request)["messages"][1]["content"].clone()
    };
    let text = json!({"type": "text", "text": "I look."});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}});
    assert_eq!(blocks(answer.clone(), "claude-x"), json!([thought, text, thought, call]));
    assert_eq!(blocks(answer.clone(), "claude-y"), json!([text, call]));
    // The text is no longer what it was.
    answer.content = Some(Content::Text("I".into()));
    let text = json!({"type": "text", "text": "I"});
    assert_eq!(blocks(answer, "claude-x"), json!([thought, thought, text, call]));
}

#[test]
fn nothing_empty_is_ever_sent() {
    let body = sent(&request(vec![
        ChatMessage::text(ChatRole::System, " "),
        ChatMessage::text(ChatRole::Assistant, "first"),
        user(""),
        ChatMessage::text(ChatRole::Assistant, "\n"),
        user(" "),
    ]));
    assert_eq!(body.get("system"), None);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Continue."}]},
            {"role": "assistant", "content": [{"type": "text", "text": "first"}]},
            {"role": "user", "content": [{"type": "text", "text": "(no text)", "cache_control": MARK()}]},
        ])
    );
}

#[test]
fn tools_may_be_listed_but_forbidden() {
    let mut request = request(vec![user("go")]);
    request.allow_tool_calls = false;
    request.max_output_tokens = Some(100);
    let body = sent(&request);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert_eq!(body["tools"][1]["cache_control"], MARK(), "without a system prompt the tools end the stable prefix");
    assert_eq!(body["max_tokens"], 100);
}

#[test]
fn images_travel_in_messages_and_results() {
    let image = |url: &str| Part::ImageUrl { image_url: ImageUrl { url: url.into() } };
    let parts = Content::Parts(vec![Part::Text { text: "see".into() }, image("data:image/png;base64,aGk=")]);
    let mut message = user("");
    message.content = Some(Content::Parts(vec![image("https://example.com/a.png")]));
    let body = sent(&request(vec![message, calling("", &[("a", "{}")]), ChatMessage::tool_result("a", parts)]));
    assert_eq!(body["messages"][0]["content"][0]["source"], json!({"type": "url", "url": "https://example.com/a.png"}));
    assert_eq!(
        body["messages"][2]["content"][0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        ])
    );
}
