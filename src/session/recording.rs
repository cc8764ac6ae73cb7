//! Records the working files around each step that can change them, off the turn's path
//! (architecture.md, "Rewind"): the first snapshot is taken while the model thinks; after a
//! command the walk runs while the next request is on the wire; only the next changing step waits.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::snapshot::{SnapshotStore, Taken};
use crate::agent::ports::StepHook;
use crate::events::event::Event;
use crate::events::recorder::Recorder;
use crate::ids::{Seq, SnapshotId, TraceId};

/// Most changed files that one event lists, and most that could not be recorded.
const LISTED: (usize, usize) = (200, 50);

/// Records one Worker run.
pub struct Recording {
    store: Arc<SnapshotStore>,
    recorder: Arc<Recorder>,
    cycle: u32,
    trace: TraceId,
    pending: Mutex<Option<JoinHandle<()>>>,
}

impl Recording {
    /// Begins with a snapshot of the files as they are, taken in the background.
    pub fn begin(store: Arc<SnapshotStore>, recorder: Arc<Recorder>, cycle: u32, trace: TraceId) -> Self {
        let recording = Self { store, recorder, cycle, trace, pending: Mutex::const_new(None) };
        let first = recording.walk(None);
        Self { pending: Mutex::const_new(Some(first)), ..recording }
    }

    /// Waits for what is under way.
    pub async fn settle(&self) {
        if let Some(pending) = self.pending.lock().await.take() {
            // A walk that panicked has said so in the log; the next one tries again.
            let _ = pending.await;
        }
    }

    /// Records the files as they are now and returns the snapshot.
    ///
    /// # Errors
    /// They can't be recorded; says why.
    pub async fn finish(&self) -> Result<SnapshotId, String> {
        self.settle().await;
        let store = self.store.clone();
        let taken = tokio::task::spawn_blocking(move || store.take()).await;
        let taken = taken.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        let id = taken.id.clone();
        publish(&self.recorder, self.cycle, &self.trace, None, taken, Say::Changes);
        Ok(id)
    }

    fn walk(&self, sequence: Option<Seq>) -> JoinHandle<()> {
        self.spawn(sequence, |store| store.take())
    }

    fn spawn(
        &self,
        sequence: Option<Seq>,
        take: impl FnOnce(&SnapshotStore) -> super::snapshot::Result<Taken> + Send + 'static,
    ) -> JoinHandle<()> {
        let (store, recorder) = (self.store.clone(), self.recorder.clone());
        let (cycle, trace) = (self.cycle, self.trace.clone());
        tokio::task::spawn_blocking(move || match take(&store) {
            Ok(taken) => {
                let say = if sequence.is_none() { Say::Always } else { Say::Changes };
                publish(&recorder, cycle, &trace, sequence, taken, say);
            }
            Err(error) => {
                let text = format!(
                    "the working files could not be recorded: {error}; rewinding will not restore this step's files"
                );
                let _ = recorder.record(Some(cycle), Some(&trace), Event::Note { text });
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Say {
    /// Also when nothing changed: a cycle's first snapshot is its reference.
    Always,
    /// Only when something changed.
    Changes,
}

fn publish(recorder: &Recorder, cycle: u32, trace: &TraceId, sequence: Option<Seq>, taken: Taken, say: Say) {
    if say == Say::Changes && taken.changed_total == 0 {
        return;
    }
    let mut changed = taken.changed;
    changed.truncate(LISTED.0);
    let mut not_captured = taken.not_captured;
    not_captured.truncate(LISTED.1);
    let event =
        Event::Snapshot { snapshot: taken.id, sequence, changed, changed_total: taken.changed_total, not_captured };
    // When the journal can't be written the run ends at its next message.
    let _ = recorder.record(Some(cycle), Some(trace), event);
}

#[async_trait]
impl StepHook for Recording {
    async fn before_change(&self) {
        self.settle().await;
    }

    async fn after_change(&self, sequence: Seq, files: Option<Vec<String>>) {
        let pending = match files {
            Some(files) if files.is_empty() => return,
            Some(files) => self.spawn(Some(sequence), move |store| store.record_files(&files)),
            None => self.walk(Some(sequence)),
        };
        *self.pending.lock().await = Some(pending);
    }
}
