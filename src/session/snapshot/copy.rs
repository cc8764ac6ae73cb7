//! The Checker's throw-away copy: a snapshot in a folder outside the session's home, brought from
//! cycle to cycle by difference, with the ignored folders of the original as a build cache. What
//! the Checker does to it is put back before the next cycle and never delivered.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::beneath::Root;
use super::bring::{Bring, Brought, ancestors};
use super::error::{Result, SnapshotError};
use super::index::{self, Index};
use super::manifest::Manifest;
use super::read::{Known, Reader};
use super::restore::{complete, merged};
use super::store::{SnapshotStore, now_ns};
use super::walk::{self, Kind, Rules, Scope};
use crate::ids::SnapshotId;
use crate::stdx::atomic_file;

/// Told how many files of how many are done.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOptions {
    /// Leaves out ignored folders, and begins anew every time.
    pub clean: bool,
    /// Most bytes of ignored files that are copied in.
    pub cap: u64,
}

/// A copy that holds one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckCopy {
    /// The folder to work in.
    pub root: PathBuf,
    /// The snapshot it holds.
    pub snapshot: SnapshotId,
    /// Ignored files and folders that are there as a build cache.
    pub caches: Vec<String>,
    /// Ignored files and folders that were left out, with why.
    pub left_out: Vec<String>,
    /// Files of the snapshot whose content is nowhere to be had, with why.
    pub missing: Vec<String>,
}

/// What is remembered beside a copy, out of the Checker's reach.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    format: u32,
    caches: Vec<String>,
    left_out: Vec<String>,
}

const FORMAT: u32 = 1;

/// How often the copy is looked at again because the rules of what is ignored changed.
const ROUNDS: usize = 4;

impl CheckCopy {
    /// Makes the copy in `target` hold `snapshot`. The folder to work in is `target/files`; what
    /// lies beside it must stay out of the Checker's reach.
    ///
    /// # Errors
    /// When the snapshot is unknown or damaged, or the copy can't be written: it is not usable then.
    pub fn prepare(
        store: &SnapshotStore,
        snapshot: &SnapshotId,
        target: &Path,
        options: CopyOptions,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let to = store.load(snapshot)?;
        let place = Place::new(target, store)?;
        if !options.clean
            && let Some(copy) = place.bring(store, &to, progress)
        {
            return Ok(copy);
        }
        place.make(store, &to, options, progress)
    }

    /// Removes a copy with everything in it.
    ///
    /// # Errors
    /// Whatever the file system says; a copy that is not there is fine.
    pub fn remove(target: &Path) -> Result<()> {
        remove_tree(target).map_err(|e| SnapshotError::io("remove the copy", target, e))
    }
}

/// Where a copy is.
struct Place {
    files: PathBuf,
    index: PathBuf,
    note: PathBuf,
}

impl Place {
    fn new(target: &Path, store: &SnapshotStore) -> Result<Self> {
        fs::create_dir_all(target).map_err(|e| SnapshotError::io("make", target, e))?;
        let target = fs::canonicalize(target).map_err(|e| SnapshotError::io("open", target, e))?;
        if target.starts_with(&store.root) {
            return Err(SnapshotError::UnsafeRoot { root: target, why: "lies in the folder that it is a copy of" });
        }
        Ok(Self { files: target.join("files"), index: target.join("index"), note: target.join("copy.json") })
    }

    /// Brings an existing copy to the next snapshot; `None` when there is none that can be used.
    fn bring(&self, store: &SnapshotStore, to: &Arc<Manifest>, progress: Progress<'_>) -> Option<CheckCopy> {
        let note: Note = serde_json::from_slice(&fs::read(&self.note).ok()?).ok()?;
        let index = Index::load(&self.index)?;
        if note.format != FORMAT || !fs::symlink_metadata(&self.files).ok()?.is_dir() {
            return None;
        }
        let held = store.load(&index.header.snapshot).ok()?;
        let known = index.join(&held);
        // From here on it is neither the old nor the new; a kill must not leave it to be trusted.
        fs::remove_file(&self.index).ok()?;
        // The snapshot never holds the top `.git`, so one that is there is the Checker's.
        remove_tree(&self.files.join(".git")).ok()?;
        let rules = self.rules(store, &note.caches);
        let mut known = known;
        for _ in 0..ROUNDS {
            let brought = self.bring_once(store, &held, to, &rules, &mut known, progress)?;
            if !brought.rules_changed {
                self.finish(to, &known, &note).ok()?;
                return Some(self.copy(to, note, brought.missing));
            }
            // Rules that the Checker had changed hid files from this round.
        }
        None
    }

