//! The keys of every screen are there, as they are in the table.

use crate::tui::Start;
use crate::tui::fixture::Person;
use crate::tui::screens::rig::{FakePort, at_sizes, boxes_at_sizes};

#[test]
fn it_looks_right_on_the_start_screen_and_in_a_session() {
    let port = FakePort::default();
    at_sizes("help-sessions", |(width, height)| {
        let mut person = port.at_home(width, height);
        person.press(&["?"]);
        person
    });
    boxes_at_sizes("help-session", |size| port.at_session(&crate::tui::fixture::running(), &["?"], size));
}

#[test]
fn the_persons_own_keys_are_shown() {
    let mut person = Person::starting(Start::Sessions, 100, 40, |config| {
        let keys = crate::config::OneOrMany::One("ctrl+n".into());
        config.keys.entry("sessions".into()).or_default().insert("launch".into(), keys);
    });
    person.press(&["?"]);
    assert!(person.screen().contains("Ctrl+N"));
}
