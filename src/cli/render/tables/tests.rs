//! Claims about the tables, from sessions made by hand.

use serde_json::json;

use super::*;
use crate::events::data::{
    ChangeKind, CitedCall, Contract, FileChange, Outcome, Totals, Verdict, VerdictBy, WorkerStatus,
};
use crate::events::event::PerRole;
use crate::ids::SessionId;

fn summary() -> SessionSummary {
    SessionSummary {
        id: SessionId::new("23456789"),
        name: "hello-page".into(),
        objective: "Build a page\u{1b}[2J with a title".into(),
        status: SessionStatus::Completed,
        outcome: Some(Outcome::Passed),
        waiting: false,
        elsewhere: false,
        cycle: 2,
        max_cycles: 5,
        verdicts: vec![Some(Verdict::NeedsImprovement), Some(Verdict::Passed)],
        totals: Totals {
            calls: 9,
            tool_calls: 12,
            prompt_tokens: 20_000,
            completion_tokens: 4_000,
            cost_usd: 0.25,
            duration_ms: 80_000,
            ..Totals::default()
        },
        home: "/root/session-23456789".into(),
        dir: "/root/session-23456789/files".into(),
        scripted: false,
        created_at: Timestamp::UNIX_EPOCH,
        active_at: Timestamp::from_second(600).unwrap(),
        broken: None,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1200).unwrap()
}

#[test]
fn sessions_are_listed_with_everything_that_tells_them_apart() {
    let running = SessionSummary {
        id: SessionId::new("abcdefgh"),
        name: "漢字".into(),
        objective: "rehearse".into(),
        status: SessionStatus::Running,
        outcome: None,
        waiting: true,
        scripted: true,
        cycle: 1,
        verdicts: Vec::new(),
        ..summary()
    };
    let broken = SessionSummary { broken: Some("session.json is empty".into()), name: String::new(), ..summary() };
    insta::assert_snapshot!("sessions", sessions(&[running, summary(), broken], now(), None, Paint::plain()));
}

#[test]
fn a_narrow_terminal_cuts_the_objective() {
    let text = sessions(&[summary()], now(), Some(80), Paint::plain());
    assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with('…'), "{text}");
}

#[test]
fn no_sessions_says_how_to_start() {
    assert!(sessions(&[], now(), None, Paint::plain()).contains("`super-agent run OBJECTIVE`"));
}

#[test]
fn a_session_is_shown_with_its_cycles_and_deliverable() {
    let worker = WorkerResult {
        status: WorkerStatus::Ok,
        summary: "the page is there".into(),
        output: json!({}),
        artifacts: Vec::new(),
        error: None,
        changed: vec![FileChange { path: "index.html".into(), kind: ChangeKind::Added, added: Some(9), removed: None }],
    };
    let call = CitedCall {
        number: 3,
        tool: "bash_command".into(),
        arguments: "ls".into(),
        exit_code: Some(0),
        ok: true,
        output_hash: String::new(),
    };
    let checker = CheckerResult {
        verdict: Some(Verdict::NeedsImprovement),
        reason: "the title is missing".into(),
        feedback: "add a title\nand check it".into(),
        verified: vec!["the file is there".into(), "it is pretty".into()],
        evidence: vec![
            Evidence { text: "the file is there".into(), calls: vec![call] },
            Evidence { text: "it is pretty".into(), calls: Vec::new() },
        ],
        by: VerdictBy::Checker,
        snapshot: None,
    };
    let detail = SessionDetail {
        summary: summary(),
        contract: Contract {
            objective: "Build a page\nwith a title".into(),
            checks: vec!["grep -q title index.html".into()],
            ..Contract::default()
        },
        place: Place {
            kind: PlaceKind::Worktree,
            dir: "/repo/tree".into(),
            repository: None,
            branch: Some("super-agent/hello-page".into()),
            base_branch: None,
            base_commit: None,
        },
        models: PerRole { worker: "a/x".into(), checker: "b/y".into() },
        cycles: vec![
            CycleDetail {
                number: 1,
                worker: Some(worker),
                checker: Some(checker),
                totals: PerRole { worker: summary().totals, checker: Totals::default() },
                ended: true,
                ..CycleDetail::default()
            },
            CycleDetail { number: 2, ..CycleDetail::default() },
        ],
        deliverable: Some(json!({"summary": "a page", "files": ["index.html"]})),
        deliverable_cycle: Some(1),
    };
    insta::assert_snapshot!("session", session(&detail, None, Paint::plain()));
    let second = session(&detail, Some(2), Paint::plain());
    assert!(second.trim_start().starts_with("cycle 2 ▶ not ended") && !second.contains("deliverable"), "{second}");
}
