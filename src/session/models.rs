//! A session as data: the fold of its journal, kept in `state/session.json` (A25). The journal is
//! the truth; this is its cache.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::data::{
    Budget, Contract, Gate, Outcome, PermissionMode, Place, Role, SessionStatus, Totals, UserMessageState, Verdict,
};
use crate::events::event::{Envelope, Event, PerRole, RewindRecord, SessionStart};
use crate::events::query::{CycleDetail, SessionDetail, SessionSummary};
use crate::ids::{Seq, SessionId, SnapshotId};
use crate::stdx::bounded;
use crate::stdx::clock::serde_rfc3339;

/// Format version of journal and state files.
pub const FORMAT: u32 = 1;

/// One cycle, with what going on needs besides what is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CycleRecord {
    /// What is shown of it.
    #[serde(flatten)]
    pub detail: CycleDetail,
    /// What the Worker was given.
    pub input: Value,
    /// What the harness found.
    pub gates: Vec<Gate>,
    /// Newest message of the Worker's main path.
    pub worker_head: Seq,
}

impl CycleRecord {
    /// The verdict, once there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.detail.checker.as_ref().and_then(|c| c.verdict)
    }
}

/// What a rewind put aside: the session as it stood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// `n` of `__output_cycle_0002.superseded-n.json`.
    pub number: u32,
    /// Its cycles.
    pub cycles: Vec<CycleRecord>,
    /// Its status.
    pub status: SessionStatus,
    /// How it had ended.
    pub outcome: Option<Outcome>,
}

/// A person's message that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// Names it.
    pub message_id: String,
    /// Its text.
    pub text: String,
    /// Whether it waits for the next cycle rather than the next step.
    pub next_cycle: bool,
}

/// A session as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Format version.
    pub format: u32,
    /// The newest event this knows.
    pub last_event_id: u64,
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// Task and acceptance conditions.
    pub task: Contract,
    /// Hash of the contract in force.
    pub contract_hash: String,
    /// Where it works.
    pub place: Place,
    /// Where it was launched.
    pub launched_from: PathBuf,
    /// Names of its profiles.
    pub profiles: PerRole<String>,
    /// `PROVIDER/MODEL` of each role.
    pub models: PerRole<String>,
    /// Whether a scripted model is at work.
    pub scripted: bool,
    /// Cycles allowed.
    pub max_cycles: u32,
    /// Turns allowed in one run.
    pub max_turns: PerRole<u32>,
    /// Limits of the whole session.
    pub budget: Budget,
    /// Limits of each role.
    pub role_budgets: PerRole<Budget>,
    /// What tools may do unasked.
    pub permission_mode: PermissionMode,
    /// Where it stands.
    pub status: SessionStatus,
    /// How its last stretch ended.
    pub outcome: Option<Outcome>,
    /// Whether it waits for a person.
    pub waiting: bool,
    /// Its cycles.
    pub cycles: Vec<CycleRecord>,
    /// What rewinds put aside.
    #[serde(default)]
    pub lineages: Vec<Lineage>,
    /// Messages that wait.
    #[serde(default)]
    pub queued: Vec<QueuedMessage>,
    /// What everything cost.
    pub totals: Totals,
    /// The same by role.
    pub role_totals: PerRole<Totals>,
    /// The cycle whose output is the newest valid one.
    pub deliverable_cycle: Option<u32>,
    /// The files as they were at the start.
    pub first_snapshot: Option<SnapshotId>,
    /// The newest record of the files.
    pub last_snapshot: Option<SnapshotId>,
    /// When it was launched.
    #[serde(with = "serde_rfc3339")]
    pub created_at: Timestamp,
    /// When something happened last.
    #[serde(with = "serde_rfc3339")]
    pub active_at: Timestamp,
    /// Time of running of the stretches that ended, in milliseconds.
    #[serde(default)]
    pub ran_ms: u64,
    /// When the stretch that runs began.
    #[serde(default, with = "serde_rfc3339::option")]
    pub running_since: Option<Timestamp>,
    /// When its last stretch ended.
    #[serde(default, with = "serde_rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    /// A rewind that was decided and not yet carried out: its event id.
    #[serde(default)]
    pub open_rewind: Option<u64>,
}

