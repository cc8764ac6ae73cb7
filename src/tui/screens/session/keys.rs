//! What keys and mouse do on the session screen, and which of them are worth naming now.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};

use super::layout::Pane;
use super::{Session, hint};
use crate::events::command::Command;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::panes::Target;
use crate::tui::panes::activity::says;
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, Screen, hints};
use crate::tui::screens::apply::Apply;
use crate::tui::screens::archive::Archive;
use crate::tui::screens::confirm::Confirm;
use crate::tui::screens::contract::Contract;
use crate::tui::screens::message::Message;
use crate::tui::screens::request::Request;
use crate::tui::screens::rewind::Rewind;
use crate::tui::state::SessionState;
use crate::tui::state::activity::RowKind;
use crate::tui::time;

/// Within this time a second Esc opens the rewind timeline.
const ESC_TWICE: Duration = Duration::from_millis(500);

/// Lines one notch of the wheel scrolls.
const WHEEL: isize = 3;

impl Session {
    pub(super) fn input(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(action) => return self.action(action, cx, out),
            Input::Key(key) if self.typing => self.type_key(key, cx, out),
            Input::Paste(text) if self.typing => self.search.push_str(&sanitize_line(&text).to_lowercase()),
            Input::Paste(_) => out.say(format!("{} writes to the worker", cx.key(Layer::Session, Action::Message))),
            Input::Mouse(mouse) => return self.mouse(mouse, cx),
            // The owner's account only matters where the fold can't know, which `ui` looks at.
            Input::Reply { result: Ok(_), .. } => {}
            Input::Reply { result: Err(_), .. } => {}
            Input::Key(_) | Input::Done { .. } | Input::Edited(_) | Input::Tick => return Handled::No,
        }
        Handled::Yes
    }

    fn action(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let state = cx.session(&self.session);
        match action {
            Action::Back => return self.back(cx, out),
            Action::Sessions if self.at_cycle.is_some() => out.close(),
            Action::Sessions => out.push(Effect::Home),
            Action::PanePlan => self.focus = Pane::Plan,
            Action::PaneActivity => self.focus = Pane::Activity,
            Action::PaneVerdicts => self.focus = Pane::Verdicts,
            Action::PaneDeliverable => self.focus = Pane::Deliverable,
            Action::NextPane | Action::Right => self.focus = self.focus.step(1),
            Action::PreviousPane | Action::Left => self.focus = self.focus.step(3),
            Action::Zoom => self.zoomed = !self.zoomed,
            Action::Abandoned => self.abandoned = !self.abandoned,
            Action::Branches => self.branches = !self.branches,
            Action::Follow => {
                self.focus = Pane::Activity;
                self.viewports[Pane::Activity as usize].follow();
            }
            Action::Search => {
                self.focus = Pane::Activity;
                self.typing = true;
                self.search.clear();
            }
            _ => {
                let Some(state) = state else { return Handled::No };
                return self.state_action(action, state, cx, out);
            }
        }
        Handled::Yes
    }

    /// Actions that need the session's state.
    fn state_action(&mut self, action: Action, state: &SessionState, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let focus = self.focus;
        match action {
            Action::Up => self.with_rows(state, cx, focus, |viewport, rows| viewport.up(rows)),
            Action::Down => self.with_rows(state, cx, focus, |viewport, rows| viewport.down(rows)),
            Action::PageUp => self.with_rows(state, cx, focus, |viewport, rows| viewport.page(rows, -1)),
            Action::PageDown => self.with_rows(state, cx, focus, |viewport, rows| viewport.page(rows, 1)),
            Action::Top => self.viewports[focus as usize].start(),
            Action::Bottom => self.viewports[focus as usize].end(),
            Action::Open => self.open_target(state, out),
            Action::Copy => self.copy_target(state, out),
            Action::Toggle => self.toggle_fold(state),
            Action::NextMatch => self.next_match(state, true, out),
            Action::PreviousMatch => self.next_match(state, false, out),
            Action::PreviousCycle => self.step_cycle(state, false),
            Action::NextCycle => self.step_cycle(state, true),
            _ if self.at_cycle.is_some() => return Handled::No,
            _ => return self.session_action(action, state, cx, out),
        }
        Handled::Yes
    }

    /// Actions that do something to the session.
    fn session_action(&mut self, action: Action, state: &SessionState, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let session = self.session.clone();
        let running = state.head.is_running();
        match action {
            Action::Stop if running => {
                out.command(Command::Stop { session });
                out.say("stopping; it can be continued");
            }
            Action::Stop => {
                let key = cx.key(Layer::Session, Action::Message);
                out.say(format!("it does not run; {key} continues it"));
            }
            Action::Rewind => out.open(Screen::Rewind(Box::new(Rewind::new(session)))),
            Action::Message => out.open(Screen::Message(Box::new(Message::new(session)))),
            Action::Archive => out.open(Screen::Archive(Box::new(Archive::new(session)))),
            Action::Apply => {
                let cycle = self.shown_cycle.filter(|number| state.cycles.get(*number).is_some());
                out.open(Screen::Apply(Box::new(Apply::new(session, cycle))));
            }
            Action::Contract => out.open(Screen::Contract(Box::new(Contract::new(session)))),
            Action::Accept => {
                let title = "Accept the result as it is?".to_owned();
                let text = "The session ends as accepted by you. It is shown so, never as passed.".to_owned();
                let yes = vec![Effect::Command(Command::Accept { session })];
                out.open(Screen::Confirm(Box::new(Confirm::new(title, text, yes))));
            }
            Action::Requests => match state.requests.open().first() {
                Some(request) => {
                    let id = request.id.clone();
                    out.open(Screen::Request(Box::new(Request::new(session, id))));
                }
                None => out.say("nothing waits for you"),
            },
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// One step back inside the screen. With nothing open the first Esc only says so; a second one
    /// soon after opens the rewind timeline.
    fn back(&mut self, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        if self.typing || !self.search.is_empty() {
            self.typing = false;
            self.search.clear();
            return Handled::Yes;
        }
        if self.zoomed {
            self.zoomed = false;
            return Handled::Yes;
        }
        if self.at_cycle.is_some() {
            return Handled::No;
        }
        let twice = self.escaped.is_some_and(|at| time::between(at, cx.now) <= ESC_TWICE.as_millis() as u64);
        if twice {
            self.escaped = None;
            out.open(Screen::Rewind(Box::new(Rewind::new(self.session.clone()))));
        } else {
            self.escaped = Some(cx.now);
            let (back, list) = (cx.key(Layer::Session, Action::Back), cx.key(Layer::Session, Action::Sessions));
            out.say(format!("nothing to close; {back} {back} opens the rewind timeline, {list} the list of sessions"));
        }
        Handled::Yes
    }

    fn toggle_fold(&mut self, state: &SessionState) {
        let Some(Target::Row(id)) = self.target(state) else { return };
        let Some(row) = state.activity.get(id) else { return };
        // On the sub-agent's own row, or anywhere inside it.
        let trace = match &row.kind {
            RowKind::Sub { trace, .. } => Some(*trace),
            _ => row.trace.filter(|trace| state.activity.parent(*trace).is_some()),
        };
        let Some(trace) = trace else { return };
        if !self.folded.remove(&trace) {
            self.folded.insert(trace);
            let own = state
                .activity
                .rows()
                .iter()
                .position(|r| matches!(&r.kind, RowKind::Sub { trace: t, .. } if *t == trace));
            let start = self.range(state).start;
            if let Some(place) = own.and_then(|place| place.checked_sub(start)) {
                self.viewports[Pane::Activity as usize].go_to(place);
            }
        }
    }

    fn step_cycle(&mut self, state: &SessionState, forward: bool) {
        let Some(now) = self.deliverable_cycle(state).map(|c| c.number) else { return };
        let numbers = state.cycles.all().iter().map(|c| c.number);
        let next = if forward { numbers.filter(|n| *n > now).min() } else { numbers.filter(|n| *n < now).max() };
        self.shown_cycle = next.or(Some(now));
        self.focus = Pane::Deliverable;
        self.viewports[Pane::Deliverable as usize].start();
    }

    fn type_key(&mut self, key: KeyEvent, cx: &Cx<'_>, out: &mut Effects) {
        match key.code {
            KeyCode::Enter => {
                self.typing = false;
                if let Some(state) = cx.session(&self.session).filter(|_| !self.search.is_empty()) {
                    self.next_match(state, false, out);
                }
            }
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Char(c) => self.search.extend(c.to_lowercase()),
            _ => {}
        }
    }

    fn next_match(&mut self, state: &SessionState, forward: bool, out: &mut Effects) {
        let range = self.range(state);
        let here = range.start + self.viewports[Pane::Activity as usize].cursor();
        let rows = state.activity.rows();
        let found = |place: &usize| says(&rows[*place], &self.search);
        let next = if forward {
            (here + 1..range.end).find(found).or_else(|| (range.start..here.min(range.end)).find(found))
        } else {
            // The first search begins at the newest row, which may be a match itself.
            (range.start..here.min(range.end)).rev().find(found).or_else(|| (here..range.end).rev().find(found))
        };
        match next {
            Some(place) => self.viewports[Pane::Activity as usize].go_to(place - range.start),
            None => out.warn(format!("`{}` is not there", self.search)),
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, cx: &Cx<'_>) -> Handled {
        let at = (mouse.column, mouse.row).into();
        if let MouseEventKind::Down(MouseButton::Left) = mouse.kind
            && let Some((pane, _)) = self.tabs.iter().find(|(_, area)| area.contains(at))
        {
            self.focus = *pane;
            return Handled::Yes;
        }
        let Some((pane, _)) = self.areas.iter().find(|(_, area)| area.contains(at)).copied() else {
            return Handled::No;
        };
        let Some(state) = cx.session(&self.session) else { return Handled::No };
        match mouse.kind {
            MouseEventKind::ScrollUp => self.with_rows(state, cx, pane, |viewport, rows| viewport.scroll(rows, -WHEEL)),
            MouseEventKind::ScrollDown => self.with_rows(state, cx, pane, |viewport, rows| {
                // At the end the wheel goes on following.
                if viewport.follows() { viewport.follow() } else { viewport.scroll(rows, WHEEL) }
            }),
            MouseEventKind::Down(MouseButton::Left) => {
                self.focus = pane;
                self.viewports[pane as usize].click(mouse.column, mouse.row);
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// What can be done next, most important first.
    pub(super) fn next_steps(&self, cx: &Cx<'_>) -> Vec<Hint> {
        let Some(state) = cx.session(&self.session) else {
            return vec![hint(Action::Sessions, "sessions"), Action::Quit.into()];
        };
        if self.typing {
            return vec![hint(Action::Back, "end search")];
        }
        let mut all = Vec::new();
        if !self.search.is_empty() {
            all.extend(hints(&[Action::NextMatch, Action::PreviousMatch]));
            all.push(hint(Action::Back, "end search"));
        }
        if self.at_cycle.is_some() {
            all.push(Action::Back.into());
            all.extend(hints(&[Action::Open, Action::NextPane, Action::Zoom, Action::Search]));
            return all;
        }
        if !state.requests.open().is_empty() {
            all.push(Action::Requests.into());
        }
        let has_output = state.cycles.newest_output().is_some();
        if state.head.is_running() {
            all.extend(hints(&[Action::Stop, Action::Rewind, Action::Message]));
        } else {
            all.push(hint(Action::Message, "continue"));
            if has_output {
                all.push(Action::Apply.into());
            }
            all.push(Action::Rewind.into());
        }
        all.extend(hints(&[Action::Archive, Action::NextPane]));
        all.push(if self.zoomed { hint(Action::Zoom, "shrink") } else { Action::Zoom.into() });
        all.extend(hints(&[Action::Open, Action::Sessions, Action::Contract, Action::Search, Action::Palette]));
        all
    }
}
