//! A snapshot's list of files: what it holds, its form on disk and its name. Contents are in
//! `objects`.
//!
//! The list is cut into chunks at places that depend on the paths alone; each chunk is stored as
//! an object of JSON lines, so snapshots that differ in one file share all other chunks. The name
//! comes from the content, so an unchanged tree has the same name.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use blake3::Hash;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::error::{Result, SnapshotError};
use super::objects::Objects;
use crate::ids::SnapshotId;
use crate::stdx::atomic_file;

/// The version of the form on disk.
const FORMAT: u32 = 1;

/// Length of a snapshot's name: 64 bits, in hexadecimal.
const ID_LEN: usize = 16;

/// One thing in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the working directory, with `/`.
    pub path: Arc<str>,
    /// What is there.
    pub node: Node,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// BLAKE3 of the content.
        hash: Hash,
        /// Bytes.
        size: u64,
        /// Permission bits (`0o777` of them; setuid and its kin are dropped).
        mode: u32,
        /// Whether the content is kept; else only its hash is.
        stored: bool,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: Arc<str>,
    },
    /// A folder with nothing in it.
    Folder,
}

impl Node {
    /// Whether a person would see no difference; where contents are kept is no difference.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { hash, size, mode, stored: _ },
                Self::File { hash: other_hash, size: other_size, mode: other_mode, stored: _ },
            ) => hash == other_hash && size == other_size && mode == other_mode,
            (Self::Link { target }, Self::Link { target: other_target }) => target == other_target,
            (Self::Folder, Self::Folder) => true,
            (Self::File { .. } | Self::Link { .. } | Self::Folder, _) => false,
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::File { .. } => "a file".to_owned(),
            Self::Link { target } => format!("a symbolic link to `{target}`"),
            Self::Folder => "a folder".to_owned(),
        }
    }
}

/// A run of entries that is stored together.
#[derive(Debug)]
struct Chunk {
    hash: Hash,
    entries: Vec<Entry>,
}

/// Entries sorted by path, in chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    chunks: Vec<Arc<Chunk>>,
}

/// A snapshot.
#[derive(Debug)]
pub struct Manifest {
    id: SnapshotId,
    files: Listing,
    git: Option<Listing>,
}

impl Manifest {
    /// Makes a snapshot of what was found; `files` and `git` are sorted. What agrees with
    /// `previous` is taken over from it.
    pub(super) fn build(files: Vec<Entry>, git: Option<Vec<Entry>>, previous: Option<&Self>) -> Self {
        let files = Listing::build(files, previous.map(|p| &p.files));
        let git = git.map(|git| Listing::build(git, previous.and_then(|p| p.git.as_ref())));
        let id = id_of(render(&files, git.as_ref()).as_bytes());
        Self { id, files, git }
    }

    /// Its name.
    pub fn id(&self) -> &SnapshotId {
        &self.id
    }

