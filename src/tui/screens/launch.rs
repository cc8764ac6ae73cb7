//! The launch form: what is to be done, how it is judged, where, by whom and within which limits.
//! Only the objective is required. What was typed stays until the session has started.

mod spec;

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::command::{Ack, Command, Where};
use crate::events::problem::Problem;
use crate::events::query::{LaunchDefaults, Query, Reply};
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, Screen, View, hints};
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::session::Session;
use crate::tui::theme::Slot;
use crate::tui::widgets::form::{Form, FormEvent};
use crate::tui::widgets::wrap::wrap_line;

/// Under this name what was typed is kept when the form is left.
const DRAFT: &str = "launch";

/// The launch form.
pub struct Launch {
    dir: PathBuf,
    form: Form,
    defaults: Load<Box<LaunchDefaults>>,
    /// The launch is on its way.
    sending: bool,
    /// Why it did not work.
    failed: Option<Problem>,
    /// Which field the person's editor has.
    edited: Option<usize>,
    /// The person's defaults are in the fields.
    preset: bool,
}

impl Launch {
    /// A form for a session launched from `dir`.
    pub fn new(dir: PathBuf, objective: String) -> Self {
        let mut form = Form::new(spec::fields());
        if !objective.is_empty() {
            form.set_text(spec::OBJECTIVE, &objective);
        }
        Self { dir, form, defaults: Load::Waiting, sending: false, failed: None, edited: None, preset: false }
    }

    fn submit(&mut self, out: &mut Effects) {
        if self.sending {
            return;
        }
        self.form.clear_errors();
        self.failed = None;
        let defaults = self.defaults.ready().map(Box::as_ref);
        match spec::read(&self.form, &self.dir, defaults) {
            Ok(spec) => {
                self.sending = true;
                out.command(Command::Launch(Box::new(spec)));
            }
            Err(errors) => {
                for (id, why) in errors {
                    self.form.set_error(id, why);
                }
                self.form.focus_first_error();
            }
        }
    }

