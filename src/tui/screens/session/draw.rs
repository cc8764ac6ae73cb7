//! Drawing the session screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

use super::layout::{Pane, layout};
use super::{Session, header};
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::panes::paragraph;
use crate::tui::panes::viewport::{Look, onto_frame};
use crate::tui::screen::Cx;
use crate::tui::screens::detail::content::draw_search_line;
use crate::tui::state::SessionState;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::{format, text};

impl Session {
    pub(super) fn draw_all(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        self.areas.clear();
        self.tabs.clear();
        let Some(state) = cx.session(&self.session) else {
            self.draw_opening(frame, area, cx);
            return;
        };
        let width = usize::from(area.width);
        let line = header::line(state, self.at_cycle, width, cx);
        frame.buffer_mut().set_line(area.x, area.y, &line, area.width);
        let mut banner = if self.at_cycle.is_none() { header::banner(state, width, cx) } else { Vec::new() };
        banner.truncate(usize::from(area.height / 4));
        for (y, line) in (area.y + 1..area.bottom()).zip(&banner) {
            frame.buffer_mut().set_line(area.x, y, line, area.width);
        }
        let y = area.y + 1 + u16::try_from(banner.len()).unwrap_or(0);
        let rest = Rect { y, height: area.bottom().saturating_sub(y), ..area };
        // The footer's row is part of the screen.
        let screen = Rect { height: area.height + 1, ..area };
        self.refresh(state, cx, Pane::Plan, self.plan.key.1);
        let goals = u16::try_from(self.plan.entries.len()).unwrap_or(u16::MAX / 2).max(1);
        let layout = layout(rest, screen, self.focus, self.zoomed, goals);
        if let Some((tabs, panes)) = &layout.tabs {
            self.draw_tabs(frame, *tabs, panes, cx);
        }
        self.shown_panes = layout.panes.len();
        for (pane, area) in &layout.panes {
            self.draw_pane(frame, *area, *pane, state, cx);
        }
        self.areas = layout.panes;
    }

    /// Nothing is there yet: why, and what can be done.
    fn draw_opening(&self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let theme = cx.theme;
        let back = cx.key(Layer::Session, Action::Sessions);
        let (glyph, slot, words) = match cx.sessions.trouble(&self.session) {
            Some(problem) => (Glyph::Failed, Slot::Error, format!("{problem}\n\n{back} goes to the list of sessions")),
            None => (Glyph::Active, Slot::Info, format!("opening session {} …", self.session)),
        };
        let mark = vec![Span::styled(format!("  {} ", theme.glyph(glyph)), theme[slot])];
        let lines = paragraph(mark, &words, theme[Slot::Text], usize::from(area.width).min(100), 20);
        for (y, line) in (area.y + 1..area.bottom()).zip(&lines) {
            frame.buffer_mut().set_line(area.x, y, line, area.width);
        }
    }

    /// ` 1 Plan  2 Activity  3 Verdicts  4 Deliverable`, shortened until it fits.
    fn draw_tabs(&mut self, frame: &mut Frame<'_>, area: Rect, panes: &[Pane], cx: &Cx<'_>) {
        let theme = cx.theme;
        let full: usize = panes.iter().map(|p| p.title().len() + 4).sum();
        let is_short = full > usize::from(area.width);
        let mut x = area.x;
        for &pane in panes {
            let key = cx.key(Layer::Session, pane.action());
            let name = if is_short && pane != self.focus { text::cut(pane.title(), 4) } else { pane.title().into() };
            let focused = pane == self.focus;
            let words = if focused { format!("[{key} {name}]") } else { format!(" {key} {name} ") };
            let slot = if focused { Slot::TitleFocus } else { Slot::Title };
            let from = x;
            let room = area.right().saturating_sub(x);
            (x, _) = frame.buffer_mut().set_span(x, area.y, &Span::styled(words, theme[slot]), room);
            self.tabs.push((pane, Rect { x: from, width: x - from, ..area }));
        }
    }

    fn draw_pane(&mut self, frame: &mut Frame<'_>, area: Rect, pane: Pane, state: &SessionState, cx: &Cx<'_>) {
        let theme = cx.theme;
        let focused = pane == self.focus;
        let border = if focused { Slot::BorderFocus } else { Slot::Border };
        let mut titles = self.names(area, pane, focused, cx);
        titles.extend(self.title_extras(pane, state, cx));
        let mut block =
            Block::bordered().border_set(theme.borders()).border_style(theme[border]).title(Line::from(titles));
        if let Some(below) = self.below(pane, state, cx) {
            block = block.title_bottom(below.right_aligned());
        }
        let inner = block.inner(area);
        block.render(area, frame.buffer_mut());
        let is_searched = pane == Pane::Activity && (self.typing || !self.search.is_empty());
        let (body, line) = crate::tui::screens::detail::content::split_line(inner, is_searched);
        let body = if pane == Pane::Activity { self.draw_waiting(frame, body, state, cx) } else { body };
        self.refresh(state, cx, pane, usize::from(body.width.saturating_sub(2)));
        let look = Look {
            selected: focused.then_some(theme[Slot::Selected]),
            cursor: theme.glyph(Glyph::Cursor),
            cursor_style: theme[Slot::BorderFocus],
            thumb: theme.glyph(Glyph::Thumb),
            thumb_style: theme[border],
        };
        let buffer = frame.buffer_mut();
        self.with_rows(state, cx, pane, |viewport, rows| viewport.draw(buffer, onto_frame(body), rows, &look));
        if let Some(line) = line {
            let count = if self.typing { "  Enter goes through what is found" } else { "" };
            draw_search_line(frame, line, &self.search, count, self.typing, cx);
        }
    }

