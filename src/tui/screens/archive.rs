//! The cycles of a session as a table, and any two of them side by side. Opening a cycle is the
//! session screen's work.

mod compare;

use ratatui::Frame;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::compare::Compare;
use crate::events::query::Query;
use crate::ids::SessionId;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, Screen, View, hints};
use crate::tui::screens::look;
use crate::tui::screens::session::Session;
use crate::tui::state::cycle::{Cycle, HandedIn};
use crate::tui::theme::Slot;
use crate::tui::time;
use crate::tui::widgets::format;
use crate::tui::widgets::list::{List, Step};
use crate::tui::widgets::text::{cut, pad, pad_start};

/// The cycles of a session.
pub struct Archive {
    session: SessionId,
    list: List,
    /// The cycle marked to be compared.
    marked: Option<u32>,
    compare: Option<Compare>,
    list_area: Rect,
}

impl Archive {
    /// The cycles of a session, the newest under the cursor.
    pub fn new(session: SessionId) -> Self {
        Self { session, list: List::default(), marked: None, compare: None, list_area: Rect::default() }
    }

    fn cycles<'a>(&self, cx: &'a Cx<'_>) -> &'a [Cycle] {
        cx.session(&self.session).map_or(&[], |state| state.cycles.all())
    }

    /// Takes over how many cycles there are; the newest is under the cursor at first.
    fn count(&mut self, cx: &Cx<'_>) {
        let count = self.cycles(cx).len();
        let first = self.list.is_empty();
        self.list.set_len(count);
        if first {
            self.list.select(count);
        }
    }

