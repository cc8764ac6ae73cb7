//! Bringing the working files back to a snapshot, and putting a snapshot into a folder of its own.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::beneath::Root;
use super::bring::{Bring, Brought};
use super::copy::Progress;
use super::error::{Result, SnapshotError};
use super::manifest::{Manifest, Node};
use super::read::Known;
use super::store::{Contents, Seen, SnapshotStore, State};
use super::walk::{self, Scope, is_at_or_below};
use super::{diff, git};
use crate::events::data::FileChange;
use crate::ids::SnapshotId;

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The snapshot of how everything was before, for undoing it.
    pub before: SnapshotId,
    /// The snapshot of how it is now; the one asked for when nothing was kept and nothing failed.
    pub after: SnapshotId,
    /// What changed.
    pub changed: Vec<FileChange>,
    /// What was put back in `.git`.
    pub git: Vec<String>,
    /// Paths that differ from the snapshot because they were to be left alone.
    pub kept: Vec<String>,
    /// What could not be brought back, with why.
    pub failed: Vec<String>,
}

/// A snapshot in a folder of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Materialised {
    /// Files, links and empty folders written.
    pub written: usize,
    /// Files left out because their content is nowhere to be had, with why.
    pub missing: Vec<String>,
}

impl SnapshotStore {
    /// Brings the working files to a snapshot. How they are now is saved first; ignored files,
    /// and the paths in `keep` with what is below them (`.git` for its branches), are left alone.
    ///
    /// # Errors
    /// When the snapshot is unknown or damaged, or how things are now can't be saved: nothing has
    /// changed then. Single files that fail are named in the outcome.
    pub fn restore(&self, to: &SnapshotId, keep: &[String]) -> Result<Restored> {
        let to = self.load(to)?;
        // The Worker may have removed the working directory itself.
        let root = Root::create(&self.root).map_err(|e| SnapshotError::io("make", &self.root, e))?;
        let mut state = self.lock();
        let (before, seen) = self.save_before(&mut state, &to, &root)?;
        let protected = unsaved(&state.known, &seen);
        let is_kept = |path: &str| keep.iter().any(|k| is_at_or_below(path, k));
        let excluded = |path: &str| self.rules.excludes(&self.root.join(path));
        let brought = Bring {
            root: &root,
            objects: &self.objects,
            now: &state.known,
            to: &to,
            skip: &|path| is_kept(path) || excluded(path),
            protected: &protected,
            spare: None,
            list: &|| self.listed(&root),
            progress: &|_, _| {},
        }
        .run()?;
        let (git, git_failed) = if is_kept(".git") { (Vec::new(), None) } else { self.restore_git(&before, &to) };
        state.known = merged(&state.known, &brought);
        let mut failed = brought.failed;
        failed.extend(brought.missing);
        failed.extend(git_failed);
        self.take_locked(&mut state)?;
        let after = state.newest.clone().unwrap_or_else(|| Arc::clone(&before));
        let changed = self.count_lines(&before, &after, diff::compare(&before, &after), usize::MAX);
        let kept = diff::compare(&after, &to).into_iter().map(|c| c.path).filter(|p| is_kept(p)).collect();
        Ok(Restored { before: before.id().clone(), after: after.id().clone(), changed, git, kept, failed })
    }

    /// Saves how things are, including what is ignored by now but will be written over.
    fn save_before(&self, state: &mut State, to: &Manifest, root: &Root) -> Result<(Arc<Manifest>, Seen)> {
        let also: Vec<&str> = to.iter().map(|e| &*e.path).collect();
        let mut seen = self.look(state, &Scope::Everything, &also, Contents::Store)?;
        for leftover in &seen.scan.leftovers {
            // From a restore that was interrupted; it held nothing that is not stored.
            let _ = root.remove_file(leftover);
        }
        let known = std::mem::take(&mut seen.known);
        self.commit(state, known, &seen)?;
        let before = state.newest.clone().ok_or_else(|| SnapshotError::DamagedManifest {
            id: to.id().clone(),
            why: "the files as they are now could not be saved".to_owned(),
        })?;
        Ok((before, seen))
    }

    fn restore_git(&self, now: &Manifest, to: &Manifest) -> (Vec<String>, Option<String>) {
        // Without both sides there is nothing to go by; a repository made since then stays.
        let (Some(now), Some(to)) = (now.git(), to.git()) else { return (Vec::new(), None) };
        match git::restore(&self.root, &self.objects, now, to) {
            Ok(changed) => (changed, None),
            Err(why) => (Vec::new(), Some(why)),
        }
    }

    /// The files that are not ignored as the rules are now.
    fn listed(&self, root: &Root) -> Result<HashSet<Arc<str>>> {
        let scan = walk::scan(root, &self.rules, &Scope::Everything, &[])?;
        Ok(scan.found.into_iter().map(|f| f.path).collect())
    }

    /// Writes a snapshot into a folder that is new or empty. The part of `.git` is left out.
    ///
    /// # Errors
    /// When the snapshot is unknown or damaged, or the folder is in use or can't be written.
    pub fn materialise(&self, id: &SnapshotId, into: &Path, progress: Progress<'_>) -> Result<Materialised> {
        let to = self.load(id)?;
        let root = Root::create(into).map_err(|e| SnapshotError::io("make", into, e))?;
        let mut inside = fs::read_dir(into).map_err(|e| SnapshotError::io("look into", into, e))?;
        if inside.next().is_some() {
            return Err(SnapshotError::NotEmpty(into.to_owned()));
        }
        let brought = self.fill(&root, &to, progress)?;
        Ok(Materialised { written: brought.written.len(), missing: brought.missing })
    }

    /// Writes a snapshot into an empty folder.
    pub(super) fn fill(&self, root: &Root, to: &Manifest, progress: Progress<'_>) -> Result<Brought> {
        let spare = Root::open(&self.root).ok();
        let brought = Bring {
            root,
            objects: &self.objects,
            now: &[],
            to,
            skip: &|_| false,
            protected: &HashSet::new(),
            spare: spare.as_ref(),
            list: &|| Ok(HashSet::new()),
            progress,
        }
        .run()?;
        complete(brought, root)
    }
}

/// Makes a failure of any file one of the whole.
pub(super) fn complete(brought: Brought, root: &Root) -> Result<Brought> {
    match brought.failed.first() {
        None => Ok(brought),
        Some(first) => {
            let more = match brought.failed.len() - 1 {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            let source = std::io::Error::other(format!("{first}{more}"));
            Err(SnapshotError::io("fill", root.path(), source))
        }
    }
}

/// Files that could not be read or stored: what they hold now would be lost.
fn unsaved(known: &[Known], seen: &Seen) -> HashSet<Arc<str>> {
    let not_stored = known.iter().filter(|k| matches!(k.entry.node, Node::File { stored: false, .. }));
    let missed = seen.missed.iter().map(|m| Arc::clone(&m.path));
    not_stored.map(|k| Arc::clone(&k.entry.path)).chain(missed).collect()
}

/// What is known of the files after they were brought somewhere else.
pub(super) fn merged(now: &[Known], brought: &Brought) -> Vec<Known> {
    let rewritten: HashSet<&str> = brought.written.iter().map(|k| &*k.entry.path).collect();
    let is_as_before = |k: &&Known| !rewritten.contains(&*k.entry.path) && !brought.removed.contains(&k.entry.path);
    let mut known: Vec<Known> = now.iter().filter(is_as_before).chain(&brought.written).cloned().collect();
    known.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
    known
}
