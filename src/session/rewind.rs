//! Rewinding a session: messages, goals, working files, cycles and verdicts as one (B35–B39, E11).
//! The `rewind` event is the commit point; carrying it out is a row of steps that are safe to
//! repeat, so a start that finds a `rewind` without its `rewind_applied` finishes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::archive;
use super::context::Session;
use super::home::Home;
use super::models::{CycleRecord, Lineage, SessionRecord};
use super::snapshot::SnapshotStore;
use crate::events::data::{MessageHead, Plan};
use crate::events::event::{Envelope, Event, RewindRecord, Superseded, TraceBack};
use crate::events::log;
use crate::events::problem::Problem;
use crate::events::query::{FileDiff, RewindPreview, Timeline, TimelineMessage, TimelineTrace};
use crate::ids::{Seq, SnapshotId, TraceId};
use crate::trace::message::Message;
use crate::trace::store::{self, FileSystemTraceStore, TraceStore};
use crate::trace::tree::{self, Messages};
use crate::trace::{Trace, rewind as trace_rewind};

/// Most files whose difference a preview shows in full.
const SHOWN_FILES: usize = 100;

/// Most things a preview names that can't be rewound.
const SHOWN_EFFECTS: usize = 20;

/// A rewind that was worked out and not yet decided.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The trace it goes to.
    pub trace: TraceId,
    /// What will be written down.
    pub record: RewindRecord,
    /// Messages that leave the main path.
    pub leaving: Vec<MessageHead>,
    /// Messages that come back to it.
    pub returning: Vec<MessageHead>,
    /// Whether this goes to another branch.
    pub to_other_branch: bool,
    /// Effects that stay.
    pub not_rewound: Vec<String>,
}

/// Where a Worker trace belongs.
enum Belongs<'a> {
    Current(&'a CycleRecord),
    Aside(&'a Lineage, &'a CycleRecord),
}

fn find<'a>(record: &'a SessionRecord, trace: &TraceId) -> Option<Belongs<'a>> {
    let of = |c: &&CycleRecord| c.detail.worker_trace_id.as_ref() == Some(trace);
    if let Some(cycle) = record.cycles.iter().find(of) {
        return Some(Belongs::Current(cycle));
    }
    record.lineages.iter().rev().find_map(|l| l.cycles.iter().find(of).map(|c| Belongs::Aside(l, c)))
}

/// Works out what rewinding to message `to` of `trace` (absent: the newest cycle's Worker) means.
///
/// # Errors
/// There is no such message or trace; names what is valid.
pub fn plan(
    home: &Home,
    record: &SessionRecord,
    trace: Option<&TraceId>,
    to: Seq,
    message: Option<&str>,
) -> Result<Planned, Problem> {
    let newest = record.current().and_then(|c| c.detail.worker_trace_id.clone());
    let trace_id = trace.cloned().or(newest).ok_or_else(|| {
        Problem::usage("the session has no message to rewind to yet").hint("wait until its Worker has begun")
    })?;
    let belongs = find(record, &trace_id).ok_or_else(|| {
        let known: Vec<_> =
            record.cycles.iter().filter_map(|c| c.detail.worker_trace_id.as_ref()).map(TraceId::as_str).collect();
        Problem::usage(format!("`{trace_id}` is not a Worker trace of this session; there are {}", known.join(", ")))
    })?;
    let meta = store::read_trace(&home.traces(), &trace_id)?;
    let messages = store::read_messages(&home.traces(), &trace_id)?;
    let goals: Plan = read_plan(home, &trace_id)?;
    let events = log::read_filtered(&home.journal(), 0, |e| e.concerns(&trace_id))?.events;
    let head = meta.head_sequence;
    let mut rewind = trace_rewind::record(events.iter(), &meta, &goals, &messages, to).map_err(Problem::usage)?;
    let cut = tree::safe_cut(&messages, head, to).map_err(Problem::usage)?;
    fill_cycles(&mut rewind, record, &belongs, &trace_id, message);
    if rewind.undo {
        // The end comes back as it was, also when its trace was only put aside and never cut.
        rewind.goal_tree = trace_rewind::back_to(events.iter(), &meta, &goals, &messages, rewind.cut).goal_tree;
    }
    rewind.message = message.map(str::to_owned);
    rewind.snapshot_before.clone_from(&record.last_snapshot);
    rewind.snapshot_after = match find_lineage_end(record, &trace_id, rewind.cut).filter(|_| rewind.undo) {
        Some((_, cycle)) if cycle.detail.snapshot.is_some() => cycle.detail.snapshot.clone(),
        _ => snapshot_at(&events, &trace_id, &messages, rewind.cut).or_else(|| start_of(&belongs, record)),
    };
    rewind.others = others(home, record, &trace_id, &rewind)?;
    let Moved { leaving, returning, effects } = moved(record, home, &belongs, &messages, head, rewind.cut, &rewind)?;
    Ok(Planned {
        to_other_branch: !cut.on_main_path || matches!(belongs, Belongs::Aside(..)),
        not_rewound: effects,
        trace: trace_id,
        record: rewind,
        leaving,
        returning,
    })
}

