//! Contract and limits of a session, to be changed by the person. A change counts from the next
//! cycle; it is never made by a model.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::Rect;

use crate::events::command::Command;
use crate::events::data::{Budget, Contract as Terms};
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::fields::{self, CYCLES, FieldReader, MONEY, TIME, TOKENS};
use crate::tui::screens::look;
use crate::tui::widgets::form::{Field, Form};

const OBJECTIVE: &str = "objective";
const EXPECTED: &str = "expected";
const INPUTS: &str = "inputs";
const CHECKS: &str = "checks";
const PROTECTED: &str = "protected";

/// The contract of a session.
pub struct Contract {
    session: SessionId,
    form: Option<Form>,
    edited: Option<usize>,
    sending: bool,
    failed: Option<Problem>,
}

impl Contract {
    /// The contract of a session.
    pub fn new(session: SessionId) -> Self {
        Self { session, form: None, edited: None, sending: false, failed: None }
    }

    /// Fills the form once the session is known; later changes of others don't take away what is
    /// being typed.
    fn fill(&mut self, cx: &Cx<'_>) {
        if self.form.is_some() {
            return;
        }
        if let Some(state) = cx.session(&self.session) {
            self.form = Some(filled(&state.head.contract, state.head.max_cycles, &state.head.budget));
        }
    }

