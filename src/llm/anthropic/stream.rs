//! Puts an answer together from the events of a Messages stream. Blocks that mean something only
//! to their provider (thinking and its signature) are kept as they came, in their place.

use serde::Deserialize;
use serde_json::{Value, json};

use super::request::PROTOCOL;
use crate::llm::chat::{
    Answer, ChatMessage, ChatRole, Content, Delta, FinishReason, ProviderData, Request, ToolCall, Usage,
};
use crate::llm::error::{ErrorKind, ProviderError};
use crate::llm::http::{Endpoint, EventSink, refusal_in_stream};
use crate::llm::sse::SseEvent;
use crate::llm::tool_ids;
use crate::llm::wire::Text;

/// Every event in one flat form: a tagged enum would copy each piece before it is read.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: usize,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(default)]
    content_block: Option<Value>,
    #[serde(default)]
    message: Option<Start>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl WireUsage {
    /// Later numbers replace earlier ones; they count from the start of the answer.
    fn update(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
    }
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let cached = wire.cache_read_input_tokens.unwrap_or(0);
        let written = wire.cache_creation_input_tokens.unwrap_or(0);
        Self {
            // This protocol counts cached tokens apart.
            prompt_tokens: wire.input_tokens.unwrap_or(0) + cached + written,
            completion_tokens: wire.output_tokens.unwrap_or(0),
            cached_tokens: cached,
            cache_write_tokens: written,
            reasoning_tokens: 0,
        }
    }
}

/// A block that grows.
#[derive(Debug)]
enum Block {
    Text {
        text: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
        position: usize,
    },
    Thinking {
        raw: Value,
        thinking: String,
        signature: String,
        is_closed: bool,
    },
    /// Anything else, as it began.
    Opaque(Value),
}

/// An answer that grows.
pub struct Assembler<'a> {
    endpoint: &'a Endpoint,
    on_delta: &'a (dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    /// By the index of the stream; those that begin twice or late are put at the end.
    blocks: Vec<(usize, Block)>,
    usage: Option<WireUsage>,
    stop_reason: Option<FinishReason>,
    is_done: bool,
}

impl<'a> Assembler<'a> {
    /// An empty answer.
    pub fn new(endpoint: &'a Endpoint, on_delta: &'a (dyn for<'d> Fn(Delta<'d>) + Send + Sync)) -> Self {
        Self { endpoint, on_delta, blocks: Vec::new(), usage: None, stop_reason: None, is_done: false }
    }

    fn begin(&mut self, index: usize, block: Value) {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let block = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                let text = field("text");
                if !text.is_empty() {
                    (self.on_delta)(Delta::Text(&text));
                }
                Block::Text { text }
            }
            Some("tool_use") => {
                let position = self.calls();
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                let (id, name) = (field("id"), field("name"));
                (self.on_delta)(Delta::ToolCall { index: position, name: Some(&name), arguments: &arguments });
                Block::Call { id, name, arguments, position }
            }
            Some("thinking") => {
                let (thinking, signature) = (field("thinking"), field("signature"));
                if !thinking.is_empty() {
                    (self.on_delta)(Delta::Thinking(&thinking));
                }
                Block::Thinking { raw: block, thinking, signature, is_closed: false }
            }
            Some(_) | None => Block::Opaque(block),
        };
        self.blocks.push((index, block));
    }

    fn calls(&self) -> usize {
        self.blocks.iter().filter(|(_, block)| matches!(block, Block::Call { .. })).count()
    }

    fn grow(&mut self, index: usize, piece: &Piece<'_>) {
        if let Some(text) = Text::some(&piece.text) {
            match self.open(index, "text") {
                Some(Block::Text { text: whole }) => whole.push_str(text),
                Some(Block::Call { .. } | Block::Thinking { .. } | Block::Opaque(_)) | None => return,
            }
            (self.on_delta)(Delta::Text(text));
        }
        if let Some(thought) = Text::some(&piece.thinking) {
            match self.open(index, "thinking") {
                Some(Block::Thinking { thinking, .. }) => thinking.push_str(thought),
                Some(Block::Text { .. } | Block::Call { .. } | Block::Opaque(_)) | None => return,
            }
            (self.on_delta)(Delta::Thinking(thought));
        }
        if let Some(more) = Text::some(&piece.signature)
            && let Some(Block::Thinking { signature, .. }) = self.open(index, "thinking")
        {
            signature.push_str(more);
        }
        if let Some(json) = Text::some(&piece.partial_json) {
            // Arguments need their call: without its beginning there is no name to call.
            let Some((_, Block::Call { arguments, position, .. })) = self.find(index) else { return };
            arguments.push_str(json);
            let index = *position;
            (self.on_delta)(Delta::ToolCall { index, name: None, arguments: json });
        }
    }

    fn find(&mut self, index: usize) -> Option<&mut (usize, Block)> {
        self.blocks.iter_mut().rev().find(|(known, _)| *known == index)
    }

    /// The block of `index`, begun now when the stream forgot to.
    fn open(&mut self, index: usize, kind: &str) -> Option<&mut Block> {
        if self.find(index).is_none() {
            self.begin(index, json!({ "type": kind }));
        }
        self.find(index).map(|(_, block)| block)
    }

    fn take(&mut self, json: &str) -> Result<bool, ProviderError> {
        let event: Event<'_> = serde_json::from_str(json).map_err(|_| self.endpoint.not_json(json.as_bytes()))?;
        if let Some(error) = &event.error {
            return Err(refusal_in_stream(self.endpoint, error));
        }
        if let Some(usage) = event.usage.or(event.message.and_then(|message| message.usage)) {
            self.usage.get_or_insert_default().update(usage);
        }
        match event.kind.0.as_ref() {
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index, block);
                }
            }
            "content_block_delta" => self.grow(event.index, &event.delta.unwrap_or_default()),
            "content_block_stop" => {
                if let Some((_, Block::Thinking { is_closed, .. })) = self.find(event.index) {
                    *is_closed = true;
                }
            }
            "message_delta" => {
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = Text::some(&reason).map(finish_reason).or(self.stop_reason);
            }
            "message_stop" => {
                self.is_done = true;
                return Ok(false);
            }
            // `message_start` has been read above; `ping` and what is not known yet say nothing.
            _ => {}
        }
        Ok(true)
    }

    /// The whole answer.
    ///
    /// # Errors
    /// When the stream ended before the answer did.
    pub fn finish(self, request: &Request) -> Result<Answer, ProviderError> {
        if !self.is_complete() {
            let how = format!("{} stopped mid-answer", self.endpoint.host());
            return Err(self.endpoint.error(ErrorKind::Malformed, how));
        }
        let provider_data = provider_data(&request.model, &self.blocks);
        let mut text = String::new();
        let mut calls = Vec::new();
        for (_, block) in self.blocks {
            match block {
                Block::Text { text: piece } if text.is_empty() => text = piece,
                Block::Text { text: piece } => text.push_str(&piece),
                Block::Call { id, name, arguments, .. } => {
                    let arguments = if arguments.is_empty() { "{}".to_owned() } else { arguments };
                    calls.push(ToolCall::new(id, name, arguments));
                }
                Block::Thinking { .. } | Block::Opaque(_) => {}
            }
        }
        tool_ids::make_unique(request, &mut calls);
        let finish = match self.stop_reason {
            None | Some(FinishReason::Stop) if !calls.is_empty() => FinishReason::ToolCalls,
            None => FinishReason::Stop,
            Some(finish) => finish,
        };
        let mut message = ChatMessage::text(ChatRole::Assistant, "");
        message.content = (!text.is_empty() || calls.is_empty()).then_some(Content::Text(text));
        message.tool_calls = calls;
        message.provider_data = provider_data;
        Ok(Answer { message, finish, usage: self.usage.map(Usage::from) })
    }
}

