//! What waits for the person: a tool that needs consent, shown exactly as it would run, or a
//! question of an agent. Closing it answers nothing; the session goes on waiting.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::command::Command;
use crate::events::data::{Permission, Role};
use crate::events::problem::Problem;
use crate::ids::SessionId;
use crate::stdx::text::{sanitize, sanitize_line};
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::screens::reader::Reader;
use crate::tui::state::request::{Pending, Wanted};
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::time;
use crate::tui::widgets::dialog::framed;
use crate::tui::widgets::diff;
use crate::tui::widgets::editor::{Edited, Editor, Kind};
use crate::tui::widgets::list::{List, Step};

/// A request and the person's answer to it.
pub struct Request {
    session: SessionId,
    request: String,
    reader: Reader,
    /// The reader holds this request.
    read: bool,
    /// The answers offered to a question.
    options: List,
    /// A reason for refusing, or an answer in own words.
    editor: Editor,
    typing: bool,
    sending: bool,
    failed: Option<Problem>,
}

impl Request {
    /// A request of a session.
    pub fn new(session: SessionId, request: String) -> Self {
        Self {
            session,
            request,
            reader: Reader::default(),
            read: false,
            options: List::default(),
            editor: Editor::new(Kind::Message, ""),
            typing: false,
            sending: false,
            failed: None,
        }
    }

    fn pending<'a>(&self, cx: &'a Cx<'_>) -> Option<&'a Pending> {
        cx.session(&self.session)?.requests.get(&self.request)
    }

    fn is_question(&self, cx: &Cx<'_>) -> bool {
        self.pending(cx).is_some_and(|pending| matches!(pending.wanted, Wanted::Answer { .. }))
    }

    fn permit(&mut self, answer: Permission, out: &mut Effects) {
        if !self.sending {
            self.sending = true;
            self.failed = None;
            out.command(Command::Permit { session: self.session.clone(), request_id: self.request.clone(), answer });
        }
    }

    fn answer(&mut self, answer: String, out: &mut Effects) {
        if !self.sending {
            self.sending = true;
            self.failed = None;
            out.command(Command::Answer { session: self.session.clone(), question_id: self.request.clone(), answer });
        }
    }

