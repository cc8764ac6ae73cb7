//! Everything that can happen in a session, as one closed list (A4, B118, cli.md).

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::data::{
    Budget, CallRef, CheckerResult, Contract, FileChange, Gate, Goal, Outcome, Permission, Place, Plan, Role, Totals,
    UserMessageState, Verdict, VerdictBy, WorkerResult,
};
use crate::ids::{GoalId, Seq, SessionId, SnapshotId, TraceId};
use crate::stdx::clock::serde_rfc3339;

/// Longest text of one field of an event, in bytes; the rest comes by query.
pub const PREVIEW_BYTES: usize = 4096;

/// An event with its envelope, as one line of the journal (A4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Rises by one within a session, over its traces too; deltas have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<u64>,
    /// When it happened: UTC, RFC 3339, milliseconds.
    #[serde(with = "serde_rfc3339")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The cycle it belongs to; null before the first.
    pub cycle: Option<u32>,
    /// The trace it belongs to; null where there is none.
    pub trace_id: Option<TraceId>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Envelope {
    /// The head and the plan that a rewind brings `trace` to; none when this is no rewind of it.
    pub fn rewinds(&self, trace: &TraceId) -> Option<(Seq, &Plan)> {
        let Event::Rewind(record) = &self.event else { return None };
        if self.trace_id.as_ref() == Some(trace) {
            return Some((record.cut, &record.goal_tree));
        }
        let other = record.others.iter().find(|other| other.trace_id == *trace)?;
        Some((other.head, &other.goal_tree))
    }

    /// Whether it belongs to `trace` or moves it.
    pub fn concerns(&self, trace: &TraceId) -> bool {
        self.trace_id.as_ref() == Some(trace) || self.rewinds(trace).is_some()
    }
}