    /// Looks at the copy and writes the difference; `None` when that is not possible.
    fn bring_once(
        &self,
        store: &SnapshotStore,
        held: &Manifest,
        to: &Manifest,
        rules: &Rules,
        known: &mut Vec<Known>,
        progress: Progress<'_>,
    ) -> Option<Brought> {
        let root = Root::open(&self.files).ok()?;
        let also: Vec<&str> = to.iter().chain(held.iter()).map(|e| &*e.path).collect();
        let scan = walk::scan(&root, rules, &Scope::Everything, &also).ok()?;
        for problem in &scan.problems {
            // A socket or pipe that the Checker left is removed; what can't be looked at makes a new copy.
            let path = problem.split_once(": ")?.0;
            root.stat(path).ok().filter(|(kind, _)| *kind == Kind::Special)?;
            root.remove_file(path).ok()?;
        }
        let strays = stray_rules(&root, &scan.folders, to);
        if !strays.is_empty() {
            strays.iter().try_for_each(|path| root.remove_file(path)).ok()?;
            return Some(Brought { rules_changed: true, ..Brought::default() });
        }
        let reader = Reader { root: &root, store: None, max_file: u64::MAX, started_ns: now_ns() };
        let (now, missed) = reader.read_all(&scan.found, known);
        if !missed.is_empty() {
            return None;
        }
        let spare = Root::open(&store.root).ok();
        let list = || {
            let scan = walk::scan(&root, rules, &Scope::Everything, &[])?;
            Ok(scan.found.into_iter().map(|f| f.path).collect())
        };
        let bring = Bring {
            root: &root,
            objects: &store.objects,
            now: &now,
            to,
            skip: &|_| false,
            protected: &HashSet::new(),
            spare: spare.as_ref(),
            list: &list,
            progress,
        };
        let brought = bring.run().and_then(|brought| complete(brought, &root)).ok()?;
        *known = merged(&now, &brought);
        Some(brought)
    }

    /// Makes the copy from nothing.
    fn make(
        &self,
        store: &SnapshotStore,
        to: &Arc<Manifest>,
        options: CopyOptions,
        progress: Progress<'_>,
    ) -> Result<CheckCopy> {
        let failed = |e| SnapshotError::io("make the copy", &self.files, e);
        for path in [&self.index, &self.note, &self.files] {
            remove_tree(path).map_err(failed)?;
        }
        let root = Root::create(&self.files).map_err(failed)?;
        let brought = store.fill(&root, to, progress)?;
        let mut note = Note { format: FORMAT, ..Note::default() };
        if !options.clean {
            self.copy_caches(store, to, options.cap, &mut note)?;
        }
        self.finish(to, &brought.written, &note)?;
        Ok(self.copy(to, note, brought.missing))
    }

    /// Copies in what the walk of the original passes by because git ignores it.
    fn copy_caches(&self, store: &SnapshotStore, to: &Manifest, cap: u64, note: &mut Note) -> Result<()> {
        let mut sized: Vec<(u64, String)> =
            ignored(store, to, note)?.into_iter().map(|path| (size_of(&store.root.join(&path)), path)).collect();
        // Small ones first, so that most of them fit: half a dependency folder is worse than none.
        sized.sort_unstable();
        let mut room = cap;
        for (size, path) in sized {
            if size > room {
                note.left_out.push(format!("{path}: {} MB, more than is left of the cap", size.div_ceil(1_000_000)));
                continue;
            }
            let to = self.files.join(&path);
            let copied = fs::create_dir_all(to.parent().unwrap_or(&self.files))
                .and_then(|()| copy_tree(&store.root.join(&path), &to));
            match copied {
                Ok(()) => {
                    room -= size;
                    note.caches.push(path);
                }
                Err(error) => {
                    // Half of it would be taken for all of it.
                    remove_tree(&to).map_err(|e| SnapshotError::io("remove", &to, e))?;
                    note.left_out.push(format!("{path}: {error}"));
                }
            }
        }
        note.caches.sort_unstable();
        Ok(())
    }

