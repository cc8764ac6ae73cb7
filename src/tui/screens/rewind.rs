//! The rewind timeline.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// The rewind timeline.
#[allow(dead_code)]
pub struct Rewind {
    session: SessionId,
}

impl Rewind {
    /// Opens it.
    pub fn new(session: SessionId) -> Self {
        Self { session }
    }
}

impl View for Rewind {
    fn layer(&self) -> Layer {
        Layer::Rewind
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
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
