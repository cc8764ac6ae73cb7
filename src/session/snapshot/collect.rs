//! Removes what no snapshot needs any more, by mark and sweep.

use std::collections::HashSet;
use std::fs;

use super::error::{Result, SnapshotError};
use super::store::SnapshotStore;
use crate::ids::SnapshotId;

impl SnapshotStore {
    /// Removes all snapshots but `keep` and the newest, and the contents that only they needed.
    /// Returns the bytes won.
    ///
    /// # Errors
    /// When a snapshot to keep is unknown or damaged: nothing is removed then, since what it needs
    /// can't be told.
    pub fn gc(&self, keep: &[SnapshotId]) -> Result<u64> {
        let state = self.lock();
        let newest = state.newest.as_ref().map(|m| m.id().clone());
        let kept: Vec<SnapshotId> = keep.iter().cloned().chain(newest).collect();
        let mut needed = HashSet::new();
        for id in &kept {
            needed.extend(self.load(id)?.needs());
        }
        let folder = &self.manifests.folder;
        let list = fs::read_dir(folder).map_err(|e| SnapshotError::io("look through", folder, e))?;
        self.manifests.forget_all_but(&kept);
        let mut freed = 0;
        for file in list.flatten() {
            let is_kept = file.file_name().to_str().is_some_and(|name| kept.iter().any(|id| id.as_str() == name));
            if !is_kept {
                freed += file.metadata().map_or(0, |m| m.len());
                fs::remove_file(file.path()).map_err(|e| SnapshotError::io("remove", &file.path(), e))?;
            }
        }
        Ok(freed + self.objects.sweep(&needed)?)
    }
}
