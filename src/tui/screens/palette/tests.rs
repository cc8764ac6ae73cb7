//! How actions are found and done.

use crate::tui::screens::rig::{self, FakePort, at_sizes};
use crate::tui::ui::Work;

#[test]
fn it_looks_right_whole_narrowed_and_without_a_match() {
    let port = FakePort { sessions: Ok(rig::sessions()), ..FakePort::default() };
    let opened = |typed: &'static str| {
        let port = port.clone();
        move |(width, height)| {
            let mut person = port.at_home(width, height);
            person.press(&[":"]).types(typed);
            person
        }
    };
    at_sizes("palette-whole", opened(""));
    at_sizes("palette-narrowed", opened("archive"));
    at_sizes("palette-nothing", opened("引用符"));
}

#[test]
fn the_chosen_action_is_done_on_the_screen_below() {
    let port = FakePort { sessions: Ok(rig::sessions()), ..FakePort::default() };
    let mut person = port.at_home(100, 30);
    person.press(&["ctrl+p"]).types("leave").press(&["enter"]);
    assert!(person.work().contains(&Work::Leave));
    person.press(&["ctrl+p"]).types("launch").press(&["enter"]);
    assert!(person.screen().contains("New session"));
}

#[test]
fn no_input_panics_at_any_size() {
    let port = FakePort { sessions: Ok(rig::sessions()), ..FakePort::default() };
    let start = || {
        let mut person = port.at_home(100, 30);
        person.press(&[":"]);
        person
    };
    rig::check_any_input(start, &port);
}
