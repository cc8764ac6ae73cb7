//! The tree that `parent_sequence` makes: paths, branches and where it may be cut. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::message::Message;
use crate::ids::Seq;
use crate::llm::chat::ChatRole;

/// All messages of a trace, by number.
pub type Messages = BTreeMap<Seq, Message>;

/// From the root to `head` along `parent_sequence` (B20). A chain that a hand-edited file breaks
/// or closes to a ring ends where it stops making sense.
pub fn path_to(messages: &Messages, head: Seq) -> Vec<Seq> {
    let mut path = Vec::new();
    let mut next = Some(head);
    let mut seen = BTreeSet::new();
    while let Some(message) = next.and_then(|s| messages.get(&s)) {
        if !seen.insert(message.sequence) {
            break;
        }
        path.push(message.sequence);
        next = message.parent_sequence;
    }
    path.reverse();
    path
}

/// Where a rewind to a message is cut (B36).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The message after which new ones attach.
    pub at: Seq,
    /// Whether it lies on the main path; otherwise this goes to another branch.
    pub on_main_path: bool,
}

/// The safe cut for going back to `sequence`: never between an assistant message with calls and
/// its results (B36).
///
/// # Errors
/// There is no such message, or it is the standing instruction; names what is valid.
pub fn safe_cut(messages: &Messages, head: Seq, sequence: Seq) -> Result<Cut, String> {
    let path = path_to(messages, head);
    let valid = || {
        let first = path.iter().find(|s| messages[s].role != ChatRole::System).copied().unwrap_or(0);
        format!("choose a message from {first} to {}", messages.keys().next_back().copied().unwrap_or(0))
    };
    let Some(message) = messages.get(&sequence) else {
        return Err(format!("there is no message {sequence}; {}", valid()));
    };
    if message.branch_type.is_some() {
        return Err(format!("message {sequence} belongs to a side branch; {}", valid()));
    }
    if message.parent_sequence.is_none() && message.role == ChatRole::System {
        return Err(format!("message {sequence} is the standing instruction, which can't be left out; {}", valid()));
    }
    let on_path: BTreeSet<Seq> = path.iter().copied().collect();
    let at = end_of_group(messages, &on_path, sequence);
    Ok(Cut { at, on_main_path: on_path.contains(&at) })
}

/// The last tool result of the group that `sequence` belongs to, or `sequence` itself.
fn end_of_group(messages: &Messages, on_path: &BTreeSet<Seq>, sequence: Seq) -> Seq {
    let message = &messages[&sequence];
    let opens = message.role == ChatRole::Assistant && !message.tool_calls().is_empty();
    if !opens && message.role != ChatRole::Tool {
        return sequence;
    }
    let mut at = sequence;
    while let Some(next) = tool_child(messages, on_path, at) {
        at = next;
    }
    at
}

fn tool_child(messages: &Messages, on_path: &BTreeSet<Seq>, parent: Seq) -> Option<Seq> {
    // Children have higher numbers than their parent.
    let results = messages
        .range(parent + 1..)
        .filter(|(_, m)| m.parent_sequence == Some(parent) && m.role == ChatRole::Tool && m.branch_type.is_none())
        .map(|(s, _)| *s);
    results.max_by_key(|s| (on_path.contains(s), *s))
}

/// Whether nothing follows the message on any branch.
pub fn is_branch_end(messages: &Messages, sequence: Seq) -> bool {
    !messages.range(sequence + 1..).any(|(_, m)| m.parent_sequence == Some(sequence) && m.branch_type.is_none())
}

