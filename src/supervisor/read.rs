//! Answers to queries: texts, calls, files, differences, previews. Plain data, bounded.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::Supervisor;
use crate::config::SnapshotsConfig;
use crate::events::log;
use crate::events::problem::Problem;
use crate::events::query::{CallReply, FileDiff, LaunchDefaults, Query, Reply, TEXT_BYTES, TextReply};
use crate::ids::{Seq, SessionId, SnapshotId, TraceId};
use crate::session::snapshot::{SnapshotError, SnapshotStore, View, WalkOptions};
use crate::session::{archive, place, rewind};
use crate::tools::bound::output_path;
use crate::trace::store;

/// Most files of one difference.
const MAX_FILES: usize = 200;

/// Most bytes of the log shown.
const LOG_BYTES: u64 = 256 * 1024;

impl Supervisor {
    pub(super) async fn answer(&self, query: Query) -> Result<Reply, Problem> {
        match query {
            Query::LaunchDefaults { dir } => self.launch_defaults(&dir).await,
            quick => {
                let me = self.me.upgrade().ok_or_else(|| Problem::internal("the program is ending"))?;
                // Reads files: off the threads that carry streams.
                let answer = tokio::task::spawn_blocking(move || me.answer_from_disk(quick)).await;
                answer.map_err(|e| Problem::internal(e.to_string()))?
            }
        }
    }

    fn answer_from_disk(&self, query: Query) -> Result<Reply, Problem> {
        Ok(match query {
            Query::Sessions => Reply::Sessions(self.sessions()),
            Query::Session(id) => Reply::Session(Box::new(self.detail(&id)?)),
            Query::Find(wanted) => Reply::Found(self.find(&wanted)?),
            Query::Journal { session, after, limit } => Reply::Events(self.journal(&session, after, limit)?),
            Query::Message { session, trace, sequence } => Reply::Text(self.message_text(&session, &trace, sequence)?),
            Query::Call { session, trace, tool_call_id } => {
                Reply::Call(Box::new(self.call(&session, &trace, &tool_call_id)?))
            }
            Query::Output { session, cycle } => Reply::Text(self.output(&session, cycle)?),
            Query::File { session, snapshot, path } => Reply::Text(self.file(&session, &snapshot, path)?),
            Query::Diff { session, from, to, path } => Reply::Diff(self.diff(&session, from, to, path)?),
            Query::Timeline { session } => {
                let (home, record) = self.record(&session)?;
                Reply::Timeline(rewind::timeline(&home, &record)?)
            }
            Query::RewindPreview { session, trace, to } => {
                let (home, record) = self.record(&session)?;
                let snapshots = self.snapshots(&session)?;
                Reply::Rewind(Box::new(rewind::preview(&home, &record, &snapshots, trace.as_ref(), to)?))
            }
            Query::ApplyPreview { session, cycle, to } => {
                Reply::Apply(Box::new(self.apply_preview(&session, cycle, to)?))
            }
            Query::Names { dir, prefix } => Reply::Names(names(&dir, &prefix)),
            Query::Log => Reply::Text(self.log()?),
            Query::LaunchDefaults { .. } => return Err(Problem::internal("asked of the disk")),
        })
    }

