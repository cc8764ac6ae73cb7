//! Writing to the Worker of a running session, seeing and changing what has not arrived yet, and
//! continuing a session that does not run.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::command::{Command, Deliver, Overrides};
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::state::message::Waiting;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::dialog::framed;
use crate::tui::widgets::editor::{Edited, Editor, Kind};
use crate::tui::widgets::list::{List, ListLook, Step};

/// Most waiting messages shown at once.
const MOST_WAITING: u16 = 5;

/// What the person writes.
pub struct Message {
    session: SessionId,
    editor: Editor,
    waiting: List,
    /// The list of waiting messages has the keys.
    choosing: bool,
    /// The waiting message that is being changed.
    editing: Option<String>,
    sending: bool,
    failed: Option<Problem>,
}

impl Message {
    /// A message for a session.
    pub fn new(session: SessionId) -> Self {
        let editor = Editor::new(Kind::Message, "");
        Self { session, editor, waiting: List::default(), choosing: false, editing: None, sending: false, failed: None }
    }

    fn draft(&self) -> String {
        format!("message {}", self.session)
    }

    fn running(&self, cx: &Cx<'_>) -> bool {
        cx.session(&self.session).is_some_and(|state| state.head.is_running())
    }

    fn queued<'a>(&self, cx: &'a Cx<'_>) -> &'a [Waiting] {
        cx.session(&self.session).map_or(&[], |state| state.messages.waiting())
    }

    fn submit(&mut self, deliver: Deliver, cx: &Cx<'_>, out: &mut Effects) {
        if self.sending {
            return;
        }
        let session = self.session.clone();
        let text = self.editor.text();
        let blank = self.editor.is_blank();
        self.failed = None;
        let command = match (&self.editing, self.running(cx)) {
            // An empty text withdraws the message.
            (Some(id), true) => {
                let text = if blank { String::new() } else { text };
                Command::EditMessage { session, message_id: id.clone(), text }
            }
            (None, true) if blank => return out.say("type a message first"),
            (None, true) => Command::Message { session, text, deliver },
            (_, false) => {
                let message = Some(text).filter(|_| !blank);
                Command::Resume { session, message, overrides: Box::new(Overrides::default()) }
            }
        };
        self.sending = true;
        out.command(command);
    }

    /// Takes the chosen waiting message into the editor.
    fn edit_chosen(&mut self, cx: &Cx<'_>) {
        let chosen = self.waiting.selected().and_then(|row| self.queued(cx).get(row));
        if let Some(waiting) = chosen {
            self.editing = Some(waiting.id.clone());
            self.editor.set_text(&waiting.text);
            self.choosing = false;
        }
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        match action {
            Action::Submit | Action::NextField if self.editor.is_completing() => {
                self.key(plain(KeyCode::Enter), cx, out);
            }
            Action::Back if self.editor.is_completing() => {
                self.key(plain(KeyCode::Esc), cx, out);
            }
            Action::Submit if self.choosing => self.edit_chosen(cx),
            Action::Submit => self.submit(Deliver::NextStep, cx, out),
            Action::SubmitLater if self.running(cx) => self.submit(Deliver::NextCycle, cx, out),
            Action::SubmitLater => self.submit(Deliver::NextStep, cx, out),
            Action::Newline => {
                self.editor.key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL));
            }
            Action::Editor => out.push(Effect::Edit { text: self.editor.text(), suffix: ".md" }),
            Action::NextField | Action::PreviousField => {
                self.choosing = !self.choosing && !self.queued(cx).is_empty();
            }
            Action::Back if self.choosing => self.choosing = false,
            Action::Back if self.editing.is_some() => {
                self.editing = None;
                self.editor.set_text("");
            }
            Action::Back => {
                out.push(Effect::Draft(self.draft(), self.editor.text()));
                out.close();
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        if self.choosing {
            match key.code {
                KeyCode::Up => self.waiting.step(Step::By(-1)),
                KeyCode::Down => self.waiting.step(Step::By(1)),
                _ => self.choosing = false,
            }
            if self.choosing {
                return Handled::Yes;
            }
        }
        let edited = self.editor.key(key);
        if let Some(prefix) = self.editor.wants_names() {
            let place = cx.session(&self.session).and_then(|state| state.head.place.as_ref());
            let dir = place.map_or_else(|| cx.launch_dir.to_path_buf(), |place| place.dir.clone());
            out.ask(Query::Names { dir, prefix });
        }
        match edited {
            Edited::Changed | Edited::Moved => Handled::Yes,
            Edited::Ignored => Handled::No,
        }
    }