    fn submit(&mut self, out: &mut Effects) {
        let Some(form) = &mut self.form else { return };
        if self.sending {
            return;
        }
        form.clear_errors();
        self.failed = None;
        match read(form) {
            Ok((contract, max_cycles, budget)) => {
                self.sending = true;
                let session = self.session.clone();
                out.command(Command::SetContract { session, contract: Box::new(contract), max_cycles, budget });
            }
            Err(errors) => {
                for (id, why) in errors {
                    form.set_error(id, why);
                }
                form.focus_first_error();
            }
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>, out: &mut Effects) {
        let Some(form) = &mut self.form else { return };
        form.key(key);
        if let Some(prefix) = form.editor().and_then(|editor| editor.wants_names()) {
            let place = cx.session(&self.session).and_then(|state| state.head.place.as_ref());
            let dir = place.map_or_else(|| cx.launch_dir.to_path_buf(), |place| place.dir.clone());
            out.ask(Query::Names { dir, prefix });
        }
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let completing = self.form.as_mut().and_then(Form::editor).is_some_and(|editor| editor.is_completing());
        match action {
            Action::Submit => self.submit(out),
            Action::NextField => self.key(plain(KeyCode::Tab), cx, out),
            Action::PreviousField => self.key(plain(KeyCode::BackTab), cx, out),
            Action::Editor => {
                let Some(form) = &mut self.form else { return Handled::Yes };
                let focus = form.focus;
                if let Some(editor) = form.editor() {
                    self.edited = Some(focus);
                    out.push(Effect::Edit { text: editor.text(), suffix: ".md" });
                }
            }
            Action::Back if completing => self.key(plain(KeyCode::Esc), cx, out),
            Action::Back => out.close(),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn take_edited(&mut self, result: Result<String, Problem>, out: &mut Effects) {
        match (self.edited.take(), &mut self.form, result) {
            (Some(index), Some(form), Ok(text)) => {
                form.focus = index;
                if let Some(editor) = form.editor() {
                    editor.set_text(text.trim_end_matches('\n'));
                }
            }
            (_, _, Err(problem)) => out.problem(&problem),
            _ => {}
        }
    }
}

fn filled(contract: &Terms, max_cycles: u32, budget: &Budget) -> Form {
    let mut list = vec![
        Field::text(OBJECTIVE, "Objective", "what is to be done", "what the Worker is asked to do", 8),
        Field::text(EXPECTED, "Expected outcome", "what the result must be", "text, or an object in JSON", 5),
        Field::text(CHECKS, "Acceptance", "commands that must succeed", "one command a line", 4),
        Field::text(PROTECTED, "Protected", "files that must stay as they are", "one path a line", 4),
    ];
    list.extend(fields::limits(max_cycles));
    list.push(Field::text(INPUTS, "Inputs", "{}", "values for the task as a JSON object", 4));
    let mut form = Form::new(list);
    let mut set = |id: &str, text: &str| {
        if !text.is_empty() {
            form.set_text(id, text);
        }
    };
    set(OBJECTIVE, &contract.objective);
    set(EXPECTED, &fields::expected_text(contract.expected_output.as_ref()));
    set(CHECKS, &contract.checks.join("\n"));
    set(PROTECTED, &contract.protected.join("\n"));
    set(CYCLES, &max_cycles.to_string());
    set(TOKENS, &budget.tokens.map(|n| n.to_string()).unwrap_or_default());
    set(MONEY, &budget.usd.map(|usd| usd.to_string()).unwrap_or_default());
    set(TIME, &budget.time_ms.map(fields::time_text).unwrap_or_default());
    if !contract.inputs.is_empty() {
        set(INPUTS, &serde_json::to_string_pretty(&contract.inputs).unwrap_or_default());
    }
    form
}

type Read = Result<(Terms, u32, Budget), Vec<(&'static str, String)>>;

fn read(form: &Form) -> Read {
    let mut reader = FieldReader::new(form);
    let objective = form.text(OBJECTIVE).trim().to_owned();
    if objective.is_empty() {
        reader.errors.push((OBJECTIVE, "a session needs an objective".to_owned()));
    }
    let contract = Terms {
        objective,
        expected_output: reader.read(EXPECTED, fields::expected),
        inputs: reader.read(INPUTS, fields::inputs).unwrap_or_default(),
        checks: reader.lines(CHECKS),
        protected: reader.lines(PROTECTED),
    };
    let cycles = reader.read(CYCLES, fields::cycles);
    if form.text(CYCLES).trim().is_empty() {
        reader.errors.push((CYCLES, "say how many cycles there may be; at least 1".to_owned()));
    }
    let budget = reader.budget();
    match cycles {
        Some(cycles) if reader.errors.is_empty() => Ok((contract, cycles, budget)),
        Some(_) | None => Err(reader.errors),
    }
}

impl View for Contract {
    fn layer(&self) -> Layer {
        Layer::Contract
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        self.fill(cx);
        match input {
            Input::Action(action) => return self.act(action, cx, out),
            Input::Key(key) => self.key(key, cx, out),
            Input::Paste(text) => {
                if let Some(form) = &mut self.form {
                    form.paste(&text);
                }
            }
            Input::Mouse(event) => match (&mut self.form, event.kind) {
                (Some(form), MouseEventKind::ScrollUp) => form.wheel(-3),
                (Some(form), MouseEventKind::ScrollDown) => form.wheel(3),
                (Some(form), MouseEventKind::Down(MouseButton::Left)) => {
                    form.click((event.column, event.row).into());
                }
                _ => return Handled::No,
            },
            Input::Reply { query: Query::Names { prefix, .. }, result } => {
                if let (Ok(Reply::Names(names)), Some(editor)) = (result, self.form.as_mut().and_then(Form::editor)) {
                    editor.set_names(&prefix, names);
                }
            }
            Input::Done { command: Command::SetContract { .. }, result } => {
                self.sending = false;
                match result {
                    Ok(_) => {
                        out.say("saved; it counts from the next cycle");
                        out.close();
                    }
                    Err(problem) => self.failed = Some(problem),
                }
            }
            Input::Edited(result) => self.take_edited(result, out),
            Input::Reply { .. } | Input::Done { .. } | Input::Tick => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        self.fill(cx);
        look::ground(frame, area, cx.theme);
        let inner =
            look::inset(look::panel(frame, area, "Contract and limits · from the next cycle on", true, cx.theme));
        let Some(form) = &mut self.form else {
            return match cx.sessions.trouble(&self.session) {
                Some(problem) => look::problem(frame, inner, problem, cx.theme),
                None => look::notice(frame, inner, "reading the session …", cx.theme),
            };
        };
        let failed = self.failed.as_ref().map(|problem| look::problem_lines(problem, cx.theme)).unwrap_or_default();
        let height = u16::try_from(failed.len()).unwrap_or(u16::MAX).min(inner.height / 3);
        let (top, rest) = look::split_top(inner, height);
        look::text(frame, top, &failed);
        let screen = frame.area();
        if let Some(at) = form.draw(frame.buffer_mut(), rest, screen, &look::form(cx.theme)) {
            frame.set_cursor_position(at);
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Submit, Action::NextField, Action::Editor, Action::Back])
    }
}

#[cfg(test)]
mod tests;
