//! The cycles of a session: gates, verdict with its evidence, deliverable, cost.

use jiff::Timestamp;

use super::activity::{Activity, RowId};
use super::plan::Plans;
use crate::events::data::{
    Artifact, ChangeKind, CheckerResult, Deliverable, FileChange, Gate, Plan, Verdict, VerdictBy, WorkerResult,
};
use crate::events::event::{CycleTotals, Envelope, Event, RewindRecord, Superseded};
use crate::ids::{SnapshotId, TraceId};

/// One cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    /// From 1.
    pub number: u32,
    /// The Worker's trace.
    pub worker_trace: Option<TraceId>,
    /// The Checker's trace.
    pub checker_trace: Option<TraceId>,
    /// The gates looked at.
    pub gates: Vec<Gate>,
    /// What the Worker left.
    pub worker: Option<WorkerResult>,
    /// Who renders the verdict, once that began.
    pub by: Option<VerdictBy>,
    /// The verdict and what stands behind it.
    pub checker: Option<CheckerResult>,
    /// The verdict as it was settled at the end; the inner none is unverified.
    pub verdict: Option<Option<Verdict>>,
    /// The archived output below the session's home.
    pub archive: Option<String>,
    /// The files at its start.
    pub snapshot_before: Option<SnapshotId>,
    /// The files that were judged, or the newest ones while it runs.
    pub snapshot: Option<SnapshotId>,
    /// What it cost.
    pub totals: CycleTotals,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its first row of the activity.
    pub first_row: RowId,
    /// Its last one, once it has ended.
    pub last_row: Option<RowId>,
    /// Its plan as it was at the end.
    pub plan: Option<Plan>,
    /// Whether the contract was changed by the person before it.
    pub contract_changed: bool,
}

/// What a cycle handed in.
#[derive(Clone, Debug, PartialEq)]
pub enum HandedIn {
    /// The Worker is not done.
    NotYet,
    /// It left nothing, or nothing that can be read; and why.
    Nothing(String),
    /// Its `__output.json`.
    Output(Box<Deliverable>),
}

impl Cycle {
    fn new(number: u32, at: Timestamp, first_row: RowId) -> Self {
        Self {
            number,
            worker_trace: None,
            checker_trace: None,
            gates: Vec::new(),
            worker: None,
            by: None,
            checker: None,
            verdict: None,
            archive: None,
            snapshot_before: None,
            snapshot: None,
            totals: CycleTotals::default(),
            started_at: at,
            ended_at: None,
            first_row,
            last_row: None,
            plan: None,
            contract_changed: false,
        }
    }

    /// What it handed in.
    pub fn handed_in(&self) -> HandedIn {
        let Some(worker) = &self.worker else { return HandedIn::NotYet };
        let why = || worker.error.clone().unwrap_or_else(|| "there is no __output.json".to_owned());
        match serde_json::from_value::<Deliverable>(worker.output.clone()) {
            Ok(output) => HandedIn::Output(Box::new(output)),
            Err(_) => HandedIn::Nothing(why()),
        }
    }

    /// The files that differ from the start of the cycle, those of the deliverable first.
    pub fn files(&self) -> Vec<FileEntry> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let mut files: Vec<FileEntry> = worker
            .artifacts
            .iter()
            .map(|artifact| FileEntry {
                path: artifact.path.clone(),
                claimed: true,
                exists: artifact.exists,
                change: self.change_of(worker, artifact),
            })
            .collect();
        for change in &worker.changed {
            if !files.iter().any(|f| f.path == change.path) {
                let path = change.path.clone();
                files.push(FileEntry { path, claimed: false, exists: true, change: Some(change.clone()) });
            }
        }
        files
    }

    /// What this cycle did to a file, or how it differs from the session's start where that is
    /// not known.
    fn change_of(&self, worker: &WorkerResult, artifact: &Artifact) -> Option<FileChange> {
        let own = worker.changed.iter().find(|c| c.path == artifact.path);
        if own.is_none() && self.number > 1 && !worker.changed.is_empty() && artifact.exists {
            let path = artifact.path.clone();
            return Some(FileChange { path, kind: ChangeKind::Unchanged, added: None, removed: None });
        }
        own.or(artifact.change.as_ref()).cloned()
    }

    fn is(&self, superseded: &Superseded) -> bool {
        self.number == superseded.cycle
            && (superseded.worker_trace_id.is_none() || self.worker_trace == superseded.worker_trace_id)
    }
}

/// A file of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Path below the working directory.
    pub path: String,
    /// Whether the deliverable names it.
    pub claimed: bool,
    /// Whether it is there.
    pub exists: bool,
    /// How it differs, when that is known.
    pub change: Option<FileChange>,
}

/// All cycles.
#[derive(Clone, Debug, Default)]
pub struct Cycles {
    main: Vec<Cycle>,
    aside: Vec<Cycle>,
    newest_snapshot: Option<SnapshotId>,
    contract_changed: bool,
}

impl Cycles {
    /// Those on the main path, in order.
    pub fn all(&self) -> &[Cycle] {
        &self.main
    }

    /// The newest one.
    pub fn last(&self) -> Option<&Cycle> {
        self.main.last()
    }

