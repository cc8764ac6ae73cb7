use super::fixture::{Person, key_event, running};
use super::ui::Work;
use crate::events::command::Command;
use crate::tui::fixture::session_id;

#[test]
fn ctrl_c_stops_the_session_and_a_second_one_leaves() {
    let mut person = Person::watching(&running(), 120, 36);
    person.work();
    person.press(&["ctrl+c"]);
    let stop = Command::Stop { session: session_id() };
    assert!(matches!(&person.work()[..], [Work::Command { command, .. }] if *command == stop));
    person.press(&["ctrl+c"]);
    assert_eq!(person.work(), [Work::Leave]);
}

#[test]
fn leaving_while_sessions_run_asks_first() {
    let mut person = Person::watching(&running(), 120, 36);
    person.work();
    person.press(&["q"]);
    assert_eq!(person.work(), []);
    assert_eq!(key_event("ctrl+c").code, ratatui::crossterm::event::KeyCode::Char('c'));
}