/// What happened. Names and order are part of the contract with other programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A new session is created.
    SessionStart(Box<SessionStart>),
    /// The contract was fixed or changed.
    Contract {
        /// BLAKE3 of the canonical contract, in hexadecimal.
        hash: String,
        /// `start` or `person`.
        by: String,
        /// The contract.
        contract: Box<Contract>,
        /// Cycles allowed from now on.
        max_cycles: u32,
    },
    /// What the harness really holds the Worker within.
    Boundary {
        /// Level in force: `none` for commands that are not confined.
        level: String,
        /// What that means, in a sentence.
        detail: String,
    },
    /// A cycle begins.
    CycleStart {
        /// What the Worker is given as input.
        input_payload: Value,
    },
    /// Before the Worker is called.
    WorkerStart {
        /// The model.
        model: String,
    },
    /// The Worker uses a tool.
    WorkerToolCall(ToolCallEvent),
    /// That tool has finished.
    WorkerToolResult(ToolResultEvent),
    /// The Worker returned.
    WorkerComplete {
        /// What it left.
        result: Box<WorkerResult>,
    },
    /// `__output.json` was taken from the working directory into the archive.
    OutputTaken {
        /// The archived file below the session's home.
        archive: String,
        /// Whether it is valid, and so the session's newest deliverable.
        valid: bool,
    },
    /// One gate was looked at.
    GateResult(Gate),
    /// Before the Checker is called.
    CheckerStart {
        /// The model; null when the gates decide alone.
        model: Option<String>,
        /// Who will render the verdict.
        by: VerdictBy,
    },
    /// The Checker uses a tool.
    CheckerToolCall(ToolCallEvent),
    /// That tool has finished.
    CheckerToolResult(ToolResultEvent),
    /// A message of the Checker, whole.
    CheckerStream {
        /// Its text.
        text: String,
    },
    /// The Checker returned its verdict.
    CheckerComplete {
        /// The verdict and what stands behind it.
        result: Box<CheckerResult>,
    },
    /// After the verdict.
    CycleEnd {
        /// The verdict; null when the cycle could not be verified.
        verdict: Option<Verdict>,
        /// The archived output, below the session's home; null when none was handed in.
        archive: Option<String>,
        /// The snapshot that was judged.
        snapshot: Option<SnapshotId>,
        /// What happens next: `next_cycle`, `session_complete`, `session_failed`, `session_error`.
        next: String,
        /// What the cycle cost.
        totals: CycleTotals,
    },
    /// The task has passed verification.
    SessionComplete {
        /// Always `passed`.
        outcome: Outcome,
        /// Cycles used.
        cycles: u32,
        /// The normalised `__output.json`.
        deliverable: Value,
        /// What everything cost.
        totals: Totals,
    },
    /// The cycles are used up.
    SessionFailed {
        /// Always `not_passed`.
        outcome: Outcome,
        /// Cycles used.
        cycles: u32,
        /// Why the last cycle did not pass.
        reason: String,
        /// What everything cost.
        totals: Totals,
    },
    /// A person, a limit or a question nobody could answer stopped it.
    SessionStopped {
        /// Which of them.
        outcome: Outcome,
        /// The same in words.
        reason: String,
        /// What everything cost.
        totals: Totals,
    },
    /// An exception occurred.
    SessionError {
        /// `provider_error`, `unverified` or `internal_error`.
        outcome: Outcome,
        /// What was being done: `worker`, `checker`, `storage`, …
        stage: String,
        /// What failed and why.
        cause: String,
        /// What to do about it.
        remedy: String,
        /// What everything cost.
        totals: Totals,
    },
    /// It goes on.
    SessionResumed {
        /// How the stretch before had ended.
        after: Outcome,
        /// What is done first: `worker`, `checker` or `cycle`.
        from: String,
        /// Cycles allowed from now on.
        max_cycles: u32,
        /// The person's message, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The models from now on.
        worker_model: String,
        /// The same for the Checker.
        checker_model: String,
    },
    /// A trace begins to run (again).
    TraceStart {
        /// Its name.
        name: String,
        /// The preset it runs with.
        agent_type: String,
        /// Whose run it is.
        role: Role,
        /// The model.
        model: String,
    },
    /// A trace stopped running.
    TraceComplete {
        /// `completed`, `failed` or `stopped`.
        status: String,
        /// The final text.
        summary: Option<String>,
        /// What went wrong.
        error: Option<String>,
    },
    /// A message was stored.
    MessageAdded(Box<MessageAdded>),
    /// A goal was added.
    GoalAdded {
        /// The goal, whole.
        goal: Box<Goal>,
        /// Its place in the plan's list.
        position: usize,
        /// The focus from now on.
        current_id: Option<GoalId>,
    },
    /// A goal's status, summary or focus changed.
    GoalUpdated {
        /// The goal, whole.
        goal: Box<Goal>,
        /// The focus from now on.
        current_id: Option<GoalId>,
    },
    /// A sub-agent began.
    SubTraceStarted {
        /// Its trace.
        sub_trace_id: TraceId,
        /// The goal that called it.
        goal_id: Option<GoalId>,
        /// How it was called.
        mode: String,
        /// Its task.
        task: String,
    },
    /// A sub-agent ended.
    SubTraceCompleted {
        /// Its trace.
        sub_trace_id: TraceId,
        /// The goal that called it.
        goal_id: Option<GoalId>,
        /// How it ended.
        status: String,
        /// Its result.
        summary: Option<String>,
    },
    /// A rewind is decided: the commit point (architecture.md).
    Rewind(Box<RewindRecord>),
    /// Heads, goals, cycles and files have been brought to it.
    RewindApplied {
        /// The `rewind` event.
        rewind_event_id: u64,
        /// Files the person had changed that were left as they are.
        kept: Vec<String>,
        /// Files that could not be brought back, with why.
        failed: Vec<String>,
    },
    /// The working files were recorded.
    Snapshot {
        /// Its name.
        snapshot: SnapshotId,
        /// The message after which they looked so.
        sequence: Option<Seq>,
        /// What changed since the snapshot before; at most 200.
        changed: Vec<FileChange>,
        /// How many changed in all.
        changed_total: u64,
        /// What could not be recorded, with why; at most 50.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_captured: Vec<String>,
    },
    /// A model was called.
    Usage {
        /// By whom.
        role: Role,
        /// Which.
        model: String,
        /// What it cost.
        totals: Totals,
        /// Whether the figures are the provider's; else estimates of ours.
        reported: bool,
    },
    /// A call failed and is tried again.
    Retry {
        /// Which try failed, from 1.
        attempt: u32,
        /// How many there will be at most.
        attempts: u32,
        /// How long is waited.
        wait_ms: u64,
        /// Why it failed.
        cause: String,
    },
    /// History was made shorter.
    Compaction {
        /// The summary's sequence.
        summary: Seq,
        /// First sequence left out.
        from: Seq,
        /// Last sequence left out.
        to: Seq,
    },
    /// An agent asks a person.
    Question {
        /// Names the question.
        question_id: String,
        /// What is asked.
        question: String,
        /// Answers offered.
        options: Vec<String>,
    },
    /// A person answered.
    Answer {
        /// Names the question.
        question_id: String,
        /// The answer.
        answer: String,
    },
    /// A tool needs a person's consent.
    PermissionRequest {
        /// Names the request: the tool call's id.
        request_id: String,
        /// By whom.
        role: Role,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: String,
    },
    /// A person decided.
    PermissionAnswer {
        /// Names the request.
        request_id: String,
        /// What was decided.
        answer: Permission,
    },
    /// A person's message to a running session.
    UserMessage {
        /// Names the message.
        message_id: String,
        /// Its text.
        text: String,
        /// How far it is.
        state: UserMessageState,
    },
    /// A budget is nearly used up.
    BudgetWarning {
        /// Which: `tokens`, `usd` or `time`.
        budget: String,
        /// How much is used, in percent.
        percent: u32,
    },
    /// The limits of the session changed.
    BudgetSet {
        /// The limits from now on.
        budget: Budget,
    },
    /// A session was forked from this one.
    Fork {
        /// The new session.
        session: SessionId,
    },
    /// Something a person should know.
    Note {
        /// What.
        text: String,
    },
    /// A piece of text as it arrives. Published only.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of a tool call as it arrives. Published only.
    ToolCallDelta {
        /// Which call of the message, from 0.
        index: u32,
        /// The tool, once known.
        tool: Option<String>,
        /// The piece of its arguments.
        arguments: String,
    },
    /// A piece of the model's reasoning as it arrives. Published only.
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// A type this version does not know; a consumer ignores it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// `cycle_end.next` when another cycle follows.
pub const NEXT_CYCLE: &str = "next_cycle";

