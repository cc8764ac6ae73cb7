//! What applying shows before it is done, and when it asks.

use crate::events::command::Command;
use crate::events::query::ApplyPreview;
use crate::tui::fixture::running;
use crate::tui::screens::rig::{self, FakePort, at_sizes};

fn unverified() -> FakePort {
    let preview = ApplyPreview {
        verdict: None,
        conflicts: vec!["src/lexer.rs".into()],
        refused: Some("cycle 2 is not verified".into()),
        ..rig::apply()
    };
    FakePort { apply: Ok(preview), ..FakePort::default() }
}

fn apply(force: bool) -> Command {
    Command::Apply { session: rig::id(), cycle: None, to: None, force }
}

#[test]
fn it_looks_right_empty_filled_refused_and_broken() {
    at_sizes("apply-filled", |size| FakePort::default().at_session(&running(), &["p"], size));
    at_sizes("apply-refused", |size| unverified().at_session(&running(), &["p"], size));
    at_sizes("apply-anyway", |size| unverified().at_session(&running(), &["p", "enter"], size));
    let empty = ApplyPreview { files: Vec::new(), files_total: 0, ..rig::apply() };
    let empty = FakePort { apply: Ok(empty), ..FakePort::default() };
    at_sizes("apply-empty", |size| empty.at_session(&running(), &["p"], size));
    let broken = FakePort { apply: Err(rig::broken()), ..FakePort::default() };
    at_sizes("apply-error", |size| broken.at_session(&running(), &["p"], size));
}

#[test]
fn a_refused_one_asks_before_it_is_forced() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["p"], (100, 30));
    person.press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), apply(false));
    let port = unverified();
    let mut person = port.at_session(&running(), &["p", "enter"], (100, 30));
    person.press(&["enter"]);
    assert_eq!(port.serve(&mut person), []);
    person.press(&["enter", "y"]);
    assert_eq!(rig::only(port.serve(&mut person)), apply(true));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = unverified();
    rig::check_any_input(|| port.at_session(&running(), &["p"], (100, 30)), &port);
}
