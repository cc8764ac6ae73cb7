//! The list of sessions.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// The list of sessions.
#[allow(dead_code)]
pub struct Sessions {}

impl Sessions {
    /// Opens it.
    pub fn new() -> Self {
        Self {}
    }
}

impl View for Sessions {
    fn layer(&self) -> Layer {
        Layer::Sessions
    }

    fn update(&mut self, _input: Input, _cx: &Cx<'_>, _out: &mut Effects) -> Handled {
        Handled::No
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        Block::bordered().border_style(cx.theme[Slot::Border]).render(area, frame.buffer_mut());
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Launch, Action::Quit])
    }
}
