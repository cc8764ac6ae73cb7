//! Changing a plan: the operations of the `goal` tool (B46–B50) on [`Plan`]. Pure: time comes in,
//! what changed comes out.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::tree::Messages;
use crate::events::data::{Goal, GoalStats, GoalStatus, GoalType, Plan};
use crate::ids::{GoalId, Seq};

/// One call of the `goal` tool; fields as in B46.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// Descriptions of goals to add.
    pub add: Vec<String>,
    /// Why they are added.
    pub reason: Option<String>,
    /// Display number of the goal they become children of.
    pub under: Option<String>,
    /// Display number of the goal they follow on its level.
    pub after: Option<String>,
    /// Display number of the goal to work on.
    pub focus: Option<String>,
    /// Completes the current goal, with this summary.
    pub done: Option<String>,
    /// Gives up the current goal, for this reason.
    pub abandon: Option<String>,
}

/// What a change did to one goal.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanEvent {
    /// It was added at this place of the list.
    Added {
        /// The goal.
        id: GoalId,
        /// Its place.
        position: usize,
    },
    /// Its status, summary or focus changed.
    Updated {
        /// The goal.
        id: GoalId,
    },
}

/// Carries out one change: `done` or `abandon`, then `add`, then `focus`; numbers mean the plan
/// before the call. Nothing changes when any part is wrong.
///
/// # Errors
/// What was wrong, for the model, naming the numbers that exist.
pub fn change(plan: &mut Plan, wanted: &PlanChange, now: Timestamp) -> Result<Vec<PlanEvent>, String> {
    let mut draft = plan.clone();
    let mut events = Vec::new();
    let under = wanted.under.as_deref().map(|n| resolve(plan, n)).transpose()?;
    let after = wanted.after.as_deref().map(|n| resolve(plan, n)).transpose()?;
    let focus = wanted.focus.as_deref().map(|n| resolve(plan, n)).transpose()?;
    check_combination(wanted)?;

    if let Some(summary) = &wanted.done {
        complete(&mut draft, summary, &mut events)?;
    }
    if let Some(reason) = &wanted.abandon {
        abandon(&mut draft, reason, &mut events)?;
    }
    if !wanted.add.is_empty() {
        let first = add(&mut draft, wanted, under, after, now, &mut events)?;
        if draft.current_id.is_none() && focus.is_none() {
            focus_on(&mut draft, &first, &mut events)?;
        }
    }
    if let Some(id) = focus {
        focus_on(&mut draft, &id, &mut events)?;
    }
    *plan = draft;
    Ok(events)
}

fn check_combination(wanted: &PlanChange) -> Result<(), String> {
    if wanted.done.is_some() && wanted.abandon.is_some() {
        return Err("`done` and `abandon` both end the current goal; give only one".to_owned());
    }
    if wanted.under.is_some() && wanted.after.is_some() {
        return Err("`under` and `after` can't be combined; give only one".to_owned());
    }
    if wanted.add.is_empty() && (wanted.under.is_some() || wanted.after.is_some()) {
        return Err("`under` and `after` say where `add` puts goals; give `add` too".to_owned());
    }
    if wanted.add.iter().any(|d| d.trim().is_empty()) {
        return Err("a goal in `add` is empty; describe what is to be reached".to_owned());
    }
    if wanted.add.is_empty() && wanted.focus.is_none() && wanted.done.is_none() && wanted.abandon.is_none() {
        return Err("nothing to do; give `add`, `focus`, `done` or `abandon`".to_owned());
    }
    Ok(())
}

fn resolve(plan: &Plan, number: &str) -> Result<GoalId, String> {
    let wanted = number.trim().trim_end_matches('.');
    let numbered = plan.numbered();
    if let Some(found) = numbered.iter().find(|n| n.number.as_deref() == Some(wanted)) {
        return Ok(found.goal.id.clone());
    }
    let valid: Vec<_> = numbered.into_iter().filter_map(|n| n.number).collect();
    if valid.is_empty() {
        return Err(format!("there is no goal `{wanted}`; the plan is empty, use `add` first"));
    }
    Err(format!("there is no goal `{wanted}`; the goals are {}", valid.join(", ")))
}

