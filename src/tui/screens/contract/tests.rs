//! How contract and limits are shown and changed.

use crate::events::command::Command;
use crate::events::data::{Budget, Contract};
use crate::tui::fixture::{Script, running};
use crate::tui::screens::rig::{self, FakePort, at_sizes};

#[test]
fn it_looks_right_filled_wrong_and_failed() {
    let port = FakePort::default();
    at_sizes("contract-filled", |size| port.at_session(&running(), &["E"], size));
    let wide = Script::launched("wide", &rig::WIDE.repeat(20));
    at_sizes("contract-wide", |size| port.at_session(&wide, &["E"], size));
    at_sizes("contract-wrong", |size| port.at_session(&running(), &["E", "ctrl+u", "ctrl+s"], size));
    let failing = FakePort { ack: Err(rig::broken()), ..FakePort::default() };
    at_sizes("contract-failed", |size| failing.at_session(&running(), &["E", "ctrl+s"], size));
}

#[test]
fn only_what_was_changed_is_another() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["E", "tab", "tab", "end", "enter"], (100, 40));
    person.types("cargo clippy").press(&["tab", "tab", "ctrl+u"]).types("7").press(&["ctrl+s"]);
    let contract = Contract {
        objective: "Make the parser handle quotes inside quotes".into(),
        checks: vec!["cargo test".into(), "cargo clippy".into()],
        ..Contract::default()
    };
    let budget = Budget { tokens: Some(200_000), ..Budget::default() };
    let expected = Command::SetContract { session: rig::id(), contract: Box::new(contract), max_cycles: 7, budget };
    assert_eq!(rig::only(port.serve(&mut person)), expected);
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| port.at_session(&running(), &["E"], (100, 30)), &port);
}
