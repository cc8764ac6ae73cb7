//! The activity of a session: one row for each thing that happened, in order, only ever appended
//! to, so that a row's id stays the same and a hundred thousand of them cost nothing to hold still.

mod apply;
mod rewind;
mod stream;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use self::stream::Streams;
use crate::events::data::{FileChange, Role, UserMessageState};
use crate::ids::{Seq, TraceId};

/// Names a row: its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

/// Names a trace within the activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceRef(u16);

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When.
    pub at: Timestamp,
    /// In which cycle.
    pub cycle: Option<u32>,
    /// In which trace.
    pub trace: Option<TraceRef>,
    /// The message it belongs to.
    pub sequence: Option<Seq>,
    /// Whether a rewind took it off the main path.
    pub off_path: bool,
    /// What.
    pub kind: RowKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum RowKind {
    /// Nothing any more: what was begun was discarded. Takes no room.
    Gone,
    /// A tool call.
    Call(Box<Call>),
    /// A tool call that is being written.
    Composing {
        /// The tool, once known.
        tool: Option<String>,
        /// Bytes of arguments so far.
        bytes: u64,
    },
    /// Text of a model.
    Text(Piece),
    /// Reasoning of a model, seen live only.
    Thinking(Piece),
    /// What an agent was given.
    Prompt {
        /// In short.
        description: String,
        /// Bytes of its text.
        bytes: u64,
    },
    /// A person's message.
    User {
        /// Names it.
        id: String,
        /// Its text.
        text: String,
        /// How far it is.
        state: UserMessageState,
    },
    /// A sub-agent.
    Sub {
        /// Its trace.
        trace: TraceRef,
        /// How it was called.
        mode: String,
        /// Its task.
        task: String,
        /// How it ended, and its result.
        end: Option<(String, Option<String>)>,
    },
    /// Something about the session as a whole.
    Notice(Notice),
    /// A call of a model that failed and is tried again.
    Retry {
        /// Which try failed, from 1.
        attempt: u32,
        /// How many there will be at most.
        attempts: u32,
        /// When it is tried again.
        until: Timestamp,
        /// Why it failed.
        cause: String,
    },
}

/// Text of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The text, or the end of it while it arrives, or the beginning of a long one afterwards.
    /// Control characters are still in it.
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: u64,
    /// Bytes missing before `text`.
    pub missing: u64,
    /// Whether more is to come.
    pub streaming: bool,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Pairs call and result.
    pub id: String,
    /// Its number in its run.
    pub number: u32,
    /// Whether the Checker made it.
    pub role: Role,
    /// The tool.
    pub tool: String,
    /// What it does, in a line.
    pub title: String,
    /// How it ended; none while it runs.
    pub end: Option<CallEnd>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallEnd {
    /// Whether it ran to its end.
    pub ok: bool,
    /// Whether the session stopped while it ran.
    pub stopped: bool,
    /// What came out, in a line.
    pub title: String,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Lines of the whole output.
    pub lines: u64,
    /// Files it changed.
    pub files: Vec<FileChange>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Something about the session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What kind of thing.
    pub kind: NoticeKind,
    /// In a line.
    pub title: String,
    /// More of it.
    pub detail: String,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// A cycle began or ended.
    Cycle,
    /// Somebody starts to work.
    Work(Role),
    /// A gate that holds.
    GateOk,
    /// A gate that fails.
    GateFailed,
    /// Worth knowing.
    Info,
    /// Worth attention.
    Warning,
    /// Something failed.
    Error,
    /// The session ended well.
    Success,
    /// The person is asked.
    Waiting,
    /// A rewind.
    Rewind,
}

/// A trace as the activity knows it.
#[derive(Clone, Debug)]
struct TraceInfo {
    id: TraceId,
    parent: Option<TraceRef>,
    /// Message → the message before it.
    parents: BTreeMap<Seq, Option<Seq>>,
    /// Summaries with the range they stand for.
    compacted: Vec<(Seq, Seq, Seq)>,
}

/// Everything that happened.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    rows: Vec<Row>,
    traces: Vec<TraceInfo>,
    by_trace: HashMap<TraceId, TraceRef>,
    /// Calls without a result, and the row of each.
    running: HashMap<(TraceRef, String), RowId>,
    /// Calls announced by a message whose event is still to come.
    announced: HashMap<(TraceRef, String), Seq>,
    subs: HashMap<TraceRef, RowId>,
    users: HashMap<String, RowId>,
    streams: Streams,
}

impl Activity {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row.
    pub fn get(&self, id: RowId) -> Option<&Row> {
        self.rows.get(id.0 as usize)
    }

    /// All rows in order; a row's id is its place.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The newest row.
    pub fn last_id(&self) -> Option<RowId> {
        u32::try_from(self.rows.len().checked_sub(1)?).ok().map(RowId)
    }

    /// The id of a trace.
    pub fn trace_id(&self, trace: TraceRef) -> &TraceId {
        &self.traces[usize::from(trace.0)].id
    }

    /// The trace that called this one.
    pub fn parent(&self, trace: TraceRef) -> Option<TraceRef> {
        self.traces[usize::from(trace.0)].parent
    }

    /// How deep below a Worker or Checker a row's trace is.
    pub fn depth(&self, row: &Row) -> usize {
        let mut depth = 0;
        let mut at = row.trace;
        while let Some(parent) = at.and_then(|trace| self.parent(trace)) {
            depth += 1;
            at = Some(parent);
        }
        depth
    }

    /// Whether anything is under way that a spinner stands beside.
    pub fn is_moving(&self) -> bool {
        !self.running.is_empty() || self.streams.is_open()
    }

    /// The row of the Checker's call `number` in `cycle`, for the evidence of a verdict.
    pub fn checker_call(&self, cycle: u32, number: u32) -> Option<RowId> {
        let place = self.rows.iter().rposition(|row| {
            row.cycle == Some(cycle)
                && matches!(&row.kind, RowKind::Call(call) if call.role == Role::Checker && call.number == number)
        })?;
        u32::try_from(place).ok().map(RowId)
    }

    fn trace_ref(&mut self, id: &TraceId) -> TraceRef {
        if let Some(&known) = self.by_trace.get(id) {
            return known;
        }
        // Far fewer sub-agents than that fit into any session; later ones share the last name.
        let place = u16::try_from(self.traces.len()).unwrap_or(u16::MAX);
        let name = TraceRef(place);
        if place < u16::MAX {
            self.traces.push(TraceInfo {
                id: id.clone(),
                parent: None,
                parents: BTreeMap::new(),
                compacted: Vec::new(),
            });
            self.by_trace.insert(id.clone(), name);
            name
        } else {
            TraceRef(u16::MAX - 1)
        }
    }

    fn info(&mut self, trace: TraceRef) -> &mut TraceInfo {
        &mut self.traces[usize::from(trace.0)]
    }

    fn row_mut(&mut self, id: RowId) -> Option<&mut Row> {
        self.rows.get_mut(id.0 as usize)
    }
}
