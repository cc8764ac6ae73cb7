//! A request in Anthropic's form, written from the history without a copy of it. Leading system
//! messages go to the top level; all that the user's side says between two answers, tool results
//! first, is one user message (B103). Apart from cache marks, the list of messages only ever
//! grows at its end.

use std::sync::Arc;

use serde_json::Value;

use super::Quirks;
use crate::llm::chat::{ChatMessage, ChatRole, Content, Part, Request, ToolCall};
use crate::llm::tool_ids::{IdRule, Rewrites};
use crate::llm::wire::{arguments_object, data_url, write_json, write_key, write_separator, write_str};

/// The protocol's name in provider data.
pub const PROTOCOL: &str = "anthropic";

const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The body of a request.
pub fn body(request: &Request, quirks: Quirks) -> Vec<u8> {
    let (system, rest) = split_system(&request.messages);
    let mut out = Vec::with_capacity(16 * 1024);
    out.push(b'{');
    write_key(&mut out, "model");
    write_str(&mut out, &request.model);
    write_key(&mut out, "max_tokens");
    write_json(&mut out, &most_tokens(request, quirks));
    out.extend_from_slice(br#","stream":true"#);
    if let Some(temperature) = request.temperature.filter(|_| !quirks.no_temperature) {
        write_key(&mut out, "temperature");
        write_json(&mut out, &temperature.clamp(0.0, 1.0));
    }
    write_tools(&mut out, request, system.is_empty());
    write_system(&mut out, system);
    write_key(&mut out, "messages");
    write_messages(&mut out, request, rest, system.len());
    out.push(b'}');
    out
}

/// What is asked for when the caller does not say: this protocol wants a number.
fn most_tokens(request: &Request, quirks: Quirks) -> u32 {
    let model = request.model.as_str();
    let usual = if ["claude-3-opus", "claude-3-sonnet", "claude-3-haiku"].iter().any(|old| model.starts_with(old)) {
        4096
    } else if model.starts_with("claude-3-5") {
        8192
    } else {
        32_000
    };
    let wanted = request.max_output_tokens.unwrap_or(usual);
    quirks.most_tokens.map_or(wanted, |most| wanted.min(most))
}

/// Leading system messages with something in them, and the rest.
fn split_system(messages: &[Arc<ChatMessage>]) -> (&[Arc<ChatMessage>], &[Arc<ChatMessage>]) {
    let leading = messages.iter().take_while(|message| message.role == ChatRole::System).count();
    messages.split_at(leading)
}

fn write_tools(out: &mut Vec<u8>, request: &Request, mark_last: bool) {
    if request.tools.is_empty() {
        return;
    }
    write_key(out, "tools");
    out.push(b'[');
    for (at, tool) in request.tools.iter().enumerate() {
        write_separator(out);
        out.push(b'{');
        write_key(out, "name");
        write_str(out, &tool.name);
        write_key(out, "description");
        write_str(out, &tool.description);
        write_key(out, "input_schema");
        write_json(out, &tool.parameters);
        if mark_last && at + 1 == request.tools.len() {
            out.extend_from_slice(CACHE_MARK);
        }
        out.push(b'}');
    }
    out.push(b']');
    if !request.allow_tool_calls {
        out.extend_from_slice(br#","tool_choice":{"type":"none"}"#);
    }
}

/// One block per system message; the mark on the last covers the tools too.
fn write_system(out: &mut Vec<u8>, system: &[Arc<ChatMessage>]) {
    let texts: Vec<String> =
        system.iter().map(|message| message.plain_text()).filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() {
        return;
    }
    write_key(out, "system");
    out.push(b'[');
    for (at, text) in texts.iter().enumerate() {
        write_separator(out);
        write_text_block(out, text, at + 1 == texts.len());
    }
    out.push(b']');
}

/// Messages in a row that are sent as one.
struct Run<'a> {
    is_assistant: bool,
    messages: Vec<(usize, &'a ChatMessage)>,
}

fn write_messages(out: &mut Vec<u8>, request: &Request, messages: &[Arc<ChatMessage>], offset: usize) {
    let rewrites = Rewrites::plan(&request.messages, IdRule::Anthropic);
    let runs = runs(messages, offset);
    let user_runs: Vec<usize> = (0..runs.len()).filter(|at| !runs[*at].is_assistant).collect();
    // The newest end of what was sent, and the one before, which the previous request wrote to
    // the cache: however much a turn adds, that one is found again.
    let marked = &user_runs[user_runs.len().saturating_sub(2)..];
    out.push(b'[');
    if runs.first().is_none_or(|run| run.is_assistant) {
        out.extend_from_slice(br#"{"role":"user","content":[{"type":"text","text":"Continue."}]}"#);
    }
    for (at, run) in runs.iter().enumerate() {
        write_separator(out);
        out.extend_from_slice(br#"{"role":"#);
        write_str(out, if run.is_assistant { "assistant" } else { "user" });
        out.extend_from_slice(br#","content":["#);
        if run.is_assistant {
            for (at, message) in &run.messages {
                write_assistant_blocks(out, message, *at, &rewrites, &request.model);
            }
        } else {
            write_user_blocks(out, run, &rewrites, marked.contains(&at));
        }
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
}

/// An answer of which nothing can be sent (it only held another model's reasoning, say) is left
/// out, and the user's side joined around it.
fn runs(messages: &[Arc<ChatMessage>], offset: usize) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let is_assistant = message.role == ChatRole::Assistant;
        if is_assistant && message.tool_calls.is_empty() && message.plain_text().trim().is_empty() {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.is_assistant == is_assistant => run.messages.push((at + offset, message)),
            Some(_) | None => runs.push(Run { is_assistant, messages: vec![(at + offset, message)] }),
        }
    }
    runs
}

fn write_user_blocks(out: &mut Vec<u8>, run: &Run<'_>, rewrites: &Rewrites, mark_last: bool) {
    let begin = out.len();
    let mut last_block = None;
    for (at, message) in run.messages.iter().filter(|(_, message)| message.role == ChatRole::Tool) {
        last_block = Some(write_tool_result(out, message, *at, rewrites));
    }
    for (_, message) in run.messages.iter().filter(|(_, message)| message.role != ChatRole::Tool) {
        let is_system = message.role == ChatRole::System;
        last_block = write_parts(out, message.content.as_ref(), is_system).or(last_block);
    }
    if out.len() == begin {
        last_block = Some(write_text_block(out, "(no text)", false));
    }
    if mark_last && let Some(end) = last_block {
        // Before the closing brace of the newest block.
        out.splice(end - 1..end - 1, CACHE_MARK.iter().copied());
    }
}

/// Returns the end of the block.
fn write_tool_result(out: &mut Vec<u8>, message: &ChatMessage, at: usize, rewrites: &Rewrites) -> usize {
    write_separator(out);
    out.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
    write_str(out, rewrites.sent(at, 0, message.tool_call_id.as_deref().unwrap_or("")));
    match &message.content {
        None => {}
        Some(Content::Text(text)) if text.is_empty() => {}
        Some(Content::Text(text)) => {
            write_key(out, "content");
            write_str(out, text);
        }
        Some(parts @ Content::Parts(_)) => {
            write_key(out, "content");
            out.push(b'[');
            write_parts(out, Some(parts), false);
            out.push(b']');
        }
    }
    out.push(b'}');
    out.len()
}

/// Returns the end of the last block, if there was one. Blocks without text are refused by the
/// provider, so they are left out.
fn write_parts(out: &mut Vec<u8>, content: Option<&Content>, is_system: bool) -> Option<usize> {
    let mut end = None;
    match content {
        None => {}
        Some(Content::Text(text)) => end = write_said(out, text, is_system),
        Some(Content::Parts(parts)) => {
            for part in parts {
                end = match part {
                    Part::Text { text } => write_said(out, text, is_system),
                    Part::ImageUrl { image_url } => Some(write_image(out, &image_url.url)),
                }
                .or(end);
            }
        }
    }
    end
}

/// A system message in the middle can only travel as the user's text; its mark says whose it is.
fn write_said(out: &mut Vec<u8>, text: &str, is_system: bool) -> Option<usize> {
    if text.trim().is_empty() {
        return None;
    }
    write_separator(out);
    Some(if is_system {
        write_text_block(out, &format!("<system-message>\n{text}\n</system-message>"), false)
    } else {
        write_text_block(out, text, false)
    })
}

fn write_text_block(out: &mut Vec<u8>, text: &str, mark: bool) -> usize {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    write_str(out, text);
    if mark {
        out.extend_from_slice(CACHE_MARK);
    }
    out.push(b'}');
    out.len()
}

fn write_image(out: &mut Vec<u8>, url: &str) -> usize {
    write_separator(out);
    out.extend_from_slice(br#"{"type":"image","source":{"#);
    match data_url(url) {
        Some((media_type, data)) => {
            out.extend_from_slice(br#""type":"base64","media_type":"#);
            write_str(out, media_type);
            write_key(out, "data");
            write_str(out, data);
        }
        None => {
            out.extend_from_slice(br#""type":"url","url":"#);
            write_str(out, url);
        }
    }
    out.extend_from_slice(b"}}");
    out.len()
}

fn write_assistant_blocks(out: &mut Vec<u8>, message: &ChatMessage, at: usize, rewrites: &Rewrites, model: &str) {
    let text = message.plain_text();
    let own = message.provider_data.as_ref().filter(|data| data.protocol == PROTOCOL && data.model == model);
    let blocks = own.and_then(|data| data.raw.get("blocks")?.as_array());
    let Some(order) = blocks.map(|blocks| in_order(blocks, &text, message.tool_calls.len())) else {
        write_answer_text(out, &text);
        write_calls(out, &message.tool_calls, at, rewrites);
        return;
    };
    for piece in order {
        match piece {
            Piece::Opaque(block) => {
                write_separator(out);
                write_json(out, block);
            }
            Piece::Text(text) => write_answer_text(out, text),
            Piece::Call(index) => write_call(out, &message.tool_calls[index], at, index, rewrites),
        }
    }
}

/// One block of an answer as its model made it.
enum Piece<'a> {
    Opaque(&'a Value),
    Text(&'a str),
    Call(usize),
}

/// The blocks in the order they came. When text or calls are not what they were (the harness may
/// mend an answer), the opaque ones go first, as they usually came.
fn in_order<'a>(blocks: &'a [Value], text: &'a str, calls: usize) -> Vec<Piece<'a>> {
    let mut pieces = Vec::with_capacity(blocks.len());
    let mut at = 0_usize;
    let mut next_call = 0;
    let mut fits = true;
    for block in blocks {
        if let Some(length) = block.get("text_bytes").and_then(Value::as_u64) {
            let end = at.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            match text.get(at..end) {
                Some(piece) => pieces.push(Piece::Text(piece)),
                None => fits = false,
            }
            at = end;
        } else if block.get("tool_call").is_some() {
            pieces.push(Piece::Call(next_call));
            next_call += 1;
        } else {
            pieces.push(Piece::Opaque(block));
        }
    }
    if fits && at == text.len() && next_call == calls {
        return pieces;
    }
    pieces.retain(|piece| matches!(piece, Piece::Opaque(_)));
    pieces.push(Piece::Text(text));
    pieces.extend((0..calls).map(Piece::Call));
    pieces
}

fn write_answer_text(out: &mut Vec<u8>, text: &str) {
    if !text.trim().is_empty() {
        write_separator(out);
        write_text_block(out, text, false);
    }
}

fn write_calls(out: &mut Vec<u8>, calls: &[ToolCall], at: usize, rewrites: &Rewrites) {
    for (index, call) in calls.iter().enumerate() {
        write_call(out, call, at, index, rewrites);
    }
}

fn write_call(out: &mut Vec<u8>, call: &ToolCall, at: usize, index: usize, rewrites: &Rewrites) {
    write_separator(out);
    out.extend_from_slice(br#"{"type":"tool_use","id":"#);
    write_str(out, rewrites.sent(at, index, &call.id));
    write_key(out, "name");
    write_str(out, &call.function.name);
    write_key(out, "input");
    out.extend_from_slice(arguments_object(&call.function.arguments).as_bytes());
    out.push(b'}');
}

#[cfg(test)]
mod tests;
