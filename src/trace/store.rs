//! Traces on disk (B115, B116): `meta.json`, `goal.json`, `events.jsonl`, one file per message.
//! Writes are whole (temporary file and rename) and in the order that a crash survives: message
//! file, its event, then the caches.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::goal_tree;
use super::message::Message;
use super::tree::{self, Messages};
use super::{FORMAT, Trace};
use crate::events::data::Plan;
use crate::events::event::Event;
use crate::events::log;
use crate::events::recorder::Recorder;
use crate::ids::{GoalId, Seq, TraceId, message_id};
use crate::llm::chat::ChatRole;
use crate::stdx::atomic_file;

/// Where traces are kept (B115).
pub trait TraceStore: Send + Sync {
    /// Makes the folder of a new trace and writes it.
    ///
    /// # Errors
    /// It can't be written, or a trace of that id exists.
    fn create_trace(&self, trace: &Trace, plan: &Plan) -> io::Result<()>;

    /// Reads a trace.
    ///
    /// # Errors
    /// There is none, or it can't be read.
    fn get_trace(&self, id: &TraceId) -> io::Result<Trace>;

    /// Writes a trace's metadata.
    ///
    /// # Errors
    /// It can't be written.
    fn update_trace(&self, trace: &Trace) -> io::Result<()>;

    /// Reads a trace's plan.
    ///
    /// # Errors
    /// It can't be read.
    fn get_plan(&self, id: &TraceId) -> io::Result<Plan>;

    /// Writes a trace's plan.
    ///
    /// # Errors
    /// It can't be written.
    fn update_plan(&self, id: &TraceId, plan: &Plan) -> io::Result<()>;

    /// Stores a message.
    ///
    /// # Errors
    /// It can't be written, or that number is taken.
    fn add_message(&self, message: &Message) -> io::Result<()>;

    /// All messages of a trace, on all branches.
    ///
    /// # Errors
    /// The folder or a message can't be read; names the file.
    fn get_trace_messages(&self, id: &TraceId) -> io::Result<Messages>;

    /// The messages of the main path, root first (B20).
    ///
    /// # Errors
    /// As for [`TraceStore::get_trace_messages`].
    fn get_main_path_messages(&self, id: &TraceId, head: Seq) -> io::Result<Vec<Message>> {
        let mut messages = self.get_trace_messages(id)?;
        Ok(tree::path_to(&messages, head).into_iter().filter_map(|s| messages.remove(&s)).collect())
    }

    /// The messages of one goal, in order of their numbers.
    ///
    /// # Errors
    /// As for [`TraceStore::get_trace_messages`].
    fn get_messages_by_goal(&self, id: &TraceId, goal: &GoalId) -> io::Result<Vec<Message>> {
        let messages = self.get_trace_messages(id)?;
        Ok(messages.into_values().filter(|m| m.goal_id.as_ref() == Some(goal)).collect())
    }

    /// Journals and publishes an event of a trace; returns its id.
    ///
    /// # Errors
    /// It could not be written.
    fn append_event(&self, id: &TraceId, cycle: Option<u32>, event: Event) -> io::Result<u64>;
}

/// Traces below a session's `.trace/`.
#[derive(Debug)]
pub struct FileSystemTraceStore {
    root: PathBuf,
    recorder: Arc<Recorder>,
}

impl FileSystemTraceStore {
    /// The store of the session at `home`.
    pub fn new(home: &Path, recorder: Arc<Recorder>) -> Self {
        Self { root: home.join(".trace"), recorder }
    }

    /// A trace's folder.
    pub fn folder(&self, id: &TraceId) -> PathBuf {
        self.root.join(id.as_str())
    }

    /// Where a trace's full tool outputs lie.
    pub fn outputs(&self, id: &TraceId) -> PathBuf {
        self.folder(id).join("outputs")
    }

    /// The journal this store writes to.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }
}

impl TraceStore for FileSystemTraceStore {
    fn create_trace(&self, trace: &Trace, plan: &Plan) -> io::Result<()> {
        let folder = self.folder(&trace.trace_id);
        if folder.join("meta.json").exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("trace `{}` exists", trace.trace_id)));
        }
        fs::create_dir_all(folder.join("messages"))?;
        fs::create_dir_all(folder.join("outputs"))?;
        // `meta.json` last: where it is, the trace is whole.
        self.update_plan(&trace.trace_id, plan)?;
        self.update_trace(trace)
    }

    fn get_trace(&self, id: &TraceId) -> io::Result<Trace> {
        read_trace(&self.root, id)
    }

    fn update_trace(&self, trace: &Trace) -> io::Result<()> {
        let path = self.folder(&trace.trace_id).join("meta.json");
        atomic_file::write(&path, &serde_json::to_vec(trace)?).map_err(|e| named(&path, e))
    }

    fn get_plan(&self, id: &TraceId) -> io::Result<Plan> {
        read_json(&self.folder(id).join("goal.json"))
    }

    fn update_plan(&self, id: &TraceId, plan: &Plan) -> io::Result<()> {
        let path = self.folder(id).join("goal.json");
        let mut value = serde_json::to_value(plan)?;
        value["format"] = FORMAT.into();
        atomic_file::write(&path, &serde_json::to_vec(&value)?).map_err(|e| named(&path, e))
    }

    fn add_message(&self, message: &Message) -> io::Result<()> {
        let folder = self.folder(&message.trace_id).join("messages");
        let path = folder.join(format!("{}.json", message.message_id));
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", path.display())));
        }
        atomic_file::write(&path, &serde_json::to_vec(message)?).map_err(|e| named(&path, e))?;
        self.recorder.will_name(path);
        Ok(())
    }

    fn get_trace_messages(&self, id: &TraceId) -> io::Result<Messages> {
        read_messages(&self.root, id)
    }

    fn append_event(&self, id: &TraceId, cycle: Option<u32>, event: Event) -> io::Result<u64> {
        let envelope = self.recorder.record(cycle, Some(id), event)?;
        Ok(envelope.event_id.unwrap_or(0))
    }
}

