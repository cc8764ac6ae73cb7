//! Contract and limits of a session.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// Contract and limits of a session.
#[allow(dead_code)]
pub struct Contract {
    session: SessionId,
}

impl Contract {
    /// Opens it.
    pub fn new(session: SessionId) -> Self {
        Self { session }
    }
}

impl View for Contract {
    fn layer(&self) -> Layer {
        Layer::Contract
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
