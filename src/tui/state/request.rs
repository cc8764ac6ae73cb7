//! What waits for the person: questions of agents and permissions for tools.

use jiff::Timestamp;

use crate::events::data::Role;
use crate::events::event::{Envelope, Event};

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Consent to a tool call.
    Permission {
        /// By whom.
        role: Role,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: String,
    },
    /// An answer.
    Answer {
        /// What is asked.
        question: String,
        /// Answers offered.
        options: Vec<String>,
    },
}

/// One thing that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Names it.
    pub id: String,
    /// Since when it waits.
    pub at: Timestamp,
    /// What is wanted.
    pub wanted: Wanted,
}

/// What a call is about, in a line: its command or path; the arguments as they are where neither
/// is there. The dialog shows all of them.
pub fn subject(arguments: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).unwrap_or_default();
    let main = ["command", "path", "pattern", "url", "query"].iter().find_map(|name| parsed.get(*name)?.as_str());
    main.map_or_else(|| arguments.to_owned(), |main| crate::stdx::bounded::first_line(main, 200))
}

/// Everything that waits.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    open: Vec<Pending>,
}

impl Requests {
    /// What waits now, oldest first.
    pub fn open(&self) -> &[Pending] {
        &self.open
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&Pending> {
        self.open.iter().find(|p| p.id == id)
    }

    pub(super) fn apply(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::Question { question_id, question, options } => {
                let wanted = Wanted::Answer { question: question.clone(), options: options.clone() };
                self.add(question_id, envelope.at, wanted);
            }
            Event::PermissionRequest { request_id, role, tool, arguments } => {
                let (tool, arguments) = (tool.clone(), arguments.clone());
                self.add(request_id, envelope.at, Wanted::Permission { role: *role, tool, arguments });
            }
            Event::Answer { question_id: id, .. } | Event::PermissionAnswer { request_id: id, .. } => {
                self.open.retain(|p| &p.id != id);
            }
            // Nobody hears an answer any more; what is still needed is asked again.
            Event::SessionResumed { .. } => self.open.clear(),
            event if event.closes().is_some() => self.open.clear(),
            _ => {}
        }
    }

    fn add(&mut self, id: &str, at: Timestamp, wanted: Wanted) {
        self.open.retain(|p| p.id != id);
        self.open.push(Pending { id: id.to_owned(), at, wanted });
    }
}