    fn number_at_cursor(&self, cx: &Cx<'_>) -> Option<u32> {
        Some(self.cycles(cx).get(self.list.selected()?)?.number)
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        if let Some(compare) = &mut self.compare {
            match action {
                Action::Back => self.compare = None,
                Action::Switch => compare.next_part(),
                Action::Mark => {
                    self.compare = None;
                    self.marked = None;
                }
                _ if compare.reader().act(action) => {}
                _ => return Handled::No,
            }
            return Handled::Yes;
        }
        match action {
            Action::Up => self.list.step(Step::By(-1)),
            Action::Down => self.list.step(Step::By(1)),
            Action::PageUp => self.list.step(Step::Page(-1)),
            Action::PageDown => self.list.step(Step::Page(1)),
            Action::Top => self.list.step(Step::First),
            Action::Bottom => self.list.step(Step::Last),
            Action::Open => {
                if let Some(number) = self.number_at_cursor(cx) {
                    out.open(Screen::Session(Box::new(Session::at_cycle(self.session.clone(), number))));
                }
            }
            Action::Mark => self.mark(cx, out),
            Action::Back if self.marked.is_some() => self.marked = None,
            Action::Back => out.close(),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Marks the cycle under the cursor; with another one marked, compares the two.
    fn mark(&mut self, cx: &Cx<'_>, out: &mut Effects) {
        let Some(number) = self.number_at_cursor(cx) else { return };
        match self.marked {
            None if self.list.len() < 2 => out.say("there is only one cycle; nothing to compare it with"),
            None => self.marked = Some(number),
            Some(marked) if marked == number => self.marked = None,
            Some(marked) => {
                let (first, second) = (marked.min(number), marked.max(number));
                let cycles = self.cycles(cx);
                let find = |number| cycles.iter().find(|cycle| cycle.number == number);
                if let (Some(a), Some(b)) = (find(first), find(second)) {
                    self.compare = Some(Compare::new(&self.session, a, b, out));
                }
            }
        }
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let name = cx.session(&self.session).map_or_else(String::new, |state| sanitize_line(&state.head.name));
        let inner = look::panel(frame, area, &format!("Cycles · {name}"), true, cx.theme);
        if let Some(problem) = cx.sessions.trouble(&self.session) {
            return look::problem(frame, inner, problem, cx.theme);
        }
        let Some(state) = cx.session(&self.session) else {
            return look::notice(frame, inner, "reading the session …", cx.theme);
        };
        let cycles = state.cycles.all();
        if cycles.is_empty() {
            return look::notice(frame, inner, "no cycle has begun yet", cx.theme);
        }
        let columns = Columns::new(inner.width.saturating_sub(3));
        let (head, body) = look::split_top(inner, u16::from(inner.height > 3));
        let room = usize::from(head.width.saturating_sub(2));
        frame.buffer_mut().set_stringn(
            head.x + 2.min(head.width),
            head.y,
            columns.head(),
            room,
            cx.theme[Slot::TextDim],
        );
        self.list_area = body;
        let marked = self.marked;
        self.list.draw(frame.buffer_mut(), body, 1, &look::list(cx.theme, true), |row, _, _| {
            let cycle = cycles.get(row);
            cycle.map(|cycle| vec![columns.row(cycle, marked == Some(cycle.number), cx)]).unwrap_or_default()
        });
    }
}

impl View for Archive {
    fn layer(&self) -> Layer {
        Layer::Archive
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        self.count(cx);
        match input {
            Input::Action(action) => self.act(action, cx, out),
            Input::Reply { query: query @ (Query::Output { .. } | Query::Diff { .. }), result } => {
                if let Some(compare) = &mut self.compare {
                    compare.take(&query, result);
                }
                Handled::Yes
            }
            Input::Mouse(event) => {
                let rows = match event.kind {
                    MouseEventKind::ScrollUp => -3,
                    MouseEventKind::ScrollDown => 3,
                    MouseEventKind::Down(MouseButton::Left) if self.compare.is_none() => {
                        if !self.list_area.contains((event.column, event.row).into()) {
                            return Handled::No;
                        }
                        match self.list.row_at(event.row - self.list_area.y, 1) {
                            Some(row) if self.list.selected() == Some(row) => {
                                self.act(Action::Open, cx, out);
                            }
                            Some(row) => self.list.select(row),
                            None => {}
                        }
                        return Handled::Yes;
                    }
                    _ => return Handled::No,
                };
                match &mut self.compare {
                    Some(compare) => compare.reader().scroll.by(rows),
                    None => self.list.wheel(rows),
                }
                Handled::Yes
            }
            Input::Key(_)
            | Input::Paste(_)
            | Input::Reply { .. }
            | Input::Done { .. }
            | Input::Edited(_)
            | Input::Tick => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        self.count(cx);
        look::ground(frame, area, cx.theme);
        match &mut self.compare {
            Some(compare) => compare.draw(frame, area, cx),
            None => self.draw_table(frame, area, cx),
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        if self.compare.is_some() {
            return hints(&[Action::Switch, Action::Down, Action::Back]);
        }
        let word = if self.marked.is_some() { "compare with the marked one" } else { "mark to compare" };
        let mark = Hint { action: Action::Mark, word: Some(word) };
        vec![Action::Open.into(), mark, Action::Back.into()]
    }
}

/// Cells of each column; 0 leaves it out.
struct Columns {
    verdict: usize,
    files: usize,
    calls: usize,
    tokens: usize,
    cost: usize,
    time: usize,
    summary: usize,
}

/// Cells of the mark and the cycle's number.
const NUMBER: usize = 5;

impl Columns {
    fn new(width: u16) -> Self {
        let width = usize::from(width);
        let mut columns = Self { verdict: 20, files: 7, calls: 7, tokens: 8, cost: 9, time: 9, summary: 0 };
        if width < 96 {
            columns.calls = 0;
            columns.cost = 0;
        }
        if width < 70 {
            columns.files = 0;
            columns.tokens = 0;
        }
        if width < 56 {
            columns.verdict = 2;
        }
        if width < 30 {
            columns.time = 0;
        }
        let used =
            NUMBER + columns.verdict + columns.files + columns.calls + columns.tokens + columns.cost + columns.time;
        columns.summary = width.saturating_sub(used);
        columns
    }

    fn head(&self) -> String {
        let right = |text: &str, cells: usize| if cells == 0 { String::new() } else { pad_start(text, cells) };
        [
            pad("  #", NUMBER),
            pad(if self.verdict > 2 { "VERDICT" } else { "" }, self.verdict),
            pad("SUMMARY", self.summary),
            right("FILES", self.files),
            right("CALLS", self.calls),
            right("TOKENS", self.tokens),
            right("COST", self.cost),
            right("TIME", self.time),
        ]
        .concat()
    }

    fn row(&self, cycle: &Cycle, marked: bool, cx: &Cx<'_>) -> Line<'static> {
        let theme = cx.theme;
        let (glyph, word, style) = match cycle.verdict {
            Some(verdict) => look::verdict(theme, verdict),
            None => (theme.glyph(crate::tui::theme::Glyph::Active), "not ended", theme[Slot::StatusRunning]),
        };
        let verdict = if self.verdict > 2 { format!("{glyph} {word}") } else { glyph.to_owned() };
        let summary = match cycle.handed_in() {
            HandedIn::NotYet => "the Worker is not done".to_owned(),
            HandedIn::Nothing(why) => why,
            HandedIn::Output(output) => output.summary,
        };
        let summary = sanitize_line(&summary);
        let mut totals = cycle.totals.worker;
        totals.add(&cycle.totals.checker);
        let time = cycle.ended_at.map_or(cx.now, |end| end);
        let mark = if marked { "*" } else { " " };
        let mut spans = vec![
            Span::styled(format!("{mark}{:>2}  ", cycle.number), theme[Slot::TextStrong]),
            Span::styled(pad(&verdict, self.verdict), style),
            Span::styled(pad(&cut(&summary, self.summary.saturating_sub(1)), self.summary), theme[Slot::Text]),
        ];
        for (text, cells) in [
            (cycle.files().len().to_string(), self.files),
            (totals.tool_calls.to_string(), self.calls),
            (format::tokens(totals.tokens()), self.tokens),
            (format::money(totals.cost_usd), self.cost),
            (format::clock(time::between(cycle.started_at, time)), self.time),
        ] {
            if cells > 0 {
                spans.push(Span::styled(pad_start(&text, cells), theme[Slot::TextDim]));
            }
        }
        Line::from(spans)
    }
}

#[cfg(test)]
mod tests;