    /// Files, links and empty folders, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.files.iter()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.files.chunks.iter().map(|c| c.entries.len()).sum()
    }

    /// Whether nothing was there.
    pub fn is_empty(&self) -> bool {
        self.files.chunks.is_empty()
    }

    /// What stands at `path`.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.files.get(path)
    }

    /// The saved part of the root's own `.git`, paths below it; `None` when there was none.
    pub(super) fn git(&self) -> Option<&Listing> {
        self.git.as_ref()
    }

    /// Whether both list the same, down to what is stored.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        let same = |a: &Listing, b: &Listing| a.hashes().eq(b.hashes());
        same(&self.files, &other.files)
            && match (&self.git, &other.git) {
                (Some(a), Some(b)) => same(a, b),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
    }

    /// Stores the chunks that `previous` has not, then the list of chunks.
    pub(super) fn save(&self, folder: &Path, objects: &Objects, previous: Option<&Self>) -> Result<()> {
        let known: Vec<&Arc<Chunk>> = previous.into_iter().flat_map(Self::chunks).collect();
        let new: Vec<&Arc<Chunk>> = self.chunks().filter(|c| !known.iter().any(|k| Arc::ptr_eq(k, c))).collect();
        new.par_iter().try_for_each(|chunk| objects.put_own(&lines(&chunk.entries)).map(drop))?;
        let path = folder.join(self.id.as_str());
        let text = render(&self.files, self.git.as_ref());
        atomic_file::write(&path, text.as_bytes()).map_err(|e| SnapshotError::io("write", &path, e))
    }

    /// Reads a snapshot and proves that it is what was written.
    pub(super) fn load(folder: &Path, id: &SnapshotId, objects: &Objects, near: Option<&Self>) -> Result<Self> {
        let unknown = || SnapshotError::Unknown { id: id.clone(), dir: folder.to_owned() };
        if id.as_str().len() != ID_LEN || !id.as_str().bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let path = folder.join(id.as_str());
        let text = std::fs::read(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => unknown(),
            _ => SnapshotError::io("read", &path, e),
        })?;
        let damaged = |why: String| SnapshotError::DamagedManifest { id: id.clone(), why };
        if id_of(&text) != *id {
            return Err(damaged("its content does not match its name".to_owned()));
        }
        let header: Header = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        if header.format != FORMAT {
            return Err(damaged(format!(
                "format {} instead of {FORMAT}; it was written by another version of this program",
                header.format
            )));
        }
        let files = Listing::load(&header.files, objects, near.map(|n| &n.files)).map_err(&damaged)?;
        let git = match &header.git {
            Some(git) => Some(Listing::load(git, objects, near.and_then(|n| n.git.as_ref())).map_err(&damaged)?),
            None => None,
        };
        if files.iter().any(|e| is_at_root_git(&e.path)) {
            return Err(damaged("it lists files of `.git` among the working files".to_owned()));
        }
        Ok(Self { id: id.clone(), files, git })
    }

    fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.files.chunks.iter().chain(self.git.iter().flat_map(|g| &g.chunks))
    }

    /// The objects it needs: its chunks and the stored contents.
    pub(super) fn needs(&self) -> impl Iterator<Item = Hash> {
        let git = self.git.iter().flat_map(Listing::iter);
        let contents = self.iter().chain(git).filter_map(|e| match &e.node {
            Node::File { hash, stored: true, .. } => Some(*hash),
            Node::File { stored: false, .. } | Node::Link { .. } | Node::Folder => None,
        });
        self.chunks().map(|c| c.hash).chain(contents)
    }
}

impl Listing {
    fn build(entries: Vec<Entry>, previous: Option<&Self>) -> Self {
        let mut runs = Vec::new();
        let mut run = Vec::new();
        for entry in entries {
            let last = ends_chunk(&entry.path);
            run.push(entry);
            if last {
                runs.push(std::mem::take(&mut run));
            }
        }
        if !run.is_empty() {
            runs.push(run);
        }
        let chunks = runs.into_par_iter().map(|entries| {
            let known = previous.and_then(|p| p.chunk_from(&entries[0].path)).filter(|c| c.entries == entries);
            known
                .map_or_else(|| Arc::new(Chunk { hash: blake3::hash(lines(&entries).as_slice()), entries }), Arc::clone)
        });
        Self { chunks: chunks.collect() }
    }

    fn load(hashes: &[String], objects: &Objects, near: Option<&Self>) -> std::result::Result<Self, String> {
        let chunks = hashes
            .par_iter()
            .map(|text| {
                let hash = Hash::from_hex(text).map_err(|_| format!("`{text}` is not a name of a chunk"))?;
                if let Some(known) = near.and_then(|n| n.chunks.iter().find(|c| c.hash == hash)) {
                    return Ok(Arc::clone(known));
                }
                let bytes = objects.get_own(&hash)?;
                Ok(Arc::new(Chunk { hash, entries: parse(&bytes)? }))
            })
            .collect::<std::result::Result<Vec<_>, String>>()?;
        let listing = Self { chunks };
        let mut previous: Option<&Entry> = None;
        for entry in listing.iter() {
            if previous.is_some_and(|p| p.path >= entry.path) {
                return Err(format!("`{}` is listed twice or out of order", entry.path));
            }
            previous = Some(entry);
        }
        Ok(listing)
    }

