//! The plan as it was at a message, replayed from the goal events (B37). Pure.

use std::collections::BTreeMap;

use super::Trace;
use super::tree::{self, Messages};
use crate::events::data::{GoalStats, GoalStatus, Plan};
use crate::events::event::{Envelope, Event, RewindRecord, TraceBack};
use crate::ids::{Seq, TraceId};

/// What happened to the plan, in the order of the journal, tied to the message before it.
#[derive(Debug, Default)]
struct History<'a> {
    /// Event id of each message.
    stored: BTreeMap<Seq, u64>,
    /// Goal events and rewinds after each message.
    changes: BTreeMap<Seq, Vec<(u64, &'a Envelope)>>,
    /// Highest goal id ever handed out.
    last_goal_id: u64,
}

impl<'a> History<'a> {
    fn read(events: impl Iterator<Item = &'a Envelope>, trace: &TraceId) -> Self {
        let mut history = Self::default();
        let mut last: Seq = 0;
        for envelope in events.filter(|e| e.concerns(trace)) {
            let id = envelope.event_id.unwrap_or(0);
            match &envelope.event {
                Event::MessageAdded(message) => {
                    last = message.sequence;
                    history.stored.insert(last, id);
                }
                Event::GoalAdded { goal, .. } | Event::GoalUpdated { goal, .. } => {
                    let n = goal.id.as_str().parse().unwrap_or(0);
                    history.last_goal_id = history.last_goal_id.max(n);
                    history.changes.entry(last).or_default().push((id, envelope));
                }
                _ => {
                    if let Some((head, _)) = envelope.rewinds(trace) {
                        last = head;
                        history.changes.entry(last).or_default().push((id, envelope));
                    }
                }
            }
        }
        history
    }
}

/// What is to become of goals that were being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// They go back to pending and nothing is in focus (B37).
    Reset,
    /// They stay: the whole branch comes back.
    Keep,
}

/// The plan that was in force at the end of `path` (root first), from the trace's events.
/// Statistics are emptied; the caller recomputes them from the path.
pub fn plan_at<'a>(
    events: impl Iterator<Item = &'a Envelope>,
    trace: &TraceId,
    mission: &str,
    path: &[Seq],
    unfinished: Unfinished,
) -> Plan {
    let history = History::read(events, trace);
    let mut plan = Plan { mission: mission.to_owned(), ..Plan::default() };
    for (i, sequence) in path.iter().enumerate() {
        let Some(changes) = history.changes.get(sequence) else { continue };
        // Changes made on another branch that starts at this message come after the next message
        // of this path was stored, or, at the path's end, after the first message of any branch.
        let until = match path.get(i + 1) {
            Some(next) => history.stored.get(next).copied().unwrap_or(u64::MAX),
            None => end_of_own_changes(&history, *sequence),
        };
        for (_, envelope) in changes.iter().filter(|(id, _)| *id < until) {
            apply(&mut plan, envelope, trace);
        }
    }
    plan.last_goal_id = history.last_goal_id;
    for goal in &mut plan.goals {
        goal.self_stats = GoalStats::default();
        goal.cumulative_stats = GoalStats::default();
        if unfinished == Unfinished::Reset && goal.status == GoalStatus::InProgress {
            goal.status = GoalStatus::Pending;
        }
    }
    if unfinished == Unfinished::Reset {
        plan.current_id = None;
    }
    hoist(&mut plan);
    plan
}

/// What rewinding one trace to `after` means (B35–B37), for the `rewind` event. What belongs to a
/// session (cycles, files, the instruction) is empty; the session fills it in.
///
/// # Errors
/// There is nothing to cut at; names what is valid.
pub fn record<'a>(
    events: impl Iterator<Item = &'a Envelope>,
    trace: &Trace,
    plan: &Plan,
    messages: &Messages,
    after: Seq,
) -> Result<RewindRecord, String> {
    let cut = tree::safe_cut(messages, trace.head_sequence, after)?;
    let comes_back = !cut.on_main_path && tree::is_branch_end(messages, cut.at);
    let unfinished = if comes_back { Unfinished::Keep } else { Unfinished::Reset };
    let path = tree::path_to(messages, cut.at);
    let mut goal_tree = plan_at(events, &trace.trace_id, &plan.mission, &path, unfinished);
    goal_tree.last_goal_id = goal_tree.last_goal_id.max(plan.last_goal_id);
    super::goal_tree::recount(&mut goal_tree, messages, &path);
    Ok(RewindRecord {
        after_sequence: after,
        cut: cut.at,
        old_head: trace.head_sequence,
        goal_tree_snapshot: plan.clone(),
        goal_tree,
        cycle: 0,
        superseded: Vec::new(),
        restored: Vec::new(),
        snapshot_before: None,
        snapshot_after: None,
        keep: Vec::new(),
        message: None,
        undo: false,
        others: Vec::new(),
    })
}

