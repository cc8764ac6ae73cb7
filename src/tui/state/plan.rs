//! The plans of a session: one for each trace that made one.

use crate::events::data::{Goal, Plan, Role};
use crate::events::event::{Envelope, Event};
use crate::ids::{GoalId, TraceId};

/// All plans.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    // A handful per session: cycles and sub-agents.
    by_trace: Vec<(TraceId, Plan)>,
    worker: Option<TraceId>,
    subs: Vec<TraceId>,
}

impl Plans {
    /// The plan of the Worker's newest run.
    pub fn current(&self) -> Option<&Plan> {
        self.of(self.worker.as_ref()?)
    }

    /// The plan of one trace.
    pub fn of(&self, trace: &TraceId) -> Option<&Plan> {
        self.by_trace.iter().rev().find(|(id, _)| id == trace).map(|(_, plan)| plan)
    }

    pub(super) fn apply(&mut self, envelope: &Envelope) {
        let trace = envelope.trace_id.as_ref();
        match (&envelope.event, trace) {
            (Event::WorkerStart { .. }, Some(trace)) => self.worker = Some(trace.clone()),
            (Event::TraceStart { role: Role::Worker, .. }, Some(trace)) if !self.subs.contains(trace) => {
                self.worker = Some(trace.clone());
            }
            (Event::SubTraceStarted { sub_trace_id, .. }, _) => self.subs.push(sub_trace_id.clone()),
            (Event::GoalAdded { goal, position, current_id }, Some(trace)) => {
                self.put(trace, goal, Some(*position), current_id.clone());
            }
            (Event::GoalUpdated { goal, current_id }, Some(trace)) => self.put(trace, goal, None, current_id.clone()),
            (Event::Rewind(record), Some(trace)) => {
                *self.plan_mut(trace) = record.goal_tree.clone();
                for other in &record.others {
                    *self.plan_mut(&other.trace_id) = other.goal_tree.clone();
                }
                self.worker = Some(trace.clone());
            }
            _ => {}
        }
    }

    fn put(&mut self, trace: &TraceId, goal: &Goal, position: Option<usize>, current: Option<GoalId>) {
        let plan = self.plan_mut(trace);
        match plan.goals.iter_mut().find(|g| g.id == goal.id) {
            Some(known) => *known = goal.clone(),
            None => {
                let place = position.unwrap_or(usize::MAX).min(plan.goals.len());
                plan.goals.insert(place, goal.clone());
            }
        }
        plan.current_id = current;
    }

    fn plan_mut(&mut self, trace: &TraceId) -> &mut Plan {
        let place = match self.by_trace.iter().position(|(id, _)| id == trace) {
            Some(place) => place,
            None => {
                self.by_trace.push((trace.clone(), Plan::default()));
                self.by_trace.len() - 1
            }
        };
        &mut self.by_trace[place].1
    }
}
