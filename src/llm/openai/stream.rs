//! Puts an answer together from the pieces of a Chat Completions stream. Servers deviate: ids
//! missing, indexes missing or always 0, names late or repeated, arguments whole or as objects,
//! no usage, no `[DONE]`, one document instead of a stream.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::request::PROTOCOL;
use crate::llm::chat::{
    Answer, ChatMessage, ChatRole, Content, Delta, FinishReason, ProviderData, Request, ToolCall, Usage,
};
use crate::llm::error::{ErrorKind, ProviderError};
use crate::llm::http::{Endpoint, EventSink, refusal_in_stream};
use crate::llm::sse::SseEvent;
use crate::llm::tool_ids;
use crate::llm::wire::Text;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, alias = "message")]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(default)]
    reasoning_details: Option<Vec<Value>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(borrow, default)]
    index: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let prompt = wire.prompt_tokens_details.unwrap_or_default();
        Self {
            prompt_tokens: wire.prompt_tokens.unwrap_or(0),
            completion_tokens: wire.completion_tokens.unwrap_or(0),
            cached_tokens: prompt.cached_tokens.or(wire.prompt_cache_hit_tokens).unwrap_or(0),
            cache_write_tokens: prompt.cache_write_tokens.unwrap_or(0),
            reasoning_tokens: wire.completion_tokens_details.and_then(|d| d.reasoning_tokens).unwrap_or(0),
        }
    }
}

/// An answer that grows.
pub struct Assembler<'a> {
    endpoint: &'a Endpoint,
    on_delta: &'a (dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    text: String,
    reasoning: String,
    reasoning_details: Vec<Value>,
    calls: Vec<OpenCall>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    is_done: bool,
    has_choice: bool,
}

#[derive(Default)]
struct OpenCall {
    index: Option<u64>,
    call: ToolCallParts,
    balance: Balance,
}

#[derive(Default)]
struct ToolCallParts {
    id: String,
    name: String,
    arguments: String,
}

