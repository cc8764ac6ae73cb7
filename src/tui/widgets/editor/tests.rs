//! What typing, deleting, pasting and completing do.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};

use super::*;
use crate::tui::widgets::text::tests::odd_text;

fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> Edited {
    editor.key(KeyEvent::new(code, modifiers))
}

fn typed(kind: Kind, text: &str) -> Editor {
    let mut editor = Editor::new(kind, "what is to be done");
    for c in text.chars() {
        press(&mut editor, KeyCode::Char(c), KeyModifiers::NONE);
    }
    editor
}

fn drawn(editor: &mut Editor, width: u16, height: u16) -> (Vec<String>, Option<Position>) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let cursor = editor.draw(&mut buffer, area, area, &EditorLook::default());
    let mut rows = Vec::new();
    for y in 0..height {
        let mut row = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(grapheme_cells(symbol)).unwrap().max(1);
        }
        rows.push(row.trim_end().to_owned());
    }
    (rows, cursor)
}

fn grapheme_cells(symbol: &str) -> usize {
    crate::tui::widgets::text::grapheme_width(symbol)
}

#[test]
fn backspace_takes_a_whole_grapheme_and_undo_brings_it_back() {
    let mut editor = typed(Kind::Multi, "a👩‍👩‍👧e\u{301}");
    press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(editor.text(), "a👩‍👩‍👧");
    press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(editor.text(), "a");
    press(&mut editor, KeyCode::Char('/'), KeyModifiers::CONTROL);
    assert_eq!(editor.text(), "a👩‍👩‍👧");
    press(&mut editor, KeyCode::Home, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Right, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
    assert_eq!(editor.text(), "a");
    press(&mut editor, KeyCode::Home, KeyModifiers::NONE);
    assert_eq!(press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE), Edited::Ignored);
}

#[test]
fn a_large_paste_is_folded_and_comes_back_in_full() {
    let paste: String = (0..120).map(|i| format!("line {i}\n")).collect();
    let mut editor = typed(Kind::Multi, "see ");
    editor.paste(&paste);
    press(&mut editor, KeyCode::Char('!'), KeyModifiers::NONE);
    assert_eq!(drawn(&mut editor, 40, 1).0, ["see [pasted\u{a0}120\u{a0}lines]!"]);
    assert_eq!(editor.text(), format!("see {paste}!"));
    press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(editor.text(), "see ");
    press(&mut editor, KeyCode::Char('/'), KeyModifiers::CONTROL);
    assert_eq!(editor.text(), format!("see {paste}"));
}

#[test]
fn pasted_escape_sequences_and_marks_of_ours_are_left_out() {
    let mut editor = Editor::new(Kind::Multi, "");
    editor.paste("a\u{1b}[31mb\u{f0000}\tc\r\nd");
    assert_eq!(editor.text(), "ab    c\nd");
    let mut single = Editor::new(Kind::Single, "");
    single.paste("a\nb");
    assert_eq!(single.text(), "a b");
}

#[test]
fn enter_makes_a_line_only_where_it_should() {
    let enter = |kind, modifiers| {
        let mut editor = typed(kind, "a");
        press(&mut editor, KeyCode::Enter, modifiers);
        editor.text()
    };
    assert_eq!(enter(Kind::Multi, KeyModifiers::NONE), "a\n");
    assert_eq!(enter(Kind::Message, KeyModifiers::NONE), "a");
    assert_eq!(enter(Kind::Message, KeyModifiers::SHIFT), "a\n");
    assert_eq!(enter(Kind::Multi, KeyModifiers::CONTROL), "a");
    assert_eq!(enter(Kind::Single, KeyModifiers::NONE), "a");
    let mut message = typed(Kind::Message, "a");
    press(&mut message, KeyCode::Char('j'), KeyModifiers::CONTROL);
    assert_eq!(message.text(), "a\n");
}

#[test]
fn rows_wrap_and_the_cursor_follows() {
    let mut editor = typed(Kind::Multi, "one two three");
    assert_eq!(
        drawn(&mut editor, 8, 3),
        (vec!["one two".into(), "three".into(), String::new()], Some(Position::new(5, 1)))
    );
    press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(drawn(&mut editor, 8, 3).1, Some(Position::new(5, 0)));
    assert_eq!(press(&mut editor, KeyCode::Up, KeyModifiers::NONE), Edited::Ignored);
    press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(drawn(&mut editor, 8, 1), (vec!["three".into()], Some(Position::new(5, 0))));
    let mut wide = typed(Kind::Multi, "漢字漢字");
    assert_eq!(drawn(&mut wide, 5, 2), (vec!["漢字".into(), "漢字".into()], Some(Position::new(4, 1))));
    let mut single = typed(Kind::Single, "a long single line");
    assert_eq!(drawn(&mut single, 8, 1), (vec!["le line".into()], Some(Position::new(7, 0))));
}

