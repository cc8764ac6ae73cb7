//! How consent is given and questions are answered.

use crate::events::command::Command;
use crate::events::data::{Permission, Role};
use crate::events::event::Event;
use crate::tui::fixture::{Script, running};
use crate::tui::screens::rig::{self, FakePort, boxes_at_sizes};

fn asks(tool: &str, arguments: serde_json::Value) -> Script {
    let mut script = running();
    script.event(Event::PermissionRequest {
        request_id: "p1".into(),
        role: Role::Worker,
        tool: tool.into(),
        arguments: arguments.to_string(),
    });
    script
}

fn command() -> Script {
    asks("bash_command", serde_json::json!({"command": "cargo test\nrm -rf target \u{1b}[2K", "timeout": 60}))
}

fn edit() -> Script {
    asks("edit_file", serde_json::json!({"path": "src/a.rs", "old_string": "let a = 1;", "new_string": rig::WIDE}))
}

fn question() -> Script {
    let mut script = running();
    script.event(Event::Question {
        question_id: "q1".into(),
        question: "Which dialect of CSV is meant?\nThe file mixes two.".into(),
        options: vec!["RFC 4180".into(), "Excel".into()],
    });
    script
}

#[test]
fn it_looks_right_for_commands_edits_and_questions() {
    let port = FakePort::default();
    boxes_at_sizes("request-command", |size| port.at_session(&command(), &[], size));
    boxes_at_sizes("request-edit", |size| port.at_session(&edit(), &[], size));
    boxes_at_sizes("request-refuse", |size| port.at_session(&command(), &["r"], size));
    boxes_at_sizes("request-question", |size| port.at_session(&question(), &["down"], size));
    let long = asks("bash_command", serde_json::json!({"command": "echo a very long line; ".repeat(200)}));
    boxes_at_sizes("request-long", |size| port.at_session(&long, &[], size));
}

#[test]
fn each_answer_is_sent_as_it_was_given() {
    let port = FakePort::default();
    let permit = |answer| Command::Permit { session: rig::id(), request_id: "p1".into(), answer };
    for (keys, typed, answer) in [
        (&["y"][..], "", Permission::AllowOnce),
        (&["a"], "", Permission::AllowSession),
        (&["r"], "it deletes too much", Permission::Refuse { reason: "it deletes too much".into() }),
        (&["r"], "", Permission::Refuse { reason: "the person refused it".into() }),
    ] {
        let mut person = port.at_session(&command(), &[], (100, 30));
        person.press(keys).types(typed);
        if matches!(answer, Permission::Refuse { .. }) {
            person.press(&["enter"]);
        }
        assert_eq!(rig::only(port.serve(&mut person)), permit(answer));
    }
}

#[test]
fn what_is_hidden_is_announced() {
    let port = FakePort::default();
    let words = "control characters in it are not shown";
    assert!(port.at_session(&command(), &[], (100, 30)).screen().contains(words));
    assert!(!port.at_session(&edit(), &[], (100, 30)).screen().contains(words));
}

#[test]
fn enter_alone_allows_nothing() {
    let port = FakePort::default();
    let mut person = port.at_session(&command(), &[], (100, 30));
    person.press(&["enter"]);
    assert_eq!(port.serve(&mut person), []);
}

#[test]
fn a_question_takes_an_offered_answer_or_own_words() {
    let port = FakePort::default();
    let answer = |text: &str| Command::Answer { session: rig::id(), question_id: "q1".into(), answer: text.into() };
    let mut person = port.at_session(&question(), &["down"], (100, 30));
    person.press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), answer("Excel"));
    let mut person = port.at_session(&question(), &[], (100, 30));
    person.types("ask again later").press(&["enter"]);
    assert_eq!(rig::only(port.serve(&mut person)), answer("ask again later"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort::default();
    rig::check_any_input(|| port.at_session(&question(), &[], (100, 30)), &port);
    rig::check_any_input(|| port.at_session(&command(), &[], (100, 30)), &port);
}
