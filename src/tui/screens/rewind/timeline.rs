//! The messages of a session as rows under their cycles.

use ratatui::text::{Line, Span};

use crate::events::query::{Timeline, TimelineMessage, TimelineTrace};
use crate::stdx::text::sanitize_line;
use crate::tui::screen::Cx;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::time;
use crate::tui::widgets::text::{self, cut_start, pad, pad_start};

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A cycle's heading.
    Cycle {
        /// Which trace of the timeline.
        trace: usize,
    },
    /// A message.
    Message {
        /// Which trace of the timeline.
        trace: usize,
        /// Which message of it.
        message: usize,
    },
}

/// The rows: the main path, with `branches` also what was put aside. Traces without a message to
/// show have no heading.
pub(super) fn rows(timeline: &Timeline, branches: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (trace, of) in timeline.traces.iter().enumerate() {
        if of.superseded && !branches {
            continue;
        }
        let mut messages = of
            .messages
            .iter()
            .enumerate()
            // The system prompt is where everything starts; there is nothing before it to go back to.
            .filter(|(_, m)| (m.on_path || branches) && m.head.role != "system")
            .map(|(message, _)| Row::Message { trace, message })
            .peekable();
        if messages.peek().is_some() {
            rows.push(Row::Cycle { trace });
            rows.extend(messages);
        }
    }
    rows
}

impl Row {
    /// The message it stands for.
    pub fn message<'a>(&self, timeline: &'a Timeline) -> Option<(&'a TimelineTrace, &'a TimelineMessage)> {
        match *self {
            Self::Cycle { .. } => None,
            Self::Message { trace, message } => {
                let trace = timeline.traces.get(trace)?;
                Some((trace, trace.messages.get(message)?))
            }
        }
    }

    /// The row as it is drawn.
    pub fn line(&self, timeline: &Timeline, cx: &Cx<'_>, width: usize) -> Line<'static> {
        match *self {
            Self::Cycle { trace } => timeline.traces.get(trace).map(|trace| heading(trace, cx)).unwrap_or_default(),
            Self::Message { .. } => self.message(timeline).map(|(_, m)| message(m, cx, width)).unwrap_or_default(),
        }
    }
}

fn heading(trace: &TimelineTrace, cx: &Cx<'_>) -> Line<'static> {
    let theme = cx.theme;
    let mut spans = vec![Span::styled(format!("cycle {}", trace.cycle), theme[Slot::TextHeading])];
    if trace.superseded {
        let words = format!("  {} put aside by a rewind", theme.glyph(Glyph::Rewound));
        spans.push(Span::styled(words, theme[Slot::TextDim]));
    }
    Line::from(spans)
}

fn message(message: &TimelineMessage, cx: &Cx<'_>, width: usize) -> Line<'static> {
    let theme = cx.theme;
    let dim = theme[Slot::TextDim];
    let (glyph, slot) = match message.head.role.as_str() {
        "user" => (Glyph::Person, Slot::RoleUser),
        "assistant" => (Glyph::Text, Slot::RoleWorker),
        _ => (Glyph::Tool, Slot::Tool),
    };
    let branch = if message.on_path { " " } else { theme.glyph(Glyph::Rewound) };
    let mut spans =
        vec![Span::styled(pad_start(&message.head.sequence.to_string(), 4), dim), Span::styled(branch, dim)];
    if width >= 50 {
        spans.push(Span::styled(format!("{} ", time::of_day(message.at, cx.zone)), dim));
    }
    spans.push(Span::styled(format!("{} ", theme.glyph(glyph)), theme[slot]));
    let goal = message.goal.as_deref().map(sanitize_line).unwrap_or_default();
    if !goal.is_empty() {
        spans.push(Span::styled(format!("{goal} "), theme[Slot::GoalActive]));
    }
    let files = files(message);
    let used: usize = spans.iter().map(Span::width).sum();
    let text = sanitize_line(&message.head.description);
    let style = if message.on_path { theme[Slot::Text] } else { dim };
    // Files stand at the right where both have room; else the summary takes it all.
    let room = width.saturating_sub(used);
    let right = if files.is_empty() || room < 36 { 0 } else { (room / 3).min(28) };
    spans.push(Span::styled(pad(&text, room - right), style));
    if right > 0 {
        let files = cut_start(&files, right - 2).into_owned();
        spans.push(Span::raw(" ".repeat(right - text::width(&files))));
        spans.push(Span::styled(files, theme[Slot::TextLink]));
    }
    Line::from(spans)
}

fn files(message: &TimelineMessage) -> String {
    match message.files.as_slice() {
        [] => String::new(),
        [one] => sanitize_line(one),
        [first, rest @ ..] => format!("{} +{}", sanitize_line(first), rest.len()),
    }
}
