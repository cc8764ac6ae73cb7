//! Walks files as a person sees them: without version control's own data and without what it
//! ignores. Shared by `list_files`, `glob_files` and `grep_content`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

use crate::tools::ToolCx;

/// Folders with data of version control.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".jj", ".bzr", "CVS"];

/// What a walk needs of a call, to go to another thread.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) cwd: PathBuf,
    pub(super) cancel: CancellationToken,
    /// Whether ignore files above the working directory count: not where git may not look.
    above: bool,
}

impl Scope {
    pub(super) fn of(cx: &ToolCx) -> Self {
        Self { cwd: cx.cwd.clone(), cancel: cx.cancel.clone(), above: cx.git_ceiling.is_none() }
    }

    /// Everything below `target` (which is not itself among it), by name, `depth` levels at most.
    /// A walk ends early when the run is stopped. A folder that is ignored but asked for by name
    /// is walked.
    pub(super) fn walk(&self, target: &Path, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
        let from = if self.reaches(target) { self.cwd.as_path() } else { target };
        let levels = target.strip_prefix(from).map_or(0, |below| below.components().count());
        let (target, cancel) = (target.to_owned(), self.cancel.clone());
        let within = target.clone();
        self.builder(from)
            .max_depth(depth.map(|depth| depth + levels))
            .filter_entry(move |entry| {
                within.starts_with(entry.path()) || entry.path().starts_with(&within) && !is_version_control(entry)
            })
            .build()
            .take_while(move |_| !cancel.is_cancelled())
            // What can't be read is not there for the model either.
            .filter_map(Result::ok)
            .filter(move |entry| entry.path().starts_with(&target) && entry.path() != target)
    }

    /// Files below `target`, or `target` itself when it is one.
    pub(super) fn files(&self, target: &Path) -> Vec<PathBuf> {
        if target.is_file() {
            return vec![target.to_owned()];
        }
        let files = self.walk(target, None).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        files.map(DirEntry::into_path).collect()
    }

    /// Whether a walk from the working directory comes to `target`, so that ignore files between count.
    fn reaches(&self, target: &Path) -> bool {
        let levels = target.strip_prefix(&self.cwd).map_or(0, |below| below.components().count());
        let way = target.to_owned();
        let mut walk = self.builder(&self.cwd);
        walk.max_depth(Some(levels))
            .filter_entry(move |entry| way.starts_with(entry.path()) && !is_version_control(entry));
        walk.build().flatten().any(|entry| entry.path() == target)
    }

    fn builder(&self, from: &Path) -> WalkBuilder {
        let mut builder = WalkBuilder::new(from);
        builder
            .hidden(false)
            .parents(self.above)
            // A person's own ignore list would make a session behave differently per machine.
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(OsStr::cmp);
        builder
    }

    /// A path below the working directory as the model writes it.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.cwd).unwrap_or(path);
        let names: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        names.join("/")
    }
}

fn is_version_control(entry: &DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| VERSION_CONTROL.contains(&name))
}

/// A pattern for paths: one without `/` is for names at any depth.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    by_name: bool,
}

impl Pattern {
    /// Reads a pattern, which is relative to the folder that is searched.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("`{pattern}` is not a glob pattern: {}", error.kind()))?;
        Ok(Self { matcher: glob.compile_matcher(), by_name: !pattern.contains('/') })
    }

    /// Whether it fits `path`, which lies below `folder`.
    pub(super) fn fits(&self, folder: &Path, path: &Path) -> bool {
        if self.by_name {
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        path.strip_prefix(folder).is_ok_and(|below| self.matcher.is_match(below))
    }
}
