//! What can go wrong with snapshots, in words that say which file and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ids::SnapshotId;

/// The result of work on snapshots.
pub type Result<T> = std::result::Result<T, SnapshotError>;

/// Why work on a snapshot failed.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The working directory is one that must not be recorded or restored as a whole.
    #[error("`{}` can't be a working directory: it {why}; choose a folder of its own for the work", root.display())]
    UnsafeRoot {
        /// The directory.
        root: PathBuf,
        /// What speaks against it.
        why: &'static str,
    },
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with its path.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such snapshot.
    #[error("there is no snapshot `{id}` in {}", dir.display())]
    Unknown {
        /// The name asked for.
        id: SnapshotId,
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// A snapshot's list of files can't be trusted.
    #[error("snapshot `{id}` is damaged ({why}); it can't be used, other snapshots can")]
    DamagedManifest {
        /// The snapshot.
        id: SnapshotId,
        /// What is wrong with it.
        why: String,
    },
    /// A stored content is not what its name says.
    #[error("the stored content of `{path}` is damaged ({why}): {}", object.display())]
    DamagedObject {
        /// The file it belongs to.
        path: String,
        /// Where it is stored.
        object: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The content was never stored.
    #[error("the content of `{path}` was not stored in this snapshot: {why}")]
    NotStored {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// The snapshot holds no such file.
    #[error("`{path}` is not in {snapshot}")]
    NoSuchFile {
        /// The file asked for.
        path: String,
        /// Where it was looked for.
        snapshot: String,
    },
    /// It is there, but it has no content of its own.
    #[error("`{path}` is {what}, not a file")]
    NotAFile {
        /// The path asked for.
        path: String,
        /// What it is.
        what: String,
    },
    /// The path leads out of the working directory.
    #[error("`{path}` is refused: {why}; paths in a snapshot are relative and stay inside the working directory")]
    UnsafePath {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The folder to fill is in use.
    #[error("{} is not empty; name a new or an empty folder", .0.display())]
    NotEmpty(PathBuf),
}

impl SnapshotError {
    /// An error of the file system with what was tried and where.
    pub(super) fn io(what: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("can't {what} {}", path.display()), source }
    }
}

impl From<io::Error> for SnapshotError {
    fn from(source: io::Error) -> Self {
        Self::Io { what: "can't write it".to_owned(), source }
    }
}
