//! Brings a folder from what it holds to what a snapshot lists, by their difference. Does not
//! know whose folder it is; `restore` and `copy` do.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::beneath::Root;
use super::copy::Progress;
use super::error::{Result, SnapshotError};
use super::manifest::{Entry, Manifest, Node};
use super::objects::{Objects, copy_through};
use super::read::Known;
use super::store::now_ns;
use super::walk::Stat;

/// What is needed to bring a folder to a snapshot.
pub(super) struct Bring<'a> {
    pub(super) root: &'a Root,
    pub(super) objects: &'a Objects,
    /// What the folder holds, sorted by path.
    pub(super) now: &'a [Known],
    pub(super) to: &'a Manifest,
    /// Paths that are left alone.
    pub(super) skip: &'a (dyn Fn(&str) -> bool + Sync),
    /// Paths whose present content nobody could bring back.
    pub(super) protected: &'a HashSet<Arc<str>>,
    /// Where contents may be found that were not stored.
    pub(super) spare: Option<&'a Root>,
    /// Lists the files that are not ignored, for when the rules change on the way.
    pub(super) list: &'a (dyn Fn() -> Result<HashSet<Arc<str>>> + Sync),
    pub(super) progress: Progress<'a>,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// What was written, as the file system sees it now.
    pub(super) written: Vec<Known>,
    pub(super) removed: HashSet<Arc<str>>,
    /// Contents that are nowhere to be had.
    pub(super) missing: Vec<String>,
    /// What could not be done, with why.
    pub(super) failed: Vec<String>,
    /// Whether files changed that say what git ignores.
    pub(super) rules_changed: bool,
}

/// The difference, in the order in which it is worked off.
struct Plan<'a> {
    /// Stand where a folder or file of another kind has to be.
    in_the_way: Vec<&'a Entry>,
    write: Vec<&'a Entry>,
    remove: Vec<&'a Entry>,
    /// Folders that the snapshot has.
    folders: HashSet<&'a str>,
}

impl<'a> Bring<'a> {
    /// Does it. What fails is named in the outcome, and the rest is done.
    pub(super) fn run(&self) -> Result<Brought> {
        let plan = self.plan();
        let mut brought = Brought { rules_changed: plan.changes_rules(), ..Brought::default() };
        self.remove(&plan.in_the_way, &plan, &mut brought);
        self.write(&plan.write, &mut brought);
        let remove = if brought.rules_changed && !plan.remove.is_empty() {
            // A file that the restored rules ignore is none of the snapshot's business.
            let listed = (self.list)()?;
            let is_listed = |e: &&&Entry| matches!(e.node, Node::Folder) || listed.contains(&e.path);
            plan.remove.iter().filter(is_listed).copied().collect()
        } else {
            plan.remove.clone()
        };
        self.remove(&remove, &plan, &mut brought);
        brought.missing.sort_unstable();
        brought.failed.sort_unstable();
        Ok(brought)
    }

