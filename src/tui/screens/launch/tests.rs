//! What the launch form shows, checks and sends.

use crate::events::command::{Ack, Command, LaunchSpec, Where};
use crate::events::data::{Budget, Contract, PermissionMode};
use crate::events::event::PerRole;
use crate::events::query::LaunchDefaults;
use crate::tui::fixture::Person;
use crate::tui::screens::rig::{self, FakePort, at_sizes};

fn opened(port: &FakePort, (width, height): (u16, u16)) -> Person {
    let mut person = port.at_home(width, height);
    person.press(&["n"]);
    port.serve(&mut person);
    person
}

fn launched() -> FakePort {
    FakePort { ack: Ok(Ack::Launched { session: rig::id() }), ..FakePort::default() }
}

#[test]
fn it_looks_right_empty_filled_wrong_and_without_a_model() {
    let port = FakePort::default();
    at_sizes("launch-empty", |size| opened(&port, size));
    at_sizes("launch-filled", |size| {
        let mut person = opened(&port, size);
        person.types(&format!("{}\n", rig::WIDE.repeat(6))).press(&["tab"]).types("files:\n  - a.md").press(&["tab"]);
        person.types("cargo test");
        port.serve(&mut person);
        person
    });
    at_sizes("launch-wrong", |size| {
        let mut person = opened(&port, size);
        person
            .press(&["tab", "tab", "tab", "tab", "tab", "tab"])
            .types("0")
            .press(&["tab"])
            .types("many")
            .press(&["ctrl+s"]);
        person
    });
    let lacking = LaunchDefaults {
        model: Err(rig::no_model()),
        auto_place: Err("this repository has uncommitted changes".into()),
        uncommitted: (0..9).map(|i| format!("src/file{i}.rs")).collect(),
        ..rig::defaults()
    };
    let lacking = FakePort { defaults: Ok(lacking), ..FakePort::default() };
    at_sizes("launch-no-model", |size| {
        let mut person = opened(&lacking, size);
        person.types("x").press(&["ctrl+s"]);
        person
    });
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("launch-least@40x10", opened(&port, (40, 10)).screen());
    });
}

#[test]
fn an_objective_alone_is_enough() {
    let port = launched();
    let mut person = opened(&port, (100, 30));
    person.types("Fix the parser").press(&["ctrl+s"]);
    let expected = LaunchSpec {
        contract: Contract { objective: "Fix the parser".into(), ..Contract::default() },
        dir: "/home/ada/parser".into(),
        place: Some(Where::Auto),
        permission_mode: Some(PermissionMode::BypassPermissions),
        ..LaunchSpec::default()
    };
    assert_eq!(rig::only(port.serve(&mut person)), Command::Launch(Box::new(expected)));
}

#[test]
fn every_field_reaches_the_launch() {
    let port = launched();
    let mut person = opened(&port, (100, 40));
    person
        .types("Do it")
        .press(&["tab"])
        .types("{\"files\": [\"a\"]}")
        .press(&["tab"])
        .types("cargo test")
        .press(&["enter"]);
    person
        .types(" make ")
        .press(&["tab", "right", "tab", "right", "tab", "right", "right", "tab"])
        .types("3")
        .press(&["tab"]);
    person.types("200k").press(&["tab"]).types("2.50").press(&["tab"]).types("1h30m").press(&["tab"]);
    person.types("{\"a\": 1}").press(&["tab"]).types("tests/").press(&["tab", "right", "right", "ctrl+s"]);
    let Command::Launch(spec) = rig::only(port.serve(&mut person)) else { panic!("a launch") };
    let expected = LaunchSpec {
        contract: Contract {
            objective: "Do it".into(),
            expected_output: Some(serde_json::json!({"files": ["a"]})),
            inputs: serde_json::from_str("{\"a\": 1}").unwrap(),
            checks: vec!["cargo test".into(), "make".into()],
            protected: vec!["tests/".into()],
        },
        dir: "/home/ada/parser".into(),
        place: Some(Where::Scratch),
        profiles: PerRole { worker: Some("careful".into()), checker: Some("fast".into()) },
        max_cycles: Some(3),
        budget: Budget { tokens: Some(200_000), usd: Some(2.5), time_ms: Some(5_400_000) },
        permission_mode: Some(PermissionMode::Ask),
        ..LaunchSpec::default()
    };
    assert_eq!(*spec, expected);
}

#[test]
fn wrong_input_is_marked_and_nothing_is_sent() {
    let port = launched();
    let mut person = opened(&port, (100, 40));
    person.press(&["ctrl+s"]);
    assert_eq!(port.serve(&mut person), []);
    assert!(person.screen().contains("! say what is to be done; nothing else is required"));
    person.types("x").press(&["tab"]).types("{").press(&["ctrl+s"]);
    assert_eq!(port.serve(&mut person), []);
    assert!(person.screen().contains("! begins like JSON but is none"));
}

#[test]
fn a_failed_launch_loses_nothing() {
    let port = FakePort { ack: Err(rig::no_model()), ..FakePort::default() };
    let mut person = opened(&port, (100, 40));
    person.types("Fix the parser").press(&["ctrl+s"]);
    assert_eq!(port.serve(&mut person).len(), 1);
    let screen = person.screen();
    assert!(screen.contains("no model: neither") && screen.contains("Fix the parser"), "{screen}");
    person.press(&["esc", "n"]);
    assert!(person.screen().contains("Fix the parser"));
}

#[test]
fn leaving_the_form_keeps_every_field_until_it_is_launched() {
    let port = launched();
    let mut person = opened(&port, (100, 40));
    person.types("Do it").press(&["tab", "tab"]).types("make").press(&["tab", "right", "tab", "right", "esc", "n"]);
    port.serve(&mut person);
    person.press(&["ctrl+s"]);
    let Command::Launch(spec) = rig::only(port.serve(&mut person)) else { panic!("a launch") };
    let (place, profile) = (spec.place, spec.profiles.worker.as_deref());
    assert_eq!((spec.contract.checks, place, profile), (vec!["make".into()], Some(Where::Scratch), Some("careful")));
    person.press(&["n"]);
    port.serve(&mut person);
    assert!(!person.screen().contains("Do it"));
}

#[test]
fn file_names_complete_and_the_editor_brings_its_text_back() {
    let port = launched();
    let mut person = opened(&port, (100, 30));
    person.types("see @s");
    port.serve(&mut person);
    assert!(person.screen().contains(">src/"));
    person.press(&["down", "tab"]);
    port.serve(&mut person);
    assert!(person.screen().contains("see src/main.rs"));
    person.press(&["ctrl+g"]);
    port.serve(&mut person);
    assert!(person.screen().contains("see src/main.rs  edited"));
}

#[test]
fn no_input_panics_at_any_size() {
    rig::check_any_input(|| opened(&FakePort::default(), (100, 30)), &FakePort::default());
}