fn current(plan: &Plan, verb: &str) -> Result<GoalId, String> {
    plan.current_id.clone().ok_or_else(|| format!("no goal is in focus to {verb}; use `focus` first"))
}

fn goal_mut<'a>(plan: &'a mut Plan, id: &GoalId) -> Result<&'a mut Goal, String> {
    plan.goals.iter_mut().find(|g| &g.id == id).ok_or_else(|| format!("goal `{id}` is gone from the plan"))
}

fn complete(plan: &mut Plan, summary: &str, events: &mut Vec<PlanEvent>) -> Result<(), String> {
    let id = current(plan, "complete")?;
    let open: Vec<String> = plan
        .numbered()
        .into_iter()
        .filter(|n| n.goal.parent_id.as_ref() == Some(&id) && n.goal.status.is_open())
        .map(|n| format!("{} {}", n.number.unwrap_or_default(), n.goal.description))
        .collect();
    if !open.is_empty() {
        return Err(format!("the current goal has open children: {}; finish or abandon them first", open.join("; ")));
    }
    let goal = goal_mut(plan, &id)?;
    goal.status = GoalStatus::Completed;
    goal.summary = Some(summary.to_owned());
    events.push(PlanEvent::Updated { id: id.clone() });
    step_up(plan, &id);
    Ok(())
}

fn abandon(plan: &mut Plan, reason: &str, events: &mut Vec<PlanEvent>) -> Result<(), String> {
    let id = current(plan, "abandon")?;
    let below = descendants(plan, &id);
    for goal in plan.goals.iter_mut().filter(|g| g.id == id || (below.contains(&g.id) && g.status.is_open())) {
        goal.status = GoalStatus::Abandoned;
        goal.summary = Some(reason.to_owned());
        events.push(PlanEvent::Updated { id: goal.id.clone() });
    }
    step_up(plan, &id);
    Ok(())
}

/// After a goal ended the focus goes to its parent when that is still open, else nowhere (B46).
fn step_up(plan: &mut Plan, id: &GoalId) {
    let parent = plan.get(id).and_then(|g| g.parent_id.clone());
    plan.current_id = parent.filter(|p| plan.get(p).is_some_and(|g| g.status.is_open()));
}

fn descendants(plan: &Plan, id: &GoalId) -> BTreeSet<GoalId> {
    let mut below = BTreeSet::new();
    let mut level = vec![id.clone()];
    while let Some(parent) = level.pop() {
        for goal in plan.goals.iter().filter(|g| g.parent_id.as_ref() == Some(&parent)) {
            if below.insert(goal.id.clone()) {
                level.push(goal.id.clone());
            }
        }
    }
    below
}

fn add(
    plan: &mut Plan,
    wanted: &PlanChange,
    under: Option<GoalId>,
    after: Option<GoalId>,
    now: Timestamp,
    events: &mut Vec<PlanEvent>,
) -> Result<GoalId, String> {
    let (parent, mut position) = match (&under, &after) {
        (Some(parent), _) => {
            if plan.get(parent).is_some_and(|g| g.status == GoalStatus::Completed) {
                return Err("the goal in `under` is completed; add a new top-level goal instead".to_owned());
            }
            (Some(parent.clone()), plan.goals.len())
        }
        (None, Some(sibling)) => {
            let place = plan.goals.iter().position(|g| &g.id == sibling).map_or(plan.goals.len(), |i| i + 1);
            (plan.get(sibling).and_then(|g| g.parent_id.clone()), place)
        }
        (None, None) => (None, plan.goals.len()),
    };
    let mut first = None;
    for description in &wanted.add {
        let id = next_id(plan);
        let goal = Goal {
            id: id.clone(),
            description: description.trim().to_owned(),
            reason: wanted.reason.clone().unwrap_or_default(),
            parent_id: parent.clone(),
            kind: GoalType::Normal,
            status: GoalStatus::Pending,
            summary: None,
            sub_trace_ids: None,
            agent_call_mode: None,
            sub_trace_metadata: None,
            self_stats: GoalStats::default(),
            cumulative_stats: GoalStats::default(),
            created_at: now,
        };
        plan.goals.insert(position, goal);
        events.push(PlanEvent::Added { id: id.clone(), position });
        position += 1;
        first.get_or_insert(id);
    }
    first.ok_or_else(|| "`add` is empty; describe what is to be reached".to_owned())
}

