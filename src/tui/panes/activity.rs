//! The activity: tool calls, the models' text, notices. One row for each thing that happened, laid
//! out only when it is seen. Sub-agents are nested and can be folded; what a rewind put aside is
//! folded into one line.

use std::collections::HashSet;
use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::viewport::{Laid, Rows};
use super::{PaneCx, both_ends, change_spans, paragraph};
use crate::events::data::{Role, UserMessageState};
use crate::stdx::text::{sanitize, sanitize_line};
use crate::tui::state::activity::{Activity, Call, CallEnd, Notice, NoticeKind, Piece, Row, RowId, RowKind, TraceRef};
use crate::tui::theme::{Glyph, Slot};
use crate::tui::time;
use crate::tui::widgets::{format, text, wrap};

/// How much of the end of a growing text is laid out while the end is followed.
const TAIL_BYTES: usize = 12 * 1024;

/// Most lines of a notice's detail; `Enter` shows all of it.
const DETAIL_LINES: usize = 6;

/// Most lines of reasoning shown.
const THINKING_LINES: usize = 3;

/// Narrower panes leave the time out.
const TIME_FROM: usize = 44;

/// The rows of the activity, as one pane shows them.
pub struct ActivityRows<'a> {
    /// What it draws from.
    pub pane: &'a PaneCx<'a>,
    /// Which rows.
    pub range: Range<usize>,
    /// Sub-agents that are folded.
    pub folded: &'a HashSet<TraceRef>,
    /// Whether what rewinds put aside is shown.
    pub branches: bool,
    /// What is searched for, in lower case; empty: nothing.
    pub query: &'a str,
}

impl Rows for ActivityRows<'_> {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn lay(&self, row: usize, width: usize, follow: bool) -> Laid {
        let place = self.range.start + row;
        let activity = &self.pane.state.activity;
        let Some(row) = activity.rows().get(place) else { return Laid::default() };
        if matches!(row.kind, RowKind::Gone) || self.is_folded(row) {
            return Laid::default();
        }
        if row.off_path && !self.branches {
            return self.put_aside(activity, place);
        }
        let mut laid = self.row(row, width, follow);
        if row.off_path {
            let dim = self.pane.cx.theme[Slot::TextDim].add_modifier(Modifier::CROSSED_OUT);
            for line in &mut laid.lines {
                *line = std::mem::take(line).style(dim);
                line.spans.iter_mut().for_each(|span| span.style = dim);
            }
        }
        if !self.query.is_empty() {
            let style = self.pane.cx.theme[Slot::Match];
            laid.lines.iter_mut().for_each(|line| highlight(line, self.query, style));
        }
        laid
    }
}

