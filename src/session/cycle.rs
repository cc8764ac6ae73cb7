//! The cycle loop (A1–A3, A24): which step comes next. Pure: no clock, disk or network;
//! `orchestrator` carries the steps out.

use serde_json::{Map, Value, json};

use super::models::{CycleRecord, SessionRecord};
use crate::events::data::{CheckerResult, Contract, Verdict, WorkerResult};
use crate::events::event::NEXT_CYCLE;

/// A step of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Begin a cycle with this input.
    Start {
        /// Its number, from 1.
        cycle: u32,
        /// What the Worker is given.
        input: Value,
    },
    /// Let the Worker work (again).
    Work {
        /// The cycle.
        cycle: u32,
    },
    /// Check what the Worker left.
    Check {
        /// The cycle.
        cycle: u32,
    },
}

/// What follows a verdict (A2): a pass completes; with cycles left another begins; else it failed.
/// No verdict is never a pass and never a verdict on the Worker.
pub fn after_verdict(verdict: Option<Verdict>, cycle: u32, max_cycles: u32) -> After {
    match verdict {
        Some(Verdict::Passed) => After::Complete,
        Some(Verdict::NeedsImprovement | Verdict::Failed) if cycle >= max_cycles => After::Fail,
        Some(Verdict::NeedsImprovement | Verdict::Failed) => After::NextCycle,
        None => After::Unverified,
    }
}

/// What follows a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The session completes.
    Complete,
    /// The cycles are used up.
    Fail,
    /// Another cycle begins.
    NextCycle,
    /// The cycle could not be verified.
    Unverified,
}

impl After {
    /// The word in `cycle_end.next`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "session_complete",
            Self::Fail => "session_failed",
            Self::NextCycle => NEXT_CYCLE,
            Self::Unverified => "session_error",
        }
    }
}

/// The first cycle's input: the task's inputs (A9).
pub fn first_input(task: &Contract) -> Value {
    Value::Object(task.inputs.clone())
}

/// The next cycle's input (A24), with the task's inputs and a person's message when there are any.
pub fn next_input(
    task: &Contract,
    worker: Option<&WorkerResult>,
    checker: &CheckerResult,
    message: Option<&str>,
) -> Value {
    let mut input = Map::new();
    input.insert("review_verdict".to_owned(), json!(checker.verdict));
    input.insert("review_feedback".to_owned(), json!(checker.feedback));
    input.insert("review_reason".to_owned(), json!(checker.reason));
    input.insert("verified_items".to_owned(), json!(checker.verified));
    input.insert("previous_attempt_summary".to_owned(), json!(worker.map(|w| w.summary.as_str()).unwrap_or_default()));
    if !task.inputs.is_empty() {
        input.insert("inputs".to_owned(), Value::Object(task.inputs.clone()));
    }
    if let Some(message) = message.filter(|m| !m.is_empty()) {
        input.insert("user_message".to_owned(), json!(message));
    }
    Value::Object(input)
}

/// Where a session goes on (E10), and how many cycles it needs for that at least.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    /// The first step.
    pub step: Step,
    /// Cycles that must be allowed.
    pub needs_cycles: u32,
    /// Whether the message still has to be given to the Worker; otherwise it is in the input.
    pub message_to_worker: bool,
}

/// The first step of a session that goes on: the Worker's trace continued, the Checker run anew
/// when the Worker had finished, or one more cycle when the last one ended.
pub fn resume(record: &SessionRecord, message: Option<&str>) -> Resume {
    let Some(current) = record.current() else {
        let step = Step::Start { cycle: 1, input: with_message(first_input(&record.task), message) };
        return Resume { step, needs_cycles: 1, message_to_worker: false };
    };
    let cycle = current.detail.number;
    if current.detail.worker.is_none() {
        return Resume { step: Step::Work { cycle }, needs_cycles: cycle, message_to_worker: true };
    }
    let judged = current.detail.ended && current.verdict().is_some();
    if !judged {
        // Nothing a person says now is for the Checker, who must not be swayed.
        return match message {
            None => Resume { step: Step::Check { cycle }, needs_cycles: cycle, message_to_worker: false },
            Some(message) => one_more(record, current, Some(message)),
        };
    }
    one_more(record, current, message)
}

fn one_more(record: &SessionRecord, current: &CycleRecord, message: Option<&str>) -> Resume {
    let cycle = current.detail.number + 1;
    let worker = current.detail.worker.as_ref();
    let input = match &current.detail.checker {
        Some(checker) => next_input(&record.task, worker, checker, message),
        None => with_message(first_input(&record.task), message),
    };
    Resume { step: Step::Start { cycle, input }, needs_cycles: cycle, message_to_worker: false }
}

fn with_message(mut input: Value, message: Option<&str>) -> Value {
    if let (Some(map), Some(message)) = (input.as_object_mut(), message.filter(|m| !m.is_empty())) {
        map.insert("user_message".to_owned(), json!(message));
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::data::VerdictBy;

    #[test]
    fn the_verdict_loop_is_as_specified() {
        use Verdict::{Failed, NeedsImprovement, Passed};
        let cases = [
            (Some(Passed), 1, 1, After::Complete),
            (Some(Passed), 5, 5, After::Complete),
            (Some(NeedsImprovement), 1, 5, After::NextCycle),
            (Some(Failed), 4, 5, After::NextCycle),
            (Some(Failed), 5, 5, After::Fail),
            (Some(NeedsImprovement), 1, 1, After::Fail),
            (None, 1, 5, After::Unverified),
        ];
        for (verdict, cycle, max, expected) in cases {
            assert_eq!(after_verdict(verdict, cycle, max), expected, "{verdict:?} {cycle}/{max}");
        }
    }

    #[test]
    fn the_next_input_has_the_review_the_inputs_and_the_persons_words() {
        let mut task = Contract::default();
        task.inputs.insert("city".to_owned(), json!("Wien"));
        let checker = CheckerResult {
            verdict: Some(Verdict::Failed),
            reason: "r".into(),
            feedback: "f".into(),
            verified: vec!["v".into()],
            evidence: Vec::new(),
            by: VerdictBy::Checker,
            snapshot: None,
        };
        assert_eq!(
            next_input(&task, None, &checker, Some("use blue")),
            json!({"review_verdict": "failed", "review_feedback": "f", "review_reason": "r", "verified_items": ["v"],
                "previous_attempt_summary": "", "inputs": {"city": "Wien"}, "user_message": "use blue"})
        );
        assert_eq!(first_input(&task), json!({"city": "Wien"}));
    }
}
