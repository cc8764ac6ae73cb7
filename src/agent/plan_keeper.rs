//! Keeps a run's plan: carries out the `goal` tool's calls, journals each change, writes
//! `goal.json`. Implements the port that the tool declares.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::events::data::{GoalStats, Plan};
use crate::events::event::Event;
use crate::ids::{GoalId, TraceId};
use crate::stdx::bounded;
use crate::stdx::clock::Clock;
use crate::tools::{GoalChange, Goals, OneOrMany};
use crate::trace::goal_tree::{self, Detail, PlanChange, PlanEvent};
use crate::trace::store::{FileSystemTraceStore, TraceStore};

/// The plan of one run.
pub struct PlanKeeper {
    store: Arc<FileSystemTraceStore>,
    clock: Arc<dyn Clock>,
    trace: TraceId,
    cycle: u32,
    plan: Mutex<Plan>,
}

impl PlanKeeper {
    /// Takes over a plan as it lies on disk.
    pub fn new(
        store: Arc<FileSystemTraceStore>,
        clock: Arc<dyn Clock>,
        trace: TraceId,
        cycle: u32,
        plan: Plan,
    ) -> Self {
        Self { store, clock, trace, cycle, plan: Mutex::new(plan) }
    }

    /// The goal in focus.
    pub fn focus(&self) -> Option<GoalId> {
        self.lock().current_id.clone()
    }

    /// Whether there is no goal yet.
    pub fn is_empty(&self) -> bool {
        self.lock().goals.is_empty()
    }

    /// The plan as text and the description of the goal in focus; none when it is empty.
    pub fn for_injection(&self) -> Option<(String, String)> {
        let plan = self.lock();
        if plan.goals.is_empty() {
            return None;
        }
        let focus = plan.numbered().into_iter().find(|n| plan.current_id.as_ref() == Some(&n.goal.id));
        let focus =
            focus.map(|n| format!("{} {}", n.number.unwrap_or_default(), n.goal.description)).unwrap_or_default();
        Some((goal_tree::to_prompt(&plan, Detail::Compact), focus))
    }

    /// Adds a goal in focus when the model works without a plan (B29).
    ///
    /// # Errors
    /// The change could not be journalled.
    pub fn ensure_root(&self) -> io::Result<()> {
        let mut plan = self.lock();
        if !plan.goals.is_empty() {
            return Ok(());
        }
        let description = bounded::first_line(&plan.mission, 80);
        let description = if description.is_empty() { "the task".to_owned() } else { description };
        let events = goal_tree::add_root(&mut plan, &description, self.clock.now());
        self.publish(&plan, &events)
    }

    /// Adds what a message cost to its goal.
    ///
    /// # Errors
    /// The plan can't be written.
    pub fn charge(&self, goal: Option<&GoalId>, stats: &GoalStats) -> io::Result<()> {
        let Some(goal) = goal else { return Ok(()) };
        let mut plan = self.lock();
        goal_tree::charge(&mut plan, goal, stats);
        self.store.update_plan(&self.trace, &plan)
    }

    fn publish(&self, plan: &Plan, events: &[PlanEvent]) -> io::Result<()> {
        for event in events {
            let (PlanEvent::Added { id, .. } | PlanEvent::Updated { id }) = event;
            let Some(goal) = plan.get(id) else { continue };
            let goal = Box::new(goal.clone());
            let current_id = plan.current_id.clone();
            let event = match event {
                PlanEvent::Added { position, .. } => Event::GoalAdded { goal, position: *position, current_id },
                PlanEvent::Updated { .. } => Event::GoalUpdated { goal, current_id },
            };
            self.store.append_event(&self.trace, Some(self.cycle), event)?;
        }
        self.store.update_plan(&self.trace, plan)
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        // A std mutex: held for a change of the plan and its lines in the journal, never across an await.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Goals for PlanKeeper {
    fn apply(&self, change: GoalChange) -> Result<String, String> {
        let add = match change.add {
            None => Vec::new(),
            Some(OneOrMany::One(goal)) => vec![goal],
            Some(OneOrMany::Many(goals)) => goals,
        };
        let GoalChange { reason, under, after, focus, done, abandon, .. } = change;
        let wanted = PlanChange { add, reason, under, after, focus, done, abandon };
        let mut plan = self.lock();
        let mut draft = plan.clone();
        let events = goal_tree::change(&mut draft, &wanted, self.clock.now())?;
        self.publish(&draft, &events).map_err(|e| format!("the plan could not be stored: {e}"))?;
        *plan = draft;
        Ok(goal_tree::to_prompt(&plan, Detail::Compact))
    }
}