    fn journal(
        &self,
        id: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<crate::events::event::Envelope>, Problem> {
        let home = self.home(id)?;
        let events = log::read_filtered(&home.journal(), 0, |e| e.event_id.unwrap_or(0) > after)?.events;
        Ok(events.into_iter().take(limit).collect())
    }

    fn message_text(&self, id: &SessionId, trace: &TraceId, sequence: Seq) -> Result<TextReply, Problem> {
        let home = self.home(id)?;
        let message = store::read_message(&home.traces(), &plain(trace)?, sequence)?;
        let title = format!("message {sequence} · {}", message.role.word());
        Ok(bounded(title, message.display_text()))
    }

    fn call(&self, id: &SessionId, trace: &TraceId, call_id: &str) -> Result<CallReply, Problem> {
        let home = self.home(id)?;
        let messages = store::read_messages(&home.traces(), &plain(trace)?)?;
        let call = messages.values().rev().flat_map(|m| m.tool_calls()).find(|c| c.id == call_id);
        let call = call.ok_or_else(|| Problem::usage(format!("there is no call `{call_id}` in `{trace}`")))?;
        let result = messages.values().rev().find(|m| m.tool_call_id.as_deref() == Some(call_id));
        let arguments = serde_json::from_str::<serde_json::Value>(&call.function.arguments)
            .and_then(|v| serde_json::to_string_pretty(&v))
            .unwrap_or(call.function.arguments);
        let outputs = home.traces().join(trace.as_str()).join("outputs");
        let stored = output_path(&outputs, call_id);
        let output = if stored.is_file() {
            read_text("output".to_owned(), &stored)?
        } else {
            bounded("output".to_owned(), result.map(|m| m.display_text()).unwrap_or_default())
        };
        Ok(CallReply { tool: call.function.name, arguments, output })
    }

    fn output(&self, id: &SessionId, cycle: Option<u32>) -> Result<TextReply, Problem> {
        let home = self.home(id)?;
        let path = match cycle {
            Some(cycle) => home.path().join(archive::archive_name(cycle)),
            None => home.output(),
        };
        if !path.exists() {
            return Err(Problem::usage(match cycle {
                Some(cycle) => format!("cycle {cycle} handed in no `__output.json`"),
                None => "no valid `__output.json` was handed in yet".to_owned(),
            }));
        }
        read_text(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), &path)
    }

    /// The session's record of its files, as its owner or only for reading.
    pub(super) fn snapshots(&self, id: &SessionId) -> Result<Arc<SnapshotStore>, Problem> {
        if let Some(session) = self.here(id) {
            return Ok(session.snapshots.clone());
        }
        let (home, record) = self.record(id)?;
        let options = WalkOptions {
            beneath_git: record.place.kind != crate::events::data::PlaceKind::Scratch,
            exclude: vec![home.path().to_owned()],
            tracked: Vec::new(),
            home: self.surroundings.user_home.clone(),
        };
        let config: &SnapshotsConfig = &self.surroundings.config.snapshots;
        SnapshotStore::open(&home.snapshots(), &record.place.dir, config, options).map(Arc::new).map_err(internal)
    }

    fn file(&self, id: &SessionId, snapshot: &SnapshotId, path: String) -> Result<TextReply, Problem> {
        let store = self.snapshots(id)?;
        let content = store.read(snapshot, &path, TEXT_BYTES as u64).map_err(internal)?;
        Ok(text_of(path, content, None))
    }

    fn diff(
        &self,
        id: &SessionId,
        from: Option<SnapshotId>,
        to: Option<SnapshotId>,
        path: Option<String>,
    ) -> Result<Vec<FileDiff>, Problem> {
        let store = self.snapshots(id)?;
        let first = self.record(id)?.1.first_snapshot;
        let Some(from) = from.or(first) else { return Ok(Vec::new()) };
        let changes = store.diff(&from, to.as_ref()).map_err(internal)?;
        let wanted = changes.into_iter().filter(|c| path.as_ref().is_none_or(|p| *p == c.path));
        wanted.take(MAX_FILES).map(|change| unified(&store, &from, to.as_ref(), change)).collect()
    }