impl<'a> Assembler<'a> {
    /// An empty answer.
    pub fn new(endpoint: &'a Endpoint, on_delta: &'a (dyn for<'d> Fn(Delta<'d>) + Send + Sync)) -> Self {
        Self {
            endpoint,
            on_delta,
            text: String::new(),
            reasoning: String::new(),
            reasoning_details: Vec::new(),
            calls: Vec::new(),
            finish: None,
            usage: None,
            is_done: false,
            has_choice: false,
        }
    }

    fn take(&mut self, json: &str) -> Result<(), ProviderError> {
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|_| self.endpoint.not_json(json.as_bytes()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(refusal_in_stream(self.endpoint, &error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        for choice in chunk.choices.into_iter().flatten() {
            self.has_choice = true;
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return Err(refusal_in_stream(self.endpoint, &error));
            }
            if let Some(piece) = choice.delta {
                self.take_piece(piece);
            }
            match Text::some(&choice.finish_reason) {
                None => {}
                Some("error") => {
                    let what = Value::from("the provider behind it failed mid-answer");
                    return Err(refusal_in_stream(self.endpoint, &what));
                }
                Some(word) => self.finish = Some(finish_reason(word)),
            }
        }
        Ok(())
    }

    fn take_piece(&mut self, piece: Piece<'_>) {
        let thought = Text::some(&piece.reasoning_content).or(Text::some(&piece.reasoning));
        if let Some(thought) = thought {
            (self.on_delta)(Delta::Thinking(thought));
        }
        // Only this field is known to be wanted back.
        self.reasoning.push_str(Text::some(&piece.reasoning_content).unwrap_or(""));
        for detail in piece.reasoning_details.into_iter().flatten() {
            append_detail(&mut self.reasoning_details, detail);
        }
        for text in [&piece.content, &piece.refusal].into_iter().filter_map(Text::some) {
            self.text.push_str(text);
            (self.on_delta)(Delta::Text(text));
        }
        for call in piece.tool_calls.into_iter().flatten() {
            self.take_call(&call);
        }
    }

    fn take_call(&mut self, piece: &CallPiece<'_>) {
        let id = Text::some(&piece.id);
        let name = piece.function.as_ref().and_then(|function| Text::some(&function.name));
        let arguments = piece.function.as_ref().and_then(|function| Text::some(&function.arguments)).unwrap_or("");
        let index = Text::some(&piece.index).and_then(|index| index.parse().ok());
        let at = self.slot(index, id, name, arguments);
        let open = &mut self.calls[at];
        if let Some(id) = id
            && open.call.id.is_empty()
        {
            open.call.id.push_str(id);
        }
        // A name may come late or be repeated with every piece, but it comes whole.
        let new_name = name.filter(|_| open.call.name.is_empty());
        if let Some(name) = new_name {
            open.call.name.push_str(name);
        }
        open.call.arguments.push_str(arguments);
        open.balance.take(arguments);
        if new_name.is_some() || !arguments.is_empty() {
            (self.on_delta)(Delta::ToolCall { index: at, name: new_name, arguments });
        }
    }

    /// Which call a piece belongs to. The index decides, unless id or name show that it is
    /// another call under the same index; without an index the newest call goes on.
    fn slot(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> usize {
        let found = match index {
            Some(_) => self.calls.iter().rposition(|open| open.index == index),
            None => self.calls.len().checked_sub(1),
        };
        if let Some(at) = found {
            let open = &self.calls[at];
            let other_id = id.is_some_and(|id| !open.call.id.is_empty() && open.call.id != id);
            let same_id = id.is_some_and(|id| open.call.id == id);
            let other_name = index.is_none() && name.is_some_and(|n| !open.call.name.is_empty() && open.call.name != n);
            let after_closed = name.is_some() && !arguments.is_empty() && open.balance.is_closed();
            let begins_anew = !same_id && (other_name || after_closed);
            if !other_id && !begins_anew {
                return at;
            }
            // The same id again, further back: servers that number nothing but name each piece.
            if let Some(id) = id
                && let Some(at) = self.calls.iter().position(|open| open.call.id == id)
            {
                return at;
            }
        }
        self.calls.push(OpenCall { index, ..OpenCall::default() });
        self.calls.len() - 1
    }

    /// The whole answer.
    ///
    /// # Errors
    /// When the stream ended before the answer did.
    pub fn finish(self, request: &Request) -> Result<Answer, ProviderError> {
        if !self.is_complete() || !self.has_choice {
            let host = self.endpoint.host();
            let how = if self.has_choice { "stopped mid-answer" } else { "ended its answer without saying anything" };
            return Err(self.endpoint.error(ErrorKind::Malformed, format!("{host} {how}")));
        }
        let was_cut = self.finish == Some(FinishReason::Length);
        let mut calls = Vec::with_capacity(self.calls.len());
        for open in self.calls {
            let ToolCallParts { id, name, arguments } = open.call;
            if !name.is_empty() {
                calls.push(ToolCall::new(id, name, if arguments.is_empty() { "{}".to_owned() } else { arguments }));
            } else if !was_cut {
                let what = format!("{} called a tool without naming it", self.endpoint.host());
                return Err(self.endpoint.error(ErrorKind::Malformed, what));
            }
        }
        tool_ids::make_unique(request, &mut calls);
        let finish = match self.finish {
            None | Some(FinishReason::Stop) if !calls.is_empty() => FinishReason::ToolCalls,
            None => FinishReason::Stop,
            Some(finish) => finish,
        };
        let mut message = ChatMessage::text(ChatRole::Assistant, "");
        let is_silent = self.text.is_empty() && !calls.is_empty();
        message.content = (!is_silent).then_some(Content::Text(self.text));
        message.provider_data = provider_data(&request.model, self.reasoning_details, self.reasoning, &calls);
        message.tool_calls = calls;
        Ok(Answer { message, finish, usage: self.usage })
    }
}

impl EventSink for Assembler<'_> {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<bool, ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(false);
        }
        if !data.is_empty() {
            self.take(data)?;
        }
        Ok(true)
    }

    fn whole(&mut self, document: &str) -> Result<(), ProviderError> {
        self.take(document)?;
        self.is_done = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.finish.is_some()
    }
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "stop" | "eos" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "safety" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// Joins the pieces of one detail, which carry the same type and index.
fn append_detail(details: &mut Vec<Value>, piece: Value) {
    if let (Some(Value::Object(last)), Value::Object(next)) = (details.last_mut(), &piece) {
        let same = |key: &str| last.get(key) == next.get(key);
        if same("type") && same("index") && next.contains_key("index") && !next.contains_key("data") {
            merge_detail(last, next);
            return;
        }
    }
    details.push(piece);
}

fn merge_detail(last: &mut Map<String, Value>, next: &Map<String, Value>) {
    for (key, value) in next {
        match (last.get_mut(key), value) {
            (Some(Value::String(whole)), Value::String(more)) if matches!(key.as_str(), "text" | "summary") => {
                whole.push_str(more);
            }
            (Some(Value::Null) | None, value) => {
                last.insert(key.clone(), value.clone());
            }
            (Some(_), _) => {}
        }
    }
}

/// What the model wants back with its tool calls. Reasoning without a tool call is not asked for
/// by anyone, and would be sent for nothing.
fn provider_data(model: &str, details: Vec<Value>, reasoning: String, calls: &[ToolCall]) -> Option<ProviderData> {
    let raw = if !details.is_empty() {
        serde_json::json!({ "reasoning_details": details })
    } else if !reasoning.is_empty() && !calls.is_empty() {
        serde_json::json!({ "reasoning_content": reasoning })
    } else {
        return None;
    };
    Some(ProviderData { protocol: PROTOCOL.to_owned(), model: model.to_owned(), raw })
}

/// Whether the JSON object read so far is closed; looks at each byte once.
#[derive(Default)]
struct Balance {
    depth: u32,
    has_begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Balance {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.has_begun = true;
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests;
