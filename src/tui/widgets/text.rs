//! Measuring and cutting text by what a terminal shows: graphemes and cells. Wrapping is `wrap`'s.

use std::borrow::Cow;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// Marks that text was cut.
pub const ELLIPSIS: &str = "…";

/// Cells one grapheme takes; control characters, which are never drawn, take none.
pub fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

/// Cells a text takes on one line.
pub fn width(text: &str) -> usize {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// The longest beginning of `text` that fits `max` cells, and the cells it takes.
pub fn prefix(text: &str, max: usize) -> (&str, usize) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let cells = grapheme_width(grapheme);
        if used + cells > max {
            return (&text[..at], used);
        }
        used += cells;
    }
    (text, used)
}

/// The longest end of `text` that fits `max` cells, and the cells it takes.
pub fn suffix(text: &str, max: usize) -> (&str, usize) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        let cells = grapheme_width(grapheme);
        if used + cells > max {
            return (&text[at + grapheme.len()..], used);
        }
        used += cells;
    }
    (text, used)
}

/// `text` in at most `max` cells, `…` at its end when it was cut.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if prefix(text, max).0.len() == text.len() {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{}{ELLIPSIS}", prefix(text, max - 1).0))
}

/// `text` in at most `max` cells, `…` at its start when it was cut: for paths, whose end says most.
pub fn cut_start(text: &str, max: usize) -> Cow<'_, str> {
    if prefix(text, max).0.len() == text.len() {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{ELLIPSIS}{}", suffix(text, max - 1).0))
}

/// `text` cut or filled with spaces at its end to exactly `cells`.
pub fn pad(text: &str, cells: usize) -> String {
    let text = cut(text, cells);
    let fill = cells.saturating_sub(width(&text));
    format!("{text}{:fill$}", "")
}

/// `text` cut or filled with spaces before it to exactly `cells`: for numbers.
pub fn pad_start(text: &str, cells: usize) -> String {
    let text = cut(text, cells);
    let fill = cells.saturating_sub(width(&text));
    format!("{:fill$}{text}", "")
}

#[cfg(test)]
pub(in crate::tui) mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_cut(text: &str, max: usize, expected: &str) {
        assert_eq!(cut(text, max), expected);
    }

    #[test]
    fn wide_and_combining_text_is_cut_between_graphemes() {
        check_cut("parser", 6, "parser");
        check_cut("parser", 4, "par…");
        check_cut("漢字漢字", 5, "漢字…");
        check_cut("漢字漢字", 4, "漢…");
        check_cut("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…");
        check_cut("👩‍👩‍👧 family", 3, "👩‍👩‍👧…");
        check_cut("parser", 1, "…");
        check_cut("parser", 0, "");
        assert_eq!(cut_start("src/tui/mod.rs", 7), "…mod.rs");
        assert_eq!(pad("漢", 3), "漢 ");
        assert_eq!(pad_start("漢", 3), " 漢");
    }

    /// Text as it comes: ASCII, CJK, emoji with joiners, combining marks, control characters.
    pub(in crate::tui) fn odd_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-z ]{0,6}",
            Just("漢字かな".to_owned()),
            Just("👩‍👩‍👧".to_owned()),
            Just("🇩🇪".to_owned()),
            Just("e\u{301}\u{302}".to_owned()),
            Just("ｶﾞ".to_owned()),
            Just("\t".to_owned()),
            Just("\u{1b}[2J".to_owned()),
            Just("\u{200d}".to_owned()),
            any::<char>().prop_map(|c| c.to_string()),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn cut_text_never_exceeds_its_cells_nor_splits_a_grapheme(text in odd_text(), max in 0usize..40) {
            let whole: Vec<&str> = text.graphemes(true).collect();
            for (part, cells) in [prefix(&text, max), suffix(&text, max)] {
                prop_assert!(cells <= max);
                prop_assert!(width(part) <= max);
            }
            let (head, _) = prefix(&text, max);
            let n = head.graphemes(true).count();
            prop_assert_eq!(whole[..n].concat(), head);
            prop_assert!(width(&cut(&text, max)) <= max);
            prop_assert!(width(&cut_start(&text, max)) <= max);
            prop_assert_eq!(width(&pad(&text, max)), max);
            prop_assert_eq!(width(&pad_start(&text, max)), max);
        }
    }
}