    fn log(&self) -> Result<TextReply, Problem> {
        let newest = std::fs::read_dir(&self.places.log).ok().and_then(|files| files.flatten().map(|e| e.path()).max());
        let Some(path) = newest else {
            return Ok(TextReply {
                title: "log".to_owned(),
                note: Some("nothing was logged yet".to_owned()),
                ..TextReply::default()
            });
        };
        let mut file = File::open(&path)?;
        let size = file.metadata()?.len();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(size.saturating_sub(LOG_BYTES)))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(text_of(path.display().to_string(), content, (size > LOG_BYTES).then(|| "the newest part".to_owned())))
    }

    async fn launch_defaults(&self, dir: &Path) -> Result<Reply, Problem> {
        let config = &self.surroundings.config;
        let profile = self.profile(None)?;
        let repository = place::repository(&self.git, dir).await;
        let configured = profile.model_reference().or_else(|| config.model.clone());
        let model = match configured {
            Some(model) => {
                self.surroundings.models.resolve(&model, profile.endpoint_for(&model).as_deref()).await.map(|m| {
                    crate::events::query::ModelChoice { model: m.reference, reason: "it is configured".to_owned() }
                })
            }
            None => self.surroundings.models.default_choice().await,
        };
        let auto_place = match super::launch::where_of(config.place) {
            crate::events::command::Where::Auto => place::automatic(repository.as_ref()),
            chosen => Ok(chosen),
        };
        Ok(Reply::Launch(Box::new(LaunchDefaults {
            model,
            profiles: self.profiles.names().map(str::to_owned).collect(),
            max_cycles: config.max_cycles.0,
            auto_place,
            uncommitted: repository.as_ref().map(|r| r.uncommitted.clone()).unwrap_or_default(),
            repository: repository.map(|r| r.root),
        })))
    }
}

/// A trace's id from outside must be a plain folder name.
fn plain(trace: &TraceId) -> Result<TraceId, Problem> {
    let name = trace.as_str();
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
        return Err(Problem::usage(format!("`{name}` is not a trace")));
    }
    Ok(trace.clone())
}

pub(super) fn internal(error: SnapshotError) -> Problem {
    Problem::internal(error.to_string())
}

pub(super) fn unified(
    store: &SnapshotStore,
    from: &SnapshotId,
    to: Option<&SnapshotId>,
    change: crate::events::data::FileChange,
) -> Result<FileDiff, Problem> {
    let to = to.map_or(View::Now, View::Snapshot);
    let text = store.unified(from, to, &change.path).map_err(internal)?;
    Ok(FileDiff { change, unified: text.unified, note: text.note })
}

fn bounded(title: String, text: String) -> TextReply {
    let bytes = text.len() as u64;
    let cut = crate::stdx::bounded::prefix(&text, TEXT_BYTES);
    let note = (cut.len() < text.len()).then(|| format!("the first {TEXT_BYTES} of {bytes} bytes"));
    TextReply { title, text: cut.to_owned(), bytes, note }
}

fn read_text(title: String, path: &Path) -> Result<TextReply, Problem> {
    let file = File::open(path).map_err(|e| Problem::internal(format!("{}: {e}", path.display())))?;
    let size = file.metadata()?.len();
    let mut content = Vec::new();
    file.take(TEXT_BYTES as u64).read_to_end(&mut content)?;
    let note = (size > TEXT_BYTES as u64).then(|| format!("the first {TEXT_BYTES} of {size} bytes"));
    let mut reply = text_of(title, content, note);
    reply.bytes = size;
    Ok(reply)
}

fn text_of(title: String, content: Vec<u8>, note: Option<String>) -> TextReply {
    let bytes = content.len() as u64;
    if content.iter().take(8000).any(|b| *b == 0) {
        return TextReply { title, text: String::new(), bytes, note: Some(format!("{bytes} bytes that are not text")) };
    }
    TextReply { title, text: String::from_utf8_lossy(&content).into_owned(), bytes, note }
}

/// File names below `dir` that begin with `prefix`, folders with a `/`, at most 50.
fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let (folder, start) = prefix.rsplit_once('/').map_or(("", prefix), |(folder, start)| (folder, start));
    let Ok(entries) = std::fs::read_dir(dir.join(folder)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            if hidden || !name.to_lowercase().starts_with(&start.to_lowercase()) {
                return None;
            }
            let slash = if e.path().is_dir() { "/" } else { "" };
            Some(if folder.is_empty() { format!("{name}{slash}") } else { format!("{folder}/{name}{slash}") })
        })
        .collect();
    names.sort();
    names.truncate(50);
    names
}