    fn act(&mut self, action: Action, out: &mut Effects) -> Handled {
        match action {
            Action::Submit => self.submit(out),
            Action::Editor => self.open_editor(out),
            Action::NextField => self.key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE), out),
            Action::PreviousField => self.key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::NONE), out),
            Action::Back => {
                let completing = self.form.editor().is_some_and(|editor| editor.is_completing());
                if completing {
                    self.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), out);
                } else {
                    out.push(Effect::Draft(DRAFT.to_owned(), spec::keep(&self.form)));
                    out.close();
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn key(&mut self, key: KeyEvent, out: &mut Effects) {
        if self.form.key(key) == FormEvent::Changed {
            self.failed = None;
        }
        self.after_change(out);
    }

    /// What depends on what was typed: names to complete, what a choice means.
    fn after_change(&mut self, out: &mut Effects) {
        let dir = self.dir.clone();
        if let Some(prefix) = self.form.editor().and_then(|editor| editor.wants_names()) {
            out.ask(Query::Names { dir, prefix });
        }
        self.explain_place();
    }

    fn explain_place(&mut self) {
        let place = spec::place(&self.form);
        let defaults = self.defaults.ready().map(Box::as_ref);
        let hint = spec::place_hint(place, defaults);
        if let Some(field) = self.form.field_mut(spec::PLACE) {
            field.hint = hint;
        }
    }

    fn open_editor(&mut self, out: &mut Effects) {
        let focus = self.form.focus;
        match self.form.editor() {
            Some(editor) => {
                self.edited = Some(focus);
                out.push(Effect::Edit { text: editor.text(), suffix: ".md" });
            }
            None => out.say("this field has no text to edit"),
        }
    }

    fn take_edited(&mut self, result: Result<String, Problem>, out: &mut Effects) {
        let Some(index) = self.edited.take() else { return };
        match result {
            Ok(text) => {
                self.form.focus = index;
                if let Some(editor) = self.form.editor() {
                    editor.set_text(text.trim_end_matches('\n'));
                }
                self.after_change(out);
            }
            Err(problem) => out.problem(&problem),
        }
    }

    fn take_reply(&mut self, query: Query, result: Result<Reply, Problem>) -> Handled {
        match (query, result) {
            (Query::LaunchDefaults { .. }, Ok(Reply::Launch(defaults))) => {
                spec::offer(&mut self.form, &defaults);
                self.defaults = Load::Ready(defaults);
                self.explain_place();
            }
            (Query::LaunchDefaults { .. }, Err(problem)) => self.defaults = Load::Failed(problem),
            (Query::Names { prefix, .. }, Ok(Reply::Names(names))) => {
                if let Some(editor) = self.form.editor() {
                    editor.set_names(&prefix, names);
                }
            }
            // No names is no failure worth a word while one types.
            (Query::Names { .. }, Err(_)) => {}
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn take_done(&mut self, result: Result<Ack, Problem>, out: &mut Effects) {
        self.sending = false;
        match result {
            Ok(Ack::Launched { session }) => {
                out.push(Effect::Draft(DRAFT.to_owned(), String::new()));
                out.push(Effect::Replace(Screen::Session(Box::new(Session::new(session)))));
            }
            Ok(Ack::Done | Ack::Said { .. } | Ack::Wrote { .. }) => out.close(),
            Err(problem) => self.failed = Some(problem),
        }
    }

    /// The lines above the fields: the model and why, or what is in the way.
    fn head(&self, cx: &Cx<'_>) -> Vec<Line<'static>> {
        let theme = cx.theme;
        let mut lines = match &self.defaults {
            Load::Waiting => vec![Line::styled("looking for a model …", theme[Slot::TextDim])],
            Load::Failed(problem) => look::problem_lines(problem, theme),
            Load::Ready(defaults) => match &defaults.model {
                Ok(choice) => vec![Line::from(vec![
                    Span::styled("Model  ", theme[Slot::TextDim]),
                    Span::styled(sanitize_line(&choice.model), theme[Slot::TextStrong]),
                    Span::styled(format!("  {}", sanitize_line(&choice.reason)), theme[Slot::TextDim]),
                ])],
                Err(problem) => look::problem_lines(problem, theme),
            },
        };
        if let Some(problem) = &self.failed {
            lines.extend(look::problem_lines(problem, theme));
        }
        if self.sending {
            lines.push(Line::styled("launching …", theme[Slot::Info]));
        }
        lines
    }
}

impl View for Launch {
    fn layer(&self) -> Layer {
        Layer::Launch
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn shown(&mut self, cx: &Cx<'_>, out: &mut Effects) {
        if !std::mem::replace(&mut self.preset, true) {
            spec::preset(&mut self.form, cx.config);
        }
        if self.form.text(spec::OBJECTIVE).is_empty()
            && let Some(draft) = cx.draft(DRAFT)
        {
            spec::bring_back(&mut self.form, draft);
        }
        out.ask(Query::LaunchDefaults { dir: self.dir.clone() });
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(action) => return self.act(action, out),
            Input::Key(key) => self.key(key, out),
            Input::Paste(text) => {
                self.form.paste(&text);
                self.after_change(out);
            }
            Input::Mouse(event) => match event.kind {
                MouseEventKind::ScrollUp => self.form.wheel(-3),
                MouseEventKind::ScrollDown => self.form.wheel(3),
                MouseEventKind::Down(MouseButton::Left) => {
                    self.form.click((event.column, event.row).into());
                }
                _ => return Handled::No,
            },
            Input::Reply { query, result } => return self.take_reply(query, result),
            Input::Done { command: Command::Launch(_), result } => self.take_done(result, out),
            Input::Edited(result) => self.take_edited(result, out),
            Input::Done { .. } | Input::Tick => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        look::ground(frame, area, cx.theme);
        let inner = look::inset(look::panel(frame, area, "New session", true, cx.theme));
        let width = usize::from(inner.width);
        let head: Vec<Line<'static>> = self.head(cx).iter().flat_map(|line| wrap_line(line, width, 2)).collect();
        // The fields keep at least half of a low screen.
        let height = u16::try_from(head.len()).unwrap_or(u16::MAX).min(inner.height / 2);
        let (top, rest) = look::split_top(inner, height);
        look::text(frame, top, &head);
        let gap = u16::from(rest.height > 12);
        let (_, fields) = look::split_top(rest, gap);
        let screen = frame.area();
        if let Some(at) = self.form.draw(frame.buffer_mut(), fields, screen, &look::form(cx.theme)) {
            frame.set_cursor_position(at);
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Submit, Action::NextField, Action::Editor, Action::Back])
    }
}

/// What `where` shows as its choices, in their order.
pub(super) const PLACES: [Where; 4] = [Where::Auto, Where::Scratch, Where::InPlace, Where::Worktree];

#[cfg(test)]
mod tests;
