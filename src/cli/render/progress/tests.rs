//! Claims about progress, from events made by hand.

use serde_json::json;

use super::*;
use crate::events::data::{Budget, ChangeKind, FileChange, Gate, PermissionMode, Place, PlaceKind, Verdict, VerdictBy};
use crate::events::event::PerRole;
use crate::ids::SessionId;

fn envelope(second: i64, event: Event) -> Envelope {
    Envelope {
        event_id: Some(second.unsigned_abs() + 1),
        at: Timestamp::from_second(second).unwrap(),
        session_id: SessionId::new("23456789"),
        cycle: Some(1),
        trace_id: None,
        event,
    }
}

fn start() -> Event {
    Event::SessionStart(Box::new(SessionStart {
        format: 1,
        version: "0.1.0".into(),
        name: "hello".into(),
        objective: "build".into(),
        expected_output: None,
        inputs: serde_json::Map::new(),
        workspace: Place {
            kind: PlaceKind::Scratch,
            dir: "/root/files".into(),
            repository: None,
            branch: None,
            base_branch: None,
            base_commit: None,
        },
        launched_from: "/here".into(),
        profiles: PerRole::default(),
        models: PerRole { worker: "a/x".into(), checker: "b/y".into() },
        model_reason: "named on the command line".into(),
        scripted: true,
        max_cycles: 5,
        max_turns: PerRole { worker: 50, checker: 10 },
        budget: Budget::default(),
        role_budgets: PerRole::default(),
        permission_mode: PermissionMode::BypassPermissions,
        checks: Vec::new(),
        protected: Vec::new(),
    }))
}

fn call(id: &str, tool: &str, title: &str) -> ToolCallEvent {
    ToolCallEvent {
        tool_call_id: id.into(),
        number: 1,
        tool: tool.into(),
        title: title.into(),
        arguments: json!({}),
        arguments_bytes: 2,
    }
}

fn result(id: &str, ok: bool, exit_code: Option<i32>, title: &str) -> ToolResultEvent {
    ToolResultEvent {
        tool_call_id: id.into(),
        number: 1,
        tool: "bash_command".into(),
        ok,
        title: title.into(),
        output: String::new(),
        output_bytes: 0,
        output_lines: 0,
        exit_code,
        files: Vec::new(),
        duration_ms: 400,
    }
}

fn story() -> Vec<Envelope> {
    let totals = Totals { calls: 3, tool_calls: 2, prompt_tokens: 1500, cost_usd: 0.02, ..Totals::default() };
    let changed = FileChange { path: "index.html".into(), kind: ChangeKind::Added, added: Some(9), removed: None };
    let worker = WorkerResult {
        status: WorkerStatus::Ok,
        summary: "the page is there".into(),
        output: json!({}),
        artifacts: Vec::new(),
        error: None,
        changed: vec![changed],
    };
    let checker = CheckerResult {
        verdict: Some(Verdict::Passed),
        reason: "all is well".into(),
        feedback: String::new(),
        verified: Vec::new(),
        evidence: Vec::new(),
        by: VerdictBy::Checker,
        snapshot: None,
    };
    let events = vec![
        start(),
        Event::CycleStart { input_payload: json!({}) },
        Event::WorkerStart { model: "a/x".into() },
        Event::TextDelta { text: "I will".into() },
        Event::WorkerToolCall(call("1", "write_file", "index.html")),
        Event::WorkerToolResult(result("1", true, None, "9 lines")),
        Event::WorkerToolCall(call("2", "bash_command", "bash_command: ls \u{1b}]0;evil\u{7}-l")),
        Event::WorkerToolResult(result("2", true, Some(1), "exit 1")),
        Event::WorkerComplete { result: Box::new(worker) },
        Event::GateResult(Gate { name: "output".into(), ok: true, detail: "it parses".into() }),
        Event::CheckerStart { model: Some("b/y".into()), by: VerdictBy::Checker },
        Event::CheckerComplete { result: Box::new(checker) },
        Event::CycleEnd {
            verdict: Some(Verdict::Passed),
            archive: None,
            snapshot: None,
            next: "session_complete".into(),
            totals: PerRole { worker: totals, checker: Totals::default() },
        },
        Event::SessionComplete { outcome: Outcome::Passed, cycles: 1, deliverable: json!({"summary": "done"}), totals },
    ];
    events.into_iter().zip(0..).map(|(event, second)| envelope(second, event)).collect()
}