fn next_id(plan: &mut Plan) -> GoalId {
    let highest = plan.goals.iter().filter_map(|g| g.id.as_str().parse::<u64>().ok()).max().unwrap_or(0);
    plan.last_goal_id = plan.last_goal_id.max(highest) + 1;
    GoalId::new(plan.last_goal_id.to_string())
}

fn focus_on(plan: &mut Plan, id: &GoalId, events: &mut Vec<PlanEvent>) -> Result<(), String> {
    let goal = goal_mut(plan, id)?;
    match goal.status {
        GoalStatus::Pending => goal.status = GoalStatus::InProgress,
        GoalStatus::InProgress => {}
        GoalStatus::Completed | GoalStatus::Abandoned => {
            return Err(format!(
                "goal `{}` is {}; add a new goal for more work on it",
                goal.description,
                goal.status.word()
            ));
        }
    }
    plan.current_id = Some(id.clone());
    events.push(PlanEvent::Updated { id: id.clone() });
    Ok(())
}

/// Adds one goal in focus to an empty plan (B29).
pub fn add_root(plan: &mut Plan, description: &str, now: Timestamp) -> Vec<PlanEvent> {
    let wanted = PlanChange { add: vec![description.to_owned()], ..PlanChange::default() };
    change(plan, &wanted, now).unwrap_or_default()
}

/// How much of a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// For the periodic injection.
    Compact,
    /// With the summaries of all completed goals.
    WithSummaries,
}

/// The plan as text for the model (B50): indented `number. [status] description`, abandoned goals
/// left out, the focus marked, the reasons of the focused goal and its parents shown.
pub fn to_prompt(plan: &Plan, detail: Detail) -> String {
    let mut chain = BTreeSet::new();
    let mut next = plan.current_id.clone();
    while let Some(id) = next {
        next = plan.get(&id).and_then(|g| g.parent_id.clone());
        if !chain.insert(id) {
            break;
        }
    }
    let mut out = String::new();
    for entry in plan.numbered() {
        let Some(number) = entry.number else { continue };
        let goal = entry.goal;
        let indent = "  ".repeat(entry.depth);
        out.push_str(&format!("{indent}{number}. [{}] {}", goal.status.word(), goal.description));
        if plan.current_id.as_ref() == Some(&goal.id) {
            out.push_str("  <- focus");
        }
        out.push('\n');
        if chain.contains(&goal.id) && !goal.reason.is_empty() {
            out.push_str(&format!("{indent}   reason: {}\n", goal.reason));
        }
        if let (Detail::WithSummaries, GoalStatus::Completed, Some(summary)) = (detail, goal.status, &goal.summary) {
            out.push_str(&format!("{indent}   summary: {summary}\n"));
        }
    }
    out
}

/// Adds what one message cost to its goal and to the goals above it (B33).
pub fn charge(plan: &mut Plan, id: &GoalId, stats: &GoalStats) {
    let mut next = Some(id.clone());
    let mut own = true;
    let mut steps = 0;
    while let Some(goal) = next.as_ref().and_then(|id| plan.goals.iter_mut().find(|g| &g.id == id)) {
        if own {
            add_stats(&mut goal.self_stats, stats);
        }
        add_stats(&mut goal.cumulative_stats, stats);
        own = false;
        next = goal.parent_id.clone();
        steps += 1;
        if steps > 64 {
            break;
        }
    }
}

/// Counts anew what the messages of a path cost their goals; previews stay.
pub fn recount(plan: &mut Plan, messages: &Messages, path: &[Seq]) {
    for goal in &mut plan.goals {
        for stats in [&mut goal.self_stats, &mut goal.cumulative_stats] {
            *stats = GoalStats { preview: std::mem::take(&mut stats.preview), ..GoalStats::default() };
        }
    }
    for message in path.iter().filter_map(|sequence| messages.get(sequence)) {
        let Some(goal) = &message.goal_id else { continue };
        let stats = GoalStats {
            message_count: 1,
            total_tokens: message.prompt_tokens.unwrap_or(0) + message.completion_tokens.unwrap_or(0),
            total_cost: message.cost.unwrap_or(0.0),
            duration_ms: message.duration_ms.unwrap_or(0),
            preview: String::new(),
        };
        charge(plan, goal, &stats);
    }
}