/// Calls of the newest assistant message on the path that have no result (B43), with the place
/// where the missing results belong: after the existing ones.
pub fn orphans(messages: &Messages, head: Seq) -> Vec<crate::llm::chat::ToolCall> {
    let path = path_to(messages, head);
    let mut answered = BTreeSet::new();
    for sequence in path.iter().rev() {
        let message = &messages[sequence];
        match message.role {
            ChatRole::Tool => {
                answered.extend(message.tool_call_id.clone());
            }
            ChatRole::Assistant => {
                return message.tool_calls().into_iter().filter(|call| !answered.contains(&call.id)).collect();
            }
            ChatRole::System | ChatRole::User => return Vec::new(),
        }
    }
    Vec::new()
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::llm::chat::{ChatMessage, Content, ToolCall};
    use crate::trace::message::Slot;

    /// `kind`: s, u, a (assistant text), c1/c2 (assistant with calls), t:ID (tool result).
    pub(crate) fn message(sequence: Seq, parent: Option<Seq>, kind: &str) -> Message {
        let chat = match kind {
            "s" => ChatMessage::text(ChatRole::System, "system"),
            "u" => ChatMessage::text(ChatRole::User, "user"),
            "a" => ChatMessage::text(ChatRole::Assistant, "text"),
            kind if kind.starts_with('c') => {
                let n: usize = kind[1..].parse().unwrap();
                let mut chat = ChatMessage::text(ChatRole::Assistant, "");
                chat.tool_calls =
                    (1..=n).map(|i| ToolCall::new(format!("{sequence}.{i}"), "bash_command", "{}")).collect();
                chat
            }
            kind => ChatMessage::tool_result(&kind[2..], Content::Text("ok".into())),
        };
        let slot = Slot {
            trace_id: "w1".into(),
            sequence,
            parent_sequence: parent,
            goal_id: None,
            created_at: Timestamp::from_millisecond(sequence as i64 * 1000).unwrap(),
        };
        Message::from_chat(slot, &chat)
    }

    pub(crate) fn tree(of: &[(Seq, Option<Seq>, &str)]) -> Messages {
        of.iter().map(|(s, p, k)| (*s, message(*s, *p, k))).collect()
    }

    /// 1 s – 2 u – 3 c2 – 4 t – 5 t – 6 a, and a branch 7 u – 8 c1 – 9 t from 5.
    fn example() -> Messages {
        tree(&[
            (1, None, "s"),
            (2, Some(1), "u"),
            (3, Some(2), "c2"),
            (4, Some(3), "t:3.1"),
            (5, Some(4), "t:3.2"),
            (6, Some(5), "a"),
            (7, Some(5), "u"),
            (8, Some(7), "c1"),
            (9, Some(8), "t:8.1"),
        ])
    }

    #[test]
    fn the_main_path_leaves_other_branches_out() {
        assert_eq!(path_to(&example(), 9), [1, 2, 3, 4, 5, 7, 8, 9]);
        assert_eq!(path_to(&example(), 6), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_ring_in_a_file_edited_by_hand_ends() {
        let ring = tree(&[(1, Some(2), "u"), (2, Some(1), "u")]);
        assert_eq!(path_to(&ring, 2), [1, 2]);
    }

    #[test]
    fn a_cut_never_parts_calls_from_their_results() {
        let cut = |s| safe_cut(&example(), 9, s).map(|c| (c.at, c.on_main_path));
        assert_eq!(cut(2), Ok((2, true)));
        assert_eq!(cut(3), Ok((5, true)));
        assert_eq!(cut(4), Ok((5, true)));
        assert_eq!(cut(8), Ok((9, true)));
        assert_eq!(cut(6), Ok((6, false)), "another branch is allowed: it undoes a rewind");
        assert_eq!(cut(12).unwrap_err(), "there is no message 12; choose a message from 2 to 9");
        assert!(cut(1).unwrap_err().contains("standing instruction"));
    }

    #[test]
    fn calls_without_results_are_found() {
        let mut messages = example();
        assert!(orphans(&messages, 9).is_empty());
        messages.remove(&9);
        assert_eq!(orphans(&messages, 8).len(), 1);
        messages.remove(&5);
        let missing: Vec<_> = orphans(&messages, 4).into_iter().map(|c| c.id).collect();
        assert_eq!(missing, ["3.2"]);
        assert!(is_branch_end(&messages, 8) && !is_branch_end(&messages, 3));
    }
}