    /// A pane's name; where two share a place, both, as tabs.
    fn names(&mut self, area: Rect, pane: Pane, focused: bool, cx: &Cx<'_>) -> Vec<Span<'static>> {
        let theme = cx.theme;
        let shown = if focused { Slot::TitleFocus } else { Slot::Title };
        let shares = self.panes_share() && matches!(pane, Pane::Verdicts | Pane::Deliverable);
        let panes = if shares { vec![Pane::Verdicts, Pane::Deliverable] } else { vec![pane] };
        let mut x = area.x + 1;
        let mut spans = Vec::new();
        for name in panes {
            let key = cx.key(Layer::Session, name.action());
            let words = match name == pane && shares {
                true => format!("[{key} {}]", name.title()),
                false => format!(" {key} {} ", name.title()),
            };
            let width = u16::try_from(text::width(&words)).unwrap_or(u16::MAX);
            if shares {
                self.tabs.push((name, Rect { x, width, height: 1, ..area }));
            }
            x = x.saturating_add(width);
            spans.push(Span::styled(words, theme[if name == pane { shown } else { Slot::TextDim }]));
        }
        spans
    }

    /// What stands beside a pane's title.
    fn title_extras(&self, pane: Pane, state: &SessionState, cx: &Cx<'_>) -> Vec<Span<'static>> {
        let dim = cx.theme[Slot::TextDim];
        let key = |action| cx.key(Layer::Session, action);
        match pane {
            Pane::Plan => {
                let then = self.at_cycle.and_then(|number| state.view_at_cycle(number));
                let plan = then.map_or_else(|| state.plans.current(), |view| view.plan);
                let goals = plan.map(|p| p.numbered()).unwrap_or_default();
                let all = goals.iter().filter(|g| g.number.is_some());
                let done = all.clone().filter(|g| g.goal.status == crate::events::data::GoalStatus::Completed).count();
                let all = all.count();
                if all == 0 { Vec::new() } else { vec![Span::styled(format!("{done}/{all} "), dim)] }
            }
            Pane::Deliverable if state.cycles.all().len() > 1 && self.at_cycle.is_none() => {
                let words = format!("{} {} other cycles ", key(Action::PreviousCycle), key(Action::NextCycle));
                vec![Span::styled(words, dim)]
            }
            Pane::Activity | Pane::Verdicts | Pane::Deliverable => Vec::new(),
        }
    }

    /// Whether verdicts and deliverable share a place.
    fn panes_share(&self) -> bool {
        self.shown_panes == 3
    }

    /// What stands in a pane's lower edge.
    fn below(&self, pane: Pane, state: &SessionState, cx: &Cx<'_>) -> Option<Line<'static>> {
        let theme = cx.theme;
        let viewport = &self.viewports[pane as usize];
        if pane == Pane::Activity && !viewport.follows() && self.at_cycle.is_none() {
            let key = cx.key(Layer::Session, Action::Follow);
            let words = match viewport.unseen(state.activity.len()) {
                0 => format!(" {key} follows "),
                n => format!(" {n} new {} {key} follows ", theme.glyph(Glyph::Below)),
            };
            return Some(Line::styled(words, theme[Slot::Warning]));
        }
        None
    }

    /// The person's messages on their way, pinned below the activity.
    fn draw_waiting(&self, frame: &mut Frame<'_>, area: Rect, state: &SessionState, cx: &Cx<'_>) -> Rect {
        let waiting = state.messages.waiting();
        if waiting.is_empty() || area.height < 6 || self.at_cycle.is_some() {
            return area;
        }
        let theme = cx.theme;
        let lines = u16::try_from(waiting.len().min(2)).unwrap_or(2);
        let skipped = waiting.len().saturating_sub(2);
        for (y, message) in (area.bottom() - lines..).zip(waiting.iter().skip(skipped)) {
            let when = if message.next_cycle { "for the next cycle" } else { "on its way" };
            let more = if skipped > 0 { format!(" (+{})", format::count(skipped, "message")) } else { String::new() };
            let key = cx.key(Layer::Session, Action::Message);
            let mark = format!(" {} {when}{more}: ", theme.glyph(Glyph::Person));
            let tail = format!("  [{key} edits]");
            let room = usize::from(area.width).saturating_sub(text::width(&mark) + text::width(&tail));
            let words = sanitize_line(&message.text);
            let line = Line::from(vec![
                Span::styled(mark, theme[Slot::RoleUser]),
                Span::styled(text::cut(&words, room).into_owned(), theme[Slot::Text]),
                Span::styled(tail, theme[Slot::TextDim]),
            ]);
            frame.buffer_mut().set_line(area.x, y, &line, area.width);
        }
        Rect { height: area.height - lines, ..area }
    }
}
