//! A request in Chat Completions form, written from the history without a copy of it. The list of
//! messages only ever grows at its end from one request to the next.

use std::sync::Arc;

use super::Quirks;
use crate::llm::chat::{ChatMessage, ChatRole, Content, Part, Request};
use crate::llm::tool_ids::{IdRule, Rewrites};
use crate::llm::wire::{arguments_object, write_json, write_key, write_separator, write_str};

/// The protocol's name in provider data.
pub const PROTOCOL: &str = "openai";

/// Fields of an assistant message that its own model wants back.
const RETURNED: &[&str] = &["reasoning_details", "reasoning_content"];

/// The body of a request.
pub fn body(request: &Request, quirks: Quirks, ids: IdRule) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 * 1024);
    out.push(b'{');
    write_key(&mut out, "model");
    write_str(&mut out, &request.model);
    out.extend_from_slice(br#","stream":true"#);
    if !quirks.no_stream_options {
        out.extend_from_slice(br#","stream_options":{"include_usage":true}"#);
    }
    if let Some(temperature) = request.temperature.filter(|_| !quirks.no_temperature) {
        write_key(&mut out, "temperature");
        write_json(&mut out, &temperature);
    }
    if let Some(limit) = request.max_output_tokens {
        write_key(&mut out, if quirks.completion_tokens { "max_completion_tokens" } else { "max_tokens" });
        write_json(&mut out, &limit);
    }
    write_tools(&mut out, request);
    write_key(&mut out, "messages");
    write_messages(&mut out, request, ids);
    out.push(b'}');
    out
}

fn write_tools(out: &mut Vec<u8>, request: &Request) {
    if request.tools.is_empty() {
        return;
    }
    write_key(out, "tools");
    out.push(b'[');
    for tool in request.tools.iter() {
        write_separator(out);
        out.extend_from_slice(br#"{"type":"function","function":{"name":"#);
        write_str(out, &tool.name);
        write_key(out, "description");
        write_str(out, &tool.description);
        write_key(out, "parameters");
        write_json(out, &tool.parameters);
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
    if !request.allow_tool_calls {
        out.extend_from_slice(br#","tool_choice":"none""#);
    }
}

fn write_messages(out: &mut Vec<u8>, request: &Request, ids: IdRule) {
    let rewrites = Rewrites::plan(&request.messages, ids);
    let mut images: Vec<&Part> = Vec::new();
    out.push(b'[');
    for (at, message) in request.messages.iter().enumerate() {
        if message.role != ChatRole::Tool {
            write_tool_images(out, &mut images);
        }
        write_separator(out);
        write_message(out, message, at, &rewrites, &request.model);
        if message.role == ChatRole::Tool {
            images.extend(images_of(message));
        }
    }
    write_tool_images(out, &mut images);
    out.push(b']');
}

/// Tool messages hold text only in this protocol; their images follow in a user message, after
/// all results of the same answer.
fn write_tool_images(out: &mut Vec<u8>, images: &mut Vec<&Part>) {
    if images.is_empty() {
        return;
    }
    write_separator(out);
    out.extend_from_slice(br#"{"role":"user","content":[{"type":"text","text":"Images from the tool results above:"}"#);
    for image in images.drain(..) {
        write_separator(out);
        write_json(out, image);
    }
    out.extend_from_slice(b"]}");
}

fn images_of(message: &ChatMessage) -> impl Iterator<Item = &Part> {
    let parts = match &message.content {
        Some(Content::Parts(parts)) => parts.as_slice(),
        Some(Content::Text(_)) | None => &[],
    };
    parts.iter().filter(|part| matches!(part, Part::ImageUrl { .. }))
}

fn write_message(out: &mut Vec<u8>, message: &Arc<ChatMessage>, at: usize, rewrites: &Rewrites, model: &str) {
    out.push(b'{');
    write_key(out, "role");
    write_str(out, message.role.word());
    if let Some(id) = message.tool_call_id.as_deref().filter(|_| message.role == ChatRole::Tool) {
        write_key(out, "tool_call_id");
        write_str(out, rewrites.sent(at, 0, id));
    }
    write_key(out, "content");
    write_content(out, message);
    if !message.tool_calls.is_empty() {
        write_calls(out, message, at, rewrites);
    }
    write_returned(out, message, model);
    out.push(b'}');
}

fn write_content(out: &mut Vec<u8>, message: &ChatMessage) {
    match &message.content {
        Some(Content::Text(text)) => write_str(out, text),
        Some(Content::Parts(parts)) if message.role == ChatRole::User => write_json(out, parts),
        Some(content @ Content::Parts(_)) => write_str(out, &content.plain_text()),
        None if message.tool_calls.is_empty() => write_str(out, ""),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_calls(out: &mut Vec<u8>, message: &ChatMessage, at: usize, rewrites: &Rewrites) {
    write_key(out, "tool_calls");
    out.push(b'[');
    for (index, call) in message.tool_calls.iter().enumerate() {
        write_separator(out);
        out.push(b'{');
        write_key(out, "id");
        write_str(out, rewrites.sent(at, index, &call.id));
        out.extend_from_slice(br#","type":"function","function":{"name":"#);
        write_str(out, &call.function.name);
        write_key(out, "arguments");
        write_str(out, &arguments_object(&call.function.arguments));
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
}

/// What only the model that made it may get back.
fn write_returned(out: &mut Vec<u8>, message: &ChatMessage, model: &str) {
    let Some(data) = message.provider_data.as_ref().filter(|data| data.protocol == PROTOCOL && data.model == model)
    else {
        return;
    };
    for field in RETURNED {
        if let Some(value) = data.raw.get(field) {
            write_key(out, field);
            write_json(out, value);
        }
    }
}
