//! A snapshot in which only named files are read again: after a tool that says which files it
//! writes, nothing needs to be walked.

use std::sync::Arc;

use super::error::{Result, SnapshotError};
use super::manifest::{Manifest, check_path};
use super::store::{Contents, SnapshotStore, State, Taken};
use super::walk::{Scope, is_at_or_below};

impl SnapshotStore {
    /// Takes a snapshot in which only `paths` (and what is below them) are read again; everything
    /// else is as in the newest one. Without a newest one everything is read.
    ///
    /// # Errors
    /// As [`SnapshotStore::take`], and when a path leads out of the working directory.
    pub fn record_files(&self, paths: &[String]) -> Result<Taken> {
        for path in paths {
            check_path(path).map_err(|why| SnapshotError::UnsafePath { path: path.clone(), why })?;
        }
        let mut state = self.lock();
        let Some(newest) = state.newest.clone() else { return self.take_locked(&mut state) };
        if state.known.len() != newest.len() {
            // The index was lost or is behind: what it does not know has to be read anyway.
            return self.take_locked(&mut state);
        }
        let wanted = self.widen(&newest, paths);
        self.record(&mut state, wanted)
    }

    fn record(&self, state: &mut State, wanted: Arc<[String]>) -> Result<Taken> {
        let is_wanted = |path: &str| wanted.iter().any(|w| is_at_or_below(path, w));
        let mut seen = self.look(state, &Scope::Only(Arc::clone(&wanted)), &[], Contents::Store)?;
        let mut known = std::mem::take(&mut seen.known);
        known.retain(|k| is_wanted(&k.entry.path));
        known.extend(state.known.iter().filter(|k| !is_wanted(&k.entry.path)).cloned());
        known.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        self.commit(state, known, &seen)
    }

    /// Replaces each path by the folder or file above it whose own entry may change with it: a
    /// folder that was empty, a file that became a folder, a folder that becomes empty.
    fn widen(&self, newest: &Manifest, paths: &[String]) -> Arc<[String]> {
        let mut wanted: Vec<String> = paths.iter().map(|path| self.widened(newest, path)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.into()
    }

    fn widened(&self, newest: &Manifest, path: &str) -> String {
        let ancestors = || path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(entry) = ancestors().find(|a| newest.get(a).is_some()) {
            return entry.to_owned();
        }
        if self.root.join(path).symlink_metadata().is_ok() {
            return path.to_owned();
        }
        // It is gone, and folders above it may be empty now or gone too.
        let standing = ancestors().take_while(|a| self.root.join(a).is_dir()).last();
        standing.unwrap_or_else(|| ancestors().next().unwrap_or(path)).to_owned()
    }
}
