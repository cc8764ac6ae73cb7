//! Measuring, cutting and wrapping text by the cells it takes on screen: wide and combining
//! characters, emoji. Does not make foreign text safe; `stdx::text` does, before.

use std::borrow::Cow;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// The cells that `text` takes, as the screen counts them.
pub fn width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    text.graphemes(true).map(cells).sum()
}

/// The cells of one grapheme.
fn cells(grapheme: &str) -> usize {
    // Control characters are never drawn, so they take nothing.
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// The longest beginning of `text` within `max` cells.
pub fn take(text: &str, max: usize) -> &str {
    if is_plain(text) {
        return &text[..text.len().min(max)];
    }
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += cells(grapheme);
        if used > max {
            return &text[..at];
        }
    }
    text
}

/// `text` within `max` cells, with `…` at its end when something was left out.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    match max {
        0 => Cow::Borrowed(""),
        _ => Cow::Owned(format!("{}…", take(text, max - 1).trim_end())),
    }
}

/// `text` within `max` cells, with `…` at its beginning when something was left out: for paths,
/// whose end says most.
pub fn cut_start(text: &str, max: usize) -> Cow<'_, str> {
    let whole = width(text);
    if whole <= max {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    let mut left = whole;
    for (at, grapheme) in text.grapheme_indices(true) {
        if left < max {
            return Cow::Owned(format!("…{}", &text[at..]));
        }
        left -= cells(grapheme);
    }
    Cow::Borrowed("…")
}

/// `text` in exactly `to` cells: cut or filled with spaces.
pub fn fit(text: &str, to: usize) -> String {
    let mut out = cut(text, to).into_owned();
    let missing = to.saturating_sub(width(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// Breaks one line (no newline in it) into pieces of at most `max` cells: at spaces where there
/// are some, within a word where it is too long. Always gives at least one piece.
pub fn wrap_line(line: &str, max: usize) -> Vec<&str> {
    let max = max.max(1);
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let head = take(rest, max);
        if head.len() == rest.len() {
            pieces.push(rest);
            return pieces;
        }
        // A grapheme wider than the line still has to go somewhere.
        let head = if head.is_empty() { rest.graphemes(true).next().unwrap_or(rest) } else { head };
        let (piece, consumed) = break_point(rest, head.len());
        pieces.push(piece);
        rest = &rest[consumed..];
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// Where to break `rest` when at most `fits` bytes go on the line: the piece and how many bytes it
/// uses up, the spaces at the break included.
fn break_point(rest: &str, fits: usize) -> (&str, usize) {
    let after_spaces = |at: usize| at + rest[at..].len() - rest[at..].trim_start_matches(' ').len();
    if rest[fits..].starts_with(' ') {
        return (rest[..fits].trim_end_matches(' '), after_spaces(fits));
    }
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    match rest[..fits].rfind(' ') {
        // A break inside the indentation would leave an empty piece.
        Some(space) if space >= indent.max(1) => (rest[..space].trim_end_matches(' '), after_spaces(space)),
        _ => (&rest[..fits], fits),
    }
}

/// Breaks text into lines of at most `max` cells; its own newlines stay.
pub fn wrap(text: &str, max: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.extend(wrap_line(line, max));
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_those_of_the_screen() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("漢字"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("👩‍👩‍👧"), 2);
    }

    #[test]
    fn a_cut_never_exceeds_its_room() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_start("src/parser/mod.rs", 8), "…/mod.rs");
        assert_eq!(fit("漢字", 3), "漢…");
        assert_eq!(fit("a", 3), "a  ");
    }

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        assert_eq!(wrap_line("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_line("one  two", 4), ["one", "two"]);
        assert_eq!(wrap_line("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap_line("    indented text", 8), ["    inde", "nted", "text"]);
        assert_eq!(wrap_line("", 5), [""]);
        assert_eq!(wrap_line("漢字", 1), ["漢", "字"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
    }

    proptest! {
        #[test]
        fn wrapping_keeps_every_word_and_the_width(text in "[a-z 漢é👍]{0,80}", max in 2usize..20) {
            let pieces = wrap_line(&text, max);
            for piece in &pieces {
                prop_assert!(width(piece) <= max, "{piece:?}");
            }
            let without = |s: &str| s.replace(' ', "");
            prop_assert_eq!(without(&pieces.concat()), without(&text));
        }

        #[test]
        fn cutting_never_exceeds_or_splits(text in any::<String>(), max in 0usize..12) {
            prop_assert!(width(&cut(&text, max)) <= max);
            prop_assert!(width(&cut_start(&text, max)) <= max);
            prop_assert_eq!(width(&fit(&text, max)), max);
        }
    }
}
