use std::sync::Arc;

use super::SessionState;
use super::activity::{Row, RowKind};
use super::cycle::HandedIn;
use crate::events::data::{ChangeKind, GoalStatus, Outcome, Plan, Role, SessionStatus, UserMessageState, Verdict};
use crate::events::event::{Envelope, Event, RewindRecord, Superseded};
use crate::ids::Seq;
use crate::tui::fixture::{Script, at, change, goal, running, session_id};

fn fold(events: &[Arc<Envelope>]) -> SessionState {
    let mut state = SessionState::new(session_id());
    events.iter().for_each(|event| state.apply(event));
    state
}

fn texts(state: &SessionState) -> Vec<String> {
    let text = |row: &Row| match &row.kind {
        RowKind::Text(piece) => Some(piece.text.clone()),
        _ => None,
    };
    state.activity.rows().iter().filter_map(text).collect()
}

fn rewind(cut: Seq, cycle: u32, superseded: &[u32], restored: &[u32]) -> Event {
    let named = |cycles: &[u32]| {
        let one = |cycle: &u32| Superseded {
            cycle: *cycle,
            worker_trace_id: Some(format!("w{cycle}").as_str().into()),
            checker_trace_id: Some(format!("c{cycle}").as_str().into()),
            number: 1,
        };
        cycles.iter().map(one).collect::<Vec<_>>()
    };
    Event::Rewind(Box::new(RewindRecord {
        after_sequence: cut,
        cut,
        old_head: 9,
        goal_tree_snapshot: Plan::default(),
        goal_tree: Plan { goals: vec![goal("1", None, GoalStatus::InProgress, "again")], ..Plan::default() },
        cycle,
        superseded: named(superseded),
        restored: named(restored),
        snapshot_before: None,
        snapshot_after: None,
        keep: Vec::new(),
        message: None,
        undo: !restored.is_empty(),
        others: Vec::new(),
    }))
}

#[test]
fn pieces_become_one_row_and_the_message_takes_their_place() {
    let mut script = Script::launched("s", "o");
    script.cycle(1).delta("Hel").delta("lo\n").delta("there");
    let state = fold(&script.events);
    assert_eq!(texts(&state), ["Hello\nthere"]);
    assert!(state.activity.is_moving());
    script.says("Hello\nthere", &[]);
    let state = fold(&script.events);
    assert_eq!(texts(&state), ["Hello\nthere"]);
    assert!(!state.activity.is_moving());
}

#[test]
fn a_live_view_and_an_archived_one_are_the_same() {
    let mut script = running();
    script.delta("partly ").says("partly and whole", &[]);
    let journalled: Vec<_> = script.events.iter().filter(|e| e.event_id.is_some()).cloned().collect();
    let (live, archived) = (fold(&script.events), fold(&journalled));
    assert_eq!(texts(&live), texts(&archived));
    assert_eq!(live.cycles.all(), archived.cycles.all());
}

#[test]
fn a_retry_discards_what_was_written_so_far() {
    let mut script = Script::launched("s", "o");
    script.cycle(1).delta("half a sent");
    let retry = Event::Retry { attempt: 1, attempts: 4, wait_ms: 4_000, cause: "connection reset".into() };
    script.event(retry);
    let state = fold(&script.events);
    assert_eq!(texts(&state), Vec::<String>::new());
    assert_eq!(state.head.retry.as_ref().map(|r| r.until), Some(at(4_000)));
    script.delta("whole");
    let state = fold(&script.events);
    assert_eq!(texts(&state), ["whole"]);
    assert_eq!(state.head.retry, None);
}

#[test]
fn a_known_event_changes_nothing() {
    let script = running();
    let mut state = fold(&script.events);
    let rows = state.activity.len();
    let used = state.head.totals();
    script.events.iter().filter(|e| e.event_id.is_some()).for_each(|event| state.apply(event));
    assert_eq!((state.activity.len(), state.head.totals()), (rows, used));
}