    /// Enter: hands in what is typed or chosen.
    fn hand_in(&mut self, cx: &Cx<'_>, out: &mut Effects) {
        let Some(pending) = self.pending(cx) else { return };
        match &pending.wanted {
            Wanted::Permission { .. } if self.typing => {
                let reason = self.editor.text().trim().to_owned();
                let reason = if reason.is_empty() { "the person refused it".to_owned() } else { reason };
                self.permit(Permission::Refuse { reason }, out);
            }
            // Nothing is allowed by an Enter meant for something else.
            Wanted::Permission { .. } => out.say("press the key of one of the answers below"),
            Wanted::Answer { options, .. } => {
                let typed = self.editor.text().trim().to_owned();
                match (typed.is_empty(), self.options.selected().and_then(|row| options.get(row))) {
                    (false, _) => self.answer(typed, out),
                    (true, Some(option)) => self.answer(option.clone(), out),
                    (true, None) => out.say("type an answer first"),
                }
            }
        }
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let question = self.is_question(cx);
        match action {
            Action::Confirm => self.hand_in(cx, out),
            Action::AllowOnce if !question => self.permit(Permission::AllowOnce, out),
            Action::AllowSession if !question => self.permit(Permission::AllowSession, out),
            Action::Refuse if !question => self.typing = true,
            Action::Back if self.typing && !question => self.typing = false,
            Action::Back => out.close(),
            _ if self.reader.act(action) => {}
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        use ratatui::crossterm::event::KeyCode;
        let question = self.is_question(cx);
        match (key.code, self.editor.key(key)) {
            (_, Edited::Changed | Edited::Moved) => Handled::Yes,
            (KeyCode::Enter, Edited::Ignored) => {
                self.hand_in(cx, out);
                Handled::Yes
            }
            (KeyCode::Up, Edited::Ignored) if question => {
                self.options.step(Step::By(-1));
                Handled::Yes
            }
            (KeyCode::Down, Edited::Ignored) if question => {
                self.options.step(Step::By(1));
                Handled::Yes
            }
            (_, Edited::Ignored) => Handled::No,
        }
    }

    fn fill(&mut self, pending: &Pending, cx: &Cx<'_>, width: usize) {
        if self.read {
            return;
        }
        self.read = true;
        self.reader.set(match &pending.wanted {
            Wanted::Permission { role, tool, arguments } => permission_lines(*role, tool, arguments, cx.theme, width),
            Wanted::Answer { question, .. } => {
                sanitize(question).lines().map(|line| Line::styled(line.to_owned(), cx.theme[Slot::Text])).collect()
            }
        });
    }
}

/// Who wants to run which tool with what: a command as it would be typed, an edit as a diff, other
/// arguments one by one.
fn permission_lines(role: Role, tool: &str, arguments: &str, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let (who, slot) = match role {
        Role::Worker => ("The Worker", Slot::RoleWorker),
        Role::Checker => ("The Checker", Slot::RoleChecker),
    };
    let mut lines = vec![
        Line::from(vec![
            Span::styled(who, theme[slot]),
            Span::styled(" wants to use ", theme[Slot::Text]),
            Span::styled(sanitize_line(tool), theme[Slot::Tool]),
        ]),
        Line::default(),
    ];
    if has_hidden(arguments) {
        let mark = theme.glyph(Glyph::Warning);
        lines.push(Line::styled(format!("{mark} control characters in it are not shown"), theme[Slot::Warning]));
    }
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments);
    let Ok(arguments) = parsed else {
        lines.extend(sanitize(arguments).lines().map(|line| Line::styled(line.to_owned(), theme[Slot::TextCode])));
        return lines;
    };
    for (name, value) in &arguments {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let removed = name.starts_with("old");
        let added = name.starts_with("new") || name == "content";
        if name.contains("diff") || name.contains("patch") {
            lines.push(Line::styled(sanitize_line(name), theme[Slot::TextDim]));
            lines.extend(diff::lines(&text, &look::diff(theme), width));
        } else if name == "command" || removed || added || text.contains('\n') {
            lines.push(Line::styled(sanitize_line(name), theme[Slot::TextDim]));
            let (sign, slot) = match (name.as_str(), removed, added) {
                ("command", ..) => ("$ ", Slot::TextStrong),
                (_, true, _) => ("- ", Slot::DiffRemove),
                (_, _, true) => ("+ ", Slot::DiffAdd),
                _ => ("  ", Slot::TextCode),
            };
            lines.extend(sanitize(&text).lines().map(|line| Line::styled(format!("{sign}{line}"), theme[slot])));
        } else {
            lines.push(Line::from(vec![
                Span::styled(format!("{}  ", sanitize_line(name)), theme[Slot::TextDim]),
                Span::styled(sanitize_line(&text), theme[Slot::TextCode]),
            ]));
        }
    }
    lines
}

/// Whether anything of the arguments is left out when they are shown: what hides from the eye must
/// not hide from the decision.
fn has_hidden(arguments: &str) -> bool {
    let hides = |text: &str| {
        let shown = sanitize(text);
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        letters(&shown) != letters(text)
    };
    fn any(value: &serde_json::Value, hides: &impl Fn(&str) -> bool) -> bool {
        match value {
            serde_json::Value::String(text) => hides(text),
            serde_json::Value::Array(list) => list.iter().any(|value| any(value, hides)),
            serde_json::Value::Object(map) => map.iter().any(|(name, value)| hides(name) || any(value, hides)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => false,
        }
    }
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(value) => any(&value, &hides),
        Err(_) => hides(arguments),
    }
}