fn read_plan(home: &Home, trace: &TraceId) -> Result<Plan, Problem> {
    let path = home.traces().join(trace.as_str()).join("goal.json");
    let content = std::fs::read(&path).map_err(|e| Problem::internal(format!("{}: {e}", path.display())))?;
    serde_json::from_slice(&content).map_err(|e| Problem::internal(format!("{}: {e}", path.display())))
}

fn start_of(belongs: &Belongs<'_>, record: &SessionRecord) -> Option<SnapshotId> {
    let (Belongs::Current(cycle) | Belongs::Aside(_, cycle)) = belongs;
    cycle.detail.snapshot_before.clone().or_else(|| record.first_snapshot.clone())
}

/// A session's end that a rewind put aside and that ended with exactly this message.
fn find_lineage_end<'a>(
    record: &'a SessionRecord,
    trace: &TraceId,
    cut: Seq,
) -> Option<(&'a Lineage, &'a CycleRecord)> {
    record.lineages.iter().rev().find_map(|lineage| {
        let last = lineage.cycles.last()?;
        let ends = last.detail.worker_trace_id.as_ref() == Some(trace) && last.worker_head == cut;
        ends.then_some((lineage, last))
    })
}

/// Which cycles are put aside and which come back.
fn fill_cycles(
    rewind: &mut RewindRecord,
    record: &SessionRecord,
    belongs: &Belongs<'_>,
    trace: &TraceId,
    message: Option<&str>,
) {
    let (Belongs::Current(target) | Belongs::Aside(_, target)) = belongs;
    rewind.cycle = target.detail.number;
    let end =
        find_lineage_end(record, trace, rewind.cut).filter(|(l, _)| message.is_none() && l.cycles != record.cycles);
    let number = record.next_lineage();
    if let Some((lineage, last)) = end {
        rewind.undo = true;
        rewind.cycle = last.detail.number;
        let same = common_prefix(&lineage.cycles, &record.cycles);
        rewind.superseded = aside(&record.cycles[same..], number);
        rewind.restored = aside(&lineage.cycles[same..], lineage.number);
        return;
    }
    match belongs {
        Belongs::Current(_) => {
            let later = record.cycles.iter().filter(|c| {
                c.detail.number > rewind.cycle
                    || (c.detail.number == rewind.cycle && (c.detail.archive.is_some() || c.detail.checker.is_some()))
            });
            rewind.superseded = later.map(|c| superseded(c, number)).collect();
        }
        Belongs::Aside(lineage, _) => {
            let wanted: Vec<CycleRecord> =
                lineage.cycles.iter().filter(|c| c.detail.number <= rewind.cycle).cloned().collect();
            let same = common_prefix(&wanted, &record.cycles);
            rewind.superseded = aside(&record.cycles[same..], number);
            rewind.restored = aside(&wanted[same..], lineage.number);
        }
    }
}

