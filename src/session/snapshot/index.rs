//! The file `index`: what the file system said about each file when it was last read, so that
//! the next snapshot reads only what changed. It saves time and nothing else: when it is missing,
//! damaged or old, files are read again.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::manifest::{Entry, Manifest, Node};
use super::read::Known;
use super::walk::Stat;
use crate::ids::SnapshotId;
use crate::stdx::atomic_file;

const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: u32,
    /// The snapshot whose hashes belong to the lines below.
    pub(super) snapshot: SnapshotId,
    /// Bytes of all objects.
    pub(super) total: u64,
}

/// The file as read.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) header: Header,
    lines: Vec<(Box<str>, Stat, bool)>,
}

impl Index {
    /// Reads the index; `None` when there is none that could be used.
    pub(super) fn load(path: &Path) -> Option<Self> {
        let unpacker = zstd::stream::read::Decoder::new(std::fs::File::open(path).ok()?).ok()?;
        let mut reader = BufReader::new(unpacker);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let header: Header = serde_json::from_str(&line).ok()?;
        if header.format != FORMAT {
            return None;
        }
        let mut lines = Vec::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return Some(Self { header, lines });
            }
            lines.push(serde_json::from_str(&line).ok()?);
        }
    }

    /// Joins the lines with the hashes of their snapshot.
    pub(super) fn join(self, manifest: &Manifest) -> Vec<Known> {
        let mut lines = self.lines.into_iter().peekable();
        let mut known = Vec::new();
        for Entry { path, node } in manifest.iter() {
            while lines.next_if(|(at, _, _)| **at < **path).is_some() {}
            if let Some((_, stat, racy)) = lines.next_if(|(at, _, _)| **at == **path) {
                known.push(Known { entry: Entry { path: path.clone(), node: node.clone() }, stat, racy });
            }
        }
        known
    }
}

/// Only files are noted: nothing else is ever taken over unread.
fn noted(known: &[Known]) -> impl Iterator<Item = &Known> {
    known.iter().filter(|k| matches!(k.entry.node, Node::File { .. }))
}

/// Whether both would be noted alike.
pub(super) fn is_same(one: &[Known], other: &[Known]) -> bool {
    noted(one).eq(noted(other))
}

/// Writes the index that belongs to `snapshot`.
pub(super) fn save(path: &Path, snapshot: &SnapshotId, total: u64, known: &[Known]) -> io::Result<()> {
    let mut packer = zstd::stream::write::Encoder::new(Vec::with_capacity(known.len() * 40), 1)?;
    let mut text = Vec::with_capacity(known.len() * 100);
    serde_json::to_writer(&mut text, &Header { format: FORMAT, snapshot: snapshot.clone(), total })?;
    text.push(b'\n');
    for Known { entry, stat, racy } in noted(known) {
        serde_json::to_writer(&mut text, &(&*entry.path, stat, racy))?;
        text.push(b'\n');
    }
    packer.write_all(&text)?;
    atomic_file::write(path, &packer.finish()?)
}
