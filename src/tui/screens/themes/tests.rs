//! Themes are shown at once, kept by Enter and taken back by Escape.

use crate::tui::fixture::Person;
use crate::tui::screens::rig::{self, FakePort, at_sizes};
use crate::tui::ui::Work;

fn opened((width, height): (u16, u16)) -> Person {
    let port = FakePort { sessions: Ok(rig::sessions()), ..FakePort::default() };
    let mut person = port.at_home(width, height);
    person.press(&["t"]);
    person
}

#[test]
fn it_looks_right() {
    at_sizes("themes", opened);
}

#[test]
fn a_theme_is_previewed_kept_and_taken_back() {
    let mut person = opened((100, 30));
    let before = person.styled();
    person.press(&["up"]);
    assert_ne!(person.styled(), before);
    person.press(&["down"]);
    assert_eq!(person.styled(), before);
    person.press(&["up", "esc", "t"]);
    assert_eq!(person.styled(), before);
    person.press(&["home", "enter"]);
    assert!(person.work().contains(&Work::KeepTheme("dark".into())));
}
