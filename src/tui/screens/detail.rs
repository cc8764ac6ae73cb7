//! One thing in full: a goal, a call, a message, a verdict, a file.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::events::query::Query;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::Slot;

/// What is shown in full: a text that is there already, or what a query answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What to call it.
    pub title: String,
    /// What is known already, shown while and above what is asked for.
    pub text: String,
    /// What is asked for; several parts are switched through.
    pub queries: Vec<Query>,
}

/// The detail view.
pub struct Detail {
    source: Source,
}

impl Detail {
    /// Opens it.
    pub fn new(source: Source) -> Self {
        Self { source }
    }
}

impl View for Detail {
    fn layer(&self) -> Layer {
        Layer::Detail
    }

    fn update(&mut self, _input: Input, _cx: &Cx<'_>, _out: &mut Effects) -> Handled {
        Handled::No
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let title = self.source.title.as_str();
        Block::bordered().title(title).border_style(cx.theme[Slot::Border]).render(area, frame.buffer_mut());
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Back, Action::Search, Action::Wrap, Action::Copy])
    }
}
