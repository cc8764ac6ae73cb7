//! How messages are written, kept, changed, and how a session is continued.

use crate::events::command::{Command, Deliver, Overrides};
use crate::events::data::UserMessageState;
use crate::events::event::Event;
use crate::tui::fixture::{Script, running};
use crate::tui::screens::rig::{self, FakePort, boxes_at_sizes};

fn queued() -> Script {
    let mut script = running();
    for (id, text, state) in
        [("m1", "Use the standard library", UserMessageState::Queued), ("m2", rig::WIDE, UserMessageState::NextCycle)]
    {
        script.event(Event::UserMessage { message_id: id.into(), text: text.into(), state });
    }
    script
}

fn stopped() -> Script {
    let mut script = running();
    script.error("worker", "no key", "set one");
    script
}

#[test]
fn it_looks_right_empty_filled_waiting_and_failed() {
    let port = FakePort::default();
    boxes_at_sizes("message-empty", |size| port.at_session(&running(), &["c"], size));
    boxes_at_sizes("message-waiting", |size| {
        let mut person = port.at_session(&queued(), &["c"], size);
        person.types(&rig::WIDE.repeat(5));
        person
    });
    boxes_at_sizes("message-continue", |size| port.at_session(&stopped(), &["c"], size));
    let failing = FakePort { ack: Err(rig::broken()), ..FakePort::default() };
    boxes_at_sizes("message-failed", |size| {
        let mut person = failing.at_session(&running(), &["c"], size);
        person.types("Stop using regular expressions").press(&["enter"]);
        failing.serve(&mut person);
        person
    });
}

#[test]
fn enter_delivers_at_the_next_step_and_alt_enter_keeps_for_the_next_cycle() {
    let port = FakePort::default();
    for (key, deliver) in [("enter", Deliver::NextStep), ("alt+enter", Deliver::NextCycle)] {
        let mut person = port.at_session(&running(), &["c"], (100, 30));
        person.types("one").press(&["ctrl+j"]).types("two").press(&[key]);
        let text = "one\ntwo".to_owned();
        assert_eq!(rig::only(port.serve(&mut person)), Command::Message { session: rig::id(), text, deliver });
    }
}

#[test]
fn a_waiting_message_can_be_changed_and_withdrawn() {
    let port = FakePort::default();
    let mut person = port.at_session(&queued(), &["c", "tab", "enter"], (100, 30));
    person.types(" only").press(&["enter"]);
    let edit =
        |id: &str, text: &str| Command::EditMessage { session: rig::id(), message_id: id.into(), text: text.into() };
    assert_eq!(rig::only(port.serve(&mut person)), edit("m1", "Use the standard library only"));
    let mut person = port.at_session(&queued(), &["c", "tab", "down", "enter", "ctrl+u"], (100, 30));
    person.press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), edit("m2", ""));
}

#[test]
fn a_session_that_does_not_run_is_continued() {
    let port = FakePort::default();
    let mut person = port.at_session(&stopped(), &["c"], (100, 30));
    person.types("try again").press(&["enter"]);
    let message = Some("try again".to_owned());
    let overrides = Box::new(Overrides::default());
    assert_eq!(rig::only(port.serve(&mut person)), Command::Resume { session: rig::id(), message, overrides });
}

#[test]
fn what_was_typed_survives_a_failure_and_leaving() {
    let port = FakePort { ack: Err(rig::broken()), ..FakePort::default() };
    let mut person = port.at_session(&running(), &["c"], (100, 30));
    person.types("keep this").press(&["enter"]);
    port.serve(&mut person);
    assert!(person.screen().contains("keep this"));
    person.press(&["esc", "c"]);
    assert!(person.screen().contains("keep this"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| port.at_session(&queued(), &["c"], (100, 30)), &port);
}
