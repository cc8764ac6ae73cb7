//! The sessions that are followed, each with its fold. Does not read events; `app` brings them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::events::data::{Outcome, SessionStatus};
use crate::events::event::Envelope;
use crate::events::problem::Problem;
use crate::events::query::SessionSummary;
use crate::ids::SessionId;
use crate::tui::screen::Sight;
use crate::tui::state::SessionState;
use crate::tui::time;

/// News older than this were told to somebody else already.
const FRESH_MS: u64 = 60_000;

#[derive(Default)]
pub struct Book {
    pages: HashMap<SessionId, Page>,
}

struct Page {
    state: SessionState,
    trouble: Option<Problem>,
    following: bool,
}

impl Book {
    /// Begins to follow a session. Returns the last event known, when it is not followed yet.
    pub fn follow(&mut self, session: &SessionId) -> Option<u64> {
        let page = self.pages.entry(session.clone()).or_insert_with(|| Page {
            state: SessionState::new(session.clone()),
            trouble: None,
            following: false,
        });
        (!std::mem::replace(&mut page.following, true)).then(|| page.state.last_event_id())
    }

    pub fn followed(&mut self, session: &SessionId, result: Result<(), Problem>) {
        if let Some(page) = self.pages.get_mut(session) {
            page.following = result.is_ok();
            page.trouble = result.err();
        }
    }

    /// The events ended. Returns the last one known when there should be more.
    pub fn closed(&mut self, session: &SessionId) -> Option<u64> {
        let page = self.pages.get_mut(session)?;
        page.following = page.state.head.is_running();
        page.following.then(|| page.state.last_event_id())
    }

    /// Applies events and returns what the person should be called for.
    pub fn apply(&mut self, session: &SessionId, events: &[Arc<Envelope>], now: Timestamp) -> Vec<String> {
        let Some(page) = self.pages.get_mut(session) else { return Vec::new() };
        let mut news = Vec::new();
        for event in events {
            let was = (page.state.requests.open().len(), page.state.head.is_running());
            page.state.apply(event);
            if time::between(event.at, now) > FRESH_MS {
                continue;
            }
            let name = &page.state.head.name;
            if page.state.requests.open().len() > was.0 {
                news.push(format!("{name} waits for you"));
            }
            if was.1 && !page.state.head.is_running() {
                news.push(format!("{name}: {}", page.state.head.status_words()));
            }
        }
        news
    }

    /// What the owner's files say of a session, which its events can't: that its process is gone.
    pub fn facts(&mut self, summary: &SessionSummary) {
        let Some(page) = self.pages.get_mut(&summary.id) else { return };
        let is_gone = summary.outcome == Some(Outcome::Interrupted) && summary.status != SessionStatus::Running;
        if is_gone && page.state.head.is_running() {
            page.state.interrupted();
        }
    }

    /// How many sessions run.
    pub fn running(&self) -> usize {
        self.pages.values().filter(|p| p.state.head.is_running()).count()
    }

    /// Drops what is neither wanted nor running, and names it.
    pub fn forget(&mut self, wanted: impl Fn(&SessionId) -> bool) -> Vec<SessionId> {
        let gone: Vec<_> = self
            .pages
            .iter()
            .filter(|(id, page)| !wanted(id) && !page.state.head.is_running())
            .map(|(id, _)| id.clone())
            .collect();
        for id in &gone {
            self.pages.remove(id);
        }
        gone
    }
}

impl Sight for Book {
    fn state(&self, id: &SessionId) -> Option<&SessionState> {
        self.pages.get(id).map(|p| &p.state).filter(|s| s.last_event_id() > 0)
    }

    fn trouble(&self, id: &SessionId) -> Option<&Problem> {
        self.pages.get(id)?.trouble.as_ref()
    }
}
