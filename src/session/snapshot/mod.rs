//! Snapshots of working files: what they were after each step that could change them, so that a
//! rewind can bring them back and the Checker can work on a throw-away copy. Owns the folder
//! `snapshots/` of a session. Does not decide when a snapshot is taken or restored; the session does.
//!
//! Everything here blocks; callers in async code use `spawn_blocking`.
//!
//! On disk: `objects/ab/cdef…` hold contents (named by BLAKE3, packed with zstd), `manifests/<id>`
//! one snapshot each, `newest` the id of the latest one, `index` what the file system said about
//! the files when they were last read. The index only saves time and can be deleted.

mod beneath;
mod bring;
mod cache;
mod collect;
mod copy;
mod diff;
mod error;
mod git;
mod index;
mod manifest;
mod objects;
mod read;
mod record;
mod restore;
mod store;
#[cfg(test)]
mod tests;
mod unified;
mod walk;

pub use copy::{CheckCopy, CopyOptions, Progress};
pub use diff::View;
pub use error::{Result, SnapshotError};
pub use manifest::{Entry, Manifest, Node};
pub use restore::{Materialised, Restored};
pub use store::{SnapshotStore, Taken};
pub use unified::FileDiffText;
pub use walk::WalkOptions;

/// Most changes that [`Taken`] lists.
pub const MAX_CHANGED: usize = 200;

/// Most remarks on files that were not captured.
pub const MAX_NOT_CAPTURED: usize = 50;