/// The plan as a trace's events tell it, when `stored` is behind them after a crash. Statistics
/// are those that were stored.
pub fn mended_plan<'a>(events: impl Iterator<Item = &'a Envelope>, trace: &TraceId, stored: &Plan) -> Option<Plan> {
    let mut plan = Plan { mission: stored.mission.clone(), ..Plan::default() };
    for envelope in events {
        if let Event::GoalAdded { goal, .. } = &envelope.event {
            plan.last_goal_id = plan.last_goal_id.max(goal.id.as_str().parse().unwrap_or(0));
        }
        let last_goal_id = plan.last_goal_id;
        apply(&mut plan, envelope, trace);
        plan.last_goal_id = plan.last_goal_id.max(last_goal_id);
    }
    plan.last_goal_id = plan.last_goal_id.max(stored.last_goal_id);
    for goal in &mut plan.goals {
        if let Some(known) = stored.get(&goal.id) {
            goal.self_stats = known.self_stats.clone();
            goal.cumulative_stats = known.cumulative_stats.clone();
        }
    }
    (plan != *stored).then_some(plan)
}

/// A trace brought back to the end of a branch that a rewind left, its plan as it was there.
pub fn back_to<'a>(
    events: impl Iterator<Item = &'a Envelope>,
    trace: &Trace,
    plan: &Plan,
    messages: &Messages,
    head: Seq,
) -> TraceBack {
    let path = tree::path_to(messages, head);
    let mut goal_tree = plan_at(events, &trace.trace_id, &plan.mission, &path, Unfinished::Keep);
    goal_tree.last_goal_id = goal_tree.last_goal_id.max(plan.last_goal_id);
    super::goal_tree::recount(&mut goal_tree, messages, &path);
    TraceBack { trace_id: trace.trace_id.clone(), head, goal_tree }
}

fn end_of_own_changes(history: &History<'_>, sequence: Seq) -> u64 {
    let own = history.stored.get(&sequence).copied().unwrap_or(0);
    history.stored.values().copied().filter(|id| *id > own).min().unwrap_or(u64::MAX)
}

fn apply(plan: &mut Plan, envelope: &Envelope, trace: &TraceId) {
    match &envelope.event {
        Event::GoalAdded { goal, position, current_id } => {
            let at = (*position).min(plan.goals.len());
            plan.goals.retain(|g| g.id != goal.id);
            plan.goals.insert(at.min(plan.goals.len()), goal.as_ref().clone());
            plan.current_id.clone_from(current_id);
        }
        Event::GoalUpdated { goal, current_id } => {
            if let Some(known) = plan.goals.iter_mut().find(|g| g.id == goal.id) {
                *known = goal.as_ref().clone();
            }
            plan.current_id.clone_from(current_id);
        }
        _ => {
            if let Some((_, goal_tree)) = envelope.rewinds(trace) {
                let mission = std::mem::take(&mut plan.mission);
                *plan = Plan { mission, ..goal_tree.clone() };
            }
        }
    }
}

