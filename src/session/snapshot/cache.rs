//! Keeps the snapshots read last in memory; their equal parts are shared.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::Result;
use super::manifest::Manifest;
use super::objects::Objects;
use crate::ids::SnapshotId;

const KEPT: usize = 8;

/// The snapshots of one session, the ones used last in memory.
#[derive(Debug)]
pub(super) struct Manifests {
    pub(super) folder: PathBuf,
    // A std mutex: held for a look into a short list, never while reading files.
    kept: Mutex<Vec<Arc<Manifest>>>,
}

impl Manifests {
    /// The snapshots below `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, kept: Mutex::new(Vec::new()) }
    }

    /// The snapshot of this name.
    pub(super) fn load(&self, id: &SnapshotId, objects: &Objects) -> Result<Arc<Manifest>> {
        let near = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = kept.iter().position(|m| m.id() == id) {
                let found = kept.remove(at);
                kept.push(Arc::clone(&found));
                return Ok(found);
            }
            kept.last().cloned()
        };
        let loaded = Arc::new(Manifest::load(&self.folder, id, objects, near.as_deref())?);
        self.keep(&loaded);
        Ok(loaded)
    }

    /// Remembers a snapshot.
    pub(super) fn keep(&self, manifest: &Arc<Manifest>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|m| m.id() != manifest.id());
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Arc::clone(manifest));
    }

    /// Forgets what no longer exists.
    pub(super) fn forget_all_but(&self, ids: &[SnapshotId]) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|m| ids.contains(m.id()));
    }
}
