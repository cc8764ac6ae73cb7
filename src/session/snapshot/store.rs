//! The store of one session's snapshots: opening it and taking a snapshot of everything.
//! `record` takes one of named files, `restore` brings one back, `diff` compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::beneath::Root;
use super::cache::Manifests;
use super::error::{Result, SnapshotError};
use super::git::{self, Git};
use super::index::{self, Index};
use super::manifest::{Entry, Manifest, Node};
use super::objects::{self, Objects};
use super::read::{Known, Missed, Reader};
use super::walk::{self, Rules, Scan, Scope, WalkOptions};
use super::{MAX_CHANGED, MAX_NOT_CAPTURED};
use crate::config::{IgnoredFiles, SnapshotsConfig};
use crate::events::data::FileChange;
use crate::ids::SnapshotId;
use crate::stdx::atomic_file;

/// Bytes in a MB as the configuration means it.
const MB: u64 = 1_000_000;

/// A session's snapshots. May be shared between threads; snapshots are taken one at a time.
#[derive(Debug)]
pub struct SnapshotStore {
    dir: PathBuf,
    pub(super) root: PathBuf,
    config: SnapshotsConfig,
    pub(super) rules: Rules,
    tracked: Mutex<Arc<[String]>>,
    pub(super) objects: Objects,
    pub(super) manifests: Manifests,
    // A std mutex: whoever changes the store or the files holds it while it blocks; never in async code.
    state: Mutex<State>,
    /// The snapshot that was brought to stable storage last. Held for a look.
    synced: Mutex<Option<SnapshotId>>,
}

/// What is known of the files from the last time.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) newest: Option<Arc<Manifest>>,
    /// Sorted by path.
    pub(super) known: Vec<Known>,
    /// Whether `known` is what `newest` lists: so once a snapshot was taken, not from an index,
    /// which may be behind.
    pub(super) complete: bool,
    /// Whether the index on disk lacks something of it.
    pub(super) unnoted: bool,
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its name; the same as before when nothing changed.
    pub id: SnapshotId,
    /// What differs from the snapshot before, at most [`MAX_CHANGED`]; nothing in the first one.
    pub changed: Vec<FileChange>,
    /// How many differ in all.
    pub changed_total: u64,
    /// What is not in it or without content, with why, at most [`MAX_NOT_CAPTURED`].
    pub not_captured: Vec<String>,
}

/// The files as a look at them found them.
pub(super) struct Seen {
    pub(super) known: Vec<Known>,
    pub(super) missed: Vec<Missed>,
    pub(super) scan: Scan,
}

/// Whether contents are stored or only compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Store,
    Compare,
}

impl SnapshotStore {
    /// Opens the store in `dir` (made if missing) for the files below `root`.
    ///
    /// # Errors
    /// When `root` is `/` or holds the home folder, or `dir` can't be made.
    pub fn open(dir: &Path, root: &Path, config: &SnapshotsConfig, options: WalkOptions) -> Result<Self> {
        let root = fs::canonicalize(root).map_err(|e| SnapshotError::io("open the working directory", root, e))?;
        refuse_unsafe(&root, options.home.as_deref())?;
        let manifests = dir.join("manifests");
        fs::create_dir_all(&manifests).map_err(|e| SnapshotError::io("make", &manifests, e))?;
        let dir = fs::canonicalize(dir).map_err(|e| SnapshotError::io("open", dir, e))?;
        let index = Index::load(&dir.join("index"));
        let total = index.as_ref().map(|i| i.header.total);
        let exclude = options.exclude.iter().map(|path| root.join(path)).map(|p| fs::canonicalize(&p).unwrap_or(p));
        // A folder around the working directory names what lies beside it, never all of it.
        let exclude = exclude.filter(|path| !root.starts_with(path));
        let store = Self {
            rules: Rules {
                beneath_git: options.beneath_git,
                skip_ignored: config.ignored == IgnoredFiles::Skip,
                exclude: Arc::new(exclude.chain([dir.clone()]).collect()),
            },
            objects: Objects::open(&dir, total, config.max_total_mb.saturating_mul(MB))?,
            manifests: Manifests::new(dir.join("manifests")),
            tracked: Mutex::new(options.tracked.into()),
            state: Mutex::default(),
            synced: Mutex::default(),
            config: config.clone(),
            dir,
            root,
        };
        store.recall(index);
        Ok(store)
    }

