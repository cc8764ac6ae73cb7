//! The rewind timeline: every message one can go back to, and beside it exactly what going there
//! would do. Nothing changes before Enter; abandoned branches stay reachable.

mod preview;
mod timeline;

use std::time::Duration;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyEvent, MouseButton, MouseEventKind};
use ratatui::layout::Rect;

use self::timeline::Row;
use crate::events::command::Command;
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply, RewindPreview, Timeline};
use crate::ids::{Seq, SessionId, TraceId};
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::reader::Reader;
use crate::tui::theme::Slot;
use crate::tui::widgets::editor::{Edited, Editor, Kind};
use crate::tui::widgets::list::{List, Step};

/// How long the cursor rests before its preview is asked for.
const DEBOUNCE: Duration = Duration::from_millis(120);

/// Where a rewind goes to.
type Target = (TraceId, Seq);

/// The rewind timeline.
pub struct Rewind {
    session: SessionId,
    timeline: Load<Timeline>,
    rows: Vec<Row>,
    list: List,
    branches: bool,
    preview: Load<Box<RewindPreview>>,
    /// What the preview is of, or will be.
    previewed: Option<Target>,
    /// When it is to be asked for.
    due: Option<Timestamp>,
    reader: Reader,
    /// The preview must be laid out anew.
    stale: bool,
    /// The preview has the keys.
    reading: bool,
    restore_files: bool,
    overwrite_changed: bool,
    instruction: Editor,
    typing: bool,
    sending: bool,
    list_area: Rect,
}

