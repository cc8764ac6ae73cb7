//! What front ends ask, and the plain data they get: bounded, paged, never journalled.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data::{
    CheckerResult, Contract, FileChange, MessageHead, Outcome, Place, Plan, SessionStatus, Totals, Verdict,
    WorkerResult,
};
use super::event::{CycleTotals, Envelope, PerRole};
use crate::ids::{Seq, SessionId, SnapshotId, TraceId};
use crate::stdx::clock::serde_rfc3339;

/// Most bytes of one text in a reply.
pub const TEXT_BYTES: usize = 4 * 1024 * 1024;

/// A question to the Supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// All sessions of all known roots, running first, then newest.
    Sessions,
    /// One session, whole. Answers [`Reply::Session`].
    Session(SessionId),
    /// Finds a session by id, unique prefix, name or `last`. Answers [`Reply::Found`].
    Find(String),
    /// Journal lines after `after`, at most `limit`. Answers [`Reply::Events`].
    Journal {
        /// Which session.
        session: SessionId,
        /// The last event id already known; 0 for all.
        after: u64,
        /// How many at most.
        limit: usize,
    },
    /// One message's full text. Answers [`Reply::Text`].
    Message {
        /// Which session.
        session: SessionId,
        /// Which trace.
        trace: TraceId,
        /// Which message.
        sequence: Seq,
    },
    /// One tool call: arguments and full output. Answers [`Reply::Call`].
    Call {
        /// Which session.
        session: SessionId,
        /// Which trace.
        trace: TraceId,
        /// Which call.
        tool_call_id: String,
    },
    /// What a cycle handed in, verbatim. Answers [`Reply::Text`].
    Output {
        /// Which session.
        session: SessionId,
        /// Which cycle; absent: the normalised newest.
        cycle: Option<u32>,
    },
    /// A file as a snapshot holds it. Answers [`Reply::Text`].
    File {
        /// Which session.
        session: SessionId,
        /// Which snapshot.
        snapshot: SnapshotId,
        /// Path below the working directory.
        path: String,
    },
    /// How files differ between two snapshots. Answers [`Reply::Diff`].
    Diff {
        /// Which session.
        session: SessionId,
        /// From; absent: the first snapshot.
        from: Option<SnapshotId>,
        /// To; absent: the files as they are now.
        to: Option<SnapshotId>,
        /// Only this file.
        path: Option<String>,
    },
    /// Messages to rewind to, with their branches. Answers [`Reply::Timeline`].
    Timeline {
        /// Which session.
        session: SessionId,
    },
    /// What a rewind would do. Answers [`Reply::Rewind`].
    RewindPreview {
        /// Which session.
        session: SessionId,
        /// Which trace; absent: the newest cycle's Worker.
        trace: Option<TraceId>,
        /// The message to go back to.
        to: Seq,
    },
    /// What applying would do. Answers [`Reply::Apply`].
    ApplyPreview {
        /// Which session.
        session: SessionId,
        /// Which cycle; absent: the newest with a deliverable.
        cycle: Option<u32>,
        /// Where to; absent: where the session was launched.
        to: Option<PathBuf>,
    },
    /// What a launch from this folder would use. Answers [`Reply::Launch`].
    LaunchDefaults {
        /// The folder.
        dir: PathBuf,
    },
    /// File names below a folder that begin with a prefix. Answers [`Reply::Names`].
    Names {
        /// The folder.
        dir: PathBuf,
        /// The beginning.
        prefix: String,
    },
    /// The newest lines of the program's log. Answers [`Reply::Text`].
    Log,
}

/// An answer to a [`Query`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To [`Query::Sessions`].
    Sessions(Vec<SessionSummary>),
    /// To [`Query::Session`].
    Session(Box<SessionDetail>),
    /// To [`Query::Find`].
    Found(SessionId),
    /// To [`Query::Journal`].
    Events(Vec<Envelope>),
    /// To the queries that ask for one text.
    Text(TextReply),
    /// To [`Query::Call`].
    Call(Box<CallReply>),
    /// To [`Query::Diff`].
    Diff(Vec<FileDiff>),
    /// To [`Query::Timeline`].
    Timeline(Timeline),
    /// To [`Query::RewindPreview`].
    Rewind(Box<RewindPreview>),
    /// To [`Query::ApplyPreview`].
    Apply(Box<ApplyPreview>),
    /// To [`Query::LaunchDefaults`].
    Launch(Box<LaunchDefaults>),
    /// To [`Query::Names`].
    Names(Vec<String>),
}

/// A text, cut at [`TEXT_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextReply {
    /// What to call it.
    pub title: String,
    /// The text; control characters are still in it.
    pub text: String,
    /// Its whole size in bytes.
    pub bytes: u64,
    /// Whether it was cut or is not text.
    pub note: Option<String>,
}

/// A tool call, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReply {
    /// The tool.
    pub tool: String,
    /// The arguments, pretty JSON.
    pub arguments: String,
    /// The output the model saw or, when it was cut there, all of it.
    pub output: TextReply,
}

