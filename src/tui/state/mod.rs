//! The fold: what a session's events say, as the screens need it. Live and archived sessions go
//! through the same code. Knows no screen and draws nothing.

pub mod activity;
pub mod cycle;
pub mod head;
pub mod message;
pub mod plan;
pub mod request;

#[cfg(test)]
mod tests;

use self::activity::{Activity, RowId};
use self::cycle::{Cycle, Cycles};
use self::head::Head;
use self::message::Messages;
use self::plan::Plans;
use self::request::Requests;
use crate::events::data::Plan;
use crate::events::event::Envelope;
use crate::ids::SessionId;

/// Everything that the events of a session say so far.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// Its id.
    pub id: SessionId,
    /// Name, status, models, totals, limits.
    pub head: Head,
    /// The plans.
    pub plans: Plans,
    /// What happened, one row each.
    pub activity: Activity,
    /// Verdicts and deliverables.
    pub cycles: Cycles,
    /// The person's messages on their way.
    pub messages: Messages,
    /// What waits for the person.
    pub requests: Requests,
    last_event_id: u64,
}

impl SessionState {
    /// The state before the first event.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            head: Head::default(),
            plans: Plans::default(),
            activity: Activity::default(),
            cycles: Cycles::default(),
            messages: Messages::default(),
            requests: Requests::default(),
            last_event_id: 0,
        }
    }

    /// The newest event that is part of this.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// Adds what an event says. An event that is known already changes nothing.
    pub fn apply(&mut self, envelope: &Envelope) {
        if let Some(id) = envelope.event_id {
            if id <= self.last_event_id {
                return;
            }
            self.last_event_id = id;
        }
        self.head.apply(envelope);
        // Cycles read where their plan ended and their rows began, so they come after both.
        self.plans.apply(envelope);
        self.activity.apply(envelope);
        self.cycles.apply(envelope, &self.plans, &self.activity);
        self.messages.apply(envelope);
        self.requests.apply(envelope);
    }

    /// The session's process is gone without a closing event; only the owner's files say so.
    pub fn interrupted(&mut self) {
        self.head.interrupted();
        self.requests = Requests::default();
    }

    /// The panes as they stood when cycle `number` ended (or stand now, if it has not).
    pub fn view_at_cycle(&self, number: u32) -> Option<CycleView<'_>> {
        let cycle = self.cycles.get(number)?;
        let end = cycle.last_row.map_or(self.activity.len(), |row| row.0 as usize + 1);
        Some(CycleView {
            plan: cycle.plan.as_ref().or_else(|| self.plans.of(cycle.worker_trace.as_ref()?)),
            rows: cycle.first_row..RowId(u32::try_from(end).unwrap_or(u32::MAX)),
            verdicts: self.cycles.up_to(number),
        })
    }
}

/// The four panes as they stood at the end of a cycle.
#[derive(Clone, Debug)]
pub struct CycleView<'a> {
    /// Its plan.
    pub plan: Option<&'a Plan>,
    /// Its rows of the activity.
    pub rows: std::ops::Range<RowId>,
    /// The cycles up to this one.
    pub verdicts: &'a [Cycle],
}
