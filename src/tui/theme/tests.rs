use super::*;

fn themes(files: &[(&str, &str)]) -> Result<Themes, Problem> {
    let files: Vec<_> = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
    Themes::new(&files, Glyphs::Unicode, Colors::True)
}

fn rgb(color: Color) -> Option<[f64; 3]> {
    let Color::Rgb(r, g, b) = color else { return None };
    Some([r, g, b].map(|v| f64::from(v) / 255.0))
}

/// Relative luminance (WCAG 2.2).
fn luminance(color: [f64; 3]) -> f64 {
    let [r, g, b] = color.map(|v| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Grounds that are no text, and lines that carry none.
fn is_text(slot: Slot) -> bool {
    let name = slot.name();
    !name.starts_with("background.") && !name.starts_with("border.") && !name.starts_with("bar.")
}

#[test]
fn every_text_can_be_read_on_every_ground_of_every_theme() {
    let mut poor = Vec::new();
    for theme in &themes(&[]).unwrap().all {
        let grounds = [Slot::Background, Slot::Selected, Slot::SelectedDim, Slot::Dialog];
        for &slot in Slot::ALL.iter().filter(|s| is_text(**s)) {
            let style = theme[slot];
            let Some(text) = style.fg.and_then(rgb) else { continue };
            let own: Vec<Color> = style.bg.into_iter().collect();
            let grounds: Vec<Color> =
                if own.is_empty() { grounds.iter().filter_map(|g| theme[*g].bg).collect() } else { own };
            for ground in grounds.iter().filter_map(|g| rgb(*g)) {
                let ratio = contrast(text, ground);
                if ratio < 4.5 {
                    poor.push(format!("{} {} on {ground:?}: {ratio:.2}", theme.name, slot.name()));
                }
            }
        }
    }
    assert_eq!(poor, Vec::<String>::new());
}

#[test]
fn coloured_themes_say_everything_themselves() {
    for theme in themes(&[]).unwrap().all.iter().filter(|t| t.name != "monochrome") {
        for slot in [Slot::Background, Slot::Selected, Slot::SelectedDim, Slot::Dialog] {
            assert!(theme[slot].bg.and_then(rgb).is_some(), "{} {}", theme.name, slot.name());
        }
        for &slot in Slot::ALL.iter().filter(|s| is_text(**s)) {
            assert!(theme[slot].fg.and_then(rgb).is_some(), "{} {}", theme.name, slot.name());
        }
    }
}

#[test]
fn without_colours_none_is_used() {
    let themes = Themes::new(&[], Glyphs::Ascii, Colors::None).unwrap();
    for theme in &themes.all {
        assert!(theme.styles.iter().all(|s| s.fg.is_none() && s.bg.is_none()), "{}", theme.name);
    }
    assert!(themes.all[0].glyph(Glyph::Done).is_ascii());
}

#[test]
fn a_persons_file_changes_only_what_it_names() {
    let all = themes(&[("themes/dark.toml", "text.dim = \"red\""), ("themes/mine.toml", "base = \"light\"")]).unwrap();
    let dark = themes(&[]).unwrap();
    assert_eq!(all.get("dark").unwrap()[Slot::TextDim].fg, Some(Color::Red));
    assert_eq!(all.get("dark").unwrap()[Slot::Text], dark.get("dark").unwrap()[Slot::Text]);
    assert_eq!(all.get("mine").unwrap().styles, dark.get("light").unwrap().styles);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(themes(&[("themes/nord.toml", text)]).unwrap_err().to_string(), expected);
}

#[test]
fn a_wrong_theme_names_file_key_value_and_the_way_out() {
    let forms = "use a name, `#rrggbb` or 0–255, then `on COLOUR`, `bold`, `dim`, `italic`, `underlined`, `reversed`";
    check_error(
        "\ngoal.done = \"grene\"",
        &format!("theme `nord` sets `goal.done = \"grene\"`: `grene` is not a colour (themes/nord.toml:2); {forms}"),
    );
    check_error(
        "goal.done = 7",
        &format!("theme `nord` sets `goal.done = 7`: not a text (themes/nord.toml:1); {forms}"),
    );
    check_error(
        "goal.doen = \"red\"",
        "theme `nord` sets `goal.doen`: there is no such slot (themes/nord.toml:1); did you mean `goal.done`?",
    );
    assert!(themes(&[]).unwrap().chosen("drak").unwrap_err().what.ends_with("did you mean `dark`?"));
}

#[test]
fn a_terminal_of_256_colours_gets_the_nearest() {
    assert_eq!(indexed(Color::Rgb(255, 0, 0)), Color::Indexed(196));
    assert_eq!(indexed(Color::Rgb(8, 8, 8)), Color::Indexed(232));
    assert_eq!(indexed(Color::Red), Color::Red);
}
