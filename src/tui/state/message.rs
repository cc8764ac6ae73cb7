//! The person's messages to a running session, until the Worker has them.

use jiff::Timestamp;

use crate::events::data::UserMessageState;
use crate::events::event::{Envelope, Event};

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Names it.
    pub id: String,
    /// Its text as it is now.
    pub text: String,
    /// Whether it waits for the next cycle; else for the next step.
    pub next_cycle: bool,
    /// Whether it was changed while it waited.
    pub edited: bool,
    /// When it was written.
    pub at: Timestamp,
}

/// All messages on their way.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    waiting: Vec<Waiting>,
}

impl Messages {
    /// Those that were not delivered yet, oldest first.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    pub(super) fn apply(&mut self, envelope: &Envelope) {
        let Event::UserMessage { message_id, text, state } = &envelope.event else { return };
        let place = self.waiting.iter().position(|w| &w.id == message_id);
        match (state, place) {
            (UserMessageState::Delivered, Some(place)) => {
                self.waiting.remove(place);
            }
            // An empty text withdraws it.
            (UserMessageState::Edited, Some(place)) if text.is_empty() => {
                self.waiting.remove(place);
            }
            (UserMessageState::Edited, Some(place)) => {
                self.waiting[place].text.clone_from(text);
                self.waiting[place].edited = true;
            }
            (UserMessageState::Queued | UserMessageState::NextCycle, _) => {
                self.waiting.retain(|w| &w.id != message_id);
                let next_cycle = *state == UserMessageState::NextCycle;
                let (id, text) = (message_id.clone(), text.clone());
                self.waiting.push(Waiting { id, text, next_cycle, edited: false, at: envelope.at });
            }
            (UserMessageState::Delivered | UserMessageState::Edited, None) => {}
        }
    }
}
