//! What the table of cycles shows and how two are compared.

use crate::tui::fixture::{Script, running};
use crate::tui::screens::rig::{self, FakePort, at_sizes};

#[test]
fn it_looks_right_empty_filled_and_compared() {
    let port = FakePort { output: format!("{{\n  \"summary\": \"{}\"\n}}\n", rig::WIDE), ..FakePort::default() };
    at_sizes("archive-filled", |size| port.at_session(&running(), &["a", "up", "d"], size));
    at_sizes("archive-compare", |size| port.at_session(&running(), &["a", "d", "up", "d"], size));
    at_sizes("archive-compare-files", |size| port.at_session(&running(), &["a", "d", "up", "d", "tab"], size));
    at_sizes("archive-empty", |size| port.at_session(&Script::launched("new", "objective"), &["a"], size));
}

#[test]
fn a_mark_is_taken_back_by_the_same_key_and_by_escape() {
    let port = FakePort::default();
    let mut person = port.at_session(&running(), &["a", "d"], (100, 30));
    assert!(person.screen().contains("* 2"));
    person.press(&["d"]);
    assert!(!person.screen().contains("* 2"));
    person.press(&["d", "esc"]);
    assert!(!person.screen().contains("* 2") && person.screen().contains("Cycles"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| port.at_session(&running(), &["a"], (100, 30)), &port);
}
