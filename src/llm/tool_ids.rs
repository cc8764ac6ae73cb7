//! Ids of tool calls on their way out and in (B104). The store keeps them as received; a provider
//! that can't take one gets another, the same on every call, with the result still matching.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::chat::{ChatMessage, ChatRole, Request, ToolCall};

/// What ids a protocol takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// Any text of up to 40 bytes.
    OpenAi,
    /// Up to 64 letters, digits, `_` and `-`.
    Anthropic,
    /// Exactly nine letters and digits.
    NineCharacters,
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::OpenAi => !id.is_empty() && id.len() <= 40,
            Self::Anthropic => {
                !id.is_empty()
                    && id.len() <= 64
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            }
            Self::NineCharacters => id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()),
        }
    }

    fn make(self, n: usize) -> String {
        match self {
            Self::OpenAi => format!("call_{n}"),
            Self::Anthropic => format!("toolu_{n}"),
            Self::NineCharacters => format!("c{n:08}"),
        }
    }
}

/// Which ids of a history are sent as what; those that fit are not in it.
#[derive(Debug, Default)]
pub struct Rewrites {
    /// By message and, within an assistant message, call.
    new: HashMap<(usize, usize), String>,
}

impl Rewrites {
    /// Goes through the history once. Whether an id is replaced, and by what, depends only on
    /// what came before it, so a longer history never changes what was sent of a shorter one.
    pub fn plan(messages: &[Arc<ChatMessage>], rule: IdRule) -> Self {
        let mut plan = Self::default();
        let mut used: HashSet<String> = HashSet::new();
        let mut current: HashMap<&str, String> = HashMap::new();
        let mut count = 0;
        for (at, message) in messages.iter().enumerate() {
            for (index, call) in message.tool_calls.iter().enumerate() {
                count += 1;
                if rule.accepts(&call.id) && used.insert(call.id.clone()) {
                    current.remove(call.id.as_str());
                    continue;
                }
                let mut n = count;
                while used.contains(&rule.make(n)) {
                    n += 100_000;
                }
                let new = rule.make(n);
                used.insert(new.clone());
                current.insert(&call.id, new.clone());
                plan.new.insert((at, index), new);
            }
            if message.role == ChatRole::Tool
                && let Some(new) = message.tool_call_id.as_deref().and_then(|id| current.get(id))
            {
                plan.new.insert((at, 0), new.clone());
            }
        }
        plan
    }

    /// What is sent for `id`, which is call `index` of message `at` (0 for a tool message).
    pub fn sent<'a>(&'a self, at: usize, index: usize, id: &'a str) -> &'a str {
        self.new.get(&(at, index)).map_or(id, String::as_str)
    }
}

/// Gives each call of an answer that has no id, or one that the history already holds, a new one.
pub fn make_unique(request: &Request, calls: &mut [ToolCall]) {
    if calls.is_empty() {
        return;
    }
    let known = request.messages.iter().flat_map(|message| &message.tool_calls);
    let mut used: HashSet<String> = known.map(|call| call.id.clone()).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        if !call.id.is_empty() && used.insert(call.id.clone()) {
            continue;
        }
        let mut n = request.messages.len();
        while !used.insert(format!("call_{n}_{index}")) {
            n += 1;
        }
        call.id = format!("call_{n}_{index}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::chat::{Caller, Content};

    fn history(ids: &[&str]) -> Vec<Arc<ChatMessage>> {
        ids.iter()
            .flat_map(|id| {
                let mut call = ChatMessage::text(ChatRole::Assistant, "");
                call.tool_calls = vec![ToolCall::new(*id, "t", "{}")];
                [Arc::new(call), Arc::new(ChatMessage::tool_result(*id, Content::Text("r".into())))]
            })
            .collect()
    }

    fn sent(messages: &[Arc<ChatMessage>], rule: IdRule) -> Vec<String> {
        let plan = Rewrites::plan(messages, rule);
        messages
            .iter()
            .enumerate()
            .map(|(at, message)| match message.tool_calls.first() {
                Some(call) => plan.sent(at, 0, &call.id).to_owned(),
                None => plan.sent(at, 0, message.tool_call_id.as_deref().unwrap()).to_owned(),
            })
            .collect()
    }

    #[track_caller]
    fn check(rule: IdRule, ids: &[&str], expected: &[&str]) {
        let messages = history(ids);
        let doubled: Vec<&str> = expected.iter().flat_map(|id| [*id, *id]).collect();
        assert_eq!(sent(&messages, rule), doubled);
        for shorter in 0..ids.len() {
            assert_eq!(sent(&messages[..shorter * 2], rule), doubled[..shorter * 2], "what was sent before must stay");
        }
    }

    #[test]
    fn only_ids_that_do_not_fit_are_replaced_and_results_follow_their_calls() {
        check(IdRule::Anthropic, &["call_abc", "toolu_1"], &["call_abc", "toolu_1"]);
        check(IdRule::Anthropic, &["functions.read:0", "ok"], &["toolu_1", "ok"]);
        check(IdRule::OpenAi, &["functions.read:0"], &["functions.read:0"]);
        check(IdRule::OpenAi, &[&"x".repeat(41), "", "b"], &["call_1", "call_2", "b"]);
        check(IdRule::NineCharacters, &["call_1_1", "abcdefghi"], &["c00000001", "abcdefghi"]);
    }

    #[test]
    fn an_id_that_comes_twice_is_made_unique() {
        check(IdRule::OpenAi, &["call_0", "call_0", "call_0"], &["call_0", "call_2", "call_3"]);
        check(IdRule::OpenAi, &["call_2", "call_2", "call_100002"], &["call_2", "call_100002", "call_3"]);
    }

    #[test]
    fn an_answer_s_calls_get_ids_the_history_does_not_hold() {
        let request = Request {
            model: "m".into(),
            messages: history(&["call_0", "call_2_0"]),
            tools: [].into(),
            allow_tool_calls: true,
            temperature: None,
            max_output_tokens: None,
            caller: Caller::default(),
        };
        let mut calls = ["call_0", "", "new", "new"].map(|id| ToolCall::new(id, "t", "{}"));
        make_unique(&request, &mut calls);
        assert_eq!(calls.map(|call| call.id), ["call_4_0", "call_4_1", "new", "call_4_3"]);
    }
}