fn common_prefix(a: &[CycleRecord], b: &[CycleRecord]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn aside(cycles: &[CycleRecord], number: u32) -> Vec<Superseded> {
    cycles.iter().map(|c| superseded(c, number)).collect()
}

fn superseded(cycle: &CycleRecord, number: u32) -> Superseded {
    Superseded {
        cycle: cycle.detail.number,
        worker_trace_id: cycle.detail.worker_trace_id.clone(),
        checker_trace_id: cycle.detail.checker_trace_id.clone(),
        number,
    }
}

/// The newest snapshot on the path to `cut`.
fn snapshot_at(events: &[Envelope], trace: &TraceId, messages: &Messages, cut: Seq) -> Option<SnapshotId> {
    let mut taken: BTreeMap<Seq, SnapshotId> = BTreeMap::new();
    let mut last: Seq = 0;
    for envelope in events {
        match &envelope.event {
            Event::MessageAdded(added) => last = added.sequence,
            Event::Snapshot { snapshot, sequence: Some(sequence), .. } => {
                taken.insert(*sequence, snapshot.clone());
            }
            Event::Snapshot { snapshot, sequence: None, .. } => {
                taken.entry(last).or_insert_with(|| snapshot.clone());
            }
            _ => {
                if let Some((head, _)) = envelope.rewinds(trace) {
                    last = head;
                }
            }
        }
    }
    let path = tree::path_to(messages, cut);
    path.iter().rev().find_map(|s| taken.get(s).cloned()).or_else(|| taken.get(&0).cloned())
}

fn short(message: &Message) -> MessageHead {
    MessageHead {
        sequence: message.sequence,
        parent_sequence: message.parent_sequence,
        role: message.role.word().to_owned(),
        goal_id: message.goal_id.clone(),
        description: message.description.clone(),
    }
}

/// What a rewind does to messages.
struct Moved {
    leaving: Vec<MessageHead>,
    returning: Vec<MessageHead>,
    /// Effects of those that leave, which stay.
    effects: Vec<String>,
}

/// The cycle that a rewind brings back from what was put aside.
fn restored<'a>(record: &'a SessionRecord, restored: &Superseded) -> Option<&'a CycleRecord> {
    let lineage = record.lineages.iter().find(|l| l.number == restored.number)?;
    lineage.cycles.iter().find(|c| c.detail.number == restored.cycle)
}

/// Worker traces of other cycles that come back and whose head is elsewhere now.
fn others(
    home: &Home,
    record: &SessionRecord,
    own: &TraceId,
    rewind: &RewindRecord,
) -> Result<Vec<TraceBack>, Problem> {
    let mut others = Vec::new();
    for cycle in rewind.restored.iter().filter_map(|r| restored(record, r)) {
        let Some(trace) = cycle.detail.worker_trace_id.as_ref().filter(|t| *t != own) else { continue };
        let meta = store::read_trace(&home.traces(), trace)?;
        if meta.head_sequence == cycle.worker_head {
            continue;
        }
        let messages = store::read_messages(&home.traces(), trace)?;
        let events = log::read_filtered(&home.journal(), 0, |e| e.concerns(trace))?.events;
        let plan = read_plan(home, trace)?;
        others.push(trace_rewind::back_to(events.iter(), &meta, &plan, &messages, cycle.worker_head));
    }
    Ok(others)
}