/// A session in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// The objective's first line.
    pub objective: String,
    /// Where it stands.
    pub status: SessionStatus,
    /// How its last stretch ended; null while it runs.
    pub outcome: Option<Outcome>,
    /// Whether it waits for a person.
    pub waiting: bool,
    /// Whether another process runs it.
    pub elsewhere: bool,
    /// The cycle it is in, 0 before the first.
    pub cycle: u32,
    /// Cycles allowed.
    pub max_cycles: u32,
    /// The verdict of each ended cycle; null: unverified.
    pub verdicts: Vec<Option<Verdict>>,
    /// What everything cost.
    pub totals: Totals,
    /// Its home.
    pub home: PathBuf,
    /// The Worker's directory.
    pub dir: PathBuf,
    /// Whether a scripted model is at work.
    pub scripted: bool,
    /// When it was launched.
    #[serde(with = "serde_rfc3339")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When something happened last.
    #[serde(with = "serde_rfc3339")]
    #[schemars(with = "String")]
    pub active_at: Timestamp,
    /// What is wrong with its files, when they can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A session, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetail {
    /// The line of the list.
    pub summary: SessionSummary,
    /// Task and acceptance conditions.
    pub contract: Contract,
    /// Where it works.
    pub place: Place,
    /// `PROVIDER/MODEL`.
    pub models: PerRole<String>,
    /// Its cycles.
    pub cycles: Vec<CycleDetail>,
    /// The normalised newest valid `__output.json`; null when there is none.
    pub deliverable: Option<serde_json::Value>,
    /// The cycle it is of.
    pub deliverable_cycle: Option<u32>,
}

/// One cycle of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CycleDetail {
    /// From 1.
    pub number: u32,
    /// The Worker's trace.
    pub worker_trace_id: Option<TraceId>,
    /// The Checker's trace.
    pub checker_trace_id: Option<TraceId>,
    /// What the Worker left.
    pub worker: Option<WorkerResult>,
    /// What the Checker says.
    pub checker: Option<CheckerResult>,
    /// The archived output below the session's home.
    pub archive: Option<String>,
    /// The files at its start.
    pub snapshot_before: Option<SnapshotId>,
    /// The files that were judged.
    pub snapshot: Option<SnapshotId>,
    /// What it cost.
    pub totals: CycleTotals,
    /// Whether it has ended.
    pub ended: bool,
}

/// A file's difference as a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Which file and how much.
    pub change: FileChange,
    /// The hunks; empty for binary and very large files.
    pub unified: String,
    /// Why there are none.
    pub note: Option<String>,
}

/// All messages of a session that one can rewind to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The Worker traces of all cycles in order, superseded ones included.
    pub traces: Vec<TimelineTrace>,
}

/// One Worker trace of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineTrace {
    /// Its cycle.
    pub cycle: u32,
    /// Whether a rewind put the cycle aside.
    pub superseded: bool,
    /// Its id.
    pub trace: TraceId,
    /// The head of its main path.
    pub head: Seq,
    /// Its messages in order of their numbers.
    pub messages: Vec<TimelineMessage>,
}

/// One message of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineMessage {
    /// The message in short.
    pub head: MessageHead,
    /// When it was stored.
    pub at: Timestamp,
    /// Whether it is on the main path.
    pub on_path: bool,
    /// The goal's display number then.
    pub goal: Option<String>,
    /// Files changed by the step it belongs to.
    pub files: Vec<String>,
}

/// What a rewind would do, exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct RewindPreview {
    /// The trace.
    pub trace: TraceId,
    /// The cycle that goes on.
    pub cycle: u32,
    /// What was asked for.
    pub to: Seq,
    /// Where it will be cut (B36).
    pub cut: Seq,
    /// Whether this goes to another branch, which undoes an earlier rewind.
    pub to_other_branch: bool,
    /// Messages that leave the main path.
    pub leaving: Vec<MessageHead>,
    /// Messages that come back to it.
    pub returning: Vec<MessageHead>,
    /// The plan afterwards.
    pub plan: Plan,
    /// Goals dropped, by description.
    pub goals_dropped: Vec<String>,
    /// Goals reset to pending, by description.
    pub goals_reset: Vec<String>,
    /// Cycles undone.
    pub cycles_undone: Vec<u32>,
    /// Cycles brought back.
    pub cycles_restored: Vec<u32>,
    /// Files restored, brought back or removed, with their difference from now.
    pub files: Vec<FileDiff>,
    /// How many files in all.
    pub files_total: usize,
    /// Files the person changed since the last snapshot; kept unless they say otherwise.
    pub changed_by_person: Vec<String>,
    /// What can't be rewound.
    pub not_rewound: Vec<String>,
    /// Why it can't be done now, if so.
    pub refused: Option<String>,
}

/// What applying would do.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyPreview {
    /// The cycle whose result it is.
    pub cycle: u32,
    /// Its verdict.
    pub verdict: Option<Verdict>,
    /// Where it goes: a folder, or a branch of a repository.
    pub target: String,
    /// The files with their difference.
    pub files: Vec<FileDiff>,
    /// How many files in all.
    pub files_total: usize,
    /// Files that were changed at the target since; they are never overwritten.
    pub conflicts: Vec<String>,
    /// Why it needs `--force`, or can't be done at all.
    pub refused: Option<String>,
}

/// What a launch would use.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchDefaults {
    /// The model and why; or why there is none.
    pub model: Result<ModelChoice, super::problem::Problem>,
    /// Names of the profiles in `workers.yaml`.
    pub profiles: Vec<String>,
    /// Cycles allowed.
    pub max_cycles: u32,
    /// What `auto` would be here, or why the person must choose.
    pub auto_place: Result<super::command::Where, String>,
    /// The repository this folder is in.
    pub repository: Option<PathBuf>,
    /// Files a worktree would lack because they are not committed.
    pub uncommitted: Vec<String>,
}

/// A model and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// In a sentence.
    pub reason: String,
}