/// Reads a trace's metadata below a `.trace/` folder, writing nothing.
///
/// # Errors
/// There is none, or it can't be read; names the file.
pub fn read_trace(root: &Path, id: &TraceId) -> io::Result<Trace> {
    read_json(&root.join(id.as_str()).join("meta.json"))
}

/// Reads one message below a `.trace/` folder.
///
/// # Errors
/// There is none, or it can't be read; names the file.
pub fn read_message(root: &Path, id: &TraceId, sequence: Seq) -> io::Result<Message> {
    read_json(&root.join(id.as_str()).join("messages").join(format!("{}.json", message_id(id, sequence))))
}

/// Reads all messages of a trace below a `.trace/` folder. Files that are not messages (left by a
/// crash in the middle of a write) are passed over.
///
/// # Errors
/// The folder or a message can't be read; names the file.
pub fn read_messages(root: &Path, id: &TraceId) -> io::Result<Messages> {
    let folder = root.join(id.as_str()).join("messages");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|e| named(&folder, e))? {
        let path = entry?.path();
        let is_message = path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.starts_with(id.as_str()) && n.ends_with(".json"));
        if is_message {
            paths.push(path);
        }
    }
    let read = |path: &PathBuf| read_json::<Message>(path).map(|m| (m.sequence, m));
    // Reading is a matter of waiting for the disk; below this many files threads cost more.
    if paths.len() < 256 { paths.iter().map(read).collect() } else { paths.par_iter().map(read).collect() }
}

/// The roles of the messages on a trace's main path, from the root on; empty when a crash left the
/// trace before anything of it was stored.
pub fn path_roles(root: &Path, id: &TraceId) -> Vec<ChatRole> {
    let (Ok(trace), Ok(messages)) = (read_trace(root, id), read_messages(root, id)) else { return Vec::new() };
    tree::path_to(&messages, trace.head_sequence).iter().map(|s| messages[s].role).collect()
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    let content = fs::read(path).map_err(|e| named(path, e))?;
    serde_json::from_slice(&content)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", path.display())))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Brings what is derived of a trace in line with the session's journal after a crash: the copy of
/// its events, the numbers in `meta.json` and what its goals cost (B42). Only who holds the session's lock may do it.
///
/// # Errors
/// A file can't be read or written.
pub fn mend(store: &FileSystemTraceStore, id: &TraceId, session_journal: &Path) -> io::Result<Trace> {
    let mut trace = store.get_trace(id)?;
    let messages = store.get_trace_messages(id)?;
    let concerning = log::read_filtered(session_journal, 0, |e| e.concerns(id))?.events;
    let events: Vec<_> = concerning.iter().filter(|e| e.trace_id.as_ref() == Some(id)).collect();

    let copy = store.folder(id).join("events.jsonl");
    let known = log::Journal::open(&copy)?.last_event_id();
    let missing: Vec<_> = events.iter().filter(|e| e.event_id.unwrap_or(0) > known).collect();
    if !missing.is_empty() {
        let mut lines = fs::read(&copy)?;
        for event in missing {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        atomic_file::write(&copy, &lines)?;
    }

    let plan = store.get_plan(id)?;
    if let Some(plan) = super::rewind::mended_plan(concerning.iter(), id, &plan) {
        store.update_plan(id, &plan)?;
    }

    // A message file without its event was never shown; its number is used up all the same.
    trace.last_sequence = messages.keys().next_back().copied().unwrap_or(0).max(trace.last_sequence);
    trace.total_messages = messages.len() as u64;
    trace.last_event_id = events.iter().filter_map(|e| e.event_id).max().unwrap_or(trace.last_event_id);
    for envelope in &concerning {
        match &envelope.event {
            Event::MessageAdded(added) if added.branch_type.is_none() && messages.contains_key(&added.sequence) => {
                trace.head_sequence = added.sequence;
            }
            _ => {
                if let Some((head, _)) = envelope.rewinds(id) {
                    trace.head_sequence = head;
                }
            }
        }
    }
    unbroken(&messages, trace.head_sequence, &store.folder(id))?;
    recount(&mut trace, &messages);
    store.update_trace(&trace)?;
    let mut plan = store.get_plan(id)?;
    goal_tree::recount(&mut plan, &messages, &tree::path_to(&messages, trace.head_sequence));
    store.update_plan(id, &plan)?;
    Ok(trace)
}

/// A history with a hole must not go on as if it had none: the model would not know its task.
fn unbroken(messages: &Messages, head: Seq, folder: &Path) -> io::Result<()> {
    let first = tree::path_to(messages, head).first().and_then(|first| messages.get(first));
    let missing = match first {
        Some(first) => first.parent_sequence,
        None => Some(head).filter(|head| *head > 0),
    };
    let Some(missing) = missing else { return Ok(()) };
    let why = format!("message {missing} is missing in {}", folder.join("messages").display());
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// What was spent is spent, on whatever branch.
fn recount(trace: &mut Trace, messages: &Messages) {
    trace.total_prompt_tokens = messages.values().filter_map(|m| m.prompt_tokens).sum();
    trace.total_completion_tokens = messages.values().filter_map(|m| m.completion_tokens).sum();
    trace.total_tokens = trace.total_prompt_tokens + trace.total_completion_tokens;
    trace.total_cost = messages.values().filter_map(|m| m.cost).sum();
    trace.total_duration_ms = messages.values().filter_map(|m| m.duration_ms).sum();
}