impl Event {
    /// Whether it is published only and never written.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ToolCallDelta { .. } | Self::ThinkingDelta { .. })
    }

    /// Whether it closes a stretch of running (A5).
    pub fn closes(&self) -> Option<Outcome> {
        match self {
            Self::SessionComplete { outcome, .. }
            | Self::SessionFailed { outcome, .. }
            | Self::SessionStopped { outcome, .. }
            | Self::SessionError { outcome, .. } => Some(*outcome),
            _ => None,
        }
    }

    /// Whether the journal must be on stable storage before anyone builds on it (architecture.md).
    /// The end of a last cycle is followed at once by the closing event, whose sync takes it along.
    pub fn needs_sync(&self) -> bool {
        match self {
            Self::CycleEnd { next, .. } => next == NEXT_CYCLE,
            Self::Rewind(_) | Self::Answer { .. } | Self::PermissionAnswer { .. } => true,
            _ => self.closes().is_some(),
        }
    }
}

/// Payload of `session_start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStart {
    /// Format version of journal and state files.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// The session's name.
    pub name: String,
    /// What is to be done.
    pub objective: String,
    /// What the result must be.
    pub expected_output: Option<Value>,
    /// Inputs of the task.
    pub inputs: serde_json::Map<String, Value>,
    /// Where it works.
    pub workspace: Place,
    /// Where it was launched.
    pub launched_from: PathBuf,
    /// Names of the Worker's and the Checker's profile.
    pub profiles: PerRole<String>,
    /// `PROVIDER/MODEL` of each.
    pub models: PerRole<String>,
    /// Why these models, in a sentence.
    pub model_reason: String,
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
    pub permission_mode: super::data::PermissionMode,
    /// Acceptance commands.
    pub checks: Vec<String>,
    /// Paths that must stay as they are.
    pub protected: Vec<String>,
}

/// A value for the Worker and one for the Checker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PerRole_{T}")]
pub struct PerRole<T> {
    /// The Worker's.
    pub worker: T,
    /// The Checker's.
    pub checker: T,
}

