//! The launch form.

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// The launch form.
#[allow(dead_code)]
pub struct Launch {
    dir: PathBuf,
    objective: String,
}

impl Launch {
    /// Opens it.
    pub fn new(dir: PathBuf, objective: String) -> Self {
        Self { dir, objective }
    }
}

impl View for Launch {
    fn layer(&self) -> Layer {
        Layer::Launch
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
