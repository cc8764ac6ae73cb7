//! The themes, previewed as they are chosen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// The themes, previewed as they are chosen.
#[allow(dead_code)]
pub struct ThemeChooser {
    before: String,
}

impl ThemeChooser {
    /// Opens it.
    pub fn new(before: String) -> Self {
        Self { before }
    }
}

impl View for ThemeChooser {
    fn layer(&self) -> Layer {
        Layer::Themes
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn update(&mut self, _input: Input, _cx: &Cx<'_>, _out: &mut Effects) -> Handled {
        Handled::No
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        Block::bordered().border_style(cx.theme[Slot::Border]).render(area, frame.buffer_mut());
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Back])
    }
}
