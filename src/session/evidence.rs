//! Ties what a Checker says it verified to the tool calls that show it (architecture.md,
//! "Evidence"). Pure.

use std::sync::LazyLock;

use regex::Regex;

use super::verdict::Answer;
use crate::agent::{CallRecord, Ended};
use crate::events::data::{CitedCall, Evidence, Verdict};
use crate::stdx::bounded;

static CITATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\s*\[(\d+(?:\s*,\s*\d+)*)\]\s*\.?\s*$").ok());

/// Each item of `verified` with the calls it cites. A citation of a call that was not made, or
/// that could not run, counts for nothing; an item without a valid one is a claim.
pub fn resolve(verified: &[String], calls: &[CallRecord]) -> Vec<Evidence> {
    verified.iter().map(|item| resolve_one(item, calls)).collect()
}

fn resolve_one(item: &str, calls: &[CallRecord]) -> Evidence {
    let Some(found) = CITATION.as_ref().and_then(|c| c.captures(item)) else {
        return Evidence { text: item.trim().to_owned(), calls: Vec::new() };
    };
    let text = item[..found.get(0).map_or(item.len(), |m| m.start())].trim().to_owned();
    let cited = found[1]
        .split(',')
        .filter_map(|n| n.trim().parse::<u32>().ok())
        .filter_map(|n| calls.iter().find(|c| c.number == n))
        .filter(|c| c.ended == Ended::Ran)
        .map(cite)
        .collect();
    Evidence { text, calls: cited }
}

fn cite(call: &CallRecord) -> CitedCall {
    CitedCall {
        number: call.number,
        tool: call.tool.clone(),
        arguments: short_arguments(&call.arguments),
        exit_code: call.exit_code,
        ok: call.ended == Ended::Ran,
        output_hash: call.output_hash.clone(),
    }
}

/// The one argument that says most: the command, the path or the pattern.
fn short_arguments(arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let main = ["command", "path", "pattern"].iter().find_map(|key| value[*key].as_str());
    bounded::first_line(main.unwrap_or(arguments), 100)
}

/// Why a `passed` is not accepted, if so: no tool was run, nothing verified has evidence, or a
/// command of the contract failed in its latest run.
pub fn unsupported(answer: &Answer, evidence: &[Evidence], calls: &[CallRecord], checks: &[String]) -> Option<String> {
    if answer.verdict != Verdict::Passed {
        return None;
    }
    if !calls.iter().any(|c| c.ended == Ended::Ran) {
        return Some("no tool was run, so nothing can have been verified".to_owned());
    }
    if !evidence.iter().any(|e| !e.calls.is_empty()) {
        return Some("no item of `verified` cites a call that was made and ran".to_owned());
    }
    checks.iter().find_map(|check| {
        let latest = calls.iter().rev().find(|c| command_of(c).as_deref() == Some(check.as_str()))?;
        let failed = latest.ended != Ended::Ran || latest.exit_code != Some(0);
        failed.then(|| format!("the acceptance command `{check}` failed in its latest run (call {})", latest.number))
    })
}

fn command_of(call: &CallRecord) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
    Some(value["command"].as_str()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u32, command: &str, ended: Ended, exit_code: i32) -> CallRecord {
        CallRecord {
            number,
            tool: "bash_command".into(),
            arguments: serde_json::json!({ "command": command }).to_string(),
            ended,
            exit_code: Some(exit_code),
            output_hash: "h".into(),
        }
    }

    fn passed(verified: &[&str]) -> Answer {
        let verified = verified.iter().map(|v| (*v).to_owned()).collect();
        Answer { verdict: Verdict::Passed, reason: "ok".into(), feedback: String::new(), verified }
    }

    #[track_caller]
    fn check(verified: &[&str], calls: &[CallRecord], expected: Option<&str>) {
        let answer = passed(verified);
        let evidence = resolve(&answer.verified, calls);
        let why = unsupported(&answer, &evidence, calls, &["cargo test".to_owned()]);
        match (why, expected) {
            (None, None) => {}
            (Some(why), Some(part)) => assert!(why.contains(part), "{why}"),
            (why, expected) => panic!("{why:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn citations_are_tied_to_calls_that_ran() {
        let calls =
            [call(1, "ls", Ended::Ran, 0), call(2, "x", Ended::TimedOut, 0), call(3, "cargo test", Ended::Ran, 1)];
        let numbers = |item: &str| {
            let evidence = resolve(&[item.to_owned()], &calls).remove(0);
            (evidence.text, evidence.calls.into_iter().map(|c| c.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers("files are there [1]"), ("files are there".into(), vec![1]));
        assert_eq!(numbers("both [1, 3]."), ("both".into(), vec![1, 3]));
        assert_eq!(numbers("timed out [2]"), ("timed out".into(), vec![]));
        assert_eq!(numbers("never made [9]"), ("never made".into(), vec![]));
        assert_eq!(numbers("array[1] is read"), ("array[1] is read".into(), vec![]));
    }

    #[test]
    fn a_pass_needs_evidence_and_green_acceptance_commands() {
        let ran = call(1, "ls", Ended::Ran, 0);
        check(&["a [1]"], &[], Some("no tool was run"));
        check(&["a [1]"], &[call(1, "ls", Ended::Refused, 0)], Some("no tool was run"));
        check(&["a", "b [7]"], std::slice::from_ref(&ran), Some("no item"));
        check(&["a [1]"], std::slice::from_ref(&ran), None);
        let red = call(2, "cargo test", Ended::Ran, 101);
        check(&["a [1]"], &[ran.clone(), red.clone()], Some("`cargo test` failed"));
        check(&["a [1]"], &[ran, red, call(3, "cargo test", Ended::Ran, 0)], None);
    }
}