impl ActivityRows<'_> {
    /// Whether a sub-agent around this row is folded; its own row stays.
    fn is_folded(&self, row: &Row) -> bool {
        let activity = &self.pane.state.activity;
        let mut at = row.trace;
        while let Some(trace) = at {
            if self.folded.contains(&trace) {
                return true;
            }
            at = activity.parent(trace);
        }
        false
    }

    /// One line for a run of rows that rewinds put aside, at its first row.
    fn put_aside(&self, activity: &Activity, place: usize) -> Laid {
        let rows = activity.rows();
        if place > self.range.start && rows[place - 1].off_path {
            return Laid::default();
        }
        let count = rows[place..self.range.end].iter().take_while(|r| r.off_path).count();
        let theme = self.pane.cx.theme;
        let words = format!("{} {} put aside by a rewind", theme.glyph(Glyph::Rewound), format::count(count, "row"));
        Laid::plain(vec![Line::styled(words, theme[Slot::TextDim])])
    }

    fn row(&self, row: &Row, width: usize, follow: bool) -> Laid {
        let theme = self.pane.cx.theme;
        match &row.kind {
            RowKind::Gone => Laid::default(),
            RowKind::Call(call) => Laid::plain(self.call(row, call, width)),
            RowKind::Composing { tool, bytes } => {
                let tool = tool.as_deref().map_or_else(|| "a tool call".to_owned(), sanitize_line);
                let mut left = self.mark(row, Glyph::Tool, Slot::ToolRunning, width);
                left.push(Span::styled(tool, theme[Slot::Tool]));
                let right = format!("{} writing {}", self.spinner(row), format::bytes(*bytes));
                Laid::plain(vec![both_ends(left, vec![Span::styled(right, theme[Slot::ToolRunning])], width)])
            }
            RowKind::Text(piece) => {
                let slot = if self.is_checker(row) { Slot::RoleChecker } else { Slot::RoleWorker };
                self.piece(row, piece, self.mark(row, Glyph::Text, slot, width), theme[Slot::Text], width, follow)
            }
            RowKind::Thinking(piece) => Laid::plain(self.thinking(row, piece, width)),
            RowKind::Prompt { description, bytes } => {
                let mut left = self.mark(row, Glyph::Advice, Slot::TextDim, width);
                left.push(Span::styled(format!("input: {}", sanitize_line(description)), theme[Slot::TextDim]));
                let right = Span::styled(format::bytes(*bytes), theme[Slot::TextDim]);
                Laid::plain(vec![both_ends(left, vec![right], width)])
            }
            RowKind::User { text, state, .. } => {
                let mut mark = self.mark(row, Glyph::Person, Slot::RoleUser, width);
                let word = match state {
                    UserMessageState::Delivered => "you: ",
                    UserMessageState::Queued | UserMessageState::Edited => "you, on its way: ",
                    UserMessageState::NextCycle => "you, for the next cycle: ",
                };
                mark.push(Span::styled(word, theme[Slot::RoleUser]));
                let words = if text.is_empty() { "withdrawn" } else { text };
                Laid::plain(paragraph(mark, words, theme[Slot::Text], width, 40))
            }
            RowKind::Sub { trace, mode, task, end } => {
                Laid::plain(self.sub(row, *trace, mode, task, end.as_ref(), width))
            }
            RowKind::Notice(notice) => Laid::plain(self.notice(row, notice, width)),
            RowKind::Retry { attempt, attempts, until, cause } => {
                let mut mark = self.mark(row, Glyph::Retry, Slot::Warning, width);
                let left = time::between(self.pane.cx.now, *until).div_ceil(1_000);
                let is_newest = self.pane.state.activity.rows().last().is_some_and(|r| std::ptr::eq(r, row));
                let when = if left > 0 && is_newest && self.pane.state.head.is_running() {
                    format!("trying again in {left}s")
                } else {
                    "tried again".to_owned()
                };
                mark.push(Span::styled(format!("{when} ({attempt} of {attempts})  "), theme[Slot::Warning]));
                Laid::plain(paragraph(mark, cause, theme[Slot::Text], width, DETAIL_LINES))
            }
        }
    }

    fn is_checker(&self, row: &Row) -> bool {
        let trace = row.trace.map(|trace| self.pane.state.activity.trace_id(trace));
        trace.is_some() && self.pane.state.cycles.all().iter().any(|c| c.checker_trace.as_ref() == trace)
    }

    fn spinner(&self, row: &Row) -> &'static str {
        self.pane.cx.theme.spinner(time::between(row.at, self.pane.cx.now))
    }

    /// Time, nesting and glyph before a row.
    fn mark(&self, row: &Row, glyph: Glyph, slot: Slot, width: usize) -> Vec<Span<'static>> {
        let theme = self.pane.cx.theme;
        let mut spans = Vec::with_capacity(4);
        if width >= TIME_FROM {
            let at = time::of_day(row.at, self.pane.cx.zone);
            spans.push(Span::styled(format!("{at} "), theme[Slot::TextDim]));
        }
        let depth = self.pane.state.activity.depth(row).min(width / 16);
        if depth > 0 {
            let bar = if theme.is_ascii() { "| " } else { "│ " };
            spans.push(Span::styled(bar.repeat(depth), theme[Slot::RoleSub]));
        }
        spans.push(Span::styled(format!("{} ", theme.glyph(glyph)), theme[slot]));
        spans
    }

    /// `12:04:07 ⚙ edit_file src/parser.rs            +6 −2  ok 3ms`, on two lines where narrow.
    fn call(&self, row: &Row, call: &Call, width: usize) -> Vec<Line<'static>> {
        let theme = self.pane.cx.theme;
        let slot = match call.role {
            Role::Worker => Slot::RoleWorker,
            Role::Checker => Slot::RoleChecker,
        };
        let mut left = self.mark(row, Glyph::Tool, slot, width);
        let indent: usize = left.iter().map(|s| text::width(&s.content)).sum();
        if call.role == Role::Checker {
            // The number that a verdict cites.
            left.push(Span::styled(format!("[{}] ", call.number), theme[Slot::TextDim]));
        }
        left.push(Span::styled(sanitize_line(&call.tool), theme[Slot::Tool]));
        left.push(Span::styled(format!(" {}", title_of(call)), theme[Slot::Text]));
        let right = match &call.end {
            Some(end) => self.outcome(end),
            None => {
                let ms = time::between(row.at, self.pane.cx.now);
                vec![Span::styled(
                    format!("{} running {}", self.spinner(row), format::duration(ms)),
                    theme[Slot::ToolRunning],
                )]
            }
        };
        let used: usize = left.iter().chain(&right).map(|s| text::width(&s.content)).sum();
        let mut lines = if used + 2 <= width || width >= 60 {
            vec![both_ends(left, right, width)]
        } else {
            vec![wrap::cut_line(Line::from(left), width), both_ends(vec![Span::raw(" ".repeat(indent))], right, width)]
        };
        // A failure is shown where it happened.
        if let Some(end) = call.end.as_ref().filter(|end| is_failure(end) && !end.title.trim().is_empty()) {
            let mark = vec![Span::raw(" ".repeat(indent))];
            lines.extend(paragraph(mark, &end.title, theme[Slot::ToolFailed], width, 3));
        }
        lines
    }

    fn outcome(&self, end: &CallEnd) -> Vec<Span<'static>> {
        let theme = self.pane.cx.theme;
        if end.stopped {
            return vec![Span::styled(format!("{} stopped", theme.glyph(Glyph::Stopped)), theme[Slot::StatusStopped])];
        }
        let mut spans = Vec::new();
        match &end.files[..] {
            [] => {}
            [file] => spans.extend(change_spans(file, theme)),
            files => spans.push(Span::styled(format::count(files.len(), "file"), theme[Slot::TextDim])),
        }
        if !spans.is_empty() {
            spans.push(Span::raw("  "));
        } else if end.ok && end.lines > 1 {
            spans.push(Span::styled(format!("{}  ", format::count(end.lines as usize, "line")), theme[Slot::TextDim]));
        }
        let (glyph, word, slot) = match (end.ok, end.exit_code) {
            (true, Some(code)) if code != 0 => (Glyph::Failed, format!("exit {code}"), Slot::ToolFailed),
            (true, _) => (Glyph::Done, "ok".to_owned(), Slot::ToolOk),
            (false, _) => (Glyph::Failed, "failed".to_owned(), Slot::ToolFailed),
        };
        let took = format::duration(end.duration_ms);
        spans.push(Span::styled(format!("{} {word}", theme.glyph(glyph)), theme[slot]));
        spans.push(Span::styled(format!(" {took}"), theme[Slot::TextDim]));
        spans
    }

    /// Text, each line with its place in the whole, so that it stays put while more arrives.
    fn piece(
        &self,
        row: &Row,
        piece: &Piece,
        mark: Vec<Span<'static>>,
        style: Style,
        width: usize,
        follow: bool,
    ) -> Laid {
        let theme = self.pane.cx.theme;
        let indent: usize = mark.iter().map(|s| text::width(&s.content)).sum();
        let room = width.saturating_sub(indent).max(8);
        let start = if follow && piece.streaming { tail_start(&piece.text) } else { 0 };
        let shown = piece.text[start..].trim_end();
        let before = piece.missing + start as u64;
        let mut laid = Laid::default();
        let mut mark = Some(mark);
        let mut lead = |laid: &mut Laid, anchor: u64, words: Span<'static>| {
            let mut spans = mark.take().unwrap_or_else(|| vec![Span::raw(" ".repeat(indent))]);
            spans.push(words);
            laid.lines.push(Line::from(spans));
            laid.anchors.push(anchor);
        };
        if before > 0 {
            let words = format!("… {} before", format::bytes(before));
            lead(&mut laid, 0, Span::styled(words, theme[Slot::TextDim]));
        }
        let mut at = before;
        for line in shown.split('\n') {
            let safe = sanitize(line);
            for part in safe.split('\n') {
                for range in wrap::rows(part, room) {
                    // Places within a sanitised line may differ a little from the raw ones; they
                    // only have to rise.
                    let anchor = at + range.start.min(line.len()) as u64;
                    lead(&mut laid, anchor, Span::styled(part[range].to_owned(), style));
                }
            }
            at += line.len() as u64 + 1;
        }
        if piece.streaming {
            let spinner = self.spinner(row);
            lead(
                &mut laid,
                at,
                Span::styled(format!("{spinner} {}", format::bytes(piece.bytes)), theme[Slot::ToolRunning]),
            );
        } else if piece.bytes > piece.text.len() as u64 {
            let words = format!("… {} in all", format::bytes(piece.bytes));
            lead(&mut laid, at, Span::styled(words, theme[Slot::TextDim]));
        }
        laid
    }

    fn thinking(&self, row: &Row, piece: &Piece, width: usize) -> Vec<Line<'static>> {
        let theme = self.pane.cx.theme;
        let mark = self.mark(row, Glyph::Thinking, Slot::Thinking, width);
        if !piece.streaming {
            let words = format!("thought, {}", format::bytes(piece.bytes));
            return paragraph(mark, &words, theme[Slot::Thinking], width, 1);
        }
        let indent: usize = mark.iter().map(|s| text::width(&s.content)).sum();
        let end = sanitize(piece.text[tail_start(&piece.text)..].trim_end());
        let rows = wrap::wrap(&end, width.saturating_sub(indent).max(8), usize::MAX);
        let last = rows.len().saturating_sub(THINKING_LINES);
        paragraph(mark, &rows[last..].join("\n"), theme[Slot::Thinking], width, THINKING_LINES)
    }

    fn sub(
        &self,
        row: &Row,
        trace: TraceRef,
        mode: &str,
        task: &str,
        end: Option<&(String, Option<String>)>,
        width: usize,
    ) -> Vec<Line<'static>> {
        let theme = self.pane.cx.theme;
        let fold = if self.folded.contains(&trace) { Glyph::Folded } else { Glyph::Unfolded };
        let mut left = self.mark(row, fold, Slot::RoleSub, width);
        let indent: usize = left.iter().map(|s| text::width(&s.content)).sum();
        left.push(Span::styled(format!("{} {} ", theme.glyph(Glyph::Sub), sanitize_line(mode)), theme[Slot::RoleSub]));
        left.push(Span::styled(sanitize_line(task), theme[Slot::Text]));
        let right = match end {
            Some((status, _)) => {
                let slot = if status == "completed" { Slot::ToolOk } else { Slot::ToolFailed };
                Span::styled(sanitize_line(status), theme[slot])
            }
            None => Span::styled(format!("{} at work", self.spinner(row)), theme[Slot::ToolRunning]),
        };
        let mut lines = vec![both_ends(left, vec![right], width)];
        if let Some((_, Some(summary))) = end {
            let mark = vec![Span::raw(" ".repeat(indent))];
            lines.extend(paragraph(mark, summary, theme[Slot::TextDim], width, 3));
        }
        lines
    }

    fn notice(&self, row: &Row, notice: &Notice, width: usize) -> Vec<Line<'static>> {
        let theme = self.pane.cx.theme;
        let title = sanitize_line(&notice.title);
        if notice.kind == NoticeKind::Cycle {
            let dash = if theme.is_ascii() { "-" } else { "─" };
            let detail = if notice.detail.is_empty() {
                String::new()
            } else {
                format!(" {} {}", theme.glyph(Glyph::Advice), sanitize_line(&notice.detail))
            };
            let words = text::cut(&format!("{title}{detail}"), width.saturating_sub(5)).into_owned();
            let rest = width.saturating_sub(text::width(&words) + 4);
            return vec![Line::from(vec![
                Span::styled(format!("{} ", dash.repeat(2)), theme[Slot::Border]),
                Span::styled(words, theme[Slot::TextStrong]),
                Span::styled(format!(" {}", dash.repeat(rest)), theme[Slot::Border]),
            ])];
        }
        let (glyph, slot) = match notice.kind {
            NoticeKind::Cycle | NoticeKind::Info => (Glyph::Dot, Slot::Info),
            NoticeKind::Work(Role::Worker) => (Glyph::Active, Slot::RoleWorker),
            NoticeKind::Work(Role::Checker) => (Glyph::Active, Slot::RoleChecker),
            NoticeKind::GateOk => (Glyph::Done, Slot::ToolOk),
            NoticeKind::GateFailed => (Glyph::Failed, Slot::ToolFailed),
            NoticeKind::Warning => (Glyph::Warning, Slot::Warning),
            NoticeKind::Error => (Glyph::Failed, Slot::Error),
            NoticeKind::Success => (Glyph::Done, Slot::StatusCompleted),
            NoticeKind::Waiting => (Glyph::Waiting, Slot::StatusWaiting),
            NoticeKind::Rewind => (Glyph::Rewound, Slot::Warning),
        };
        let mut mark = self.mark(row, glyph, slot, width);
        let indent: usize = mark.iter().map(|s| text::width(&s.content)).sum();
        let gate = matches!(notice.kind, NoticeKind::GateOk | NoticeKind::GateFailed);
        let title = if gate { format!("gate {title}") } else { title };
        // A short title and its detail share a line; a long one stands by itself.
        if gate && !notice.detail.is_empty() {
            mark.push(Span::styled(format!("{title}  "), theme[slot]));
            return paragraph(mark, &notice.detail, theme[Slot::TextDim], width, DETAIL_LINES);
        }
        let mut lines = paragraph(mark, &title, theme[slot], width, DETAIL_LINES);
        if !notice.detail.trim().is_empty() {
            let mark = vec![Span::raw(" ".repeat(indent))];
            lines.extend(paragraph(mark, &notice.detail, theme[Slot::Text], width, DETAIL_LINES));
        }
        lines
    }
}

