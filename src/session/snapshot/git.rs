//! The small part of the root's own `.git` that says where its branches are. Saved with a snapshot
//! so that a rewind also undoes commits of the agent; git never removes the objects themselves by
//! then. Everything else in `.git` is never read or written, and nothing is while git has a lock.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::beneath::Root;
use super::error::Result;
use super::manifest::{Entry, Listing, Node};
use super::objects::Objects;

/// Single files that are saved.
const FILES: [&str; 5] = ["HEAD", "config", "index", "logs/HEAD", "packed-refs"];

/// Locks under which git is at work.
const LOCKS: [&str; 4] = ["HEAD.lock", "config.lock", "index.lock", "packed-refs.lock"];

/// An index beyond this is not saved; nor is anything else then, since parts would not fit together.
const MAX_FILE: u64 = 100 << 20;

/// What was found.
pub(super) enum Git {
    /// There is no `.git` folder (a worktree's `.git` is a file: its data lies elsewhere).
    None,
    /// It can't be saved now, with why.
    Busy(String),
    /// The saved part.
    Saved(Vec<Entry>),
}

/// Reads the part that is saved.
pub(super) fn read(root: &Path, objects: &Objects) -> Result<Git> {
    let folder = root.join(".git");
    if !std::fs::symlink_metadata(&folder).is_ok_and(|m| m.is_dir()) {
        return Ok(Git::None);
    }
    let Ok(git) = Root::open(&folder) else {
        return Ok(Git::Busy(".git: it can't be opened; where its branches are was not saved".to_owned()));
    };
    if let Some(lock) = lock(&git) {
        return Ok(Git::Busy(format!(".git: `{lock}` is there; where its branches are was not saved")));
    }
    let mut paths: Vec<String> = FILES.map(str::to_owned).into();
    refs_below(&folder.join("refs"), "refs", &mut paths);
    paths.sort_unstable();
    let mut entries = Vec::new();
    for path in paths {
        let Ok(mut file) = git.open_file(&path) else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        let mut bytes = Vec::new();
        if Read::by_ref(&mut file).take(MAX_FILE + 1).read_to_end(&mut bytes).is_err() || bytes.len() as u64 > MAX_FILE
        {
            return Ok(Git::Busy(format!(".git/{path}: it can't be read; where the branches are was not saved")));
        }
        let put = objects.put_own(&bytes)?;
        use std::os::unix::fs::MetadataExt;
        let mode = metadata.mode() & 0o777;
        let node = Node::File { hash: put.hash, size: put.size, mode, stored: true };
        entries.push(Entry { path: Arc::from(path), node });
    }
    Ok(Git::Saved(entries))
}

fn lock(git: &Root) -> Option<&'static str> {
    LOCKS.into_iter().find(|lock| git.stat(lock).is_ok())
}

fn refs_below(folder: &Path, name: &str, paths: &mut Vec<String>) {
    let Ok(children) = std::fs::read_dir(folder) else { return };
    for child in children.flatten() {
        let (Ok(kind), Some(child_name)) = (child.file_type(), child.file_name().to_str().map(str::to_owned)) else {
            continue;
        };
        let path = format!("{name}/{child_name}");
        if kind.is_dir() {
            refs_below(&child.path(), &path, paths);
        } else if kind.is_file() && !child_name.ends_with(".lock") {
            paths.push(path);
        }
    }
}

/// Whether branches differ: `HEAD` or any ref, not the index, which `git status` rewrites.
pub(super) fn branches_differ(one: Option<&Listing>, other: Option<&Listing>) -> bool {
    let branches = |listing: Option<&Listing>| -> BTreeMap<Arc<str>, Node> {
        let all = listing.into_iter().flat_map(Listing::iter);
        let of_branches = all.filter(|e| !matches!(&*e.path, "index" | "config" | "logs/HEAD"));
        of_branches.map(|e| (Arc::clone(&e.path), e.node.clone())).collect()
    };
    branches(one) != branches(other)
}

/// Brings the saved part back; returns what was written or removed.
pub(super) fn restore(
    root: &Path,
    objects: &Objects,
    now: &Listing,
    to: &Listing,
) -> std::result::Result<Vec<String>, String> {
    let failed = |path: &str, why: &dyn std::fmt::Display| format!(".git/{path}: {why}");
    let git = Root::open(&root.join(".git")).map_err(|e| failed("", &e))?;
    if let Some(lock) = lock(&git) {
        return Err(format!(".git: left as it is, since `{lock}` is there: git is at work or was interrupted"));
    }
    if let Some(entry) = to.iter().find(|e| !is_saved_path(&e.path)) {
        return Err(failed(&entry.path, &"no part of what is saved of `.git`; refused"));
    }
    let mut changed = Vec::new();
    for Entry { path, node } in to.iter() {
        if now.get(path).is_some_and(|n| n.is_same(node)) {
            continue;
        }
        let Node::File { hash, mode, .. } = node else { continue };
        git.write_file(path, *mode, |file| {
            objects.read(&format!(".git/{path}"), hash, &mut |part| io::Write::write_all(file, part)).map(drop)
        })
        .map_err(|e| failed(path, &e))?;
        changed.push(format!(".git/{path}"));
    }
    for Entry { path, .. } in now.iter().filter(|e| to.get(&e.path).is_none() && e.path.starts_with("refs/")) {
        git.remove_file(path).map_err(|e| failed(path, &e))?;
        changed.push(format!(".git/{path}"));
    }
    // Refs that were packed or made since then are decided by `packed-refs` as well.
    if to.get("packed-refs").is_none() && now.get("packed-refs").is_some() {
        git.remove_file("packed-refs").map_err(|e| failed("packed-refs", &e))?;
        changed.push(".git/packed-refs".to_owned());
    }
    Ok(changed)
}

fn is_saved_path(path: &str) -> bool {
    FILES.contains(&path) || path.starts_with("refs/")
}
