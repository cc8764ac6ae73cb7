//! One message of a trace (B9) and its conversion to and from the chat form (B10).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FORMAT;
use crate::ids::{GoalId, Seq, TraceId, message_id};
use crate::llm::chat::{ChatMessage, ChatRole, Content, ProviderData, ToolCall};
use crate::stdx::bounded;
use crate::stdx::clock::serde_rfc3339;

/// Which side branch a message belongs to; the main path has none (B9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchType {
    /// Making a summary.
    Compression,
    /// Extracting experience.
    Reflection,
}

/// What a summary message stands for (B22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// First sequence left out.
    pub from: Seq,
    /// Last sequence left out.
    pub to: Seq,
    /// The head before.
    pub old_head: Seq,
}

/// A message as it lies on disk. Immutable once written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Format version.
    #[serde(default)]
    pub format: u32,
    /// `{trace_id}-{sequence}`.
    pub message_id: String,
    /// Its trace.
    pub trace_id: TraceId,
    /// Who speaks.
    pub role: ChatRole,
    /// Rises over all branches, never reused.
    pub sequence: Seq,
    /// The message before it in the tree.
    #[serde(default)]
    pub parent_sequence: Option<Seq>,
    /// The goal in focus then; null for initial messages.
    #[serde(default)]
    pub goal_id: Option<GoalId>,
    /// Summary extracted by the system (B34).
    #[serde(default)]
    pub description: String,
    /// The call that a tool message answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// Text, parts, or `{text, tool_calls}` of an assistant message that calls tools.
    #[serde(default)]
    pub content: Value,
    /// Tokens sent for it.
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    /// Tokens received with it.
    #[serde(default)]
    pub completion_tokens: Option<u64>,
    /// How long the call or the tool took.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// Money in US dollars, when the price is known.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Why the model stopped.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// Side branch; null on the main path.
    #[serde(default)]
    pub branch_type: Option<BranchType>,
    /// Shared by all messages of one side branch.
    #[serde(default)]
    pub branch_id: Option<String>,
    /// What a summary stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// What its provider needs back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
    /// When it was stored.
    #[serde(with = "serde_rfc3339")]
    pub created_at: Timestamp,
}

/// Where a message goes in the tree.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its number.
    pub sequence: Seq,
    /// The message before it.
    pub parent_sequence: Option<Seq>,
    /// The goal in focus.
    pub goal_id: Option<GoalId>,
    /// Now.
    pub created_at: Timestamp,
}

impl Message {
    /// The stored form of a chat message.
    pub fn from_chat(slot: Slot, chat: &ChatMessage) -> Self {
        let content = match (&chat.content, chat.tool_calls.is_empty()) {
            (None, true) => Value::Null,
            (Some(content), true) => json!(content),
            (content, false) => {
                let text = content.as_ref().map(Content::plain_text).unwrap_or_default();
                json!({ "text": text, "tool_calls": chat.tool_calls })
            }
        };
        Self {
            format: FORMAT,
            message_id: message_id(&slot.trace_id, slot.sequence),
            trace_id: slot.trace_id,
            role: chat.role,
            sequence: slot.sequence,
            parent_sequence: slot.parent_sequence,
            goal_id: slot.goal_id,
            description: describe(chat),
            tool_call_id: chat.tool_call_id.clone(),
            content,
            prompt_tokens: None,
            completion_tokens: None,
            duration_ms: None,
            cost: None,
            finish_reason: None,
            branch_type: None,
            branch_id: None,
            compacted: None,
            provider_data: chat.provider_data.clone(),
            created_at: slot.created_at,
        }
    }

    /// The chat form. Content that makes no sense (a file edited by hand) becomes its JSON text.
    pub fn to_chat(&self) -> ChatMessage {
        let (content, tool_calls) = match &self.content {
            Value::Null => (None, Vec::new()),
            Value::Object(_) if self.role == ChatRole::Assistant => {
                let text = self.content["text"].as_str().filter(|t| !t.is_empty());
                (text.map(|t| Content::Text(t.to_owned())), self.tool_calls())
            }
            other => {
                let content =
                    serde_json::from_value(other.clone()).unwrap_or_else(|_| Content::Text(other.to_string()));
                (Some(content), Vec::new())
            }
        };
        ChatMessage {
            role: self.role,
            content,
            tool_calls,
            tool_call_id: self.tool_call_id.clone(),
            provider_data: self.provider_data.clone(),
        }
    }

    /// The tool calls of an assistant message.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        match self.role {
            ChatRole::Assistant => {
                self.content.get("tool_calls").and_then(|c| serde_json::from_value(c.clone()).ok()).unwrap_or_default()
            }
            ChatRole::System | ChatRole::User | ChatRole::Tool => Vec::new(),
        }
    }

    /// Its text for a person: parts joined; tool calls follow as `name(arguments)`.
    pub fn display_text(&self) -> String {
        let chat = self.to_chat();
        let mut text = chat.plain_text();
        for call in &chat.tool_calls {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("{}({})", call.function.name, call.function.arguments));
        }
        text
    }
}

/// First text line, or the list of calls, shortened (B34).
pub fn describe(chat: &ChatMessage) -> String {
    const MAX: usize = 100;
    let text = bounded::first_line(&chat.plain_text(), MAX);
    if !text.is_empty() || chat.tool_calls.is_empty() {
        return text;
    }
    let calls: Vec<String> = chat
        .tool_calls
        .iter()
        .map(|call| format!("{}({})", call.function.name, bounded::first_line(&call.function.arguments, 40)))
        .collect();
    bounded::first_line(&calls.join(", "), MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot {
            trace_id: "w1".into(),
            sequence: 7,
            parent_sequence: Some(6),
            goal_id: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[track_caller]
    fn round_trip(chat: ChatMessage) {
        let stored = serde_json::to_string(&Message::from_chat(slot(), &chat)).unwrap();
        let back: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(back.to_chat(), chat);
    }

    #[test]
    fn every_chat_message_comes_back_as_it_was() {
        round_trip(ChatMessage::text(ChatRole::User, "漢字"));
        round_trip(ChatMessage::tool_result("call_1", Content::Text(String::new())));
        let mut calls = ChatMessage::text(ChatRole::Assistant, "I look.");
        calls.tool_calls =
            vec![ToolCall::new("call_1", "read_file", "{\"path\":\"a\"}"), ToolCall::new("call_2", "x", "{bad")];
        round_trip(calls.clone());
        calls.content = None;
        assert_eq!(describe(&calls), "read_file({\"path\":\"a\"}), x({bad)");
        round_trip(calls);
        round_trip(ChatMessage {
            content: Some(Content::Parts(vec![crate::llm::chat::Part::Text { text: "a".into() }])),
            ..ChatMessage::text(ChatRole::User, "")
        });
    }

    #[test]
    fn deprecated_fields_are_read_and_never_written() {
        let message = Message::from_chat(slot(), &ChatMessage::text(ChatRole::User, "hi"));
        let mut value = serde_json::to_value(&message).unwrap();
        assert_eq!(value.get("status"), None);
        value["status"] = "abandoned".into();
        value["abandoned_at"] = Value::Null;
        assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
    }
}