#[test]
fn a_growing_text_keeps_its_end_within_a_bound() {
    let mut script = Script::launched("s", "o");
    script.cycle(1);
    for n in 0..40_000 {
        script.delta(&format!("line {n} of many\n"));
    }
    let state = fold(&script.events);
    let Some(Row { kind: RowKind::Text(piece), .. }) = state.activity.rows().last() else { panic!("no text") };
    assert!(piece.text.len() <= 128 * 1024, "{}", piece.text.len());
    assert!(piece.text.ends_with("line 39999 of many\n"));
    assert_eq!(piece.missing + piece.text.len() as u64, piece.bytes);
}

#[test]
fn a_rewind_takes_rows_off_the_path_and_an_undone_one_brings_them_back() {
    let mut script = Script::launched("s", "o");
    script.cycle(1).says("one", &[]).says("two", &["x"]).call(Role::Worker, "x", "bash_command", "ls");
    script.result(Role::Worker, "x", "bash_command", true, "ok", 1).says("three", &[]);
    script.hand_in(serde_json::json!({"summary": "done"}), &[change("a", ChangeKind::Added, 1, 0)]);
    script.checker().says("checking", &[]).verdict(Verdict::Failed, "no", "more", Vec::new());
    script.cycle(2).says("next", &[]);
    script.cycle = Some(1);
    script.run("w1").event(rewind(1, 1, &[2], &[]));
    let state = fold(&script.events);
    let off = |state: &SessionState| -> Vec<bool> {
        let rows = state.activity.rows().iter();
        rows.filter(|r| matches!(r.kind, RowKind::Text(_))).map(|r| r.off_path).collect()
    };
    assert_eq!(off(&state), [false, true, true, true, true]);
    assert_eq!(state.cycles.all().iter().map(|c| (c.number, c.verdict)).collect::<Vec<_>>(), [(1, None)]);
    assert_eq!(state.plans.current().and_then(|p| p.goals.first()).map(|g| g.description.as_str()), Some("again"));
    script.event(rewind(3, 1, &[], &[1, 2]));
    let state = fold(&script.events);
    assert_eq!(off(&state), [false; 5]);
    let verdicts: Vec<_> = state.cycles.all().iter().map(|c| (c.number, c.verdict)).collect();
    assert_eq!(verdicts, [(1, Some(Some(Verdict::Failed))), (2, None)]);
}

#[test]
fn a_cycle_of_the_archive_is_as_it_stood_then() {
    let state = fold(&running().events);
    let view = state.view_at_cycle(1).unwrap();
    assert_eq!(view.plan.map(|p| p.goals.len()), Some(1));
    assert_eq!(view.verdicts.len(), 1);
    let rows = &state.activity.rows()[view.rows.start.0 as usize..view.rows.end.0 as usize];
    assert!(rows.iter().all(|row| row.cycle == Some(1)));
    assert!(matches!(view.verdicts[0].handed_in(), HandedIn::Output(_)));
    assert!(state.view_at_cycle(7).is_none());
}

#[test]
fn messages_wait_until_they_are_delivered() {
    let mut script = Script::launched("s", "o");
    let mut say = |id: &str, text: &str, state| {
        script.event(Event::UserMessage { message_id: id.into(), text: text.into(), state });
        let state = fold(&script.events);
        state.messages.waiting().iter().map(|w| w.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(say("a", "one", UserMessageState::Queued), ["one"]);
    assert_eq!(say("b", "two", UserMessageState::NextCycle), ["one", "two"]);
    assert_eq!(say("b", "three", UserMessageState::Edited), ["one", "three"]);
    assert_eq!(say("a", "one", UserMessageState::Delivered), ["three"]);
    assert_eq!(say("b", "", UserMessageState::Edited), Vec::<String>::new());
}

#[test]
fn a_session_that_ends_leaves_nothing_running() {
    let mut script = running();
    script.event(Event::Question { question_id: "q".into(), question: "which?".into(), options: Vec::new() });
    assert_eq!(fold(&script.events).requests.open().len(), 1);
    script.error("worker", "refused", "pay");
    let state = fold(&script.events);
    assert_eq!(state.head.status, Some(SessionStatus::Error));
    assert_eq!(state.head.trouble.as_ref().map(|t| t.remedy.as_str()), Some("pay"));
    assert!(!state.activity.is_moving() && state.requests.open().is_empty());
    let mut state = fold(&running().events);
    state.interrupted();
    assert_eq!((state.head.status, state.head.outcome), (Some(SessionStatus::Stopped), Some(Outcome::Interrupted)));
}