impl EventSink for Assembler<'_> {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<bool, ProviderError> {
        let data = event.data.trim();
        if data.is_empty() { Ok(true) } else { self.take(data) }
    }

    /// One document is the message itself.
    fn whole(&mut self, document: &str) -> Result<(), ProviderError> {
        let message: Value = serde_json::from_str(document).map_err(|_| self.endpoint.not_json(document.as_bytes()))?;
        if let Some(error) = message.get("error") {
            return Err(refusal_in_stream(self.endpoint, error));
        }
        let Some(blocks) = message.get("content").and_then(Value::as_array) else {
            return Err(self.endpoint.not_json(document.as_bytes()));
        };
        for (index, block) in blocks.iter().enumerate() {
            self.begin(index, block.clone());
            if let Some((_, Block::Thinking { is_closed, .. })) = self.find(index) {
                *is_closed = true;
            }
        }
        let usage = message.get("usage").cloned().unwrap_or_default();
        self.usage = serde_json::from_value(usage).ok();
        self.stop_reason = message.get("stop_reason").and_then(Value::as_str).map(finish_reason);
        self.is_done = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.stop_reason.is_some()
    }
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// Opaque blocks verbatim and the places of the others, when there are opaque ones. Thinking that
/// was cut off is not kept: without its signature it would be refused.
fn provider_data(model: &str, blocks: &[(usize, Block)]) -> Option<ProviderData> {
    let is_kept = |block: &Block| match block {
        Block::Thinking { is_closed, .. } => *is_closed,
        Block::Opaque(_) => true,
        Block::Text { .. } | Block::Call { .. } => false,
    };
    if !blocks.iter().any(|(_, block)| is_kept(block)) {
        return None;
    }
    let raw: Vec<Value> = blocks
        .iter()
        .filter_map(|(_, block)| match block {
            Block::Text { text } => Some(json!({ "text_bytes": text.len() })),
            Block::Call { position, .. } => Some(json!({ "tool_call": position })),
            Block::Opaque(raw) => Some(raw.clone()),
            Block::Thinking { is_closed: false, .. } => None,
            Block::Thinking { raw, thinking, signature, .. } => {
                let mut raw = raw.clone();
                raw["thinking"] = Value::from(thinking.as_str());
                if !signature.is_empty() {
                    raw["signature"] = Value::from(signature.as_str());
                }
                Some(raw)
            }
        })
        .collect();
    Some(ProviderData { protocol: PROTOCOL.to_owned(), model: model.to_owned(), raw: json!({ "blocks": raw }) })
}

#[cfg(test)]
mod tests;