/// The title without its verb where the tool's name, which stands before it, says the same.
fn title_of(call: &Call) -> String {
    let title = sanitize_line(&call.title);
    let (first, rest) = title.split_once(' ').unwrap_or((title.as_str(), ""));
    let verb = first.trim_end_matches(':');
    let said = call.tool.starts_with(verb) || ["run", "find", "search"].contains(&verb);
    if said && !verb.is_empty() { rest.trim_start().to_owned() } else { title }
}

fn is_failure(end: &CallEnd) -> bool {
    !end.ok || end.exit_code.is_some_and(|code| code != 0)
}

/// Where the end of a long text begins, at a line's start when there is one near.
fn tail_start(text: &str) -> usize {
    if text.len() <= TAIL_BYTES {
        return 0;
    }
    let mut from = text.len() - TAIL_BYTES;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].find('\n').filter(|n| *n < TAIL_BYTES / 2).map_or(from, |n| from + n + 1)
}

/// Whether a row says `query` (in lower case) anywhere.
pub fn says(row: &Row, query: &str) -> bool {
    let has = |text: &str| contains_ignoring_case(text, query);
    match &row.kind {
        RowKind::Gone => false,
        RowKind::Call(call) => {
            has(&call.tool) || has(&call.title) || call.end.as_ref().is_some_and(|end| has(&end.title))
        }
        RowKind::Composing { tool, .. } => tool.as_deref().is_some_and(has),
        RowKind::Text(piece) | RowKind::Thinking(piece) => has(&piece.text),
        RowKind::Prompt { description, .. } => has(description),
        RowKind::User { text, .. } => has(text),
        RowKind::Sub { mode, task, end, .. } => {
            has(mode) || has(task) || end.as_ref().and_then(|(_, s)| s.as_deref()).is_some_and(has)
        }
        RowKind::Notice(notice) => has(&notice.title) || has(&notice.detail),
        RowKind::Retry { cause, .. } => has(cause),
    }
}

fn contains_ignoring_case(text: &str, query: &str) -> bool {
    text.to_lowercase().contains(query)
}

/// Marks every place of `query` (in lower case) in a line.
pub fn highlight(line: &mut Line<'static>, query: &str, style: Style) {
    let spans = std::mem::take(&mut line.spans);
    for span in spans {
        let lower = span.content.to_lowercase();
        // Lower case may be longer or shorter in a few scripts; places would not fit then.
        if lower.len() != span.content.len() || !lower.contains(query) {
            line.spans.push(span);
            continue;
        }
        let mut at = 0;
        for (found, part) in lower.match_indices(query) {
            let end = found + part.len();
            let is_cut = span.content.is_char_boundary(found) && span.content.is_char_boundary(end);
            if !is_cut || found < at {
                continue;
            }
            line.spans.push(Span::styled(span.content[at..found].to_owned(), span.style));
            line.spans.push(Span::styled(span.content[found..end].to_owned(), style));
            at = end;
        }
        line.spans.push(Span::styled(span.content[at..].to_owned(), span.style));
    }
}

/// The row behind a place of the pane.
pub fn row_id(place: usize) -> RowId {
    RowId(u32::try_from(place).unwrap_or(u32::MAX))
}
