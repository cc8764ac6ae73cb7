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
    kept: Mutex<Kept>,
}

struct Kept {
    plan: Plan,
    /// Whether `goal.json` is behind.
    is_behind: bool,
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
        Self { store, clock, trace, cycle, kept: Mutex::new(Kept { plan, is_behind: false }) }
    }

    /// The goal in focus.
    pub fn focus(&self) -> Option<GoalId> {
        self.lock().plan.current_id.clone()
    }

    /// Whether there is no goal yet.
    pub fn is_empty(&self) -> bool {
        self.lock().plan.goals.is_empty()
    }

    /// The plan as text and the description of the goal in focus; none when it is empty.
    pub fn for_injection(&self) -> Option<(String, String)> {
        let kept = self.lock();
        let plan = &kept.plan;
        if plan.goals.is_empty() {
            return None;
        }
        let focus = plan.numbered().into_iter().find(|n| plan.current_id.as_ref() == Some(&n.goal.id));
        let focus =
            focus.map(|n| format!("{} {}", n.number.unwrap_or_default(), n.goal.description)).unwrap_or_default();
        Some((goal_tree::to_prompt(plan, Detail::Compact), focus))
    }

    /// Adds a goal in focus when the model works without a plan (B29).
    ///
    /// # Errors
    /// The change could not be journalled.
    pub fn ensure_root(&self) -> io::Result<()> {
        let mut kept = self.lock();
        let plan = &mut kept.plan;
        if !plan.goals.is_empty() {
            return Ok(());
        }
        let description = bounded::first_line(&plan.mission, 80);
        let description = if description.is_empty() { "the task".to_owned() } else { description };
        let events = goal_tree::add_root(plan, &description, self.clock.now());
        self.publish(plan, &events)
    }

    /// Adds what a message cost to its goal. On disk with [`PlanKeeper::catch_up`].
    pub fn charge(&self, goal: Option<&GoalId>, stats: &GoalStats) {
        let Some(goal) = goal else { return };
        let mut kept = self.lock();
        goal_tree::charge(&mut kept.plan, goal, stats);
        kept.is_behind = true;
    }

    /// Writes `goal.json` when it is behind.
    ///
    /// # Errors
    /// It can't be written.
    pub fn catch_up(&self) -> io::Result<()> {
        let mut kept = self.lock();
        if std::mem::take(&mut kept.is_behind) {
            self.store.update_plan(&self.trace, &kept.plan)?;
        }
        Ok(())
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

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A std mutex: held for a change of the plan and its lines in the journal, never across an await.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut kept = self.lock();
        let mut draft = kept.plan.clone();
        let events = goal_tree::change(&mut draft, &wanted, self.clock.now())?;
        self.publish(&draft, &events).map_err(|e| format!("the plan could not be stored: {e}"))?;
        // Published whole, so nothing of it is behind.
        *kept = Kept { plan: draft, is_behind: false };
        Ok(goal_tree::to_prompt(&kept.plan, Detail::Compact))
    }
}
