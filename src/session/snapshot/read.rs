//! Turns what a walk found into a snapshot's entries: hashes from the last time where the file
//! system says nothing changed, else from reading the file, storing what is new.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use blake3::{Hash, Hasher};
use rayon::prelude::*;

use super::beneath::Root;
use super::error::SnapshotError;
use super::manifest::{Entry, Node};
use super::objects::{Objects, Put, copy_through};
use super::walk::{Found, Kind, Stat};

/// Files up to this size are read in one go.
const IN_MEMORY: u64 = 1 << 20;

/// Files that one thread takes.
const SMALL: usize = 64;

/// How often a file is read again that changes while it is being read.
const ATTEMPTS: usize = 3;

/// An entry with what the file system said when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) entry: Entry,
    pub(super) stat: Stat,
    /// The times may not tell the next change from this state.
    pub(super) racy: bool,
}

/// A file that could not be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) path: Arc<str>,
    pub(super) why: String,
}

/// How files are read.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Root,
    /// Where new contents go; `None`: they are only hashed.
    pub(super) store: Option<&'a Objects>,
    /// Larger files are hashed but not stored.
    pub(super) max_file: u64,
    pub(super) started_ns: i64,
}

impl Reader<'_> {
    /// Reads all of `found`, re-using `known`; both are sorted by path, and so is the outcome.
    pub(super) fn read_all(&self, found: &[Found], known: &[Known]) -> (Vec<Known>, Vec<Missed>) {
        let mut at = 0;
        let pairs: Vec<(&Found, Option<&Known>)> = found
            .iter()
            .map(|f| {
                while known.get(at).is_some_and(|k| k.entry.path < f.path) {
                    at += 1;
                }
                (f, known.get(at).filter(|k| k.entry.path == f.path))
            })
            .collect();
        let one = |(found, known): &(&Found, Option<&Known>)| self.read(found, *known);
        // Few files are read sooner than threads are woken.
        let read: Vec<Result<Option<Known>, Missed>> = match pairs.len() {
            0..SMALL => pairs.iter().map(one).collect(),
            _ => pairs.par_iter().with_min_len(SMALL).map(one).collect(),
        };
        let (mut kept, mut missed) = (Vec::with_capacity(read.len()), Vec::new());
        for outcome in read {
            match outcome {
                Ok(Some(known)) => kept.push(known),
                Ok(None) => {}
                Err(why) => missed.push(why),
            }
        }
        (kept, missed)
    }

    fn read(&self, found: &Found, known: Option<&Known>) -> Result<Option<Known>, Missed> {
        if let Some(known) = known.filter(|k| self.is_unchanged(found, k)) {
            return Ok(Some(known.clone()));
        }
        let read = match found.kind {
            Kind::File => self.read_file(found),
            Kind::Link => self.read_link(found),
            Kind::Folder => Ok((Node::Folder, found.stat)),
            Kind::Special => Err("a pipe, socket or device".to_owned()),
        };
        match read {
            Ok((node, stat)) => {
                // The path is shared with the last time, so that comparing costs a pointer.
                let path = known.map_or_else(|| Arc::clone(&found.path), |k| Arc::clone(&k.entry.path));
                let racy = found.kind == Kind::File && stat.is_racy(self.started_ns);
                Ok(Some(Known { entry: Entry { path, node }, stat, racy }))
            }
            // Gone since the walk; a later snapshot will say so.
            Err(_) if self.root.stat(&found.path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) => Ok(None),
            Err(why) => Err(Missed { path: Arc::clone(&found.path), why }),
        }
    }

    fn is_unchanged(&self, found: &Found, known: &Known) -> bool {
        match &known.entry.node {
            Node::File { stored, size, .. } => {
                let may_be_stored = self.store.is_some_and(|o| o.has_room_for(*size)) && *size <= self.max_file;
                found.kind == Kind::File && found.stat == known.stat && !known.racy && (*stored || !may_be_stored)
            }
            // Reading a link costs no more than asking about it.
            Node::Link { .. } => false,
            Node::Folder => found.kind == Kind::Folder,
        }
    }

    fn read_link(&self, found: &Found) -> Result<(Node, Stat), String> {
        let target = self.root.read_link(&found.path).map_err(|e| e.to_string())?;
        let target = target.to_str().ok_or("it points to a name that is not UTF-8")?;
        Ok((Node::Link { target: target.into() }, found.stat))
    }

    fn read_file(&self, found: &Found) -> Result<(Node, Stat), String> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let (put, before, after) = self.read_once(&found.path)?;
            let node = Node::File { hash: put.hash, size: put.size, mode: after.mode & 0o777, stored: put.stored };
            if before == after && put.size == after.size {
                return Ok((node, after));
            }
            last = Some((node, Stat { ctime_ns: i64::MAX, ..after }));
        }
        // It is being written all the time: this is how it once looked, and it counts as racy.
        last.ok_or_else(|| "it could not be read".to_owned())
    }

    fn read_once(&self, path: &str) -> Result<(Put, Stat, Stat), String> {
        let mut file = self.root.open_file(path).map_err(|e| e.to_string())?;
        let before = file.metadata().map_err(|e| e.to_string())?;
        if !before.is_file() {
            return Err("it is no regular file any more".to_owned());
        }
        let put = self.take_in(&mut file, before.len()).map_err(|e| e.to_string())?;
        let after = file.metadata().map_err(|e| e.to_string())?;
        Ok((put, Stat::from(&before), Stat::from(&after)))
    }

    fn take_in(&self, file: &mut File, size: u64) -> Result<Put, SnapshotError> {
        let failed = |source| SnapshotError::Io { what: "can't read it".to_owned(), source };
        match self.store.filter(|_| size <= self.max_file) {
            Some(objects) if size <= IN_MEMORY => {
                let mut bytes = Vec::with_capacity(size as usize + 1);
                // It may have grown; what is over the bound is read through the stream below.
                Read::by_ref(file).take(IN_MEMORY + 1).read_to_end(&mut bytes).map_err(failed)?;
                if bytes.len() as u64 <= IN_MEMORY {
                    return objects.put(&bytes);
                }
                objects.put_stream(&mut io::Read::chain(&bytes[..], file))
            }
            Some(objects) => objects.put_stream(file),
            None => {
                let (hash, size) = hash_of(file).map_err(failed)?;
                Ok(Put { hash, size, stored: self.store.is_none() })
            }
        }
    }
}

/// Hashes a content without holding it in memory.
pub(super) fn hash_of(content: &mut dyn Read) -> io::Result<(Hash, u64)> {
    let mut hasher = Hasher::new();
    let size = copy_through(content, |part| {
        hasher.update(part);
        Ok(())
    })?;
    Ok((hasher.finalize(), size))
}
