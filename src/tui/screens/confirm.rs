//! A yes or no before something that can't be taken back lightly. No is under the cursor first.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::events::command::Command;
use crate::events::query::SessionSummary;
use crate::stdx::text::{sanitize, sanitize_line};
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::widgets::dialog::{Choice, Dialog};

/// Which choice is yes.
const YES: usize = 1;

/// A question with what its yes does.
pub struct Confirm {
    dialog: Dialog,
    /// What yes does; taken when it is said.
    effects: Vec<Effect>,
    /// The answer to a command is on its way.
    waiting: bool,
    area: Rect,
}

impl Confirm {
    /// A question. Yes closes it and does `effects`.
    pub fn new(title: String, text: String, effects: Vec<Effect>) -> Self {
        Self::worded(&title, &text, "yes", effects)
    }

    fn worded(title: &str, text: &str, yes: &str, effects: Vec<Effect>) -> Self {
        let body = sanitize(text).lines().map(|line| Line::raw(line.to_owned())).collect();
        let choices = vec![Choice::new('n', "cancel"), Choice::new('y', yes)];
        Self {
            dialog: Dialog::new(sanitize_line(title), body, choices),
            effects,
            waiting: false,
            area: Rect::default(),
        }
    }

    /// Asks before the program is left while sessions run.
    pub fn leave(running: usize) -> Self {
        let title =
            if running == 1 { "A session is running".to_owned() } else { format!("{running} sessions are running") };
        let text = "What runs is stopped first. It can be continued later, from where it stopped.";
        Self::worded(
            &title,
            text,
            if running == 1 { "stop it and leave" } else { "stop them and leave" },
            vec![Effect::Leave],
        )
    }

    /// Asks before a session is deleted.
    pub fn delete(session: &SessionSummary) -> Self {
        let text = format!(
            "{}\n\nIts messages, snapshots and outputs are deleted from\n{}\nThis can't be undone. `x` in the list writes everything into one archive first.",
            session.objective,
            session.home.display(),
        );
        let effects = vec![Effect::Command(Command::Remove { session: session.id.clone() })];
        Self::worded(&format!("Delete `{}`?", session.name), &text, "delete", effects)
    }

    /// Asks before a deliverable is applied although something speaks against it.
    pub fn apply_anyway(why: &str, command: Command) -> Self {
        Self::worded(
            "Apply anyway?",
            &format!("{why}\n\nFiles changed at the target are never overwritten."),
            "apply",
            vec![Effect::Command(command)],
        )
    }

    fn answer(&mut self, choice: usize, out: &mut Effects) {
        if self.waiting {
            return;
        }
        let effects = std::mem::take(&mut self.effects);
        // A command's answer comes here, so the question stays until it is there; what lies below
        // is shown anew afterwards and reads what has become of it.
        self.waiting = choice == YES && effects.iter().any(|effect| matches!(effect, Effect::Command(_)));
        if !self.waiting {
            out.close();
        }
        if choice == YES {
            effects.into_iter().for_each(|effect| out.push(effect));
        }
    }
}

impl View for Confirm {
    fn layer(&self) -> Layer {
        Layer::Confirm
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let arrow = |code| KeyEvent::new(code, KeyModifiers::NONE);
        match input {
            Input::Action(Action::Confirm) => self.answer(YES, out),
            Input::Action(Action::Open) => self.answer(self.dialog.selected, out),
            Input::Action(Action::Cancel | Action::Back) => out.close(),
            Input::Action(Action::Left) => {
                self.dialog.key(arrow(KeyCode::Left));
            }
            Input::Action(Action::Right) => {
                self.dialog.key(arrow(KeyCode::Right));
            }
            Input::Action(Action::Up) => self.dialog.wheel(-1),
            Input::Action(Action::Down) => self.dialog.wheel(1),
            Input::Mouse(event) if event.kind == MouseEventKind::Down(MouseButton::Left) => {
                if let Some(choice) = self.dialog.choice_at(self.area, (event.column, event.row).into()) {
                    self.answer(choice, out);
                }
            }
            // What came of it is said by whoever shows toasts.
            Input::Done { .. } => {
                out.close();
                return Handled::No;
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        self.area = area;
        self.dialog.draw(frame.buffer_mut(), area, &look::dialog(cx.theme));
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Confirm, Action::Cancel, Action::Open, Action::Back])
    }
}
