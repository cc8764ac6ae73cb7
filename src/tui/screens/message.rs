//! Writing to the Worker, or continuing a session.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// Writing to the Worker, or continuing a session.
#[allow(dead_code)]
pub struct Message {
    session: SessionId,
}

impl Message {
    /// Opens it.
    pub fn new(session: SessionId) -> Self {
        Self { session }
    }
}

impl View for Message {
    fn layer(&self) -> Layer {
        Layer::Message
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
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
