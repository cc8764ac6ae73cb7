//! Putting new content in a file's place: whole or not at all, with the mode it had; and how the
//! new content differs from the old. For `write_file` and `edit_file`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::events::data::{ChangeKind, FileChange};
use crate::stdx::atomic_file::temporary_beside;

/// Larger texts are not compared line by line.
const MOST_COMPARED: usize = 4 * 1024 * 1024;

/// Writes `content` at `path`, which no reader ever sees in part. An existing file keeps its mode.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path);
    let mode = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    let result = (|| {
        let mut file = fs::File::create_new(&temporary)?;
        file.write_all(content)?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Whether the file's mode lets nobody write it. Renaming would get around that.
pub(super) fn is_read_only(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o222 == 0
}

/// How `new` differs from `old`; no `old` means the file was not there.
pub(super) fn change(shown: &str, old: Option<&[u8]>, new: &[u8]) -> FileChange {
    let kind = match old {
        None => ChangeKind::Added,
        Some(old) if old == new => ChangeKind::Unchanged,
        Some(_) => ChangeKind::Modified,
    };
    let (added, removed) = match count(old.unwrap_or_default(), new) {
        Some((added, removed)) => (Some(added), Some(removed)),
        None => (None, None),
    };
    FileChange { path: shown.to_owned(), kind, added, removed }
}

fn count(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
    if old.len().max(new.len()) > MOST_COMPARED {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    if old.is_empty() {
        return Some((new.lines().count() as u64, 0));
    }
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    Some((added, removed))
}

/// A change in a word: `new, 12 lines`, `+3 −1`, `unchanged`.
pub(super) fn summary(change: &FileChange) -> String {
    match (change.kind, change.added, change.removed) {
        (ChangeKind::Unchanged, ..) => "unchanged".to_owned(),
        (ChangeKind::Added, Some(1), _) => "new, 1 line".to_owned(),
        (ChangeKind::Added, Some(lines), _) => format!("new, {lines} lines"),
        (ChangeKind::Added, None, _) => "new".to_owned(),
        (ChangeKind::Modified | ChangeKind::Deleted, Some(added), Some(removed)) => format!("+{added} −{removed}"),
        (ChangeKind::Modified | ChangeKind::Deleted, ..) => "changed".to_owned(),
    }
}
