//! Changed files with their diffs as lines: shared by rewinding, applying and comparing.

use ratatui::text::{Line, Span};

use crate::events::data::ChangeKind;
use crate::events::query::FileDiff;
use crate::stdx::text::sanitize_line;
use crate::tui::screens::look;
use crate::tui::theme::{Slot, Theme};
use crate::tui::widgets::diff;

/// Most lines of all diffs of one list together.
const MOST_LINES: usize = 20_000;

/// The files one after the other: a line for each, its hunks below it.
pub fn lines(files: &[FileDiff], total: usize, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for (i, file) in files.iter().enumerate() {
        if out.len() > MOST_LINES {
            out.push(dim(format!("… {} more files", total.saturating_sub(i)), theme));
            return out;
        }
        out.push(head(file, theme));
        if let Some(note) = &file.note {
            out.push(dim(format!("  {}", sanitize_line(note)), theme));
        }
        let body = diff::lines(&file.unified, &look::diff(theme), width);
        // The file names at a diff's head say again what the line above says.
        out.extend(body.into_iter().skip_while(|line| {
            line.spans.first().is_some_and(|span| span.content.starts_with("---") || span.content.starts_with("+++"))
        }));
    }
    if total > files.len() {
        out.push(dim(format!("… {} more files", total - files.len()), theme));
    }
    out
}

/// `modified  src/parser.rs  +6 −2`.
pub fn head(file: &FileDiff, theme: &Theme) -> Line<'static> {
    let (word, slot) = match file.change.kind {
        ChangeKind::Added => ("new", Slot::DiffAdd),
        ChangeKind::Modified => ("changed", Slot::TextStrong),
        ChangeKind::Deleted => ("removed", Slot::DiffRemove),
        ChangeKind::Unchanged => ("same", Slot::TextDim),
    };
    let mut spans = vec![
        Span::styled(format!("{word:<8}"), theme[slot]),
        Span::styled(sanitize_line(&file.change.path), theme[Slot::TextLink]),
    ];
    if let (Some(added), Some(removed)) = (file.change.added, file.change.removed) {
        spans.push(Span::styled(format!("  +{added}"), theme[Slot::DiffAdd]));
        spans.push(Span::styled(format!(" -{removed}"), theme[Slot::DiffRemove]));
    }
    Line::from(spans)
}

fn dim(text: String, theme: &Theme) -> Line<'static> {
    Line::styled(text, theme[Slot::TextDim])
}