fn add_stats(to: &mut GoalStats, stats: &GoalStats) {
    to.message_count += stats.message_count;
    to.total_tokens += stats.total_tokens;
    to.total_cost += stats.total_cost;
    to.duration_ms += stats.duration_ms;
    if !stats.preview.is_empty() {
        to.preview.clone_from(&stats.preview);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn run(plan: &mut Plan, wanted: PlanChange) -> Result<String, String> {
        change(plan, &wanted, Timestamp::UNIX_EPOCH)?;
        Ok(to_prompt(plan, Detail::Compact))
    }

    fn adding(goals: &[&str]) -> PlanChange {
        PlanChange { add: goals.iter().map(|g| (*g).to_owned()).collect(), ..PlanChange::default() }
    }

    fn plan() -> Plan {
        let mut plan = Plan { mission: "m".into(), ..Plan::default() };
        run(&mut plan, adding(&["read", "fix", "write"])).unwrap();
        run(&mut plan, PlanChange { under: Some("2".into()), ..adding(&["test", "code"]) }).unwrap();
        plan
    }

    #[test]
    fn goals_are_added_where_they_belong() {
        let mut plan = plan();
        let text = run(&mut plan, PlanChange { after: Some("2.1".into()), ..adding(&["between"]) }).unwrap();
        assert_eq!(
            text,
            "1. [in_progress] read  <- focus\n2. [pending] fix\n  2.1. [pending] test\n  2.2. [pending] between\n  2.3. [pending] code\n3. [pending] write\n"
        );
    }

    #[test]
    fn one_call_may_complete_add_and_focus() {
        let mut plan = plan();
        let wanted = PlanChange { done: Some("read it".into()), focus: Some("2.1".into()), ..adding(&["more"]) };
        let text = run(&mut plan, wanted).unwrap();
        assert!(text.contains("1. [completed] read\n"), "{text}");
        assert!(text.contains("2.1. [in_progress] test  <- focus"), "{text}");
        let text = run(&mut plan, PlanChange { done: Some("ok".into()), ..PlanChange::default() }).unwrap();
        assert!(text.contains("2. [pending] fix  <- focus"), "focus goes to the open parent: {text}");
    }

    #[test]
    fn a_goal_with_open_children_is_not_done() {
        let mut plan = plan();
        run(&mut plan, PlanChange { focus: Some("2".into()), ..PlanChange::default() }).unwrap();
        let before = plan.clone();
        let error = run(&mut plan, PlanChange { done: Some("x".into()), ..adding(&["y"]) }).unwrap_err();
        assert!(error.contains("2.1 test; 2.2 code"), "{error}");
        assert_eq!(plan, before, "a refused call changes nothing");
    }

    #[test]
    fn abandoning_takes_what_is_below_and_shifts_the_numbers() {
        let mut plan = plan();
        run(&mut plan, PlanChange { focus: Some("2".into()), ..PlanChange::default() }).unwrap();
        let text = run(&mut plan, PlanChange { abandon: Some("no need".into()), ..PlanChange::default() }).unwrap();
        assert_eq!(text, "1. [in_progress] read\n2. [pending] write\n");
        assert_eq!(plan.current_id, None);
        run(&mut plan, adding(&["next"])).unwrap();
        assert_eq!(plan.goals.last().unwrap().id.as_str(), "6", "ids are never handed out again");
    }

    #[test]
    fn wrong_calls_say_what_exists() {
        let mut plan = plan();
        let error = |plan: &mut Plan, wanted| run(plan, wanted).unwrap_err();
        assert_eq!(
            error(&mut plan, PlanChange { focus: Some("9".into()), ..PlanChange::default() }),
            "there is no goal `9`; the goals are 1, 2, 2.1, 2.2, 3"
        );
        assert!(error(&mut plan, PlanChange::default()).contains("nothing to do"));
        assert!(
            error(&mut plan, PlanChange { under: Some("1".into()), after: Some("2".into()), ..adding(&["x"]) })
                .contains("only one")
        );
        assert!(
            error(&mut Plan::default(), PlanChange { done: Some("x".into()), ..PlanChange::default() })
                .contains("no goal is in focus")
        );
    }
}