    /// Takes up what the last process left: the newest snapshot and what is known of the files.
    fn recall(&self, index: Option<Index>) {
        let named = fs::read_to_string(self.dir.join("newest")).ok().map(|text| SnapshotId::new(text.trim()));
        let by_index = index.as_ref().map(|i| i.header.snapshot.clone());
        let newest = [named, by_index].into_iter().flatten().find_map(|id| self.load(&id).ok());
        let mut state = self.lock();
        state.newest = newest.or_else(|| self.newest_by_time());
        if let Some(index) = index
            && let Ok(manifest) = self.load(&index.header.snapshot)
        {
            state.known = index.join(&manifest);
        }
    }

    fn newest_by_time(&self) -> Option<Arc<Manifest>> {
        let files = fs::read_dir(&self.manifests.folder).ok()?.flatten();
        let mut dated: Vec<_> =
            files.filter_map(|f| Some((f.metadata().ok()?.modified().ok()?, f.file_name()))).collect();
        dated.sort_unstable();
        dated.iter().rev().find_map(|(_, name)| self.load(&SnapshotId::new(name.to_str()?)).ok())
    }

    /// The working directory it is for.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Replaces the list of paths that the repository tracks.
    pub fn set_tracked(&self, tracked: Vec<String>) {
        *self.tracked.lock().unwrap_or_else(PoisonError::into_inner) = tracked.into();
    }

    /// The latest snapshot.
    pub fn newest(&self) -> Option<SnapshotId> {
        self.lock().newest.as_ref().map(|m| m.id().clone())
    }

    /// A snapshot's list of files; the ones used last stay in memory.
    ///
    /// # Errors
    /// When there is none of this name or it is damaged.
    pub fn load(&self, id: &SnapshotId) -> Result<Arc<Manifest>> {
        self.manifests.load(id, &self.objects)
    }

    /// Takes a snapshot of all files. With nothing changed it has the name of the one before and
    /// nothing is written.
    ///
    /// # Errors
    /// When the working directory can't be walked or the store can't be written. Files that can't
    /// be read are named in the outcome instead.
    pub fn take(&self) -> Result<Taken> {
        self.take_locked(&mut self.lock())
    }

    pub(super) fn take_locked(&self, state: &mut State) -> Result<Taken> {
        let mut seen = self.look(state, &Scope::Everything, &[], Contents::Store)?;
        let known = std::mem::take(&mut seen.known);
        let taken = self.commit(state, known, &seen)?;
        self.note(state);
        Ok(taken)
    }

    /// Writes the index if it is behind. Recording single files leaves it so: writing all of it
    /// would cost more than the few files that are read once more after a crash.
    fn note(&self, state: &mut State) {
        if let Some(newest) = state.newest.as_ref().filter(|_| state.unnoted) {
            // It only saves time; without it the next process reads more files.
            let saved = index::save(&self.dir.join("index"), newest.id(), self.objects.total(), &state.known);
            state.unnoted = saved.is_err();
        }
    }

    /// Looks at the files without taking a snapshot.
    pub(super) fn look(&self, state: &State, scope: &Scope, also: &[&str], contents: Contents) -> Result<Seen> {
        let started_ns = now_ns();
        let root = self.open_root()?;
        let tracked = Arc::clone(&self.tracked.lock().unwrap_or_else(PoisonError::into_inner));
        let also: Vec<&str> = match scope {
            Scope::Everything => tracked.iter().map(String::as_str).chain(also.iter().copied()).collect(),
            Scope::Only(wanted) => {
                let in_scope = |t: &&str| wanted.iter().any(|w| walk::is_at_or_below(t, w));
                tracked.iter().map(String::as_str).filter(in_scope).collect()
            }
        };
        let scan = walk::scan(&root, &self.rules, scope, &also)?;
        let reader = Reader {
            root: &root,
            store: (contents == Contents::Store).then_some(&self.objects),
            max_file: self.max_file(),
            started_ns,
        };
        let (known, missed) = reader.read_all(&scan.found, &state.known);
        Ok(Seen { known, missed, scan })
    }

    /// Makes `known` the newest snapshot.
    pub(super) fn commit(&self, state: &mut State, known: Vec<Known>, seen: &Seen) -> Result<Taken> {
        let before = state.newest.clone();
        let mut remarks = seen.scan.problems.clone();
        remarks.extend(seen.missed.iter().map(|m| format!("{}: {}", m.path, m.why)));
        remarks.extend(known.iter().filter_map(|k| self.remark(&k.entry)));
        let git = match git::read(&self.root, &self.objects)? {
            Git::None => None,
            Git::Saved(entries) => Some(entries),
            Git::Busy(why) => {
                remarks.push(why);
                before.as_ref().and_then(|m| m.git()).map(|git| git.iter().cloned().collect())
            }
        };
        let manifest = self.publish(state, known, git)?;
        let all = match &before {
            Some(before) => super::diff::compare(before, &manifest),
            None => Vec::new(),
        };
        let changed_total = all.len() as u64;
        let changed = match &before {
            Some(before) => self.count_lines(before, &manifest, all, MAX_CHANGED),
            None => all,
        };
        Ok(Taken {
            id: manifest.id().clone(),
            changed: changed.into_iter().take(MAX_CHANGED).collect(),
            changed_total,
            not_captured: bounded(remarks),
        })
    }

