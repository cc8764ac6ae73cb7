//! Notices an agent that repeats itself (B31). Pure.

use serde_json::Value;

use crate::stdx::json;

/// What a repeated call deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is new, or its results still change.
    Run,
    /// The third of its kind: it gets an error that says so instead of running.
    Refuse,
    /// The same once more after that: the run ends.
    End,
}

/// The last calls and what came out of them.
#[derive(Clone, Debug, Default)]
pub struct DoomLoop {
    last: Vec<Past>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Past {
    call: String,
    /// Hash of the result; none for a call that was refused here.
    result: Option<String>,
}

/// What makes two calls the same: the tool, and the arguments whatever the order of their keys.
pub fn key(tool: &str, arguments: &str) -> String {
    let arguments = match serde_json::from_str::<Value>(arguments) {
        Ok(value) => json::canonical(&value),
        Err(_) => arguments.to_owned(),
    };
    format!("{tool} {arguments}")
}

impl DoomLoop {
    /// What to do with this call, given those before it.
    pub fn judge(&self, call: &str) -> Judgement {
        let mut same = self.last.iter().rev().take_while(|past| past.call == call);
        match (same.next(), same.next()) {
            (Some(Past { result: None, .. }), _) => Judgement::End,
            (Some(a), Some(b)) if a.result == b.result => Judgement::Refuse,
            _ => Judgement::Run,
        }
    }

    /// Remembers a call and the hash of its result, or that it was refused for repeating.
    pub fn note(&mut self, call: String, result: Option<String>) {
        if self.last.len() == 3 {
            self.last.remove(0);
        }
        self.last.push(Past { call, result });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(calls: &[(&str, &str)], expected: &[Judgement]) {
        let mut doom = DoomLoop::default();
        let mut seen = Vec::new();
        for (call, result) in calls {
            let judgement = doom.judge(call);
            seen.push(judgement);
            let result = (judgement == Judgement::Run).then(|| (*result).to_owned());
            doom.note((*call).to_owned(), result);
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_third_same_call_is_refused_and_the_fourth_ends_the_run() {
        use Judgement::{End, Refuse, Run};
        check(&[("a", "1"), ("a", "1"), ("a", "1"), ("a", "1")], &[Run, Run, Refuse, End]);
        check(&[("a", "1"), ("b", "1"), ("a", "1"), ("a", "1"), ("a", "1")], &[Run, Run, Run, Run, Refuse]);
        check(&[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")], &[Run; 4]);
        check(&[("a", "1"), ("a", "1"), ("a", "1"), ("b", "1"), ("a", "1")], &[Run, Run, Refuse, Run, Run]);
    }

    #[test]
    fn key_order_in_the_arguments_does_not_matter() {
        assert_eq!(key("x", r#"{"a":1,"b":2}"#), key("x", r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(key("x", "{bad"), key("y", "{bad"));
    }
}