#[test]
fn a_session_reads_as_a_short_story() {
    let mut progress = Progress::new(Paint::plain(), None);
    let lines: Vec<String> = story().iter().flat_map(|envelope| progress.apply(envelope)).collect();
    insta::assert_snapshot!("story", lines.join("\n"));
    let ending = Ending {
        outcome: Outcome::Passed,
        deliverable: Some(json!({"summary": "done"})),
        dir: Some("/root/files".into()),
    };
    assert_eq!(progress.ending(), Some(&ending));
}

#[test]
fn an_error_says_what_to_do() {
    let mut progress = Progress::new(Paint::plain(), None);
    let event = Event::SessionError {
        outcome: Outcome::ProviderError,
        stage: "worker".into(),
        cause: "no key".into(),
        remedy: "set `OPENAI_API_KEY`".into(),
        totals: Totals::default(),
    };
    let expected = [
        "✗ provider_error · 0 model calls · 0 tool calls · 0 tokens · $0.00 · 0.0 s",
        "  worker: no key",
        "  set `OPENAI_API_KEY`",
    ];
    assert_eq!(progress.apply(&envelope(0, event)), expected);
    assert_eq!(progress.ending().map(|ending| ending.outcome), Some(Outcome::ProviderError));
}

#[test]
fn the_live_line_tells_what_goes_on_and_since_when() {
    let mut progress = Progress::new(Paint::plain(), None);
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(progress.live(at(0), 0), None);
    progress.apply(&envelope(10, Event::WorkerStart { model: "a/x".into() }));
    assert_eq!(progress.live(at(12), 0).as_deref(), Some("⠋ worker thinks · 2.0 s"));
    progress.apply(&envelope(20, Event::WorkerToolCall(call("1", "bash_command", "make"))));
    assert_eq!(progress.live(at(95), 1).as_deref(), Some("⠙ worker · bash_command make · 1 m 15 s"));
    progress.apply(&envelope(96, Event::WorkerToolResult(result("1", true, Some(0), "exit 0"))));
    assert_eq!(progress.live(at(97), 0).as_deref(), Some("⠋ worker thinks · 1.0 s"));
}

#[test]
fn the_live_line_stays_below_the_lines_and_within_the_width() {
    let progress = Progress::new(Paint::plain(), None);
    let mut writer = ProgressWriter::new(progress, Vec::new(), Mode::Live(12));
    writer.event(&envelope(0, Event::WorkerStart { model: "a/x".into() })).unwrap();
    writer.tick(Timestamp::from_second(3).unwrap()).unwrap();
    writer.event(&envelope(4, Event::Note { text: "hm".into() })).unwrap();
    writer.clear().unwrap();
    let text = String::from_utf8(writer.out).unwrap();
    assert_eq!(text, "  worker a/x\n\r\u{1b}[2K⠙ worker t…\r\u{1b}[2K  note: hm\n");
}

#[test]
fn quiet_means_only_a_bad_ending_is_told() {
    let told = |outcome: Outcome| {
        let mut writer = ProgressWriter::new(Progress::new(Paint::plain(), None), Vec::new(), Mode::Quiet);
        for envelope in &story()[..5] {
            writer.event(envelope).unwrap();
        }
        let closing = Event::SessionStopped { outcome, reason: "why".into(), totals: Totals::default() };
        writer.event(&envelope(9, closing)).unwrap();
        writer.tick(Timestamp::UNIX_EPOCH).unwrap();
        String::from_utf8(writer.out).unwrap().lines().count()
    };
    assert_eq!(told(Outcome::Budget), 2);
    assert_eq!(told(Outcome::Passed), 0);
}
