//! Keys become actions; actions go to the top screen first, then to what holds everywhere.

use std::time::Duration;

use ratatui::crossterm::event::KeyEvent;

use super::{Ui, Work};
use crate::events::command::Command;
use crate::tui::action::{Action, Layer};
use crate::tui::chord::Chord;
use crate::tui::screen::{Handled, Input, Level, Screen, Sight};
use crate::tui::screens::confirm::Confirm;
use crate::tui::screens::help::Help;
use crate::tui::screens::launch::Launch;
use crate::tui::screens::palette::Palette;
use crate::tui::screens::themes::ThemeChooser;
use crate::tui::time;

/// Within this time a second Ctrl+C leaves.
const INTERRUPT_TWICE: Duration = Duration::from_secs(2);

impl Ui {
    pub(super) fn key(&mut self, key: KeyEvent) {
        let chord = Chord::of(&key);
        let view = self.open[self.top()].screen.view();
        let (layer, mode) = (view.layer(), view.mode());
        let is_form = !layer.behind().contains(&Layer::Move);
        let keymap = &self.shared.keymap;
        let action = if !view.takes_text() {
            keymap.action(mode, layer, chord)
        } else if chord.is_text() || (chord.is_editing() && !is_form) {
            None
        } else if chord.is_editing() {
            keymap.of(layer).find(|b| b.keys.contains(&chord)).map(|b| b.action)
        } else {
            keymap.action(mode, layer, chord)
        };
        match action {
            Some(action) => self.act(action),
            None => {
                self.deliver(self.top(), Input::Key(key));
            }
        }
    }

    /// Does an action: the top screen first, then what holds everywhere.
    pub(super) fn act(&mut self, action: Action) {
        if self.deliver(self.top(), Input::Action(action)) == Handled::Yes {
            return;
        }
        let layer = self.open[self.top()].screen.view().layer();
        match action {
            Action::Back if !self.toasts.is_empty() => self.toasts.clear(),
            Action::Back if self.open.len() > 1 => self.close(self.open[self.top()].id),
            Action::Help if layer != Layer::Help => self.push(Screen::Help(Box::new(Help::new(layer)))),
            Action::Palette if layer != Layer::Palette => self.push(Screen::Palette(Box::new(Palette::new(layer)))),
            Action::Themes if layer != Layer::Themes => {
                let now = self.shared.theme.name.clone();
                self.push(Screen::Themes(Box::new(ThemeChooser::new(now))));
            }
            Action::Log if layer != Layer::Log => self.push(Screen::Log(Box::default())),
            Action::Launch => {
                let dir = self.shared.launch_dir.clone();
                self.push(Screen::Launch(Box::new(Launch::new(dir, String::new()))));
            }
            Action::Quit => self.quit(),
            Action::Interrupt => self.interrupt(),
            Action::Suspend => self.work.push(Work::Suspend),
            Action::Redraw => self.work.push(Work::Redraw),
            Action::Mouse => self.toggle_mouse(),
            _ => {}
        }
    }

    fn toggle_mouse(&mut self) {
        self.mouse = !self.mouse;
        self.work.push(Work::Mouse(self.mouse));
        let layer = self.open[self.top()].screen.view().layer();
        let key = self.shared.keymap.key(layer, Action::Mouse).unwrap_or_default();
        let words = if self.mouse {
            "the mouse scrolls and selects here".to_owned()
        } else {
            format!("the mouse is the terminal's now: drag to select text; {key} takes it back")
        };
        self.toast(Level::Info, words);
    }

    /// Stops what runs in the session at hand; a second time within two seconds leaves.
    fn interrupt(&mut self) {
        let now = self.shared.now;
        let again = self.interrupted.is_some_and(|at| time::between(at, now) <= INTERRUPT_TWICE.as_millis() as u64);
        if again {
            self.work.push(Work::Leave);
            return;
        }
        self.interrupted = Some(now);
        let place = self.open.iter().rposition(|o| o.screen.view().session().is_some());
        let running = place.and_then(|place| {
            let session = self.open[place].screen.view().session()?.clone();
            self.shared.book.state(&session)?.head.is_running().then_some((self.open[place].id, session))
        });
        match running {
            Some((view, session)) => {
                self.work.push(Work::Command { view, command: Command::Stop { session } });
                self.toast(Level::Warning, "stopping the session; Ctrl+C again leaves");
            }
            None => self.toast(Level::Info, "nothing runs here; Ctrl+C again leaves"),
        }
    }

    fn quit(&mut self) {
        let running = self.shared.book.running();
        if running == 0 {
            self.work.push(Work::Leave);
            return;
        }
        self.push(Screen::Confirm(Box::new(Confirm::leave(running))));
    }
}