    fn finish(&self, to: &Manifest, known: &[Known], note: &Note) -> Result<()> {
        let failed = |e| SnapshotError::io("finish the copy", &self.files, e);
        let text = serde_json::to_vec(note).map_err(|e| failed(e.into()))?;
        atomic_file::write(&self.note, &text).map_err(failed)?;
        // Last: with an index the copy counts as whole.
        index::save(&self.index, to.id(), 0, known).map_err(failed)
    }

    fn copy(&self, to: &Manifest, note: Note, missing: Vec<String>) -> CheckCopy {
        let Note { format: _, caches, left_out } = note;
        CheckCopy { root: self.files.clone(), snapshot: to.id().clone(), caches, left_out, missing }
    }

    fn rules(&self, store: &SnapshotStore, caches: &[String]) -> Rules {
        Rules {
            beneath_git: false,
            skip_ignored: store.rules.skip_ignored,
            exclude: Arc::new(caches.iter().map(|path| self.files.join(path)).collect()),
        }
    }
}

/// Files that the snapshot has not and that tell git what to ignore: they may hide others, and
/// themselves.
fn stray_rules(root: &Root, folders: &[Arc<str>], to: &Manifest) -> Vec<String> {
    let mut strays = Vec::new();
    for folder in folders.iter().map(|f| format!("{f}/")).chain([String::new()]) {
        for rule in [".gitignore", ".git/info/exclude"] {
            let path = format!("{folder}{rule}");
            if to.get(&path).is_none() && root.stat(&path).is_ok_and(|(kind, _)| kind != Kind::Folder) {
                strays.push(path);
            }
        }
    }
    strays
}

/// The topmost ignored files and folders of the working directory.
fn ignored(store: &SnapshotStore, to: &Manifest, note: &mut Note) -> Result<Vec<String>> {
    let root = store.open_root()?;
    let scan = walk::scan(&root, &store.rules, &Scope::Everything, &[])?;
    let files: HashSet<&str> = scan.found.iter().map(|f| &*f.path).collect();
    let folders: HashSet<&str> = scan.folders.iter().map(|f| &**f).collect();
    let mut holding: HashSet<&str> = to.iter().flat_map(|e| ancestors(&e.path)).collect();
    holding.extend(to.iter().map(|e| &*e.path));
    let mut ignored = Vec::new();
    for folder in scan.folders.iter().map(|f| &**f).chain([""]) {
        let Ok(children) = fs::read_dir(store.root.join(folder)) else { continue };
        for child in children.flatten() {
            let Some(name) = child.file_name().to_str().map(str::to_owned) else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let seen = files.contains(&*path) || folders.contains(&*path) || path == ".git";
            let excluded = store.rules.exclude.iter().any(|e| e.starts_with(child.path()));
            if seen || excluded || !is_copied(&child) {
                continue;
            }
            if !holding.contains(&*path) {
                ignored.push(path);
            } else if child.file_type().is_ok_and(|t| t.is_dir()) {
                note.left_out.push(format!("{path}: ignored, but holds files of the snapshot"));
            }
        }
    }
    Ok(ignored)
}

fn is_copied(child: &fs::DirEntry) -> bool {
    child.file_type().is_ok_and(|t| t.is_file() || t.is_dir() || t.is_symlink())
}

fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let Ok(children) = fs::read_dir(path) else { return 0 };
    children.flatten().map(|child| size_of(&child.path())).sum()
}

/// Copies a tree with its times: a build tool that compares them must see caches older than the
/// sources beside them, never newer.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for child in fs::read_dir(from)? {
            let child = child?;
            copy_tree(&child.path(), &to.join(child.file_name()))?;
        }
        return Ok(());
    }
    if !metadata.is_file() {
        return Ok(()); // sockets and pipes hold nothing
    }
    fs::copy(from, to)?;
    let writable = fs::Permissions::from_mode((metadata.permissions().mode() & 0o777) | 0o200);
    fs::set_permissions(to, writable)?;
    File::options().write(true).open(to)?.set_modified(metadata.modified()?)
}

/// Removes a file or a tree, also one with folders that were made read-only.
fn remove_tree(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    unlock(path);
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn unlock(folder: &Path) {
    // Best effort: what stays locked is named by the removal that follows.
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    let Ok(children) = fs::read_dir(folder) else { return };
    for child in children.flatten() {
        if child.file_type().is_ok_and(|t| t.is_dir()) {
            unlock(&child.path());
        }
    }
}
