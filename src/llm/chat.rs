//! Chat messages in OpenAI form (B10, B102), requests and answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// Standing instructions.
    System,
    /// The person, or the harness on their behalf.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl ChatRole {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message in OpenAI form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// Text or parts; null for an assistant message that only calls tools.
    #[serde(default)]
    pub content: Option<Content>,
    /// Calls of an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What its provider needs back unchanged (thinking blocks with signatures). Never sent to
    /// another provider than the one named in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
}

/// Opaque data of one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The protocol it belongs to: `anthropic`, …
    pub protocol: String,
    /// The model that made it; a different model gets none of it.
    pub model: String,
    /// The data, verbatim.
    pub raw: Value,
}

impl ChatMessage {
    /// A message of plain text.
    pub fn text(role: ChatRole, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Some(Content::Text(text.into())),
            tool_calls: Vec::new(),
            tool_call_id: None,
            provider_data: None,
        }
    }

    /// The result of one tool call.
    pub fn tool_result(tool_call_id: impl Into<String>, content: Content) -> Self {
        Self {
            role: ChatRole::Tool,
            content: Some(content),
            tool_calls: Vec::new(),
            tool_call_id: Some(tool_call_id.into()),
            provider_data: None,
        }
    }

    /// Its text, parts joined; empty when there is none.
    pub fn plain_text(&self) -> String {
        self.content.as_ref().map(Content::plain_text).unwrap_or_default()
    }
}

/// Text or a list of parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text and images.
    Parts(Vec<Part>),
}

impl Content {
    /// The text of all text parts.
    pub fn plain_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text { text } => Some(text.as_str()),
                        Part::ImageUrl { .. } => None,
                    })
                    .collect();
                texts.join("\n")
            }
        }
    }
}

/// One part of a multimodal message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// It.
        text: String,
    },
    /// An image.
    ImageUrl {
        /// Where, or `data:image/png;base64,…`.
        image_url: ImageUrl,
    },
}

/// An image's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageUrl {
    /// An address or a `data:` URL.
    pub url: String,
}

/// A call of a tool as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; unique within the history.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Name and arguments.
    pub function: FunctionCall,
}

fn function() -> String {
    "function".to_owned()
}

impl ToolCall {
    /// A call with these arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: function(),
            function: FunctionCall { name: name.into(), arguments: arguments.into() },
        }
    }
}

/// Name and arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it did well.
    pub arguments: String,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its canonical name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Sent, cached ones included.
    pub prompt_tokens: u64,
    /// Received, reasoning included.
    pub completion_tokens: u64,
    /// Of the sent ones, read from the provider's cache.
    pub cached_tokens: u64,
    /// Of the sent ones, written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Of the received ones, reasoning.
    pub reasoning_tokens: u64,
}

/// Who calls. Only a scripted provider looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// `worker`, `checker`, …
    pub role: String,
    /// The cycle, from 1; 0 outside cycles.
    pub cycle: u32,
}

/// One call of a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model's name without the provider.
    pub model: String,
    /// The history, oldest first; between compactions and rewinds only ever appended to.
    pub messages: Vec<Arc<ChatMessage>>,
    /// The tools on offer; the same list in the same order on every call of a run.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model may call tools now. The list is sent either way, for the cache.
    pub allow_tool_calls: bool,
    /// Sampling temperature; absent: the provider's default.
    pub temperature: Option<f64>,
    /// Most tokens to receive; absent: the provider's default.
    pub max_output_tokens: Option<u32>,
    /// Who calls.
    pub caller: Caller,
}

/// A piece of an answer as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text.
    Text(&'a str),
    /// Reasoning.
    Thinking(&'a str),
    /// A tool call: which of the message, its name once known, a piece of its arguments.
    ToolCall {
        /// From 0.
        index: usize,
        /// Known from the first piece on with most providers.
        name: Option<&'a str>,
        /// May be empty.
        arguments: &'a str,
    },
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// It ran into a length limit; a last tool call may be half.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    /// Anything else.
    Other,
}

impl FinishReason {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The assistant message.
    pub message: ChatMessage,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// What it cost, when the provider says so.
    pub usage: Option<Usage>,
}
