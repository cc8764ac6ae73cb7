//! Breaking text into rows of a given width: at spaces where there are any, else between
//! graphemes. Works on text that is already safe to show.

use std::ops::Range;

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::text::{grapheme_width, width};

/// The rows of one line without newlines, as byte ranges that leave out the space broken at. An
/// empty line is one empty row. A grapheme wider than `max` is a row of its own, never split.
pub fn rows(line: &str, max: usize) -> Vec<Range<usize>> {
    let max = max.max(1);
    if line.len() <= max {
        // Never more cells than bytes, but for lone narrow marks, which are at least two bytes.
        return std::iter::once(0..line.len()).collect();
    }
    let mut out = Vec::new();
    let mut start = 0;
    let mut used = 0;
    // Where this row could end and the next begin, with the cells before the latter.
    let mut space: Option<(usize, usize, usize)> = None;
    for (at, grapheme) in line.grapheme_indices(true) {
        let cells = grapheme_width(grapheme);
        if grapheme == " " {
            if used + cells > max {
                // The space itself does not fit: it is what is broken at.
                out.push(start..at);
                start = at + 1;
                used = 0;
                space = None;
                continue;
            }
            used += cells;
            space = Some((at, at + 1, used));
            continue;
        }
        if used + cells > max && at > start {
            match space {
                Some((end, next, before)) if end > start && next <= at => {
                    out.push(start..end);
                    start = next;
                    used -= before;
                }
                _ => {
                    out.push(start..at);
                    start = at;
                    used = 0;
                }
            }
            space = None;
            if used + cells > max && at > start {
                out.push(start..at);
                start = at;
                used = 0;
            }
        }
        used += cells;
        if is_wide_script(grapheme) {
            // Chinese, Japanese and the like may be broken after any character.
            let end = at + grapheme.len();
            space = Some((end, end, used));
        }
    }
    out.push(start..line.len());
    out
}

fn is_wide_script(grapheme: &str) -> bool {
    matches!(
        grapheme.chars().next(),
        Some(
            '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ff60}'
            | '\u{20000}'..='\u{3fffd}',
        )
    )
}

/// A text with newlines as rows, at most `most` of them.
pub fn wrap(text: &str, max: usize, most: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.split('\n') {
        for row in rows(line, max) {
            if out.len() >= most {
                return out;
            }
            out.push(line[row].to_owned());
        }
    }
    out
}

/// A styled line as rows; every row after the first is moved right by `indent` cells.
pub fn wrap_line(line: &Line<'_>, max: usize, indent: usize) -> Vec<Line<'static>> {
    let plain: String = line.spans.iter().map(|s| s.content.as_ref()).collect();
    let indent = if indent + 4 > max { 0 } else { indent };
    let first = rows(&plain, max);
    let ranges = if indent == 0 || first.len() == 1 {
        first
    } else {
        // The first row has the whole width; the rest is broken again for what the indent leaves.
        let next = first[1].start;
        let rest = rows(&plain[next..], max - indent);
        std::iter::once(first[0].clone()).chain(rest.into_iter().map(|r| r.start + next..r.end + next)).collect()
    };
    ranges
        .into_iter()
        .enumerate()
        .map(|(i, range)| {
            let mut spans = slice(line, range);
            if i > 0 && indent > 0 {
                spans.insert(0, Span::raw(" ".repeat(indent)));
            }
            Line { spans, style: line.style, alignment: line.alignment }
        })
        .collect()
}

/// The spans of a byte range of a line's text.
fn slice(line: &Line<'_>, range: Range<usize>) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    let mut at = 0;
    for span in &line.spans {
        let end = at + span.content.len();
        let from = range.start.clamp(at, end) - at;
        let to = range.end.clamp(at, end) - at;
        if from < to {
            out.push(Span::styled(span.content[from..to].to_owned(), span.style));
        }
        at = end;
    }
    out
}

/// A styled line cut to `max` cells, `…` at its end when it was cut.
pub fn cut_line(line: Line<'static>, max: usize) -> Line<'static> {
    let total: usize = line.spans.iter().map(|s| width(&s.content)).sum();
    if total <= max {
        return line;
    }
    let mut left = max;
    let mut spans = Vec::new();
    for span in line.spans {
        let cells = width(&span.content);
        if cells < left {
            left -= cells;
            spans.push(span);
            continue;
        }
        // This span reaches the edge; something after it or of it is lost.
        let (head, _) = super::text::prefix(&span.content, left.saturating_sub(1));
        let tail = if left > 0 { super::text::ELLIPSIS } else { "" };
        spans.push(Span::styled(format!("{head}{tail}"), span.style));
        break;
    }
    Line { spans, style: line.style, alignment: line.alignment }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::{Style, Stylize};

    use super::*;
    use crate::stdx::text::sanitize;
    use crate::tui::widgets::text::tests::odd_text;

    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(wrap(text, max, 100), expected);
    }

    #[test]
    fn rows_break_at_spaces_and_long_words_between_graphemes() {
        check("", 5, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 8, &["one two", "three"]);
        check("one two three", 5, &["one", "two", "three"]);
        check("onetwothree", 4, &["onet", "woth", "ree"]);
        check("a onetwothree", 4, &["a", "onet", "woth", "ree"]);
        check("漢字漢字漢字", 5, &["漢字", "漢字", "漢字"]);
        check("see 漢字漢字", 8, &["see 漢字", "漢字"]);
        check("a\n\nb", 4, &["a", "", "b"]);
        check("👩‍👩‍👧👩‍👩‍👧", 2, &["👩‍👩‍👧", "👩‍👩‍👧"]);
        check("漢", 1, &["漢"]);
    }

    #[test]
    fn styled_rows_keep_their_styles_and_hang() {
        let line = Line::from(vec!["- one ".into(), "two three".bold(), " four".into()]);
        let rows = wrap_line(&line, 10, 2);
        let text: Vec<String> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["- one two", "  three", "  four"]);
        assert_eq!(rows[1].spans[1].style, Style::new().bold());
        assert_eq!(cut_line(line, 8).to_string(), "- one t…");
    }

    proptest! {
        #[test]
        fn rows_fit_and_lose_nothing_but_spaces(text in odd_text(), max in 1usize..30) {
            let text = sanitize(&text).replace('\n', " ");
            let ranges = rows(&text, max);
            let mut end = 0;
            for range in &ranges {
                prop_assert!(text[end..range.start].chars().all(|c| c == ' '));
                let row = &text[range.clone()];
                let one = row.graphemes(true).filter(|g| grapheme_width(g) > 0).count() <= 1;
                prop_assert!(width(row) <= max || one, "{row:?} in {max}");
                end = range.end;
            }
            prop_assert_eq!(end, text.len());
            let cut = cut_line(Line::from(text.clone()), max);
            prop_assert!(width(&cut.to_string()) <= max);
        }
    }
}