impl View for Request {
    fn layer(&self) -> Layer {
        Layer::Request
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn takes_text(&self) -> bool {
        self.typing
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn shown(&mut self, cx: &Cx<'_>, _out: &mut Effects) {
        self.typing = self.is_question(cx);
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        if let Some(Pending { wanted: Wanted::Answer { options, .. }, .. }) = self.pending(cx) {
            self.options.set_len(options.len());
            self.typing = true;
        }
        match input {
            Input::Action(action) => self.act(action, cx, out),
            Input::Key(key) if self.typing => self.key(key, cx, out),
            Input::Paste(text) if self.typing => {
                self.editor.paste(&text);
                Handled::Yes
            }
            Input::Done { command: Command::Permit { .. } | Command::Answer { .. }, result } => {
                self.sending = false;
                match result {
                    Ok(_) => out.close(),
                    // What was typed stays.
                    Err(problem) => self.failed = Some(problem),
                }
                Handled::Yes
            }
            Input::Key(_)
            | Input::Paste(_)
            | Input::Mouse(_)
            | Input::Reply { .. }
            | Input::Done { .. }
            | Input::Edited(_)
            | Input::Tick => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let width = area.width.saturating_sub(4).min(100);
        let Some(pending) = self.pending(cx) else {
            let inner = look::overlay(frame, area, (50, 4), "Answered", cx.theme);
            let words = "this was answered, or the session no longer waits for it; Esc closes";
            return look::text(frame, inner, &[Line::styled(words, cx.theme[Slot::TextDim])]);
        };
        self.fill(pending, cx, usize::from(width.saturating_sub(4)));
        if let Wanted::Answer { options, .. } = &pending.wanted {
            self.options.set_len(options.len());
            self.typing = true;
        }
        let options = match &pending.wanted {
            Wanted::Permission { .. } => &[][..],
            Wanted::Answer { options, .. } => options.as_slice(),
        };
        let failed = self.failed.as_ref().map(|problem| look::problem_lines(problem, cx.theme)).unwrap_or_default();
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let lower =
            count(options.len()).saturating_add(count(failed.len())).saturating_add(if self.typing { 4 } else { 0 });
        let lines = self.reader.height(width.saturating_sub(4)).max(2).saturating_add(1);
        let height = lines.saturating_add(lower).saturating_add(2).min(area.height);
        let wanted = if matches!(pending.wanted, Wanted::Answer { .. }) { "Question" } else { "Permission" };
        let others = cx.session(&self.session).map_or(0, |state| state.requests.open().len().saturating_sub(1));
        let others = if others > 0 { format!(" · {others} more after it") } else { String::new() };
        let title = format!("{wanted} · waits since {}{others}", time::of_day(pending.at, cx.zone));
        let place = crate::tui::widgets::dialog::centred(area, width, height);
        let inner = framed(frame.buffer_mut(), place, &title, &look::dialog(cx.theme));
        // What is asked keeps at least half of the box.
        let (top, rest) = look::split_bottom(inner, lower.min(inner.height / 2));
        self.reader.draw(frame, top, cx.theme);
        let (list, rest) = look::split_top(rest, count(options.len()).min(rest.height.saturating_sub(2)));
        self.options.draw(frame.buffer_mut(), list, 1, &look::list(cx.theme, true), |row, _, _| {
            let text = options.get(row).map(|option| sanitize_line(option)).unwrap_or_default();
            vec![Line::styled(text, cx.theme[Slot::Text])]
        });
        let (rest, said) = look::split_bottom(rest, count(failed.len()));
        look::text(frame, said, &failed);
        if self.typing {
            let (label, field) = look::split_top(rest, u16::from(rest.height > 1));
            let words = if options.is_empty() && wanted == "Permission" {
                "Why not? It is told to the model."
            } else {
                "Your answer"
            };
            let glyph = cx.theme.glyph(Glyph::Person);
            look::text(frame, label, &[Line::styled(format!("{glyph} {words}"), cx.theme[Slot::TitleFocus])]);
            if let Some(at) = self.editor.draw(frame.buffer_mut(), field, area, &look::editor(cx.theme)) {
                frame.set_cursor_position(at);
            }
        }
    }

    fn hints(&self, cx: &Cx<'_>) -> Vec<Hint> {
        let word = |action, word| Hint { action, word: Some(word) };
        if self.pending(cx).is_none() {
            return hints(&[Action::Back]);
        }
        match (self.is_question(cx), self.typing) {
            (true, _) => vec![word(Action::Confirm, "answer"), word(Action::Back, "later")],
            (false, true) => vec![word(Action::Confirm, "refuse with this reason"), Action::Back.into()],
            (false, false) => {
                let mut list = hints(&[Action::AllowOnce, Action::AllowSession, Action::Refuse]);
                list.push(word(Action::Back, "later"));
                list
            }
        }
    }
}

#[cfg(test)]
mod tests;