/// What leaves the main path and what comes back, over all cycles that are put aside or restored.
fn moved(
    record: &SessionRecord,
    home: &Home,
    belongs: &Belongs<'_>,
    messages: &Messages,
    head: Seq,
    cut: Seq,
    rewind: &RewindRecord,
) -> Result<Moved, Problem> {
    let mut moved = Moved { leaving: Vec::new(), returning: Vec::new(), effects: Vec::new() };
    let before = match belongs {
        Belongs::Current(_) => tree::path_to(messages, head),
        Belongs::Aside(..) => Vec::new(),
    };
    moved.add(messages, before, tree::path_to(messages, cut));
    let (Belongs::Current(cycle) | Belongs::Aside(_, cycle)) = belongs;
    let worker = |c: &CycleRecord| c.detail.worker_trace_id.clone();
    let own = worker(cycle);
    let superseded = |c: &&CycleRecord| rewind.superseded.iter().any(|s| s.cycle == c.detail.number);
    let mut traces: Vec<TraceId> = record.cycles.iter().filter(superseded).filter_map(worker).collect();
    let back: BTreeMap<TraceId, Seq> = rewind
        .restored
        .iter()
        .filter_map(|r| restored(record, r))
        .filter_map(|c| Some((worker(c)?, c.worker_head)))
        .collect();
    traces.extend(back.keys().filter(|t| !record.cycles.iter().any(|c| worker(c).as_ref() == Some(t))).cloned());
    for trace in traces.iter().filter(|t| Some(*t) != own.as_ref()) {
        let others = store::read_messages(&home.traces(), trace)?;
        let now = record.cycles.iter().any(|c| worker(c).as_ref() == Some(trace));
        let now = if now { Some(store::read_trace(&home.traces(), trace)?.head_sequence) } else { None };
        let path = |head: Option<Seq>| head.map(|head| tree::path_to(&others, head)).unwrap_or_default();
        moved.add(&others, path(now), path(back.get(trace).copied()));
    }
    moved.effects.truncate(SHOWN_EFFECTS);
    Ok(moved)
}

impl Moved {
    /// One trace whose path was `before` and will be `after`.
    fn add(&mut self, messages: &Messages, before: Vec<Seq>, after: Vec<Seq>) {
        let (was, will_be): (BTreeSet<Seq>, BTreeSet<Seq>) =
            (before.into_iter().collect(), after.into_iter().collect());
        let heads = |of: BTreeSet<&Seq>| of.into_iter().filter_map(|s| messages.get(s)).map(short).collect::<Vec<_>>();
        self.leaving.extend(heads(was.difference(&will_be).collect()));
        self.returning.extend(heads(will_be.difference(&was).collect()));
        self.effects.extend(effects(messages, was.difference(&will_be)));
    }
}

/// What commands did outside the folder stays done.
fn effects<'a>(messages: &Messages, leaving: impl Iterator<Item = &'a Seq>) -> Vec<String> {
    let mut out = Vec::new();
    for message in leaving.filter_map(|sequence| messages.get(sequence)) {
        for call in message.tool_calls() {
            if call.function.name.contains("bash") {
                let arguments: serde_json::Value = serde_json::from_str(&call.function.arguments).unwrap_or_default();
                let command = arguments["command"].as_str().unwrap_or_default();
                out.push(format!("what `{}` did outside the folder", crate::stdx::bounded::first_line(command, 60)));
            }
        }
    }
    out
}

/// Everything a person wants to know before deciding. Blocking.
///
/// # Errors
/// As for [`plan`].
pub fn preview(
    home: &Home,
    record: &SessionRecord,
    snapshots: &SnapshotStore,
    trace: Option<&TraceId>,
    to: Seq,
) -> Result<RewindPreview, Problem> {
    let planned = plan(home, record, trace, to, None)?;
    let rewind = &planned.record;
    let internal = |e: super::snapshot::SnapshotError| Problem::internal(e.to_string());
    let (mut files, mut total) = (Vec::new(), 0);
    if let Some(after) = &rewind.snapshot_after {
        let changes = snapshots.diff(super::snapshot::View::Now, after).map_err(internal)?;
        let changes: Vec<_> = changes.into_iter().filter(|c| c.path != archive::OUTPUT).collect();
        total = changes.len();
        for change in changes.into_iter().take(SHOWN_FILES) {
            let text = snapshots.unified(super::snapshot::View::Now, after, &change.path).map_err(internal)?;
            files.push(FileDiff { change, unified: text.unified, note: text.note });
        }
    }
    let changed_by_person = changed_since_last(snapshots).map_err(internal)?;
    let goal = |plan: &Plan, id| plan.get(id).map(|g| g.description.clone());
    let (old, new) = (&rewind.goal_tree_snapshot, &rewind.goal_tree);
    let dropped = old.goals.iter().filter(|g| new.get(&g.id).is_none()).map(|g| g.description.clone());
    let reset = new.goals.iter().filter(|g| old.get(&g.id).is_some_and(|o| o.status != g.status));
    Ok(RewindPreview {
        trace: planned.trace.clone(),
        cycle: rewind.cycle,
        to,
        cut: rewind.cut,
        to_other_branch: planned.to_other_branch,
        goals_dropped: dropped.collect(),
        goals_reset: reset.filter_map(|g| goal(new, &g.id)).collect(),
        plan: new.clone(),
        cycles_undone: rewind.superseded.iter().map(|s| s.cycle).collect(),
        cycles_restored: rewind.restored.iter().map(|s| s.cycle).collect(),
        leaving: planned.leaving,
        returning: planned.returning,
        files,
        files_total: total,
        changed_by_person,
        not_rewound: planned.not_rewound,
        refused: None,
    })
}

