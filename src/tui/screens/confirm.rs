//! A yes or no.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::Effect;
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// A yes or no.
#[allow(dead_code)]
pub struct Confirm {
    title: String,
    text: String,
    yes: Vec<Effect>,
}

impl Confirm {
    /// Opens it.
    pub fn new(title: String, text: String, yes: Vec<Effect>) -> Self {
        Self { title, text, yes }
    }
}

impl View for Confirm {
    fn layer(&self) -> Layer {
        Layer::Confirm
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
        hints(&[Action::Confirm, Action::Cancel])
    }
}
