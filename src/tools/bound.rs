//! Keeping results within the limit the model gets (B78): the whole text goes to the trace's
//! `outputs/`, head and tail stay, and the line between them says how to read the rest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ToolCx, ToolOutcome};
use crate::stdx::bounded;

/// Most of one output that is kept on disk.
pub const STORED_BYTES: u64 = 64 * 1024 * 1024;

/// Room that a caller leaves for its own lines beside a shortened text.
pub const MARGIN: usize = 300;

/// Where the full output of a call lies. Ids come from providers, so anything that is not a plain
/// name is replaced.
pub fn output_path(outputs: &Path, call_id: &str) -> PathBuf {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = call_id.chars().take(120).map(|c| if plain(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('.');
    outputs.join(if name.is_empty() { "_" } else { name })
}

/// Stores a call's full output, [`STORED_BYTES`] at most.
///
/// # Errors
/// Whatever the file system says.
pub fn store(cx: &ToolCx, text: &str) -> io::Result<()> {
    fs::create_dir_all(&cx.outputs)?;
    let most = usize::try_from(STORED_BYTES).unwrap_or(usize::MAX);
    fs::write(output_path(&cx.outputs, &cx.call_id), bounded::prefix(text, most))
}

/// Brings an outcome within the limit; one that already is stays as it is.
pub fn apply(cx: &ToolCx, outcome: &mut ToolOutcome) {
    if let Some(short) = fit(cx, &outcome.output, cx.output_chars) {
        outcome.output = short;
    }
}

/// Stores `text` and returns it shortened to `limit` characters; `None` when it fits as it is.
pub fn fit(cx: &ToolCx, text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit || text.chars().count() <= limit {
        return None;
    }
    let rest = match store(cx, text) {
        Ok(()) => Rest::Stored(&cx.call_id),
        Err(error) => Rest::Lost(error.to_string()),
    };
    Some(shorten(text, text, Totals::of(text), limit, &rest))
}

/// How large a text is of which only the ends are at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Its bytes.
    pub bytes: u64,
    /// Its line ends.
    pub newlines: u64,
}

impl Totals {
    /// Of a text that is at hand.
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, newlines: newlines(text) }
    }
}

/// Where what was left out lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest<'a> {
    /// In `outputs/`, under this call's id.
    Stored(&'a str),
    /// Nowhere, and why.
    Lost(String),
}

/// The first two thirds of `limit` characters of `head` and the last third of `tail`, cut at line
/// ends where one is near, with a line between that says what is missing and where it lies.
pub fn shorten(head: &str, tail: &str, totals: Totals, limit: usize, rest: &Rest<'_>) -> String {
    let head = first_chars(head, limit * 2 / 3);
    let Tail { text: tail, whole_first_line } = last_chars(tail, limit / 3);
    let shown = (head.len() + tail.len()) as u64;
    let left_out = totals.bytes.saturating_sub(shown);
    let first = newlines(head) + 1;
    let before_tail = totals.newlines.saturating_sub(newlines(tail));
    let last = if whole_first_line { before_tail } else { before_tail + 1 }.max(first);
    let note = match rest {
        Rest::Stored(id) => format!(
            "[lines {first}–{last} left out, {}; to read them: read_file with path \"output:{id}\", start {first}, end {last}]",
            size(left_out)
        ),
        Rest::Lost(why) => format!("[lines {first}–{last} left out, {}; not kept: {why}]", size(left_out)),
    };
    let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{gap}{note}\n{tail}")
}

fn first_chars(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    match head.rfind('\n') {
        Some(at) if at + 1 >= end / 4 * 3 => &head[..=at],
        _ => head,
    }
}

struct Tail<'a> {
    text: &'a str,
    whole_first_line: bool,
}

fn last_chars(text: &str, count: usize) -> Tail<'_> {
    let start = match count.checked_sub(1) {
        Some(back) => text.char_indices().rev().nth(back).map_or(0, |(at, _)| at),
        None => text.len(),
    };
    let tail = &text[start..];
    match tail.find('\n') {
        Some(at) if start > 0 && at < tail.len() / 4 => Tail { text: &tail[at + 1..], whole_first_line: true },
        _ => Tail { text: tail, whole_first_line: start == 0 || text[..start].ends_with('\n') },
    }
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// A size for people: `512 bytes`, `1.5 KB`, `98.2 MB` (powers of ten).
pub fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_exactly_the_lines_that_are_missing() {
        let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let short = shorten(&text, &text, Totals::of(&text), 200, &Rest::Stored("c1"));
        let (before, after) = short.split_once("[lines ").unwrap();
        let last_before: u64 = before.lines().last().unwrap()[5..].parse().unwrap();
        let (note, after) = after.split_once("]\n").unwrap();
        let first_after: u64 = after.lines().next().unwrap()[5..].parse().unwrap();
        assert!(note.starts_with(&format!("{}–{} left out", last_before + 1, first_after - 1)), "{note}");
        assert!(note.contains(r#"path "output:c1""#));
        assert!(after.ends_with("line 100\n"));
    }

    #[test]
    fn one_long_line_is_cut_within_itself() {
        let text = "漢".repeat(1000);
        let short = shorten(&text, &text, Totals::of(&text), 90, &Rest::Lost("disk full".to_owned()));
        assert!(short.starts_with(&"漢".repeat(60)));
        assert!(short.ends_with(&format!("\n{}", "漢".repeat(30))));
        assert!(short.contains("lines 1–1 left out, 2.7 KB; not kept: disk full"), "{short}");
    }

    #[test]
    fn an_id_never_leaves_its_folder() {
        let at = |id: &str| output_path(Path::new("/o"), id);
        assert_eq!(at("call_1"), Path::new("/o/call_1"));
        assert_eq!(at("../../etc/passwd"), Path::new("/o/_.._etc_passwd"));
        assert_eq!(at(".."), Path::new("/o/_"));
        assert_eq!(at(""), Path::new("/o/_"));
    }
}