    /// Writes the snapshot that consists of `known` and makes it the newest.
    pub(super) fn publish(
        &self,
        state: &mut State,
        known: Vec<Known>,
        git: Option<Vec<Entry>>,
    ) -> Result<Arc<Manifest>> {
        let files = known.iter().map(|k| k.entry.clone()).collect();
        let manifest = Arc::new(Manifest::build(files, git, state.newest.as_deref()));
        let is_new = state.newest.as_ref().is_none_or(|n| n.id() != manifest.id());
        if is_new {
            self.write_unless_there(&manifest, state.newest.as_deref())?;
            let path = self.dir.join("newest");
            atomic_file::write(&path, manifest.id().as_str().as_bytes())
                .map_err(|e| SnapshotError::io("write", &path, e))?;
        }
        state.unnoted |= is_new || !index::is_same(&known, &state.known);
        state.known = known;
        state.complete = true;
        state.newest = Some(Arc::clone(&manifest));
        self.manifests.keep(&manifest);
        Ok(manifest)
    }

    fn write_unless_there(&self, manifest: &Manifest, previous: Option<&Manifest>) -> Result<()> {
        match self.load(manifest.id()) {
            Ok(there) if there.is_equal(manifest) => Ok(()),
            Ok(there) => Err(SnapshotError::DamagedManifest {
                id: there.id().clone(),
                why: "another snapshot of different files has the same name".to_owned(),
            }),
            // Missing or damaged: written anew, with all of its parts.
            Err(SnapshotError::Unknown { .. }) => manifest.save(&self.manifests.folder, &self.objects, previous),
            Err(_) => manifest.save(&self.manifests.folder, &self.objects, None),
        }
    }

    fn remark(&self, entry: &Entry) -> Option<String> {
        match entry.node {
            Node::File { stored: false, size, .. } => Some(format!("{}: {}", entry.path, self.why_not_stored(size))),
            Node::File { stored: true, .. } | Node::Link { .. } | Node::Folder => None,
        }
    }

    /// Why a file of this size has no content in the store.
    pub(super) fn why_not_stored(&self, size: u64) -> String {
        if size > self.max_file() {
            let megabytes = size.div_ceil(MB);
            format!("{megabytes} MB, more than `snapshots.max_file_mb` = {}", self.config.max_file_mb)
        } else {
            format!("no room: `snapshots.max_total_mb` = {}", self.config.max_total_mb)
        }
    }

    pub(super) fn max_file(&self) -> u64 {
        self.config.max_file_mb.saturating_mul(MB)
    }

    /// Brings all that was stored to stable storage, so that it survives a power cut.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn sync(&self) -> Result<()> {
        let failed = |e| SnapshotError::io("bring to stable storage", &self.dir, e);
        let newest = self.newest();
        self.objects.sync().map_err(failed)?;
        if self.synced.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == newest.as_ref() {
            return Ok(());
        }
        let manifest = newest.as_ref().map(|id| self.manifests.folder.join(id.as_str()));
        let lists: Vec<PathBuf> = manifest.into_iter().chain([self.dir.join("newest")]).collect();
        objects::sync_all(&lists).map_err(failed)?;
        *self.synced.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        Ok(())
    }

    pub(super) fn open_root(&self) -> Result<Root> {
        Root::open(&self.root).map_err(|e| SnapshotError::io("open the working directory", &self.root, e))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse_unsafe(root: &Path, home: Option<&Path>) -> Result<()> {
    let refuse = |why| Err(SnapshotError::UnsafeRoot { root: root.to_owned(), why });
    if root.parent().is_none() {
        return refuse("is the root of the file system");
    }
    let Some(home) = home else { return Ok(()) };
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    if root == home {
        return refuse("is your home folder");
    }
    if home.starts_with(root) {
        return refuse("holds your home folder");
    }
    Ok(())
}

fn bounded(mut remarks: Vec<String>) -> Vec<String> {
    if remarks.len() > MAX_NOT_CAPTURED {
        let more = remarks.len() - (MAX_NOT_CAPTURED - 1);
        remarks.truncate(MAX_NOT_CAPTURED - 1);
        remarks.push(format!("… and {more} more"));
    }
    remarks
}

pub(super) fn now_ns() -> i64 {
    // The kernel's clock, since it is compared with the times the kernel gave to files.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