impl SessionRecord {
    /// The fold of a whole journal; none when it does not begin with `session_start`.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Envelope>) -> Option<Self> {
        let mut events = events.into_iter();
        let first = events.next()?;
        let Event::SessionStart(start) = &first.event else { return None };
        let mut record = Self::start(first, start);
        for envelope in events {
            record.apply(envelope);
        }
        Some(record)
    }

    /// A session that has just been created.
    pub fn start(envelope: &Envelope, start: &SessionStart) -> Self {
        Self {
            format: start.format,
            last_event_id: envelope.event_id.unwrap_or(0),
            id: envelope.session_id.clone(),
            name: start.name.clone(),
            task: Contract {
                objective: start.objective.clone(),
                expected_output: start.expected_output.clone(),
                inputs: start.inputs.clone(),
                checks: start.checks.clone(),
                protected: start.protected.clone(),
            },
            contract_hash: String::new(),
            place: start.workspace.clone(),
            launched_from: start.launched_from.clone(),
            profiles: start.profiles.clone(),
            models: start.models.clone(),
            scripted: start.scripted,
            max_cycles: start.max_cycles,
            max_turns: start.max_turns.clone(),
            budget: start.budget,
            role_budgets: start.role_budgets.clone(),
            permission_mode: start.permission_mode,
            status: SessionStatus::Running,
            outcome: None,
            waiting: false,
            cycles: Vec::new(),
            lineages: Vec::new(),
            queued: Vec::new(),
            totals: Totals::default(),
            role_totals: PerRole::default(),
            deliverable_cycle: None,
            first_snapshot: None,
            last_snapshot: None,
            created_at: envelope.at,
            active_at: envelope.at,
            ran_ms: 0,
            running_since: Some(envelope.at),
            ended_at: None,
            open_rewind: None,
        }
    }

    /// Takes one more event. An event it already knows changes nothing.
    pub fn apply(&mut self, envelope: &Envelope) {
        let Some(event_id) = envelope.event_id else { return };
        if event_id <= self.last_event_id {
            return;
        }
        self.last_event_id = event_id;
        self.active_at = envelope.at;
        match &envelope.event {
            Event::Contract { hash, contract, max_cycles, .. } => {
                self.contract_hash.clone_from(hash);
                self.task = contract.as_ref().clone();
                self.max_cycles = *max_cycles;
            }
            Event::SessionResumed { max_cycles, worker_model, checker_model, .. } => {
                self.status = SessionStatus::Running;
                self.outcome = None;
                self.max_cycles = *max_cycles;
                self.models = PerRole { worker: worker_model.clone(), checker: checker_model.clone() };
                self.running_since = Some(envelope.at);
            }
            Event::BudgetSet { budget } => self.budget = *budget,
            Event::Rewind(record) => self.rewind(event_id, record),
            Event::RewindApplied { .. } => self.open_rewind = None,
            Event::UserMessage { message_id, text, state } => self.user_message(message_id, text, *state),
            Event::PermissionRequest { .. } | Event::Question { .. } => self.waiting = true,
            Event::PermissionAnswer { .. } | Event::Answer { .. } => self.waiting = false,
            Event::Usage { role, totals, .. } => self.spend(envelope.cycle, *role, totals),
            Event::WorkerToolResult(_) => self.tool_call(envelope.cycle, Role::Worker),
            Event::CheckerToolResult(_) => self.tool_call(envelope.cycle, Role::Checker),
            Event::SessionComplete { outcome, .. }
            | Event::SessionFailed { outcome, .. }
            | Event::SessionStopped { outcome, .. }
            | Event::SessionError { outcome, .. } => self.close(envelope.at, *outcome),
            _ => self.apply_to_cycle(envelope),
        }
    }

    fn apply_to_cycle(&mut self, envelope: &Envelope) {
        if let Event::Snapshot { snapshot, .. } = &envelope.event {
            self.first_snapshot.get_or_insert_with(|| snapshot.clone());
            self.last_snapshot = Some(snapshot.clone());
        }
        let Some(number) = envelope.cycle else { return };
        if let Event::CycleStart { input_payload } = &envelope.event {
            let detail = CycleDetail { number, snapshot_before: self.last_snapshot.clone(), ..CycleDetail::default() };
            self.cycles.retain(|c| c.detail.number < number);
            self.cycles.push(CycleRecord { detail, input: input_payload.clone(), ..CycleRecord::default() });
            return;
        }
        let Some(cycle) = self.cycles.iter_mut().find(|c| c.detail.number == number) else { return };
        let detail = &mut cycle.detail;
        match &envelope.event {
            Event::WorkerStart { .. } => {
                detail.worker_trace_id.clone_from(&envelope.trace_id);
                detail.worker = None;
            }
            Event::MessageAdded(added) if envelope.trace_id == detail.worker_trace_id => {
                cycle.worker_head = added.sequence;
            }
            Event::Snapshot { snapshot, .. } => {
                detail.snapshot_before.get_or_insert_with(|| snapshot.clone());
            }
            Event::WorkerComplete { result } => detail.worker = Some(result.as_ref().clone()),
            Event::GateResult(gate) => {
                cycle.gates.retain(|g| g.name != gate.name || g.detail != gate.detail);
                cycle.gates.push(gate.clone());
            }
            Event::CheckerStart { .. } => {
                detail.checker_trace_id.clone_from(&envelope.trace_id);
                detail.checker = None;
            }
            Event::CheckerComplete { result } => detail.checker = Some(result.as_ref().clone()),
            Event::CycleEnd { archive, snapshot, .. } => {
                detail.archive.clone_from(archive);
                detail.snapshot.clone_from(snapshot);
                detail.ended = true;
            }
            Event::OutputTaken { archive, valid } => {
                detail.archive = Some(archive.clone());
                if *valid {
                    self.deliverable_cycle = Some(number);
                }
            }
            _ => {}
        }
    }

    fn spend(&mut self, cycle: Option<u32>, role: Role, totals: &Totals) {
        self.totals.add(totals);
        self.role_totals.of_mut(role).add(totals);
        if let Some(cycle) = self.cycles.iter_mut().find(|c| Some(c.detail.number) == cycle) {
            cycle.detail.totals.of_mut(role).add(totals);
        }
    }

    fn tool_call(&mut self, cycle: Option<u32>, role: Role) {
        self.spend(cycle, role, &Totals { tool_calls: 1, ..Totals::default() });
    }

    fn close(&mut self, at: Timestamp, outcome: Outcome) {
        self.status = outcome.status();
        self.outcome = Some(outcome);
        self.waiting = false;
        self.ended_at = Some(at);
        self.ran_ms += self.running_ms(at);
        self.running_since = None;
    }

    fn user_message(&mut self, message_id: &str, text: &str, state: UserMessageState) {
        let known = self.queued.iter_mut().find(|m| m.message_id == message_id);
        match (state, known) {
            (UserMessageState::Delivered, _) => self.queued.retain(|m| m.message_id != message_id),
            (UserMessageState::Edited, _) if text.is_empty() => self.queued.retain(|m| m.message_id != message_id),
            (UserMessageState::Edited, Some(message)) => text.clone_into(&mut message.text),
            (UserMessageState::Edited, None) => {}
            (UserMessageState::Queued | UserMessageState::NextCycle, _) => self.queued.push(QueuedMessage {
                message_id: message_id.to_owned(),
                text: text.to_owned(),
                next_cycle: state == UserMessageState::NextCycle,
            }),
        }
    }

    fn rewind(&mut self, event_id: u64, record: &RewindRecord) {
        let number = self.next_lineage();
        let before = Lineage { number, cycles: self.cycles.clone(), status: self.status, outcome: self.outcome };
        let superseded = |c: &CycleRecord| record.superseded.iter().any(|s| s.cycle == c.detail.number);
        self.cycles.retain(|c| !superseded(c) || c.detail.number == record.cycle);
        for restored in &record.restored {
            let from = self.lineages.iter().find(|l| l.number == restored.number);
            let cycle = from.and_then(|l| l.cycles.iter().find(|c| c.detail.number == restored.cycle));
            if let Some(cycle) = cycle {
                self.cycles.retain(|c| c.detail.number != restored.cycle);
                self.cycles.push(cycle.clone());
            }
        }
        self.cycles.sort_by_key(|c| c.detail.number);
        self.cycles.retain(|c| c.detail.number <= record.cycle);
        if record.undo {
            let from = record.restored.first().and_then(|r| self.lineages.iter().find(|l| l.number == r.number));
            (self.status, self.outcome) = from.map_or((self.status, self.outcome), |l| (l.status, l.outcome));
        } else {
            // What it had ended as is undone with its cycles.
            (self.status, self.outcome) = (SessionStatus::Stopped, Some(Outcome::Stopped));
        }
        let again = self.cycles.iter_mut().find(|c| c.detail.number == record.cycle && !record.undo);
        if let Some(cycle) = again {
            let detail = &mut cycle.detail;
            (detail.worker, detail.checker, detail.checker_trace_id) = (None, None, None);
            (detail.archive, detail.snapshot, detail.ended) = (None, None, false);
            cycle.gates.clear();
            cycle.worker_head = record.cut;
        }
        self.lineages.push(before);
        self.deliverable_cycle = self.newest_valid();
        if record.snapshot_after.is_some() {
            self.last_snapshot.clone_from(&record.snapshot_after);
        }
        self.open_rewind = Some(event_id);
    }

    /// Number that the next rewind's superseded archives get.
    pub fn next_lineage(&self) -> u32 {
        self.lineages.last().map_or(1, |l| l.number + 1)
    }

    fn newest_valid(&self) -> Option<u32> {
        let valid = |c: &&CycleRecord| c.detail.worker.as_ref().is_some_and(|w| w.output.get("summary").is_some());
        self.cycles.iter().rev().find(valid).map(|c| c.detail.number)
    }

    /// The cycle that is under way or ended last.
    pub fn current(&self) -> Option<&CycleRecord> {
        self.cycles.last()
    }

    /// Time of running until `now`, in milliseconds.
    pub fn running_ms(&self, now: Timestamp) -> u64 {
        let open = self.running_since.map_or(0, |since| now.as_millisecond() - since.as_millisecond());
        u64::try_from(open).unwrap_or(0)
    }

    /// What everything cost until `now`, with the time of running.
    pub fn totals_at(&self, now: Timestamp) -> Totals {
        Totals { duration_ms: self.ran_ms + self.running_ms(now), ..self.totals }
    }

    /// The line of the list.
    pub fn summary(&self, home: PathBuf) -> SessionSummary {
        SessionSummary {
            id: self.id.clone(),
            name: self.name.clone(),
            objective: bounded::first_line(&self.task.objective, 120),
            status: self.status,
            outcome: self.outcome,
            waiting: self.waiting,
            elsewhere: false,
            cycle: self.current().map_or(0, |c| c.detail.number),
            max_cycles: self.max_cycles,
            verdicts: self.cycles.iter().filter(|c| c.detail.ended).map(CycleRecord::verdict).collect(),
            totals: self.totals_at(self.active_at),
            home,
            dir: self.place.dir.clone(),
            scripted: self.scripted,
            created_at: self.created_at,
            active_at: self.active_at,
            broken: None,
        }
    }

    /// The whole session, without its deliverable's content.
    pub fn detail(&self, home: PathBuf, deliverable: Option<Value>) -> SessionDetail {
        SessionDetail {
            summary: self.summary(home),
            contract: self.task.clone(),
            place: self.place.clone(),
            models: self.models.clone(),
            cycles: self.cycles.iter().map(|c| c.detail.clone()).collect(),
            deliverable,
            deliverable_cycle: self.deliverable_cycle,
        }
    }
}