/// Files that differ from the newest snapshot: the person changed them.
fn changed_since_last(snapshots: &SnapshotStore) -> super::snapshot::Result<Vec<String>> {
    match snapshots.newest() {
        Some(newest) => Ok(snapshots.changed_since(&newest)?.into_iter().filter(|p| p != archive::OUTPUT).collect()),
        None => Ok(Vec::new()),
    }
}

/// How a person wants a rewind done.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The trace; absent: the newest cycle's Worker.
    pub trace: Option<TraceId>,
    /// The message to go back to.
    pub to: Seq,
    /// Whether files go back too.
    pub restore_files: bool,
    /// Whether files that the person changed go back too.
    pub overwrite_changed: bool,
    /// What to do differently.
    pub message: Option<String>,
}

/// Decides a rewind and carries it out. Blocking. Returns what was decided.
///
/// # Errors
/// Nothing has changed when there is no `rewind` event yet; otherwise the next start goes on with it.
pub fn execute(session: &Session, wanted: &Wanted) -> Result<RewindRecord, Problem> {
    let record = session.record().clone();
    let message = wanted.message.as_deref();
    let mut planned = plan(&session.home, &record, wanted.trace.as_ref(), wanted.to, message)?;
    let internal = |e: super::snapshot::SnapshotError| Problem::internal(e.to_string());
    if wanted.restore_files {
        if !wanted.overwrite_changed {
            planned.record.keep = changed_since_last(&session.snapshots).map_err(internal)?;
        }
        planned.record.snapshot_before = Some(session.snapshots.take().map_err(internal)?.id);
    } else {
        planned.record.snapshot_after = None;
    }
    let event = Event::Rewind(Box::new(planned.record.clone()));
    let id = session.emit(Some(planned.record.cycle), Some(&planned.trace), event)?;
    apply(session, id, &planned.trace, &planned.record)?;
    Ok(planned.record)
}

/// Finishes a rewind that was decided and not carried out, after a crash.
///
/// # Errors
/// A step failed; the next start tries again.
pub fn finish_open(session: &Session) -> Result<(), Problem> {
    let Some(open) = session.record().open_rewind else { return Ok(()) };
    let events = log::read_filtered(&session.home.journal(), 0, |e| e.event_id == Some(open))?.events;
    match events.first() {
        Some(Envelope { trace_id: Some(trace), event: Event::Rewind(record), .. }) => {
            apply(session, open, trace, record)
        }
        _ => Ok(()),
    }
}

