//! Two cycles side by side: verdicts, what each handed in, and how the files differ between them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::problem::Problem;
use crate::events::query::{FileDiff, Query, Reply};
use crate::ids::SessionId;
use crate::stdx::text::{sanitize, sanitize_line};
use crate::tui::screen::{Cx, Effects};
use crate::tui::screens::filediffs;
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::reader::Reader;
use crate::tui::state::cycle::Cycle;
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::widgets::text::{pad, width};
use crate::tui::widgets::wrap::wrap_line;

/// Most lines of one output that are compared.
const MOST_LINES: usize = 2_000;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Verdicts and outputs.
    Outcome,
    /// Files.
    Files,
}

/// Two cycles.
pub(super) struct Compare {
    numbers: (u32, u32),
    cycles: (Cycle, Cycle),
    outputs: (Load<String>, Load<String>),
    files: Load<Vec<FileDiff>>,
    part: Part,
    reader: Reader,
    /// The width the lines were made for; none when they must be made anew.
    made_for: Option<usize>,
}

impl Compare {
    /// Asks for what is needed to compare two cycles.
    pub fn new(session: &SessionId, a: &Cycle, b: &Cycle, out: &mut Effects) -> Self {
        for cycle in [a, b] {
            out.ask(Query::Output { session: session.clone(), cycle: Some(cycle.number) });
        }
        let files = match (&a.snapshot, &b.snapshot) {
            (Some(from), Some(to)) => {
                out.ask(Query::Diff {
                    session: session.clone(),
                    from: Some(from.clone()),
                    to: Some(to.clone()),
                    path: None,
                });
                Load::Waiting
            }
            _ => Load::Failed(Problem::internal("the files of one of these cycles were not recorded")),
        };
        Self {
            numbers: (a.number, b.number),
            cycles: (a.clone(), b.clone()),
            outputs: (Load::Waiting, Load::Waiting),
            files,
            part: Part::Outcome,
            reader: Reader::default(),
            made_for: None,
        }
    }

    /// What scrolls.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Switches between outcome and files.
    pub fn next_part(&mut self) {
        self.part = match self.part {
            Part::Outcome => Part::Files,
            Part::Files => Part::Outcome,
        };
        self.reader.scroll.show_start();
        self.made_for = None;
    }

    /// Takes an answer.
    pub fn take(&mut self, query: &Query, result: Result<Reply, Problem>) {
        self.made_for = None;
        match (query, result) {
            (Query::Output { cycle, .. }, result) => {
                let load = match result {
                    Ok(Reply::Text(text)) => Load::Ready(text.text),
                    Ok(_) => return,
                    Err(problem) => Load::Failed(problem),
                };
                if *cycle == Some(self.numbers.0) {
                    self.outputs.0 = load;
                } else if *cycle == Some(self.numbers.1) {
                    self.outputs.1 = load;
                }
            }
            (Query::Diff { .. }, Ok(Reply::Diff(files))) => self.files = Load::Ready(files),
            (Query::Diff { .. }, Err(problem)) => self.files = Load::Failed(problem),
            _ => {}
        }
    }

    /// Draws it.
    pub fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let (a, b) = self.numbers;
        let title = match self.part {
            Part::Outcome => format!("Cycle {a} and cycle {b} · [verdict and output]  files"),
            Part::Files => format!("Cycle {a} and cycle {b} ·  verdict and output  [files]"),
        };
        let inner = look::inset(look::panel(frame, area, &title, true, cx.theme));
        let width = usize::from(inner.width.saturating_sub(1)).max(1);
        if self.made_for != Some(width) {
            let lines = match self.part {
                Part::Outcome => self.outcome(width, cx.theme),
                Part::Files => self.file_lines(width, cx.theme),
            };
            self.reader.set(lines);
            self.made_for = Some(width);
        }
        self.reader.draw(frame, inner, cx.theme);
    }

    fn file_lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match &self.files {
            Load::Waiting => vec![Line::styled("reading the files …", theme[Slot::TextDim])],
            Load::Failed(problem) => look::problem_lines(problem, theme),
            Load::Ready(files) if files.is_empty() => {
                vec![Line::styled("the files are the same", theme[Slot::TextDim])]
            }
            Load::Ready(files) => filediffs::lines(files, files.len(), theme, width),
        }
    }

    fn outcome(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let left = side(&self.cycles.0, &self.outputs.0, theme);
        let right = side(&self.cycles.1, &self.outputs.1, theme);
        if width < 60 {
            let mut lines = left;
            lines.push(Line::default());
            lines.extend(right);
            return lines;
        }
        side_by_side(&left, &right, width, theme)
    }
}

