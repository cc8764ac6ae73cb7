//! What differs between two snapshots, or between one and the files as they are now.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::sync::Arc;

use rayon::prelude::*;

use super::error::{Result, SnapshotError};
use super::manifest::{Entry, Manifest, Node};
use super::store::{Contents, SnapshotStore};
use super::unified::{self, FileDiffText, Text};
use super::walk::Scope;
use super::{git, walk};
use crate::events::data::{ChangeKind, FileChange};
use crate::ids::SnapshotId;

/// Most files of one comparison whose lines are counted.
const MAX_COUNTED: usize = 2_000;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// The files as this snapshot has them.
    Snapshot(&'a SnapshotId),
    /// The files as they are now.
    Now,
}

impl<'a> From<&'a SnapshotId> for View<'a> {
    fn from(id: &'a SnapshotId) -> Self {
        Self::Snapshot(id)
    }
}

impl<'a> From<Option<&'a SnapshotId>> for View<'a> {
    fn from(id: Option<&'a SnapshotId>) -> Self {
        id.map_or(Self::Now, Self::Snapshot)
    }
}

/// A side with its list of files at hand.
struct Side {
    manifest: Arc<Manifest>,
    /// Where contents come from: the store, or the files themselves.
    is_now: bool,
}

impl SnapshotStore {
    /// The files that differ, sorted by path, with the lines of text files counted. Empty folders
    /// are no files and are left out.
    ///
    /// # Errors
    /// When a snapshot is unknown or damaged.
    pub fn diff<'a>(&self, from: impl Into<View<'a>>, to: impl Into<View<'a>>) -> Result<Vec<FileChange>> {
        let (from, to) = (self.side(from.into())?, self.side(to.into())?);
        let changes = compare(&from.manifest, &to.manifest);
        Ok(self.count(&from, &to, changes, MAX_COUNTED))
    }

    /// How one file differs, as text.
    ///
    /// # Errors
    /// When a snapshot is unknown or damaged, or neither side has the file.
    pub fn unified<'a>(&self, from: impl Into<View<'a>>, to: impl Into<View<'a>>, path: &str) -> Result<FileDiffText> {
        let (from, to) = (from.into(), to.into());
        let old = self.one(from, path)?;
        let new = self.one(to, path)?;
        if old.is_none() && new.is_none() {
            return Err(SnapshotError::NoSuchFile { path: path.to_owned(), snapshot: "either side".to_owned() });
        }
        if let (Some((one, _)), Some((other, _))) = (&old, &new)
            && one.is_same(other)
        {
            return Ok(FileDiffText {
                unified: String::new(),
                note: Some("unchanged".to_owned()),
                added: Some(0),
                removed: Some(0),
            });
        }
        let text = |side: &Option<(Node, bool)>| match side {
            Some((node, is_now)) => self.text_of(path, node, *is_now),
            None => Text::Absent,
        };
        Ok(unified::render(path, &text(&old), &text(&new)))
    }

    /// The paths that differ now from a snapshot, and `.git` when its branches moved: what a
    /// person changed, when nothing else has since.
    ///
    /// # Errors
    /// When the snapshot is unknown or damaged, or the working directory can't be walked.
    pub fn changed_since(&self, id: &SnapshotId) -> Result<Vec<String>> {
        let then = self.load(id)?;
        let now = self.side(View::Now)?;
        let mut paths: Vec<String> = compare(&then, &now.manifest).into_iter().map(|c| c.path).collect();
        if git::branches_differ(then.git(), now.manifest.git()) {
            paths.push(".git".to_owned());
            paths.sort_unstable();
        }
        Ok(paths)
    }

    /// The first `limit` bytes of a file as a snapshot has it.
    ///
    /// # Errors
    /// When the snapshot is unknown, has no such file, did not store it or holds it damaged.
    pub fn read(&self, id: &SnapshotId, path: &str, limit: u64) -> Result<Vec<u8>> {
        let manifest = self.load(id)?;
        let no_file = || SnapshotError::NoSuchFile { path: path.to_owned(), snapshot: format!("snapshot `{id}`") };
        match manifest.get(path).ok_or_else(no_file)? {
            Node::File { hash, size, stored, .. } => self.content(path, hash, *size, *stored, limit),
            other @ (Node::Link { .. } | Node::Folder) => {
                Err(SnapshotError::NotAFile { path: path.to_owned(), what: other.describe() })
            }
        }
    }

    fn content(&self, path: &str, hash: &blake3::Hash, size: u64, stored: bool, limit: u64) -> Result<Vec<u8>> {
        if !stored {
            return Err(SnapshotError::NotStored { path: path.to_owned(), why: self.why_not_stored(size) });
        }
        let mut bytes = Vec::with_capacity(size.min(limit) as usize);
        self.objects.read(path, hash, &mut |part| {
            let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            bytes.extend_from_slice(&part[..part.len().min(room)]);
            Ok(())
        })?;
        Ok(bytes)
    }

    fn side(&self, view: View<'_>) -> Result<Side> {
        match view {
            View::Snapshot(id) => Ok(Side { manifest: self.load(id)?, is_now: false }),
            View::Now => {
                let state = self.lock();
                let seen = self.look(&state, &Scope::Everything, &[], Contents::Compare)?;
                let files = seen.known.into_iter().map(|k| k.entry).collect();
                let git = match git::read(&self.root, &self.objects)? {
                    git::Git::Saved(entries) => Some(entries),
                    git::Git::None => None,
                    // Unknown for the moment; taken to be as it was last.
                    git::Git::Busy(_) => {
                        state.newest.as_ref().and_then(|m| m.git()).map(|git| git.iter().cloned().collect())
                    }
                };
                let manifest = Arc::new(Manifest::build(files, git, state.newest.as_deref()));
                Ok(Side { manifest, is_now: true })
            }
        }
    }

    /// What stands at one path on one side, and whether that side is the files themselves.
    fn one(&self, view: View<'_>, path: &str) -> Result<Option<(Node, bool)>> {
        let id = match view {
            View::Snapshot(id) => id,
            View::Now => return self.one_now(path),
        };
        Ok(self.load(id)?.get(path).cloned().map(|node| (node, false)))
    }

    fn one_now(&self, path: &str) -> Result<Option<(Node, bool)>> {
        super::manifest::check_path(path).map_err(|why| SnapshotError::UnsafePath { path: path.to_owned(), why })?;
        let root = self.open_root()?;
        let Ok((kind, _)) = root.stat(path) else { return Ok(None) };
        let failed = |e| SnapshotError::io("read", &self.root.join(path), e);
        match kind {
            walk::Kind::File => {
                let mut file = root.open_file(path).map_err(failed)?;
                let mode = walk::Stat::from(&file.metadata().map_err(failed)?).mode & 0o777;
                let (hash, size) = super::read::hash_of(&mut file).map_err(failed)?;
                Ok(Some((Node::File { hash, size, mode, stored: true }, true)))
            }
            walk::Kind::Link => {
                let target = root.read_link(path).map_err(failed)?;
                Ok(Some((Node::Link { target: target.to_string_lossy().into() }, true)))
            }
            walk::Kind::Folder => Ok(Some((Node::Folder, true))),
            walk::Kind::Special => Ok(None),
        }
    }

    /// Counts the lines of the first `limit` changes between two snapshots.
    pub(super) fn count_lines(
        &self,
        from: &Arc<Manifest>,
        to: &Arc<Manifest>,
        changes: Vec<FileChange>,
        limit: usize,
    ) -> Vec<FileChange> {
        let side = |manifest: &Arc<Manifest>| Side { manifest: Arc::clone(manifest), is_now: false };
        self.count(&side(from), &side(to), changes, limit)
    }

    fn count(&self, from: &Side, to: &Side, mut changes: Vec<FileChange>, limit: usize) -> Vec<FileChange> {
        changes.par_iter_mut().take(limit).for_each(|change| {
            let text = |side: &Side| match side.manifest.get(&change.path) {
                Some(node) => self.text_of(&change.path, node, side.is_now),
                None => Text::Absent,
            };
            (change.added, change.removed) = unified::count(&text(from), &text(to));
        });
        changes
    }

    /// A side of one file as text, or why there is none.
    fn text_of(&self, path: &str, node: &Node, is_now: bool) -> Text {
        match node {
            Node::Folder => Text::Absent,
            Node::Link { target } => Text::Link(target.to_string()),
            Node::File { size, .. } if *size > unified::MAX_FILE => Text::Large(*size),
            Node::File { hash, size, mode, stored } => {
                let bytes = if is_now {
                    self.read_now(path).map_err(|e| e.to_string())
                } else {
                    self.content(path, hash, *size, *stored, unified::MAX_FILE).map_err(|e| e.to_string())
                };
                match bytes {
                    Ok(bytes) => Text::of(&bytes, *mode),
                    Err(why) => Text::Unknown(why),
                }
            }
        }
    }

    fn read_now(&self, path: &str) -> io::Result<Vec<u8>> {
        let root = super::beneath::Root::open(&self.root)?;
        let mut bytes = Vec::new();
        root.open_file(path)?.take(unified::MAX_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The files and links that differ, sorted by path, lines not counted.
pub(super) fn compare(from: &Manifest, to: &Manifest) -> Vec<FileChange> {
    let is_file = |e: &&Entry| !matches!(e.node, Node::Folder);
    let change = |path: &str, kind| FileChange { path: path.to_owned(), kind, added: None, removed: None };
    let (mut old, mut new) = (from.iter().filter(is_file).peekable(), to.iter().filter(is_file).peekable());
    let mut changes = Vec::new();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.path.cmp(&b.path),
        };
        // The side whose path comes first moves on; both when they agree.
        let a = if order.is_le() { old.next() } else { None };
        let b = if order.is_ge() { new.next() } else { None };
        match (a, b) {
            (Some(a), Some(b)) if a.node.is_same(&b.node) => {}
            (Some(a), Some(_)) => changes.push(change(&a.path, ChangeKind::Modified)),
            (Some(a), None) => changes.push(change(&a.path, ChangeKind::Deleted)),
            (None, Some(b)) => changes.push(change(&b.path, ChangeKind::Added)),
            (None, None) => return changes,
        }
    }
}