/// Brings head, plan, archive names and files to a rewind; each step is safe to repeat.
fn apply(session: &Session, event_id: u64, trace: &TraceId, rewind: &RewindRecord) -> Result<(), Problem> {
    let home = &session.home;
    let traces = FileSystemTraceStore::new(home.path(), session.recorder.clone());
    let mut meta: Trace = traces.get_trace(trace)?;
    meta.head_sequence = rewind.cut;
    meta.current_goal_id.clone_from(&rewind.goal_tree.current_id);
    meta.last_event_id = event_id;
    traces.update_plan(trace, &rewind.goal_tree)?;
    traces.update_trace(&meta)?;
    for other in &rewind.others {
        let mut meta = traces.get_trace(&other.trace_id)?;
        meta.head_sequence = other.head;
        meta.current_goal_id.clone_from(&other.goal_tree.current_id);
        traces.update_plan(&other.trace_id, &other.goal_tree)?;
        traces.update_trace(&meta)?;
    }
    for s in &rewind.superseded {
        archive::rename(home, &archive::archive_name(s.cycle), &archive::superseded_name(s.cycle, s.number))?;
    }
    for s in &rewind.restored {
        archive::rename(home, &archive::superseded_name(s.cycle, s.number), &archive::archive_name(s.cycle))?;
    }
    archive::refresh_newest(home, session.record().deliverable_cycle)?;
    let (mut kept, mut failed) = (Vec::new(), Vec::new());
    if let Some(after) = &rewind.snapshot_after {
        let restored = session.snapshots.restore(after, &rewind.keep).map_err(|e| Problem::internal(e.to_string()))?;
        (kept, failed) = (restored.kept, restored.failed);
    }
    let event = Event::RewindApplied { rewind_event_id: event_id, kept, failed };
    session.emit(Some(rewind.cycle), Some(trace), event)?;
    Ok(())
}

/// All messages one can rewind to, cycle by cycle, those put aside included. Blocking.
///
/// # Errors
/// A trace can't be read; names the file.
pub fn timeline(home: &Home, record: &SessionRecord) -> Result<Timeline, Problem> {
    let mut seen = BTreeSet::new();
    let mut traces = Vec::new();
    let current = record.cycles.iter().map(|c| (false, c));
    let aside = record.lineages.iter().flat_map(|l| l.cycles.iter().map(|c| (true, c)));
    let files = files_by_step(&home.journal())?;
    for (superseded, cycle) in current.chain(aside) {
        let Some(trace) = cycle.detail.worker_trace_id.clone() else { continue };
        if seen.insert(trace.clone()) {
            traces.push(timeline_trace(home, cycle.detail.number, superseded, trace, &files)?);
        }
    }
    traces.sort_by_key(|t| (t.cycle, t.superseded));
    Ok(Timeline { traces })
}

type Files = BTreeMap<(TraceId, Seq), Vec<String>>;

fn files_by_step(journal: &Path) -> Result<Files, Problem> {
    let events = log::read_filtered(journal, 0, |e| matches!(e.event, Event::Snapshot { sequence: Some(_), .. }))?;
    let mut files = Files::new();
    for envelope in events.events {
        if let (Some(trace), Event::Snapshot { sequence: Some(sequence), changed, .. }) =
            (envelope.trace_id, envelope.event)
        {
            files.insert((trace, sequence), changed.into_iter().map(|c| c.path).collect());
        }
    }
    Ok(files)
}

fn timeline_trace(
    home: &Home,
    cycle: u32,
    superseded: bool,
    trace: TraceId,
    files: &Files,
) -> Result<TimelineTrace, Problem> {
    let meta = store::read_trace(&home.traces(), &trace)?;
    let messages = store::read_messages(&home.traces(), &trace)?;
    let plan = read_plan(home, &trace)?;
    let numbers: BTreeMap<_, _> = plan.numbered().into_iter().map(|n| (n.goal.id.clone(), n.number)).collect();
    let path: BTreeSet<Seq> = tree::path_to(&messages, meta.head_sequence).into_iter().collect();
    let entry = |m: &Message| TimelineMessage {
        head: short(m),
        at: m.created_at,
        on_path: !superseded && path.contains(&m.sequence),
        goal: m.goal_id.as_ref().and_then(|g| numbers.get(g).cloned().flatten()),
        files: files.get(&(trace.clone(), m.sequence)).cloned().unwrap_or_default(),
    };
    let messages = messages.values().map(entry).collect();
    Ok(TimelineTrace { cycle, superseded, head: meta.head_sequence, messages, trace })
}