    fn now(&self, path: &str) -> Option<&'a Entry> {
        let at = self.now.binary_search_by(|k| (*k.entry.path).cmp(path)).ok()?;
        Some(&self.now[at].entry)
    }

    fn plan(&self) -> Plan<'a> {
        let (mut folders, mut files) = (HashSet::new(), HashSet::new());
        for entry in self.to.iter().filter(|e| !(self.skip)(&e.path)) {
            folders.extend(ancestors(&entry.path));
            match entry.node {
                Node::Folder => folders.insert(&*entry.path),
                Node::File { .. } | Node::Link { .. } => files.insert(&*entry.path),
            };
        }
        let differs = |e: &&Entry| !(self.skip)(&e.path) && self.now(&e.path).is_none_or(|n| !n.node.is_same(&e.node));
        let mut plan = Plan {
            in_the_way: Vec::new(),
            write: self.to.iter().filter(differs).collect(),
            remove: Vec::new(),
            folders,
        };
        for entry in self.now.iter().map(|k| &k.entry).filter(|e| !(self.skip)(&e.path)) {
            let is_folder = matches!(entry.node, Node::Folder);
            let clashes = match is_folder {
                true => files.contains(&*entry.path),
                false => plan.folders.contains(&*entry.path),
            };
            if clashes || ancestors(&entry.path).any(|a| files.contains(a)) {
                plan.in_the_way.push(entry);
            } else if self.to.get(&entry.path).is_none() {
                plan.remove.push(entry);
            }
        }
        plan
    }

    fn remove(&self, entries: &[&'a Entry], plan: &Plan<'_>, brought: &mut Brought) {
        let mut emptied: HashSet<&str> = HashSet::new();
        for entry in entries {
            emptied.extend(ancestors(&entry.path));
            if matches!(entry.node, Node::Folder) {
                emptied.insert(&entry.path);
                continue;
            }
            if self.protected.contains(&entry.path) {
                brought.failed.push(would_be_lost(&entry.path));
                continue;
            }
            match self.root.remove_file(&entry.path) {
                Ok(()) => _ = brought.removed.insert(Arc::clone(&entry.path)),
                Err(error) => brought.failed.push(format!("{}: can't be removed: {error}", entry.path)),
            }
        }
        let mut emptied: Vec<&str> = emptied.into_iter().filter(|f| !plan.folders.contains(f)).collect();
        emptied.sort_unstable_by_key(|folder| std::cmp::Reverse(folder.len()));
        for folder in emptied {
            // Not empty: it holds what is ignored or left alone, and stays.
            let _ = self.root.remove_folder(folder);
        }
    }

    fn write(&self, entries: &[&'a Entry], brought: &mut Brought) {
        let done = AtomicUsize::new(0);
        let total = entries.len();
        let outcomes: Vec<(&Entry, Result<Stat>)> = entries
            .par_iter()
            .with_min_len(16)
            .map(|entry| {
                let outcome = self.write_one(entry);
                (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                (*entry, outcome)
            })
            .collect();
        let settled_ns = now_ns();
        for (entry, outcome) in outcomes {
            match outcome {
                Ok(stat) => {
                    let racy = stat.is_racy(settled_ns);
                    brought.written.push(Known { entry: entry.clone(), stat, racy });
                }
                Err(SnapshotError::NotStored { path, why }) => brought.missing.push(format!("{path}: {why}")),
                Err(error) => brought.failed.push(format!("{}: {error}", entry.path)),
            }
        }
    }

    fn write_one(&self, entry: &Entry) -> Result<Stat> {
        let path = &*entry.path;
        let Entry { node: Node::File { hash, size, mode, stored }, .. } = entry else { return self.write_other(entry) };
        if let Some(Entry { node: Node::File { hash: now, .. }, .. }) = self.now(path)
            && now == hash
        {
            return Ok(self.root.set_mode(path, *mode)?);
        }
        self.guard(path)?;
        if *stored {
            return self.root.write_file(path, *mode, |file| {
                self.objects.read(path, hash, &mut |part| file.write_all(part)).map(drop)
            });
        }
        let not_stored = || SnapshotError::NotStored {
            path: path.to_owned(),
            why: format!("its {size} bytes were not stored, and the file has changed or is gone"),
        };
        let mut source = self.spare.and_then(|s| s.open_file(path).ok()).ok_or_else(not_stored)?;
        self.root.write_file(path, *mode, |file| {
            let mut hasher = blake3::Hasher::new();
            copy_through(&mut source, |part| {
                hasher.update(part);
                file.write_all(part)
            })?;
            if hasher.finalize() == *hash { Ok(()) } else { Err(not_stored()) }
        })
    }

    fn write_other(&self, entry: &Entry) -> Result<Stat> {
        match &entry.node {
            Node::Link { target } => {
                self.guard(&entry.path)?;
                Ok(self.root.write_link(&entry.path, target)?)
            }
            Node::Folder | Node::File { .. } => {
                self.root.make_folder(&entry.path)?;
                Ok(self.root.stat(&entry.path)?.1)
            }
        }
    }

    /// Refuses to write over what nobody could bring back.
    fn guard(&self, path: &str) -> Result<()> {
        if self.protected.contains(path) {
            let source = std::io::Error::other("what is there now is not stored and would be lost");
            return Err(SnapshotError::Io { what: "left as it is".to_owned(), source });
        }
        Ok(())
    }
}

impl Plan<'_> {
    /// Whether what git ignores changes with it.
    fn changes_rules(&self) -> bool {
        let is_rule =
            |e: &&&Entry| e.path.rsplit('/').next() == Some(".gitignore") || e.path.ends_with(".git/info/exclude");
        [&self.in_the_way, &self.write, &self.remove].into_iter().flatten().any(|e| is_rule(&e))
    }
}

fn would_be_lost(path: &str) -> String {
    format!("{path}: left as it is: what is there now is not stored and would be lost")
}

/// `a/b/c` → `a`, `a/b`.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(move |(at, _)| &path[..at])
}
