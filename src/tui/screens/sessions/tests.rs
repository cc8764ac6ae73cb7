//! What the start screen shows and does.

use crate::events::command::Command;
use crate::events::data::SessionStatus;
use crate::tui::Start;
use crate::tui::fixture::Person;
use crate::tui::screens::rig::{self, FakePort, at_sizes};
use crate::tui::ui::Work;

fn port() -> FakePort {
    FakePort { sessions: Ok(rig::sessions()), ..FakePort::default() }
}

#[test]
fn it_looks_right_empty_filled_and_broken() {
    at_sizes("sessions-empty", |(width, height)| FakePort::default().at_home(width, height));
    let no_model = FakePort {
        defaults: Ok(crate::events::query::LaunchDefaults { model: Err(rig::no_model()), ..rig::defaults() }),
        ..FakePort::default()
    };
    at_sizes("sessions-no-model", |(width, height)| no_model.at_home(width, height));
    at_sizes("sessions-filled", |(width, height)| port().at_home(width, height));
    let broken = FakePort { sessions: Err(rig::broken()), ..FakePort::default() };
    at_sizes("sessions-error", |(width, height)| broken.at_home(width, height));
    at_sizes("sessions-filter", |(width, height)| {
        let mut person = port().at_home(width, height);
        person.press(&["/"]).types("pars");
        person
    });
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("sessions-least@40x10", port().at_home(40, 10).screen());
    });
}

#[test]
fn it_has_its_colours() {
    let mut person = Person::starting(Start::Sessions, 60, 12, |config| config.ui.theme = "dark".into());
    port().serve(&mut person);
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("sessions-dark@60x12", person.styled());
    });
}

#[test]
fn ascii_is_enough() {
    let mut person =
        Person::starting(Start::Sessions, 60, 12, |config| config.ui.glyphs = crate::config::Glyphs::Ascii);
    let only = vec![crate::tui::screens::rig::sessions().remove(1)];
    FakePort { sessions: Ok(only), ..FakePort::default() }.serve(&mut person);
    let screen = person.screen();
    assert!(screen.is_ascii(), "{screen}");
}

#[test]
fn the_cursor_stays_on_its_session_when_the_list_changes() {
    let mut port = port();
    let mut person = port.at_home(100, 30);
    person.press(&["down"]);
    let mut sessions = rig::sessions();
    sessions.insert(0, rig::summary("k7m2p9xz", "newest", SessionStatus::Running, None));
    port.sessions = Ok(sessions);
    person.press(&["R"]);
    port.serve(&mut person);
    person.press(&["s"]);
    assert_eq!(rig::only(port.serve(&mut person)), Command::Stop { session: "k7m2p9xw".into() });
}

#[test]
fn it_asks_again_only_while_something_runs() {
    let mut person = port().at_home(100, 30);
    person.screen();
    assert!(person.ui.wake_at().is_some());
    person.later(1_000);
    assert!(matches!(person.work()[..], [Work::Query { .. }]));
    let idle = vec![rig::summary("k7m2p9xw", "done", SessionStatus::Completed, None)];
    let mut person = FakePort { sessions: Ok(idle), ..FakePort::default() }.at_home(100, 30);
    person.screen();
    assert_eq!(person.ui.wake_at(), None);
}

#[test]
fn deleting_asks_and_no_is_the_answer_of_enter() {
    let port = port();
    let at_third = || {
        let mut person = port.at_home(100, 30);
        person.press(&["down", "down", "down", "d"]);
        person
    };
    let mut person = at_third();
    person.press(&["enter"]);
    assert_eq!(port.serve(&mut person), []);
    let mut person = at_third();
    person.press(&["y"]);
    assert_eq!(rig::only(port.serve(&mut person)), Command::Remove { session: "k7m2p9xc".into() });
    let mut person = port.at_home(100, 30);
    person.press(&["d"]);
    assert!(person.screen().contains("`ask-first` runs; stop it before you delete it"));
    at_sizes("sessions-delete", |(width, height)| {
        let mut person = port.at_home(width, height);
        person.press(&["down", "down", "down", "d"]);
        person
    });
}

#[test]
fn a_filter_narrows_and_escape_clears_it() {
    let mut person = port().at_home(100, 30);
    person.press(&["/"]).types("budget").press(&["enter", "x"]);
    assert_eq!(rig::only(port().serve(&mut person)), Command::Export { session: "k7m2p9xf".into(), file: None });
    assert!(person.screen().contains("1 of 9"));
    person.press(&["esc"]);
    assert!(person.screen().contains("9 of 9"));
    person.press(&["/"]).types("qqqq");
    assert!(person.screen().contains("nothing matches `qqqq`"));
}

#[test]
fn no_input_panics_at_any_size() {
    let start = || -> Person { port().at_home(100, 30) };
    rig::check_any_input(start, &port());
}
