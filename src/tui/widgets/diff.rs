//! A unified diff as numbered lines. The sign stays in front of every line: colour only repeats it.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::pad_start;
use crate::stdx::text::sanitize_line;

/// Most lines of one diff that are kept; the rest is counted.
const MOST_LINES: usize = 20_000;

/// What a line of a diff is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names of the files, or anything between hunks.
    Header,
    /// `@@ … @@`.
    Hunk,
    /// Only in the new file.
    Added,
    /// Only in the old file.
    Removed,
    /// In both.
    Same,
}

/// One line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// What it is.
    pub kind: Kind,
    /// Its number in the old file.
    pub old: Option<usize>,
    /// Its number in the new file.
    pub new: Option<usize>,
    /// Its text without the sign, safe to show.
    pub text: String,
}

/// How a diff looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffLook {
    /// Added lines.
    pub added: Style,
    /// Removed lines.
    pub removed: Style,
    /// Unchanged lines.
    pub same: Style,
    /// Hunk headers.
    pub hunk: Style,
    /// File names and line numbers.
    pub dim: Style,
}

/// Reads a unified diff. Anything that is none is shown as headers, so nothing is lost.
pub fn parse(unified: &str) -> Vec<DiffLine> {
    let mut out = Vec::new();
    let mut numbers: Option<(usize, usize)> = None;
    let mut lines = unified.split('\n').peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() && lines.peek().is_none() {
            break;
        }
        if out.len() == MOST_LINES {
            let left = lines.count() + 1;
            out.push(DiffLine { kind: Kind::Header, old: None, new: None, text: format!("… {left} more lines") });
            break;
        }
        out.push(parse_line(line.strip_suffix('\r').unwrap_or(line), &mut numbers));
    }
    out
}

fn parse_line(line: &str, numbers: &mut Option<(usize, usize)>) -> DiffLine {
    let make = |kind, old, new, text: &str| DiffLine { kind, old, new, text: sanitize_line(text) };
    if let Some(starts) = hunk_starts(line) {
        *numbers = Some(starts);
        return make(Kind::Hunk, None, None, line);
    }
    let Some((old, new)) = numbers else { return make(Kind::Header, None, None, line) };
    match line.as_bytes().first() {
        Some(b'+') => {
            *new += 1;
            make(Kind::Added, None, Some(*new - 1), &line[1..])
        }
        Some(b'-') => {
            *old += 1;
            make(Kind::Removed, Some(*old - 1), None, &line[1..])
        }
        Some(b' ') | None => {
            *old += 1;
            *new += 1;
            make(Kind::Same, Some(*old - 1), Some(*new - 1), line.get(1..).unwrap_or(""))
        }
        Some(b'\\') => make(Kind::Header, None, None, line),
        Some(_) => {
            *numbers = None;
            make(Kind::Header, None, None, line)
        }
    }
}

/// The first line numbers of `@@ -3,7 +3,8 @@`.
fn hunk_starts(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let start = |range: &str| range.split(',').next()?.parse::<usize>().ok().filter(|n| *n < usize::MAX / 2);
    Some((start(old)?, start(new)?))
}

impl DiffLine {
    /// The line with its sign, and with the numbers where there is room for them.
    pub fn styled(&self, look: &DiffLook, width: usize) -> Line<'static> {
        let (sign, style) = match self.kind {
            Kind::Header => return Line::styled(self.text.clone(), look.dim),
            Kind::Hunk => return Line::styled(self.text.clone(), look.hunk),
            Kind::Added => ("+", look.added),
            Kind::Removed => ("-", look.removed),
            Kind::Same => (" ", look.same),
        };
        let mut spans = Vec::with_capacity(3);
        if width >= 50 {
            let number = |n: Option<usize>| pad_start(&n.map(|n| n.to_string()).unwrap_or_default(), 4);
            spans.push(Span::styled(format!("{} {} ", number(self.old), number(self.new)), look.dim));
        }
        spans.push(Span::styled(format!("{sign}{}", self.text), style));
        Line::from(spans)
    }
}

/// A whole diff as styled lines.
pub fn lines(unified: &str, look: &DiffLook, width: usize) -> Vec<Line<'static>> {
    parse(unified).iter().map(|line| line.styled(look, width)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIFF: &str =
        "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@ fn x\n same\n-old\n+new\n+\u{1b}[31mnewer\n\\ No newline at end of file\n";

    #[test]
    fn signs_and_line_numbers_are_shown() {
        let shown: Vec<String> = lines(DIFF, &DiffLook::default(), 80).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "--- a/x",
                "+++ b/x",
                "@@ -3,3 +3,4 @@ fn x",
                "   3    3  same",
                "   4      -old",
                "        4 +new",
                "        5 +newer",
                "\\ No newline at end of file",
            ]
        );
        assert_eq!(lines(DIFF, &DiffLook::default(), 30)[4].to_string(), "-old");
    }

    #[test]
    fn an_endless_diff_is_cut_and_says_so() {
        let long = format!("@@ -1,1 +1,1 @@\n{}", "+x\n".repeat(30_000));
        let parsed = parse(&long);
        assert_eq!(parsed.len(), MOST_LINES + 1);
        assert_eq!(parsed[MOST_LINES].text, "… 10002 more lines");
    }

    proptest! {
        #[test]
        fn nothing_given_as_a_diff_panics(text in "(@@ -[0-9]{0,22}(,[0-9])? \\+[0-9]{0,20} @@|[-+ \\\\é漢]|\n){0,30}") {
            prop_assert!(parse(&text).len() <= text.len());
        }
    }
}