#[test]
fn the_placeholder_shows_only_while_empty() {
    let mut editor = Editor::new(Kind::Multi, "what is to be done");
    assert_eq!(drawn(&mut editor, 10, 1), (vec!["what is t…".into()], Some(Position::new(0, 0))));
    press(&mut editor, KeyCode::Char('x'), KeyModifiers::NONE);
    assert_eq!(drawn(&mut editor, 10, 1).0, ["x"]);
}

#[test]
fn names_are_asked_for_after_an_at_and_the_chosen_one_replaces_it() {
    let mut editor = typed(Kind::Multi, "read @sr");
    assert_eq!(editor.wants_names(), Some("sr".to_owned()));
    assert_eq!(editor.wants_names(), None);
    editor.set_names("other", vec!["no".into()]);
    assert!(!editor.is_completing());
    editor.set_names("sr", vec!["src/".into(), "src.md".into()]);
    let (rows, _) = drawn(&mut editor, 20, 4);
    assert_eq!(rows, ["read @sr", "        >src/", "         src.md", ""]);
    press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(editor.text(), "read @src/");
    assert_eq!(editor.wants_names(), Some("src/".to_owned()));
    editor.set_names("src/", vec!["src/main.rs".into()]);
    press(&mut editor, KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(editor.text(), "read src/main.rs ");
    assert_eq!(editor.wants_names(), None);
}

#[test]
fn a_list_of_names_that_was_closed_stays_closed_and_mail_addresses_open_none() {
    let mut editor = typed(Kind::Multi, "@a");
    editor.set_names("a", vec!["ab".into()]);
    press(&mut editor, KeyCode::Esc, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Char('b'), KeyModifiers::NONE);
    assert_eq!((editor.is_completing(), editor.wants_names()), (false, None));
    let mut mail = typed(Kind::Multi, "me@example");
    assert_eq!(mail.wants_names(), None);
}

#[test]
fn a_selection_is_replaced_by_what_is_typed() {
    let mut editor = typed(Kind::Multi, "abc");
    press(&mut editor, KeyCode::Left, KeyModifiers::SHIFT);
    press(&mut editor, KeyCode::Left, KeyModifiers::SHIFT);
    press(&mut editor, KeyCode::Char('x'), KeyModifiers::NONE);
    assert_eq!(editor.text(), "ax");
    editor.set_text("new\ntext");
    assert_eq!(editor.text(), "new\ntext");
    editor.set_text("");
    assert_eq!((editor.text(), editor.is_blank()), (String::new(), true));
}

fn any_key() -> impl Strategy<Value = KeyEvent> {
    let code = prop_oneof![
        any::<char>().prop_map(KeyCode::Char),
        "[a-z@ /_]".prop_map(|s| KeyCode::Char(s.chars().next().unwrap_or('a'))),
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Tab,
            KeyCode::Esc,
        ]),
    ];
    (code, 0u8..8).prop_map(|(code, bits)| KeyEvent::new(code, KeyModifiers::from_bits_truncate(bits)))
}

proptest! {
    #[test]
    fn no_input_panics_at_any_size(
        steps in prop::collection::vec((any_key(), prop::option::of(odd_text())), 0..30),
        (width, height) in (0u16..30, 0u16..6),
        single in any::<bool>(),
    ) {
        let mut editor = Editor::new(if single { Kind::Single } else { Kind::Multi }, "漢字 placeholder");
        for (key, paste) in steps {
            editor.key(key);
            if let Some(text) = paste {
                editor.paste(&text.repeat(20));
            }
            if let Some(prefix) = editor.wants_names() {
                editor.set_names(&prefix, vec![format!("{prefix}漢"), format!("{prefix}/")]);
            }
            let area = Rect::new(0, 0, width, height);
            let mut buffer = Buffer::empty(area);
            if let Some(cursor) = editor.draw(&mut buffer, area, area, &EditorLook::default()) {
                prop_assert!(area.contains(cursor));
            }
        }
    }
}