/// A goal whose parent is not there moves to the top (B37).
fn hoist(plan: &mut Plan) {
    let ids: std::collections::BTreeSet<_> = plan.goals.iter().map(|g| g.id.clone()).collect();
    for goal in &mut plan.goals {
        if goal.parent_id.as_ref().is_some_and(|p| !ids.contains(p)) {
            goal.parent_id = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::events::data::Goal;
    use crate::events::event::MessageAdded;
    use crate::ids::GoalId;
    use crate::trace::goal_tree::{PlanChange, PlanEvent, change};

    struct Journal {
        events: Vec<Envelope>,
        plan: Plan,
    }

    impl Journal {
        fn push(&mut self, event: Event) {
            let event_id = Some(self.events.len() as u64 + 1);
            self.events.push(Envelope {
                event_id,
                at: Timestamp::UNIX_EPOCH,
                session_id: "s".into(),
                cycle: Some(1),
                trace_id: Some("w1".into()),
                event,
            });
        }

        fn message(&mut self, sequence: Seq, parent: Option<Seq>) {
            self.push(Event::MessageAdded(Box::new(MessageAdded {
                sequence,
                parent_sequence: parent,
                role: "assistant".into(),
                goal_id: None,
                description: String::new(),
                preview: String::new(),
                bytes: 0,
                tool_calls: Vec::new(),
                tool_call_id: None,
                finish_reason: None,
                branch_type: None,
                duration_ms: None,
            })));
        }

        fn goals(&mut self, wanted: PlanChange) {
            for event in change(&mut self.plan, &wanted, Timestamp::UNIX_EPOCH).unwrap() {
                let current_id = self.plan.current_id.clone();
                let get = |id: &GoalId| -> Box<Goal> { Box::new(self.plan.get(id).unwrap().clone()) };
                let event = match event {
                    PlanEvent::Added { id, position } => Event::GoalAdded { goal: get(&id), position, current_id },
                    PlanEvent::Updated { id } => Event::GoalUpdated { goal: get(&id), current_id },
                };
                self.push(event);
            }
        }

        fn rewind(&mut self, cut: Seq, old_head: Seq, path: &[Seq]) {
            let after = plan_at(self.events.iter(), &"w1".into(), "", path, Unfinished::Reset);
            self.push(Event::Rewind(Box::new(RewindRecord {
                after_sequence: cut,
                cut,
                old_head,
                goal_tree_snapshot: self.plan.clone(),
                goal_tree: after.clone(),
                cycle: 1,
                superseded: Vec::new(),
                restored: Vec::new(),
                snapshot_before: None,
                snapshot_after: None,
                keep: Vec::new(),
                message: None,
                undo: false,
                others: Vec::new(),
            })));
            self.plan = after;
        }

        fn at(&self, path: &[Seq], unfinished: Unfinished) -> Vec<(String, String)> {
            let plan = plan_at(self.events.iter(), &"w1".into(), "", path, unfinished);
            plan.goals.iter().map(|g| (g.description.clone(), g.status.word().to_owned())).collect()
        }
    }

    fn own(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn the_plan_comes_back_as_it_was_at_the_message_on_every_branch() {
        let mut journal = Journal { events: Vec::new(), plan: Plan::default() };
        journal.message(1, None);
        journal.goals(PlanChange { add: vec!["one".into(), "two".into()], ..PlanChange::default() });
        journal.message(2, Some(1));
        journal.goals(PlanChange { done: Some("did".into()), focus: Some("2".into()), ..PlanChange::default() });
        journal.message(3, Some(2));
        journal.goals(PlanChange { add: vec!["three".into()], ..PlanChange::default() });

        assert_eq!(journal.at(&[1], Unfinished::Reset), own(&[("one", "pending"), ("two", "pending")]));
        assert_eq!(journal.at(&[1, 2], Unfinished::Reset), own(&[("one", "completed"), ("two", "pending")]));

        journal.rewind(1, 3, &[1]);
        journal.message(4, Some(1));
        journal.goals(PlanChange { add: vec!["other".into()], focus: Some("2".into()), ..PlanChange::default() });

        assert_eq!(
            journal.at(&[1, 4], Unfinished::Keep),
            own(&[("one", "pending"), ("two", "in_progress"), ("other", "pending")])
        );
        assert_eq!(
            journal.at(&[1, 2, 3], Unfinished::Keep),
            own(&[("one", "completed"), ("two", "in_progress"), ("three", "pending")]),
            "the abandoned branch comes back with its statuses"
        );
        assert_eq!(journal.at(&[1], Unfinished::Reset), own(&[("one", "pending"), ("two", "pending")]));
        let plan = plan_at(journal.events.iter(), &"w1".into(), "", &[1], Unfinished::Reset);
        assert_eq!(plan.last_goal_id, 4);
    }
}
