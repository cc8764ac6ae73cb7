//! What the log shows and how it is searched.

use crate::tui::fixture::Person;
use crate::tui::screens::rig::{self, FakePort, at_sizes};

fn opened(port: &FakePort, (width, height): (u16, u16)) -> Person {
    let mut person = port.at_home(width, height);
    person.press(&["L"]);
    port.serve(&mut person);
    person
}

fn long() -> FakePort {
    let log: String =
        (0..5_000).map(|i| format!("2026-11-21T12:00:00Z INFO line {i} {}\u{1b}[31m\n", rig::WIDE)).collect();
    FakePort { log: Ok(log), ..FakePort::default() }
}

#[test]
fn it_looks_right_empty_filled_long_and_broken() {
    at_sizes("log-filled", |size| opened(&FakePort::default(), size));
    at_sizes("log-empty", |size| opened(&FakePort { log: Ok(String::new()), ..FakePort::default() }, size));
    at_sizes("log-error", |size| opened(&FakePort { log: Err(rig::broken()), ..FakePort::default() }, size));
    at_sizes("log-long", |size| opened(&long(), size));
}

#[test]
fn a_search_goes_from_match_to_match() {
    let mut person = opened(&long(), (100, 30));
    person.press(&["/"]).types("line 49").press(&["enter"]);
    let screen = person.screen();
    assert!(screen.contains("match 111 of 111") && screen.contains("line 4999"), "{screen}");
    person.press(&["n"]);
    let screen = person.screen();
    assert!(screen.contains("match 1 of 111") && screen.contains("line 49 "), "{screen}");
    person.press(&["esc"]);
    assert!(!person.screen().contains("match"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| opened(&port, (100, 30)), &port);
}
