//! Finds the files that belong to a snapshot: what git would not ignore, and what it tracks
//! although ignored. Does not read contents; `read` does.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use ignore::{DirEntry, WalkBuilder, WalkState};
use serde::{Deserialize, Serialize};

use super::beneath::{Root, TEMPORARY};
use super::error::{Result, SnapshotError};
use super::manifest::check_path;

/// What counts as part of a working directory.
#[derive(Clone, Debug, Default)]
pub struct WalkOptions {
    /// Whether git's rules from above the root (and the person's own excludes) count: for folders
    /// worked in place, never for a session's own `files/`.
    pub beneath_git: bool,
    /// Folders and files that are never looked at, absolute or below the root.
    pub exclude: Vec<PathBuf>,
    /// Paths the repository tracks; they are saved even when a git-ignore rule matches them.
    pub tracked: Vec<String>,
    /// The person's home folder, which is refused as a root.
    pub home: Option<PathBuf>,
}

/// What the file system says about a file; equal answers mean equal content, unless racy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    pub(super) size: u64,
    pub(super) mtime_ns: i64,
    pub(super) ctime_ns: i64,
    pub(super) inode: u64,
    pub(super) mode: u32,
}

impl Stat {
    /// Whether the file was touched so shortly before `started_ns` that a later change could
    /// carry the same times. The kernel's clock ticks every 4 to 10 ms.
    pub(super) fn is_racy(&self, started_ns: i64) -> bool {
        self.ctime_ns.max(self.mtime_ns) >= started_ns.saturating_sub(10_000_000)
    }
}

impl From<&std::fs::Metadata> for Stat {
    fn from(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            size: found.size(),
            mtime_ns: nanoseconds(found.mtime(), found.mtime_nsec()),
            ctime_ns: nanoseconds(found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
            mode: found.mode(),
        }
    }
}

impl From<&nix::sys::stat::FileStat> for Stat {
    // The widths of these fields differ between systems.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    fn from(found: &nix::sys::stat::FileStat) -> Self {
        Self {
            size: found.st_size as u64,
            mtime_ns: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(found.st_ctime as i64, found.st_ctime_nsec as i64),
            inode: found.st_ino as u64,
            mode: u32::from(found.st_mode),
        }
    }
}

fn nanoseconds(seconds: i64, part: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part)
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
    Folder,
    /// A socket, pipe or device: never captured.
    Special,
}

impl Kind {
    pub(super) fn of_mode(mode: u32) -> Self {
        // POSIX file types (sys/stat.h).
        match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o120_000 => Self::Link,
            0o040_000 => Self::Folder,
            _ => Self::Special,
        }
    }
}

/// A file, a link or an empty folder that belongs to the snapshot.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) path: Arc<str>,
    pub(super) kind: Kind,
    pub(super) stat: Stat,
}

/// What a walk came upon.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Sorted by path.
    pub(super) found: Vec<Found>,
    /// Every folder looked into, empty or not, sorted.
    pub(super) folders: Vec<Arc<str>>,
    /// Temporary files that an interrupted restore left.
    pub(super) leftovers: Vec<String>,
    /// What could not be looked at, with why.
    pub(super) problems: Vec<String>,
}

/// The rules of a walk, made from [`WalkOptions`] once.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) beneath_git: bool,
    pub(super) skip_ignored: bool,
    /// Absolute.
    pub(super) exclude: Arc<HashSet<PathBuf>>,
}

impl Rules {
    /// Whether a path is never looked at.
    pub(super) fn excludes(&self, path: &Path) -> bool {
        !self.exclude.is_empty() && path.ancestors().any(|p| self.exclude.contains(p))
    }
}

/// How much of the tree is looked at.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Everything,
    /// Only these paths and what is below them.
    Only(Arc<[String]>),
}

enum Item {
    Found(Found),
    Folder(Arc<str>),
    Leftover(String),
    Problem(String),
}

/// Up to this many entries are walked without threads: starting them takes longer.
const SMALL: usize = 500;

/// Walks `root`. `also` are paths taken up even if a rule ignores them.
pub(super) fn scan(root: &Root, rules: &Rules, scope: &Scope, also: &[&str]) -> Result<Scan> {
    let base: Arc<Path> = root.path().into();
    let mut scan = match scan_small(&base, rules, scope) {
        Some(scan) => scan,
        None => scan_large(&base, rules, scope),
    };
    if scan.found.is_empty() && !base.is_dir() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(SnapshotError::io("look into the working directory", &base, missing));
    }
    scan.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    scan.folders.sort_unstable();
    add_named(root, rules, also, &mut scan);
    add_empty_folders(&mut scan, scope);
    scan.problems.sort_unstable();
    Ok(scan)
}

/// Walks on this thread; none when there is so much that threads pay.
fn scan_small(base: &Arc<Path>, rules: &Rules, scope: &Scope) -> Option<Scan> {
    let mut scan = Scan::default();
    for (count, entry) in walker(base, rules, scope).build().enumerate() {
        if count > SMALL {
            return None;
        }
        scan.take(look_at(base, entry));
    }
    Some(scan)
}

fn scan_large(base: &Arc<Path>, rules: &Rules, scope: &Scope) -> Scan {
    let mut scan = Scan::default();
    let (sender, receiver) = mpsc::channel();
    walker(base, rules, scope).threads(rayon::current_num_threads()).build_parallel().run(|| {
        let (sender, base) = (sender.clone(), Arc::clone(base));
        Box::new(move |entry| {
            if let Some(item) = look_at(&base, entry)
                && sender.send(item).is_err()
            {
                return WalkState::Quit;
            }
            WalkState::Continue
        })
    });
    drop(sender);
    receiver.into_iter().for_each(|item| scan.take(Some(item)));
    scan
}

