//! Gives tool calls that were interrupted a result, so that a provider accepts the history again
//! (B43–B45). The results are stored, so healing twice changes nothing.

use std::collections::BTreeSet;

use super::report::RunError;
use super::scribe::{Extra, Scribe};
use crate::llm::chat::{ChatMessage, ChatRole, Content};
use crate::prompts::{Library, PromptName, Section};
use crate::trace::tree::{self, Messages};

/// Stores a result for every call of the newest assistant message that has none, except those
/// that `input` answers.
///
/// # Errors
/// A result could not be written.
pub fn heal(
    scribe: &mut Scribe<'_>,
    messages: &Messages,
    input: &[ChatMessage],
    prompts: &Library,
) -> Result<(), RunError> {
    let supplied: BTreeSet<&str> =
        input.iter().filter(|m| m.role == ChatRole::Tool).filter_map(|m| m.tool_call_id.as_deref()).collect();
    for call in tree::orphans(messages, scribe.trace.head_sequence) {
        if supplied.contains(call.id.as_str()) {
            continue;
        }
        let text = prompts
            .render(PromptName::InterruptedTool, Section::Tool, &[("tool", &call.function.name)])
            .map_err(|e| RunError::Invalid(e.to_string()))?;
        scribe.record(ChatMessage::tool_result(call.id, Content::Text(text)), &Extra::default())?;
    }
    Ok(())
}
