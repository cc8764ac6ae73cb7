//! How the lines of an editor break into rows on screen, with folded pastes as labels, and where a
//! place in the text is among them. Pure; draws nothing.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{Kind, fold_index};
use crate::tui::widgets::format::{bytes, count};
use crate::tui::widgets::text::{grapheme_width, width};
use crate::tui::widgets::wrap::rows;

/// One line of the text as it is shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// The text, with labels in place of marks.
    pub text: String,
    /// Where the labels are in it, each with the byte of its mark in the source.
    pub labels: Vec<(Range<usize>, usize)>,
    /// The rows it breaks into.
    pub rows: Vec<Range<usize>>,
}

impl Shown {
    /// Lays out one line.
    pub fn new(line: &str, folded: &[String], kind: Kind, max: usize) -> Self {
        let mut text = String::with_capacity(line.len());
        let mut labels = Vec::new();
        for (byte, c) in line.char_indices() {
            match fold_index(c).and_then(|n| folded.get(n)) {
                Some(paste) => {
                    let start = text.len();
                    text.push_str(&label(paste));
                    labels.push((start..text.len(), byte));
                }
                None => text.push(c),
            }
        }
        let rows = if kind == Kind::Single { std::iter::once(0..text.len()).collect() } else { rows(&text, max) };
        Self { text, labels, rows }
    }

    /// Where a byte of the source is shown.
    pub fn shown_at(&self, source: usize) -> usize {
        let mut shift = 0;
        for (range, mark) in &self.labels {
            if *mark >= source {
                break;
            }
            shift += range.len() - MARK_BYTES;
        }
        source + shift
    }

    /// The byte of the source shown at a byte; within a label, its mark.
    pub fn source_at(&self, shown: usize) -> usize {
        let mut shift = 0;
        for (range, mark) in &self.labels {
            if range.start >= shown {
                break;
            }
            if shown < range.end {
                return *mark;
            }
            shift += range.len() - MARK_BYTES;
        }
        shown - shift
    }

    /// The row a shown byte is on, and the cells before it there.
    pub fn place(&self, shown: usize) -> (usize, usize) {
        let row = self.rows.iter().rposition(|row| row.start <= shown).unwrap_or(0);
        let range = &self.rows[row];
        (row, width(&self.text[range.start..shown.clamp(range.start, range.end)]))
    }

    /// The shown byte at or before `cells` on a row.
    pub fn byte_at(&self, row: usize, cells: usize) -> usize {
        let Some(range) = self.rows.get(row) else { return self.text.len() };
        let mut used = 0;
        for (at, grapheme) in self.text[range.clone()].grapheme_indices(true) {
            used += grapheme_width(grapheme);
            if used > cells {
                return range.start + at;
            }
        }
        // The end of a row broken within a word is the start of the next one.
        let last = row + 1 == self.rows.len();
        let broken = self.rows.get(row + 1).is_some_and(|next| next.start == range.end);
        match self.text[range.clone()].grapheme_indices(true).next_back() {
            Some((at, _)) if !last && broken => range.start + at,
            _ => range.end,
        }
    }
}

/// Bytes of a mark: a character beyond the basic plane.
const MARK_BYTES: usize = 4;

/// `[pasted 120 lines]`, with spaces that no row is broken at.
fn label(paste: &str) -> String {
    let lines = paste.lines().count();
    let size = if lines > 1 { count(lines, "line") } else { bytes(paste.len() as u64) };
    format!("[pasted {size}]").replace(' ', "\u{a0}")
}
