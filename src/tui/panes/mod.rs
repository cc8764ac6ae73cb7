//! The four panes of the session screen, one file each, and what they share: a viewport over
//! entries of any height, and what `Enter` opens. Panes hold view state; facts are in `state`.

pub mod activity;
pub mod code;
pub mod deliverable;
pub mod plan;
pub mod verdicts;
pub mod viewport;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::screen::Cx;
use super::state::SessionState;
use super::state::activity::RowId;
use super::theme::{Glyph, Slot, Theme};
use super::widgets::{text, wrap};
use crate::events::data::{ChangeKind, FileChange, Verdict};
use crate::ids::GoalId;
use crate::stdx::text::sanitize;

/// What a pane draws from.
pub struct PaneCx<'a> {
    /// What every screen may look at.
    pub cx: &'a Cx<'a>,
    /// The session.
    pub state: &'a SessionState,
}

/// What stands behind a line: what `Enter` opens and `y` copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A goal of the newest plan.
    Goal(GoalId),
    /// A row of the activity.
    Row(RowId),
    /// A cycle's verdict.
    Verdict(u32),
    /// An item of a cycle's `verified`.
    Evidence(u32, usize),
    /// What a cycle handed in.
    Output(u32),
    /// A file of a cycle.
    File(u32, String),
}

/// A piece of a pane: some lines, and what stands behind them.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The lines.
    pub lines: Vec<Line<'static>>,
    /// What stands behind them.
    pub target: Option<Target>,
}

impl Entry {
    /// One line.
    pub fn line(line: impl Into<Line<'static>>, target: Option<Target>) -> Self {
        Self { lines: vec![line.into()], target }
    }
}

impl viewport::Rows for [Entry] {
    fn len(&self) -> usize {
        <[Entry]>::len(self)
    }

    fn lay(&self, row: usize, _width: usize, _follow: bool) -> viewport::Laid {
        viewport::Laid::plain(self[row].lines.clone())
    }
}

/// Foreign text, made safe and wrapped behind a mark; further lines stand under the first.
pub fn paragraph(
    mark: Vec<Span<'static>>,
    foreign: &str,
    style: Style,
    width: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let indent: usize = mark.iter().map(|s| text::width(&s.content)).sum();
    let safe = sanitize(foreign.trim());
    let mut rows = wrap::wrap(&safe, width.saturating_sub(indent).max(4), most + 1);
    if rows.len() > most {
        rows.truncate(most);
        if let Some(last) = rows.last_mut() {
            *last = format!("{} …", text::cut(last, width.saturating_sub(indent + 2)));
        }
    }
    let mut mark = Some(mark);
    rows.into_iter()
        .map(|row| {
            let mut spans = mark.take().unwrap_or_else(|| vec![Span::raw(" ".repeat(indent))]);
            spans.push(Span::styled(row, style));
            Line::from(spans)
        })
        .collect()
}

/// `left` at the left, `right` at the right of `width` cells; `left` gives way.
pub fn both_ends(left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let right_width: usize = right.iter().map(|s| text::width(&s.content)).sum();
    if right_width == 0 || right_width + 4 > width {
        return wrap::cut_line(Line::from(left), width);
    }
    let mut line = wrap::cut_line(Line::from(left), width - right_width - 1);
    let gap = width - right_width - line.width();
    line.spans.push(Span::raw(" ".repeat(gap)));
    line.spans.extend(right);
    line
}

/// The mark and the look of a verdict; the inner none is unverified.
pub fn verdict_look(verdict: Option<Verdict>, theme: &Theme) -> (&'static str, &'static str, Style) {
    match verdict {
        Some(Verdict::Passed) => (theme.glyph(Glyph::Done), "passed", theme[Slot::VerdictPassed]),
        Some(Verdict::NeedsImprovement) => {
            (theme.glyph(Glyph::Partly), "needs_improvement", theme[Slot::VerdictNeedsImprovement])
        }
        Some(Verdict::Failed) => (theme.glyph(Glyph::Failed), "failed", theme[Slot::VerdictFailed]),
        None => (theme.glyph(Glyph::Unknown), "unverified", theme[Slot::VerdictUnverified]),
    }
}

/// `+6 −2`, `new`, `deleted`.
pub fn change_spans(change: &FileChange, theme: &Theme) -> Vec<Span<'static>> {
    let counts = |spans: &mut Vec<Span<'static>>| {
        if let Some(added) = change.added {
            spans.push(Span::styled(format!("+{added}"), theme[Slot::DiffAdd]));
        }
        if let Some(removed) = change.removed.filter(|n| *n > 0 || change.added.is_some()) {
            spans.push(Span::raw(" "));
            spans.push(Span::styled(format!("{}{removed}", theme.glyph(Glyph::Minus)), theme[Slot::DiffRemove]));
        }
    };
    let mut spans = Vec::new();
    match change.kind {
        ChangeKind::Added => {
            spans.push(Span::styled("new", theme[Slot::DiffAdd]));
            if let Some(added) = change.added {
                spans.push(Span::styled(format!(" +{added}"), theme[Slot::DiffAdd]));
            }
        }
        ChangeKind::Deleted => spans.push(Span::styled("deleted", theme[Slot::DiffRemove])),
        ChangeKind::Unchanged => spans.push(Span::styled("unchanged", theme[Slot::TextDim])),
        ChangeKind::Modified => {
            counts(&mut spans);
            if spans.is_empty() {
                spans.push(Span::styled("changed", theme[Slot::TextDim]));
            }
        }
    }
    spans
}