impl<T> PerRole<T> {
    /// The value of one role.
    pub fn of(&self, role: Role) -> &T {
        match role {
            Role::Worker => &self.worker,
            Role::Checker => &self.checker,
        }
    }

    /// The value of one role, to change.
    pub fn of_mut(&mut self, role: Role) -> &mut T {
        match role {
            Role::Worker => &mut self.worker,
            Role::Checker => &mut self.checker,
        }
    }
}

/// What a cycle cost, Worker and Checker apart.
pub type CycleTotals = PerRole<Totals>;

/// Payload of `worker_tool_call` and `checker_tool_call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallEvent {
    /// Pairs call and result.
    pub tool_call_id: String,
    /// The call's number in its run, from 1; a citation names it.
    pub number: u32,
    /// The tool's canonical name.
    pub tool: String,
    /// One line that says what it does.
    pub title: String,
    /// The arguments, long strings shortened.
    pub arguments: Value,
    /// Bytes of the arguments as sent.
    pub arguments_bytes: u64,
}

/// Payload of `worker_tool_result` and `checker_tool_result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResultEvent {
    /// Pairs call and result.
    pub tool_call_id: String,
    /// The call's number in its run, from 1.
    pub number: u32,
    /// The tool's canonical name.
    pub tool: String,
    /// Whether it ran to its end; a command with another exit code than 0 did.
    pub ok: bool,
    /// One line that says what came out.
    pub title: String,
    /// The beginning of the output.
    pub output: String,
    /// Bytes of the whole output.
    pub output_bytes: u64,
    /// Lines of the whole output.
    pub output_lines: u64,
    /// A command's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Files the tool itself changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Payload of `message_added`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageAdded {
    /// Its number.
    pub sequence: Seq,
    /// The message before it in the tree.
    pub parent_sequence: Option<Seq>,
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The goal in focus.
    pub goal_id: Option<GoalId>,
    /// The extracted summary (B34).
    pub description: String,
    /// The beginning of its text.
    pub preview: String,
    /// Bytes of its text.
    pub bytes: u64,
    /// The tool calls of an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallRef>,
    /// The call a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// A side branch's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_type: Option<String>,
    /// How long the call or the tool took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// Payload of `rewind`: everything needed to carry it out, and to show what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RewindRecord {
    /// What was asked for.
    pub after_sequence: Seq,
    /// Where it was cut (B36).
    pub cut: Seq,
    /// The head before.
    pub old_head: Seq,
    /// The plan before (B35).
    pub goal_tree_snapshot: Plan,
    /// The plan after (B37).
    pub goal_tree: Plan,
    /// The cycle that goes on. Named apart from the envelope's `cycle`, beside which it lies.
    #[serde(rename = "to_cycle")]
    pub cycle: u32,
    /// Cycles that are undone, with the suffix their archives get.
    pub superseded: Vec<Superseded>,
    /// Cycles that an undone rewind brings back.
    #[serde(default)]
    pub restored: Vec<Superseded>,
    /// The files before.
    pub snapshot_before: Option<SnapshotId>,
    /// The files after; null: they stay as they are.
    pub snapshot_after: Option<SnapshotId>,
    /// Files that the person changed since and that are left as they are.
    pub keep: Vec<String>,
    /// The new instruction; null: regenerate.
    pub message: Option<String>,
    /// Whether an abandoned end of the session comes back whole, verdicts and status included.
    #[serde(default)]
    pub undo: bool,
    /// Worker traces of earlier cycles that come back with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<TraceBack>,
}

/// A trace that a rewind of another one brings back to where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceBack {
    /// The trace.
    pub trace_id: TraceId,
    /// Its head from now on.
    pub head: Seq,
    /// Its plan from now on.
    pub goal_tree: Plan,
}

/// A cycle whose records were put aside by a rewind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Superseded {
    /// Its number.
    pub cycle: u32,
    /// Its Worker trace.
    pub worker_trace_id: Option<TraceId>,
    /// Its Checker trace.
    pub checker_trace_id: Option<TraceId>,
    /// `n` of `__output_cycle_0002.superseded-n.json`.
    pub number: u32,
}
