//! What a form shows and where its keys go.

use proptest::prelude::*;

use super::*;

fn form() -> Form {
    Form::new(vec![
        Field::text("objective", "Objective", "what is to be done", "say how it will be judged", 4),
        Field::choice("where", "Where", vec!["auto".into(), "scratch".into(), "this folder".into()], 0, ""),
        Field::line("cycles", "Max cycles", "5", "at least 1"),
    ])
}

fn press(form: &mut Form, code: KeyCode) -> FormEvent {
    form.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn drawn(form: &mut Form, width: u16, height: u16) -> (Vec<String>, Option<Position>) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let cursor = form.draw(&mut buffer, area, area, &FormLook { ascii: true, ..FormLook::default() });
    let rows = (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
        .collect();
    (rows, cursor)
}

#[test]
fn labels_values_hints_and_errors_stand_together() {
    let mut form = form();
    form.set_error("cycles", "`0` is not a number of cycles; at least 1");
    let (rows, cursor) = drawn(&mut form, 60, 6);
    assert_eq!(
        rows,
        [
            "> Objective  what is to be done",
            "             say how it will be judged",
            "  Where      [auto]  scratch   this folder",
            "  Max cycles 5",
            "             ! `0` is not a number of cycles; at least 1",
            "",
        ]
    );
    assert_eq!(cursor, Some(Position::new(13, 0)));
    assert!(form.focus_first_error());
    assert_eq!(form.focus, 2);
}

#[test]
fn narrow_forms_put_labels_above_and_scroll_to_the_focus() {
    let mut form = form();
    press(&mut form, KeyCode::Tab);
    press(&mut form, KeyCode::Tab);
    let (rows, cursor) = drawn(&mut form, 30, 4);
    assert_eq!(
        rows[1..],
        ["> Max cycles                 |", "  5                          #", "  at least 1                 #"]
            .map(String::from)
    );
    assert_eq!(cursor, Some(Position::new(2, 2)));
}

#[test]
fn keys_go_to_the_field_and_leave_it_at_its_edges() {
    let mut form = form();
    assert_eq!(press(&mut form, KeyCode::Char('x')), FormEvent::Changed);
    assert_eq!(press(&mut form, KeyCode::Enter), FormEvent::Changed);
    assert_eq!(form.text("objective"), "x\n");
    assert_eq!(press(&mut form, KeyCode::Down), FormEvent::Moved);
    assert_eq!(press(&mut form, KeyCode::Right), FormEvent::Changed);
    assert_eq!(form.chosen("where"), 1);
    assert_eq!(press(&mut form, KeyCode::Enter), FormEvent::Moved);
    press(&mut form, KeyCode::Char('7'));
    assert_eq!(form.text("cycles"), "7");
    assert_eq!(press(&mut form, KeyCode::BackTab), FormEvent::Moved);
    assert_eq!(form.focus, 1);
    assert_eq!(press(&mut form, KeyCode::Esc), FormEvent::Ignored);
    drawn(&mut form, 60, 8);
    assert!(form.click(Position::new(3, 0)));
    assert_eq!(form.focus, 0);
}

proptest! {
    #[test]
    fn a_form_draws_at_any_size(
        width in 0u16..70, height in 0u16..12,
        keys in prop::collection::vec(prop::sample::select(vec![
            KeyCode::Tab, KeyCode::BackTab, KeyCode::Up, KeyCode::Down, KeyCode::Enter, KeyCode::Char('漢'),
            KeyCode::Char(' '), KeyCode::Left, KeyCode::Right, KeyCode::Backspace,
        ]), 0..20),
    ) {
        let mut form = form();
        for code in keys {
            press(&mut form, code);
        }
        form.set_error("where", "漢字 in the way");
        let (_, cursor) = drawn(&mut form, width, height);
        prop_assert!(cursor.is_none_or(|at| at.x < width && at.y < height));
    }
}