impl Rewind {
    /// The timeline of a session.
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            timeline: Load::Waiting,
            rows: Vec::new(),
            list: List::default(),
            branches: false,
            preview: Load::Waiting,
            previewed: None,
            due: None,
            reader: Reader::default(),
            stale: true,
            reading: false,
            restore_files: true,
            overwrite_changed: false,
            instruction: Editor::new(Kind::Message, "what to do differently (optional)"),
            typing: false,
            sending: false,
            list_area: Rect::default(),
        }
    }

    /// The message under the cursor.
    fn target(&self) -> Option<Target> {
        let timeline = self.timeline.ready()?;
        let row = self.rows.get(self.list.selected()?)?;
        let (trace, message) = row.message(timeline)?;
        Some((trace.trace.clone(), message.head.sequence))
    }

    fn set_rows(&mut self, kept: Option<&Target>) {
        let Some(timeline) = self.timeline.ready() else { return };
        self.rows = timeline::rows(timeline, self.branches);
        let at = |target: &Target| {
            self.rows.iter().position(|row| {
                row.message(timeline).is_some_and(|(trace, m)| (&trace.trace, m.head.sequence) == (&target.0, target.1))
            })
        };
        let place = kept.and_then(at).or_else(|| self.rows.iter().rposition(|row| row.message(timeline).is_some()));
        self.list.set_len(self.rows.len());
        self.list.select(place.unwrap_or(0));
    }

    fn step(&mut self, step: Step, cx: &Cx<'_>) {
        let before = self.list.cursor;
        self.list.step(step);
        // Headings are passed over, onwards first, then back.
        let down = self.list.cursor > before || step == Step::First;
        let is_message = |row: &Row| matches!(row, Row::Message { .. });
        let cursor = self.list.cursor;
        let onwards = if down {
            self.rows.iter().skip(cursor).position(is_message).map(|n| cursor + n)
        } else {
            self.rows.iter().take(cursor + 1).rposition(is_message)
        };
        let other = || {
            if down {
                self.rows.iter().take(cursor + 1).rposition(is_message)
            } else {
                self.rows.iter().position(is_message)
            }
        };
        if let Some(row) = onwards.or_else(other) {
            self.list.select(row);
        }
        if before == 1 && self.list.cursor == 1 && !down {
            // Shows the first heading again.
            self.list.wheel(-1);
        }
        self.want_preview(cx);
    }

    fn want_preview(&mut self, cx: &Cx<'_>) {
        let target = self.target();
        if target != self.previewed {
            self.previewed = target;
            self.preview = Load::Waiting;
            self.stale = true;
            self.due = Some(cx.now + DEBOUNCE);
        }
    }

    fn ask_preview(&mut self, out: &mut Effects) {
        self.due = None;
        if let Some((trace, to)) = self.previewed.clone() {
            out.ask(Query::RewindPreview { session: self.session.clone(), trace: Some(trace), to });
        }
    }

    fn rewind(&mut self, cx: &Cx<'_>, out: &mut Effects) {
        let Some((trace, to)) = self.target() else { return };
        if self.sending {
            return;
        }
        match &self.preview {
            Load::Waiting => return out.say("wait until it is known what this would do"),
            Load::Failed(problem) => return out.problem(problem),
            Load::Ready(preview) => {
                if let Some(why) = &preview.refused {
                    return out.warn(format!("this can't be done now: {why}"));
                }
            }
        }
        let message = Some(self.instruction.text()).filter(|_| !self.instruction.is_blank());
        self.sending = true;
        out.command(Command::Rewind {
            session: self.session.clone(),
            trace: Some(trace),
            to,
            restore_files: self.restore_files,
            overwrite_changed: self.restore_files && self.overwrite_changed,
            run: self.runs_on(cx),
            message,
            headless: false,
        });
    }

    /// Whether the session goes on by itself afterwards: when it runs now or was told something.
    fn runs_on(&self, cx: &Cx<'_>) -> bool {
        let running = cx.session(&self.session).is_some_and(|state| state.head.is_running());
        running || !self.instruction.is_blank()
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        if self.reading && self.reader.act(action) {
            return Handled::Yes;
        }
        match action {
            Action::Up => self.step(Step::By(-1), cx),
            Action::Down => self.step(Step::By(1), cx),
            Action::PageUp => self.step(Step::Page(-1), cx),
            Action::PageDown => self.step(Step::Page(1), cx),
            Action::Top => self.step(Step::First, cx),
            Action::Bottom => self.step(Step::Last, cx),
            Action::Left => self.reading = false,
            Action::Right => self.reading = true,
            Action::Switch => self.reading = !self.reading,
            Action::Confirm => self.rewind(cx, out),
            Action::RestoreFiles => {
                self.restore_files = !self.restore_files;
                self.stale = true;
            }
            Action::OverwriteChanged => {
                self.overwrite_changed = !self.overwrite_changed;
                self.stale = true;
            }
            Action::Instruction => self.typing = true,
            Action::Branches => {
                self.branches = !self.branches;
                let kept = self.target();
                self.set_rows(kept.as_ref());
                self.want_preview(cx);
            }
            Action::Back if self.reading => self.reading = false,
            Action::Back => out.close(),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn typed(&mut self, key: KeyEvent) -> Handled {
        self.stale = true;
        match self.instruction.key(key) {
            Edited::Changed | Edited::Moved => {}
            // Enter keeps what is typed; rewinding is one more Enter.
            Edited::Ignored if key.code == ratatui::crossterm::event::KeyCode::Enter => self.typing = false,
            Edited::Ignored => return Handled::No,
        }
        Handled::Yes
    }

    fn take_reply(&mut self, query: &Query, result: Result<Reply, Problem>, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match (query, result) {
            (Query::Timeline { .. }, Ok(Reply::Timeline(timeline))) => {
                let kept = self.target();
                self.timeline = Load::Ready(timeline);
                self.set_rows(kept.as_ref());
                self.want_preview(cx);
                self.ask_preview(out);
            }
            (Query::Timeline { .. }, Err(problem)) => self.timeline = Load::Failed(problem),
            (Query::RewindPreview { trace: Some(trace), to, .. }, result) => {
                // An answer for a row that the cursor has left is old.
                if self.previewed.as_ref() == Some(&(trace.clone(), *to)) {
                    self.preview = match result {
                        Ok(Reply::Rewind(preview)) => Load::Ready(preview),
                        Ok(_) => return Handled::No,
                        Err(problem) => Load::Failed(problem),
                    };
                    self.stale = true;
                    self.reader.scroll.show_start();
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw_timeline(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let title = if self.branches { "Timeline · abandoned branches shown" } else { "Timeline" };
        let inner = look::panel(frame, area, title, !self.reading && !self.typing, cx.theme);
        self.list_area = inner;
        let timeline = match &self.timeline {
            Load::Waiting => return look::notice(frame, inner, "reading the messages …", cx.theme),
            Load::Failed(problem) => return look::problem(frame, inner, problem, cx.theme),
            Load::Ready(timeline) => timeline,
        };
        if self.rows.is_empty() {
            return look::notice(frame, inner, "no messages yet; there is nothing to go back to", cx.theme);
        }
        let rows = &self.rows;
        let look = look::list(cx.theme, !self.reading && !self.typing);
        self.list.draw(frame.buffer_mut(), inner, 1, &look, |row, _, width| {
            rows.get(row).map(|row| vec![row.line(timeline, cx, width)]).unwrap_or_default()
        });
    }

    fn draw_preview(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let inner = look::inset(look::panel(frame, area, "What this does", self.reading, cx.theme));
        match &self.preview {
            Load::Waiting if self.previewed.is_none() => {}
            Load::Waiting => look::notice(frame, inner, "working it out …", cx.theme),
            Load::Failed(problem) => look::problem(frame, inner, problem, cx.theme),
            Load::Ready(preview) => {
                if self.stale {
                    let choice = preview::Choice {
                        restore_files: self.restore_files,
                        overwrite_changed: self.overwrite_changed,
                        instruction: self.instruction.text(),
                        runs_on: self.runs_on(cx),
                    };
                    self.reader.set(preview::lines(preview, &choice, cx, usize::from(inner.width)));
                    self.stale = false;
                }
                self.reader.draw(frame, inner, cx.theme);
            }
        }
    }

    fn draw_instruction(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let inner = look::inset(look::panel(frame, area, "New instruction", self.typing, cx.theme));
        let screen = frame.area();
        let at = self.instruction.draw(frame.buffer_mut(), inner, screen, &look::editor(cx.theme));
        if let (true, Some(at)) = (self.typing, at) {
            frame.set_cursor_position(at);
        }
    }
}

impl View for Rewind {
    fn layer(&self) -> Layer {
        Layer::Rewind
    }

    fn takes_text(&self) -> bool {
        self.typing
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn shown(&mut self, _cx: &Cx<'_>, out: &mut Effects) {
        out.ask(Query::Timeline { session: self.session.clone() });
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Back) if self.typing => {
                self.typing = false;
                Handled::Yes
            }
            Input::Action(action) if !self.typing => self.act(action, cx, out),
            Input::Key(key) if self.typing => self.typed(key),
            Input::Paste(text) if self.typing => {
                self.instruction.paste(&text);
                self.stale = true;
                Handled::Yes
            }
            Input::Mouse(event) => match event.kind {
                MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                    let rows = if event.kind == MouseEventKind::ScrollUp { -3 } else { 3 };
                    if self.list_area.contains((event.column, event.row).into()) {
                        self.list.wheel(rows);
                    } else {
                        self.reader.scroll.by(rows);
                    }
                    Handled::Yes
                }
                MouseEventKind::Down(MouseButton::Left) => {
                    let inside = self.list_area.contains((event.column, event.row).into());
                    self.reading = !inside;
                    let row = inside.then(|| self.list.row_at(event.row - self.list_area.y, 1)).flatten();
                    if let Some(row) = row.filter(|row| matches!(self.rows.get(*row), Some(Row::Message { .. }))) {
                        self.list.select(row);
                        self.want_preview(cx);
                    }
                    Handled::Yes
                }
                _ => Handled::No,
            },
            Input::Reply { query, result } => self.take_reply(&query, result, cx, out),
            Input::Done { command: Command::Rewind { .. }, result } => {
                self.sending = false;
                match result {
                    Ok(_) => {
                        out.say("rewound; what was left stays on its branch and can be rewound to");
                        out.close();
                    }
                    Err(problem) => out.problem(&problem),
                }
                Handled::Yes
            }
            Input::Tick => {
                if self.due.is_some_and(|due| due <= cx.now) {
                    self.ask_preview(out);
                }
                Handled::Yes
            }
            Input::Edited(result) => {
                match result {
                    Ok(text) => self.instruction.set_text(text.trim_end_matches('\n')),
                    Err(problem) => out.problem(&problem),
                }
                self.stale = true;
                Handled::Yes
            }
            Input::Action(Action::Editor) => {
                out.push(Effect::Edit { text: self.instruction.text(), suffix: ".md" });
                Handled::Yes
            }
            Input::Action(_) | Input::Key(_) | Input::Paste(_) | Input::Done { .. } => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        look::ground(frame, area, cx.theme);
        let shows_instruction = self.typing || !self.instruction.is_blank();
        let height = if shows_instruction { 5.min(area.height / 2).max(3) } else { 0 };
        let (main, below) = look::split_bottom(area, height);
        if main.width >= 80 {
            let (left, right) = look::split_left(main, main.width * 9 / 20);
            self.draw_timeline(frame, left, cx);
            self.draw_preview(frame, right, cx);
        } else if main.height >= 16 {
            let (top, bottom) = look::split_top(main, main.height / 2);
            self.draw_timeline(frame, top, cx);
            self.draw_preview(frame, bottom, cx);
        } else if self.reading {
            self.draw_preview(frame, main, cx);
        } else {
            self.draw_timeline(frame, main, cx);
        }
        if shows_instruction {
            self.draw_instruction(frame, below, cx);
        }
        if self.sending {
            let (line, _) = look::split_top(main, 1);
            frame.buffer_mut().set_stringn(
                line.x + 2,
                line.y,
                " rewinding … ",
                usize::from(line.width),
                cx.theme[Slot::Info],
            );
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        if self.typing {
            let back = Hint { action: Action::Back, word: Some("keep it and go back to the timeline") };
            return vec![back, Action::Editor.into()];
        }
        let mut list =
            hints(&[Action::Confirm, Action::RestoreFiles, Action::Instruction, Action::Branches, Action::Switch]);
        let changed = self.preview.ready().is_some_and(|preview| !preview.changed_by_person.is_empty());
        if changed {
            list.insert(2, Action::OverwriteChanged.into());
        }
        list.push(Hint { action: Action::Back, word: Some("leave everything as it is") });
        list
    }

    fn tick(&self, cx: &Cx<'_>) -> Option<Duration> {
        let due = self.due?;
        Some(Duration::from_millis(u64::try_from(due.as_millisecond() - cx.now.as_millisecond()).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