/// One cycle: its verdict with what stands behind it, then what it handed in.
fn side(cycle: &Cycle, output: &Load<String>, theme: &Theme) -> Vec<Line<'static>> {
    let (glyph, word, style) = match cycle.verdict {
        Some(verdict) => look::verdict(theme, verdict),
        None => (theme.glyph(Glyph::Active), "not ended", theme[Slot::StatusRunning]),
    };
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("cycle {}  ", cycle.number), theme[Slot::TextHeading]),
        Span::styled(format!("{glyph} {word}"), style),
    ])];
    if let Some(checker) = &cycle.checker {
        let text = |text: &str, slot: Slot| Line::styled(sanitize_line(text), theme[slot]);
        lines.push(text(&checker.reason, Slot::Text));
        for item in &checker.evidence {
            let (glyph, slot) =
                if item.calls.is_empty() { (Glyph::Unknown, Slot::VerdictClaim) } else { (Glyph::Done, Slot::Text) };
            lines.push(text(&format!("{} {}", theme.glyph(glyph), item.text), slot));
        }
        for advice in checker.feedback.lines().filter(|line| !line.trim().is_empty()) {
            lines.push(text(&format!("{} {advice}", theme.glyph(Glyph::Advice)), Slot::Text));
        }
    }
    lines.push(Line::default());
    lines.push(Line::styled("__output.json", theme[Slot::TextHeading]));
    match output {
        Load::Waiting => lines.push(Line::styled("reading …", theme[Slot::TextDim])),
        Load::Failed(problem) => lines.extend(look::problem_lines(problem, theme)),
        Load::Ready(text) => {
            let text = sanitize(text);
            lines
                .extend(text.lines().take(MOST_LINES).map(|line| Line::styled(line.to_owned(), theme[Slot::TextCode])));
            if text.lines().count() > MOST_LINES {
                lines.push(Line::styled("… the rest is not shown here", theme[Slot::TextDim]));
            }
        }
    }
    lines
}

/// Two columns with a line between them; each is wrapped by itself.
fn side_by_side(left: &[Line<'static>], right: &[Line<'static>], whole: usize, theme: &Theme) -> Vec<Line<'static>> {
    let column = (whole - 3) / 2;
    let wrapped = |lines: &[Line<'static>]| -> Vec<Line<'static>> {
        lines.iter().flat_map(|line| wrap_line(line, column, 0)).collect()
    };
    let (left, right) = (wrapped(left), wrapped(right));
    let bar = if theme.is_ascii() { " | " } else { " │ " };
    (0..left.len().max(right.len()))
        .map(|row| {
            let mut spans = Vec::new();
            let mut used = 0;
            if let Some(line) = left.get(row) {
                spans.extend(styled(line));
                used = spans.iter().map(|span| width(&span.content)).sum();
            }
            spans.push(Span::raw(pad("", column.saturating_sub(used))));
            spans.push(Span::styled(bar, theme[Slot::Border]));
            if let Some(line) = right.get(row) {
                spans.extend(styled(line));
            }
            Line::from(spans)
        })
        .collect()
}

/// A line's spans with the line's own style in them, so that they can stand in another line.
fn styled(line: &Line<'static>) -> Vec<Span<'static>> {
    line.spans.iter().map(|span| Span::styled(span.content.clone(), line.style.patch(span.style))).collect()
}