    /// All entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(|c| &c.entries)
    }

    /// What stands at `path`.
    pub(super) fn get(&self, path: &str) -> Option<&Node> {
        let chunk = self.chunks.partition_point(|c| *c.entries[0].path <= *path).checked_sub(1)?;
        let entries = &self.chunks[chunk].entries;
        let at = entries.binary_search_by(|e| (*e.path).cmp(path)).ok()?;
        Some(&entries[at].node)
    }

    fn chunk_from(&self, first: &str) -> Option<&Arc<Chunk>> {
        let at = self.chunks.binary_search_by(|c| (*c.entries[0].path).cmp(first)).ok()?;
        Some(&self.chunks[at])
    }

    fn hashes(&self) -> impl Iterator<Item = Hash> {
        self.chunks.iter().map(|c| c.hash)
    }
}

/// Whether a chunk ends after this path: one in 128 does, whatever the neighbours are.
fn ends_chunk(path: &str) -> bool {
    // FNV-1a: all that is asked of it is to spread, and never to change.
    let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32).is_multiple_of(128)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    files: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<Vec<String>>,
}

fn render(files: &Listing, git: Option<&Listing>) -> String {
    let names = |listing: &Listing| listing.hashes().map(|h| h.to_hex().to_string()).collect();
    let header = Header { format: FORMAT, files: names(files), git: git.map(names) };
    serde_json::to_string_pretty(&header).expect("numbers and strings always have a JSON form")
}

fn id_of(text: &[u8]) -> SnapshotId {
    SnapshotId::new(&blake3::hash(text).to_hex()[..ID_LEN])
}

/// An entry's line. Neither a hash nor a link: a folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    hash: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    mode: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_false")]
    not_stored: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    link: Option<Cow<'a, str>>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_false(value: &bool) -> bool {
    !value
}

fn lines(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * 160);
    for entry in entries {
        let mut line = Line {
            path: Cow::Borrowed(&entry.path),
            hash: None,
            size: None,
            mode: None,
            not_stored: false,
            link: None,
        };
        match &entry.node {
            Node::File { hash, size, mode, stored } => {
                line.hash = Some(Cow::Owned(hash.to_hex().to_string()));
                line.size = Some(*size);
                line.mode = Some(Cow::Owned(format!("{mode:o}")));
                line.not_stored = !stored;
            }
            Node::Link { target } => line.link = Some(Cow::Borrowed(target)),
            Node::Folder => {}
        }
        serde_json::to_writer(&mut out, &line).expect("writing strings and numbers to memory always succeeds");
        out.push(b'\n');
    }
    out
}

fn parse(bytes: &[u8]) -> std::result::Result<Vec<Entry>, String> {
    let entries = bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| parse_line(line).map_err(|why| format!("{why} in `{}`", String::from_utf8_lossy(line))))
        .collect::<std::result::Result<Vec<_>, String>>()?;
    if entries.is_empty() { Err("a chunk is empty".to_owned()) } else { Ok(entries) }
}

fn parse_line(line: &[u8]) -> std::result::Result<Entry, String> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    check_path(&line.path).map_err(|why| format!("a path that {why}"))?;
    let node = match (line.hash, line.link) {
        (Some(hash), None) => Node::File {
            hash: Hash::from_hex(hash.as_bytes()).map_err(|_| "a hash that is none")?,
            size: line.size.ok_or("no size")?,
            mode: line.mode.and_then(|m| u32::from_str_radix(&m, 8).ok()).ok_or("no mode")? & 0o777,
            stored: !line.not_stored,
        },
        (None, Some(link)) => Node::Link { target: link.into() },
        (None, None) => Node::Folder,
        (Some(_), Some(_)) => return Err("both a hash and a link".to_owned()),
    };
    Ok(Entry { path: line.path.into(), node })
}

/// Whether the path lies in the root's own `.git`.
pub(super) fn is_at_root_git(path: &str) -> bool {
    super::walk::is_at_or_below(path, ".git")
}

/// Says what is wrong with a path as one inside the working directory.
pub(super) fn check_path(path: &str) -> std::result::Result<(), &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.starts_with('/') {
        return Err("is absolute");
    }
    if path.contains('\0') {
        return Err("holds a zero byte");
    }
    for part in path.split('/') {
        match part {
            "" | "." => return Err("has an empty part"),
            ".." => return Err("leads upwards"),
            _ => {}
        }
    }
    Ok(())
}