impl Scan {
    fn take(&mut self, item: Option<Item>) {
        match item {
            Some(Item::Found(found)) => self.found.push(found),
            Some(Item::Folder(path)) => self.folders.push(path),
            Some(Item::Leftover(path)) => self.leftovers.push(path),
            Some(Item::Problem(problem)) => self.problems.push(problem),
            None => {}
        }
    }
}

fn walker(base: &Arc<Path>, rules: &Rules, scope: &Scope) -> WalkBuilder {
    let mut builder = WalkBuilder::new(base);
    let git = rules.skip_ignored;
    builder
        .hidden(false)
        .ignore(false)
        .follow_links(false)
        // A git-ignore file counts without a repository too: a fresh project's build folder is
        // no work of the agent's either.
        .require_git(false)
        .git_ignore(git)
        .git_exclude(git)
        .git_global(git && rules.beneath_git)
        .parents(git && rules.beneath_git)
        .current_dir(base.to_path_buf());
    let (base, exclude, scope) = (Arc::clone(base), Arc::clone(&rules.exclude), scope.clone());
    builder.filter_entry(move |entry| entry.depth() == 0 || is_wanted(&base, &exclude, &scope, entry));
    builder
}

fn is_wanted(base: &Path, exclude: &HashSet<PathBuf>, scope: &Scope, entry: &DirEntry) -> bool {
    let is_own_git = entry.depth() == 1 && entry.file_name() == ".git";
    if is_own_git || exclude.contains(entry.path()) {
        return false;
    }
    match scope {
        Scope::Everything => true,
        Scope::Only(paths) => match entry.path().strip_prefix(base) {
            Ok(path) => paths.iter().any(|p| Path::new(p).starts_with(path) || path.starts_with(p)),
            Err(_) => false,
        },
    }
}

fn look_at(base: &Path, entry: std::result::Result<DirEntry, ignore::Error>) -> Option<Item> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) if error.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound) => return None,
        Err(error) => return Some(Item::Problem(shorten(base, &error.to_string()))),
    };
    let below = entry.path().strip_prefix(base).ok().filter(|p| !p.as_os_str().is_empty())?;
    let Some(path) = below.to_str() else {
        return Some(Item::Problem(format!("{}: its name is not UTF-8", below.display())));
    };
    if entry.file_type().is_some_and(|t| t.is_dir()) {
        return Some(Item::Folder(path.into()));
    }
    let metadata = match entry.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound) => return None,
        Err(error) => return Some(Item::Problem(shorten(base, &error.to_string()))),
    };
    let stat = Stat::from(&metadata);
    match Kind::of_mode(stat.mode) {
        Kind::File if entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY)) => {
            Some(Item::Leftover(path.to_owned()))
        }
        kind @ (Kind::File | Kind::Link) => Some(Item::Found(Found { path: path.into(), kind, stat })),
        Kind::Folder => Some(Item::Folder(path.into())),
        Kind::Special => Some(Item::Problem(format!("{path}: a pipe, socket or device"))),
    }
}

fn shorten(base: &Path, message: &str) -> String {
    message.replace(&format!("{}/", base.display()), "")
}

/// Takes up the paths of `also` that are there although the walk passed them by.
fn add_named(root: &Root, rules: &Rules, also: &[&str], scan: &mut Scan) {
    let before = scan.found.len();
    for &path in also {
        let known = scan.found[..before].binary_search_by(|f| (*f.path).cmp(path)).is_ok();
        let excluded = || rules.excludes(&root.path().join(path));
        if known || check_path(path).is_err() || excluded() {
            continue;
        }
        match root.stat(path) {
            Ok((kind @ (Kind::File | Kind::Link), stat)) => scan.found.push(Found { path: path.into(), kind, stat }),
            Ok((Kind::Folder | Kind::Special, _)) | Err(_) => {}
        }
    }
    if scan.found.len() > before {
        scan.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        scan.found.dedup_by(|a, b| a.path == b.path);
    }
}

/// Folders without anything in them are part of a snapshot too.
fn add_empty_folders(scan: &mut Scan, scope: &Scope) {
    let mut filled: HashSet<&str> = HashSet::with_capacity(scan.folders.len());
    for path in scan.found.iter().map(|f| &*f.path).chain(scan.folders.iter().map(|f| &**f)) {
        let mut path = path;
        while let Some((folder, _)) = path.rsplit_once('/') {
            if !filled.insert(folder) {
                break;
            }
            path = folder;
        }
    }
    let in_scope = |path: &str| match scope {
        Scope::Everything => true,
        Scope::Only(wanted) => wanted.iter().any(|w| is_at_or_below(path, w)),
    };
    let none = Stat { size: 0, mtime_ns: 0, ctime_ns: 0, inode: 0, mode: 0 };
    let empty: Vec<Found> = scan
        .folders
        .iter()
        .filter(|path| !filled.contains(&***path) && in_scope(path))
        .map(|path| Found { path: Arc::clone(path), kind: Kind::Folder, stat: none })
        .collect();
    if !empty.is_empty() {
        scan.found.extend(empty);
        scan.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    }
}

/// Whether `path` is `folder` or something in it.
pub(super) fn is_at_or_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
