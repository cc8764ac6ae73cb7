//! The themes; the one under the cursor is shown at once, kept by Enter, undone by Esc.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::list::{List, Step};

/// The list of themes.
pub struct ThemeChooser {
    before: String,
    names: Vec<String>,
    list: List,
}

impl ThemeChooser {
    /// The list, with the theme shown so far under the cursor.
    pub fn new(before: String) -> Self {
        Self { before, names: Vec::new(), list: List::default() }
    }

    fn step(&mut self, step: Step, out: &mut Effects) {
        self.list.step(step);
        if let Some(name) = self.names.get(self.list.cursor) {
            out.push(Effect::Theme(name.clone()));
        }
    }
}

impl View for ThemeChooser {
    fn layer(&self) -> Layer {
        Layer::Themes
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn shown(&mut self, cx: &Cx<'_>, _out: &mut Effects) {
        self.names = cx.themes.names().map(str::to_owned).collect();
        self.list.set_len(self.names.len());
        self.list.select(self.names.iter().position(|name| *name == self.before).unwrap_or(0));
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        let Input::Action(action) = input else { return Handled::No };
        match action {
            Action::Up => self.step(Step::By(-1), out),
            Action::Down => self.step(Step::By(1), out),
            Action::PageUp => self.step(Step::Page(-1), out),
            Action::PageDown => self.step(Step::Page(1), out),
            Action::Top => self.step(Step::First, out),
            Action::Bottom => self.step(Step::Last, out),
            Action::Confirm => {
                if let Some(name) = self.names.get(self.list.cursor) {
                    out.push(Effect::KeepTheme(name.clone()));
                    out.say(format!("the theme is `{name}` from now on"));
                }
                out.close();
            }
            Action::Back => {
                out.push(Effect::Theme(self.before.clone()));
                out.close();
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let theme = cx.theme;
        // At the right, so that what the theme changes stays in view.
        let width = 34.min(area.width);
        let (_, right) = look::split_left(area, area.width - width);
        let rows = u16::try_from(self.names.len()).unwrap_or(u16::MAX).saturating_add(8);
        let inner = look::overlay(frame, right, (width, rows.min(area.height)), "Themes", theme);
        let samples = if inner.height > 10 { 5 } else { 0 };
        let (list, below) = look::split_bottom(inner, samples);
        let names = &self.names;
        self.list.draw(frame.buffer_mut(), list, 1, &look::list(theme, true), |row, _, _| {
            vec![Line::styled(names.get(row).cloned().unwrap_or_default(), theme[Slot::Text])]
        });
        let sample = |glyph: Glyph, words: &'static str, slot: Slot| {
            Span::styled(format!("{} {words}  ", theme.glyph(glyph)), theme[slot])
        };
        look::text(
            frame,
            below,
            &[
                Line::default(),
                Line::from(vec![
                    sample(Glyph::Done, "passed", Slot::VerdictPassed),
                    sample(Glyph::Failed, "failed", Slot::VerdictFailed),
                ]),
                Line::from(sample(Glyph::Partly, "needs improvement", Slot::VerdictNeedsImprovement)),
                Line::styled("+ a line added", theme[Slot::DiffAdd]),
                Line::styled("- a line removed", theme[Slot::DiffRemove]),
            ],
        );
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        let back = Hint { action: Action::Back, word: Some("as it was") };
        let mut list = hints(&[Action::Confirm, Action::Down]);
        list.push(back);
        list
    }
}

#[cfg(test)]
mod tests;