    /// The one with this number.
    pub fn get(&self, number: u32) -> Option<&Cycle> {
        self.main.iter().rev().find(|c| c.number == number)
    }

    /// Those up to this number.
    pub fn up_to(&self, number: u32) -> &[Cycle] {
        let end = self.main.iter().position(|c| c.number > number).unwrap_or(self.main.len());
        &self.main[..end]
    }

    /// The newest one that handed something in.
    pub fn newest_output(&self) -> Option<&Cycle> {
        self.main.iter().rev().find(|c| matches!(c.handed_in(), HandedIn::Output(_)))
    }

    pub(super) fn apply(&mut self, envelope: &Envelope, plans: &Plans, activity: &Activity) {
        match &envelope.event {
            Event::CycleStart { .. } => self.start(envelope, activity),
            Event::Contract { by, .. } => self.contract_changed = by == "person",
            Event::Snapshot { snapshot, .. } => {
                self.newest_snapshot = Some(snapshot.clone());
                if let Some(cycle) = self.main.last_mut() {
                    cycle.snapshot_before.get_or_insert_with(|| snapshot.clone());
                    cycle.snapshot = Some(snapshot.clone());
                }
            }
            Event::Rewind(record) => self.rewind(record),
            _ => self.apply_to_cycle(envelope, plans, activity),
        }
    }

    fn start(&mut self, envelope: &Envelope, activity: &Activity) {
        let number = envelope.cycle.unwrap_or_else(|| self.main.last().map_or(1, |c| c.number + 1));
        // The row of this very event is the newest.
        let first_row = RowId(u32::try_from(activity.len().saturating_sub(1)).unwrap_or(u32::MAX));
        self.main.retain(|c| c.number != number);
        let mut cycle = Cycle::new(number, envelope.at, first_row);
        cycle.snapshot_before.clone_from(&self.newest_snapshot);
        cycle.snapshot.clone_from(&self.newest_snapshot);
        cycle.contract_changed = std::mem::take(&mut self.contract_changed);
        self.main.push(cycle);
    }

    fn apply_to_cycle(&mut self, envelope: &Envelope, plans: &Plans, activity: &Activity) {
        let Some(number) = envelope.cycle else { return };
        let Some(cycle) = self.main.iter_mut().rev().find(|c| c.number == number) else { return };
        match &envelope.event {
            Event::WorkerStart { .. } => {
                cycle.worker_trace.clone_from(&envelope.trace_id);
                cycle.gates.clear();
            }
            Event::WorkerComplete { result } => cycle.worker = Some(result.as_ref().clone()),
            Event::GateResult(gate) => {
                cycle.gates.retain(|g| g.name != gate.name || g.detail != gate.detail);
                cycle.gates.push(gate.clone());
            }
            Event::CheckerStart { by, .. } => {
                cycle.checker_trace.clone_from(&envelope.trace_id);
                cycle.by = Some(*by);
            }
            Event::CheckerComplete { result } => cycle.checker = Some(result.as_ref().clone()),
            Event::CycleEnd { verdict, archive, snapshot, totals, .. } => {
                cycle.verdict = Some(*verdict);
                cycle.archive.clone_from(archive);
                if snapshot.is_some() {
                    cycle.snapshot.clone_from(snapshot);
                }
                cycle.totals = totals.clone();
                cycle.ended_at = Some(envelope.at);
                cycle.last_row = activity.last_id();
                cycle.plan = cycle.worker_trace.as_ref().and_then(|trace| plans.of(trace)).cloned();
            }
            _ => {}
        }
    }

    /// Undone cycles go aside, those of an undone rewind come back, and the cycle that goes on has
    /// no verdict any more.
    fn rewind(&mut self, record: &RewindRecord) {
        let (aside, main): (Vec<_>, Vec<_>) = std::mem::take(&mut self.main).into_iter().partition(|c| {
            c.number > record.cycle || record.superseded.iter().any(|s| c.is(s) && s.cycle > record.cycle)
        });
        self.main = main;
        self.aside.extend(aside);
        for restored in &record.restored {
            if let Some(place) = self.aside.iter().rposition(|c| c.is(restored)) {
                let cycle = self.aside.remove(place);
                if let Some(now) = self.main.iter().position(|c| c.number == cycle.number) {
                    self.aside.push(self.main.remove(now));
                }
                self.main.push(cycle);
            }
        }
        self.main.sort_by_key(|c| c.number);
        if record.snapshot_after.is_some() {
            self.newest_snapshot.clone_from(&record.snapshot_after);
        }
        let is_restored = record.restored.iter().any(|s| s.cycle == record.cycle);
        let Some(cycle) = self.main.iter_mut().find(|c| c.number == record.cycle).filter(|_| !is_restored) else {
            return;
        };
        if cycle.worker.is_some() || cycle.checker.is_some() {
            self.aside.push(cycle.clone());
        }
        cycle.worker = None;
        cycle.checker = None;
        cycle.by = None;
        cycle.verdict = None;
        cycle.archive = None;
        cycle.ended_at = None;
        cycle.last_row = None;
        cycle.plan = None;
        cycle.gates.clear();
        cycle.snapshot.clone_from(&self.newest_snapshot);
    }
}
