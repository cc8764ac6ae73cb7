//! The session screen: four panes over one fold, and the keys that step into the session.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, Screen, View, hints};
use crate::tui::screens::apply::Apply;
use crate::tui::screens::archive::Archive;
use crate::tui::screens::contract::Contract;
use crate::tui::screens::message::Message;
use crate::tui::screens::rewind::Rewind;
use crate::tui::theme::Slot;

/// The session screen.
pub struct Session {
    session: SessionId,
    opened: Vec<String>,
    /// The cycle it is shown as of; none: as it is now.
    at: Option<u32>,
}

impl Session {
    /// Opens a session.
    pub fn new(session: SessionId) -> Self {
        Self { session, opened: Vec::new(), at: None }
    }

    /// Opens a session as it stood when a cycle ended.
    pub fn at_cycle(session: SessionId, cycle: u32) -> Self {
        Self { at: Some(cycle), ..Self::new(session) }
    }

    /// The session it shows.
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// What waits for the person and was not shown to them yet.
    pub fn request_to_open(&self, cx: &Cx<'_>) -> Option<String> {
        let state = cx.session(&self.session)?;
        state.requests.open().iter().map(|r| &r.id).find(|id| !self.opened.contains(id)).cloned()
    }

    /// It was shown; closing its dialog does not bring it back by itself.
    pub fn request_opened(&mut self, id: &str) {
        self.opened.push(id.to_owned());
    }
}

impl View for Session {
    fn layer(&self) -> Layer {
        Layer::Session
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Sessions) => out.push(Effect::Home),
            Input::Action(Action::Rewind) => out.open(Screen::Rewind(Box::new(Rewind::new(self.session.clone())))),
            Input::Action(Action::Message) => out.open(Screen::Message(Box::new(Message::new(self.session.clone())))),
            Input::Action(Action::Archive) => out.open(Screen::Archive(Box::new(Archive::new(self.session.clone())))),
            Input::Action(Action::Contract) => {
                out.open(Screen::Contract(Box::new(Contract::new(self.session.clone()))))
            }
            Input::Action(Action::Apply) => out.open(Screen::Apply(Box::new(Apply::new(self.session.clone(), None)))),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        Block::bordered().border_style(cx.theme[Slot::Border]).render(area, frame.buffer_mut());
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Stop, Action::Rewind, Action::Message, Action::Archive, Action::Sessions])
    }
}
