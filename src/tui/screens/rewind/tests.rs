//! What the timeline shows and what it sends.

use crate::events::command::Command;
use crate::events::query::{Query, RewindPreview, Timeline};
use crate::tui::fixture::running;
use crate::tui::screens::rig::{self, FakePort, at_sizes};
use crate::tui::ui::Work;

fn rewind(trace: &str, to: u64) -> Command {
    Command::Rewind {
        session: rig::id(),
        trace: Some(trace.into()),
        to,
        restore_files: true,
        overwrite_changed: false,
        message: None,
        run: true,
        headless: false,
    }
}

#[test]
fn it_looks_right_empty_filled_refused_and_broken() {
    let script = running();
    let port = FakePort::default();
    at_sizes("rewind-filled", |size| port.at_session(&script, &["r"], size));
    at_sizes("rewind-branches", |size| port.at_session(&script, &["r", "b", "up", "space", "i"], size));
    at_sizes("rewind-preview", |size| port.at_session(&script, &["r", "tab", "o"], size));
    let empty = FakePort { timeline: Ok(Timeline::default()), ..FakePort::default() };
    at_sizes("rewind-empty", |size| empty.at_session(&script, &["r"], size));
    let broken = FakePort { timeline: Err(rig::broken()), rewind: Err(rig::broken()), ..FakePort::default() };
    at_sizes("rewind-error", |size| broken.at_session(&script, &["r"], size));
    let long = RewindPreview {
        refused: Some("a cycle is being closed".into()),
        leaving: vec![rig::preview().leaving[1].clone(); 900],
        ..rig::preview()
    };
    let refused = FakePort { rewind: Ok(long), ..FakePort::default() };
    at_sizes("rewind-refused", |size| refused.at_session(&script, &["r", "tab"], size));
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("rewind-least@40x10", port.at_session(&script, &["r"], (40, 10)).screen());
    });
}

#[test]
fn enter_rewinds_to_the_message_under_the_cursor() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["r"], (120, 36));
    person.press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), rewind("w3", 4));
    assert!(person.screen().contains("rewound"));
}

#[test]
fn choices_and_instruction_go_along() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["r", "o", "i"], (120, 36));
    person.types("use a state machine").press(&["enter", "enter"]);
    let Command::Rewind { overwrite_changed, message, .. } = rig::only(port.serve(&mut person)) else {
        panic!("a rewind")
    };
    assert_eq!((overwrite_changed, message.as_deref()), (true, Some("use a state machine")));
    let mut person = port.at_session(&running(), &["r", "space", "o"], (120, 36));
    person.press(&["enter"]);
    let Command::Rewind { restore_files, overwrite_changed, .. } = rig::only(port.serve(&mut person)) else {
        panic!("a rewind")
    };
    assert_eq!((restore_files, overwrite_changed), (false, false));
}

#[test]
fn the_instruction_can_be_written_in_the_persons_editor() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["r", "i"], (120, 36));
    person.types("use a table").press(&["ctrl+g"]);
    port.serve(&mut person);
    assert!(person.screen().contains("use a table edited"));
}

#[test]
fn headings_are_passed_over_and_the_preview_waits_for_the_cursor_to_rest() {
    let port = FakePort::default();
    let script = running();
    let mut person = port.at_session(&script, &["r"], (120, 36));
    person.press(&["up", "up", "up"]);
    person.screen();
    assert!(person.work().is_empty());
    let now = script.now_ms + 1_000;
    person.later(now + 300);
    let work = person.work();
    let [Work::Query { query: Query::RewindPreview { trace, to, .. }, .. }] = &work[..] else { panic!("{work:?}") };
    assert_eq!((trace.as_ref().map(|t| t.as_str()), *to), (Some("w1"), 4));
}

#[test]
fn abandoned_branches_can_be_rewound_to() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["r", "b", "up"], (120, 36));
    assert!(person.screen().contains("An abandoned try"));
    person.press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), rewind("w3", 3));
}

#[test]
fn a_refused_rewind_says_why_and_sends_nothing() {
    let refused = RewindPreview { refused: Some("a cycle is being closed".into()), ..rig::preview() };
    let port = FakePort { rewind: Ok(refused), ..FakePort::default() };
    let mut person = port.at_session(&running(), &["r"], (120, 36));
    person.press(&["enter"]);
    assert_eq!(port.serve(&mut person), []);
    assert!(person.screen().contains("this can't be done now: a cycle is being closed"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| port.at_session(&running(), &["r"], (100, 30)), &port);
}