    fn title(&self, cx: &Cx<'_>) -> &'static str {
        match (&self.editing, self.running(cx)) {
            (Some(_), _) => "Change the waiting message (empty withdraws it)",
            (None, true) => "Message to the Worker",
            (None, false) => "Continue this session",
        }
    }

    fn waiting_line(waiting: &Waiting, cx: &Cx<'_>) -> Line<'static> {
        let when = if waiting.next_cycle { "next cycle" } else { "next step" };
        let edited = if waiting.edited { ", changed" } else { "" };
        Line::from(vec![
            Span::styled(format!("{} {when}{edited}  ", cx.theme.glyph(Glyph::Waiting)), cx.theme[Slot::StatusWaiting]),
            Span::styled(sanitize_line(&waiting.text), cx.theme[Slot::Text]),
        ])
    }
}

impl View for Message {
    fn layer(&self) -> Layer {
        Layer::Message
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn shown(&mut self, cx: &Cx<'_>, _out: &mut Effects) {
        if let (true, Some(draft)) = (self.editor.is_blank(), cx.draft(&self.draft())) {
            self.editor.set_text(draft);
        }
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        self.waiting.set_len(self.queued(cx).len());
        match input {
            Input::Action(action) => self.act(action, cx, out),
            Input::Key(key) => self.key(key, cx, out),
            Input::Paste(text) => {
                self.editor.paste(&text);
                Handled::Yes
            }
            Input::Reply { query: Query::Names { prefix, .. }, result } => {
                if let Ok(Reply::Names(names)) = result {
                    self.editor.set_names(&prefix, names);
                }
                Handled::Yes
            }
            Input::Done {
                command: Command::Message { .. } | Command::EditMessage { .. } | Command::Resume { .. },
                result,
            } => {
                self.sending = false;
                match result {
                    Ok(_) => {
                        out.push(Effect::Draft(self.draft(), String::new()));
                        out.close();
                    }
                    // What was typed stays in the field.
                    Err(problem) => self.failed = Some(problem),
                }
                Handled::Yes
            }
            Input::Edited(result) => {
                match result {
                    Ok(text) => self.editor.set_text(text.trim_end_matches('\n')),
                    Err(problem) => out.problem(&problem),
                }
                Handled::Yes
            }
            Input::Mouse(_) | Input::Reply { .. } | Input::Done { .. } | Input::Tick => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let queued = self.queued(cx);
        self.waiting.set_len(queued.len());
        self.choosing &= !queued.is_empty();
        let listed = u16::try_from(queued.len()).unwrap_or(u16::MAX).min(MOST_WAITING);
        let failed = self.failed.as_ref().map(|problem| look::problem_lines(problem, cx.theme)).unwrap_or_default();
        let said = u16::try_from(failed.len()).unwrap_or(u16::MAX);
        let rows = u16::try_from(self.editor.height(area.width.saturating_sub(4))).unwrap_or(u16::MAX).clamp(3, 12);
        let height = rows.saturating_add(listed).saturating_add(said).saturating_add(2).min(area.height);
        // At the lower edge, so that what the Worker does stays in view.
        let (_, place) = look::split_bottom(area, height);
        let inner = framed(frame.buffer_mut(), place, self.title(cx), &look::dialog(cx.theme));
        let (top, rest) = look::split_top(inner, listed.min(inner.height.saturating_sub(1)));
        // Only while the list has the keys is one of its messages marked.
        let looks = if self.choosing { look::list(cx.theme, true) } else { ListLook::default() };
        self.waiting.draw(frame.buffer_mut(), top, 1, &looks, |row, _, _| {
            queued.get(row).map(|waiting| vec![Self::waiting_line(waiting, cx)]).unwrap_or_default()
        });
        let (field, below) = look::split_bottom(rest, said.min(rest.height.saturating_sub(1)));
        look::text(frame, below, &failed);
        self.editor.set_placeholder(if self.running(cx) {
            "it reads this at its next step"
        } else {
            "what to do next; empty goes on where it stopped"
        });
        let at = self.editor.draw(frame.buffer_mut(), field, area, &look::editor(cx.theme));
        if let (false, Some(at)) = (self.choosing, at) {
            frame.set_cursor_position(at);
        }
    }

    fn hints(&self, cx: &Cx<'_>) -> Vec<Hint> {
        let word = |action, word| Hint { action, word: Some(word) };
        if self.choosing {
            return vec![word(Action::Submit, "change it"), Action::Back.into()];
        }
        let mut list = match (&self.editing, self.running(cx)) {
            (Some(_), _) => vec![word(Action::Submit, "change it")],
            (None, true) => hints(&[Action::Submit, Action::SubmitLater]),
            (None, false) => vec![word(Action::Submit, "continue")],
        };
        list.push(Action::Newline.into());
        if !self.queued(cx).is_empty() {
            list.push(Action::NextField.into());
        }
        list.extend([Action::Editor.into(), Action::Back.into()]);
        list
    }
}

#[cfg(test)]
mod tests;
