//! A session's folder: where its parts lie, who holds it, and bringing its cache in line with its
//! journal (architecture.md, "Where things lie on disk").

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::models::{FORMAT, SessionRecord};
use crate::events::event::Event;
use crate::events::log;
use crate::events::problem::Problem;
use crate::ids::SessionId;
use crate::stdx::atomic_file;

/// A session's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// The folder of session `id` below a root.
    pub fn of(root: &Path, id: &SessionId) -> Self {
        Self { path: root.join(format!("session-{id}")) }
    }

    /// A folder that is a session's home already.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Makes the folder of a new session.
    ///
    /// # Errors
    /// It exists, or it can't be made.
    pub fn create(&self) -> Result<(), Problem> {
        let made = self.path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::create_dir(&self.path));
        made.and_then(|()| fs::create_dir(self.path.join("state")))
            .and_then(|()| fs::create_dir(self.path.join(".trace")))
            .map_err(|e| {
                Problem::internal(format!("the session folder {} can't be made: {e}", self.path.display()))
                    .hint("choose another root with --workspace, or free space")
            })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session's id, from the folder's name.
    pub fn id(&self) -> Option<SessionId> {
        let id = SessionId::new(self.path.file_name()?.to_str()?.strip_prefix("session-")?);
        id.is_well_formed().then_some(id)
    }

    /// `state/session.json`.
    pub fn session_file(&self) -> PathBuf {
        self.path.join("state/session.json")
    }

    /// `state/events.jsonl`.
    pub fn journal(&self) -> PathBuf {
        self.path.join("state/events.jsonl")
    }

    /// `.trace/`.
    pub fn traces(&self) -> PathBuf {
        self.path.join(".trace")
    }

    /// `snapshots/`.
    pub fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    /// `files/`.
    pub fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// `__output.json`.
    pub fn output(&self) -> PathBuf {
        self.path.join("__output.json")
    }

    /// Where an `__output.json` that was there before the session waits to be put back.
    pub fn put_aside(&self) -> PathBuf {
        self.path.join("state/output-before.json")
    }

    /// Writes the cache.
    ///
    /// # Errors
    /// It can't be written.
    pub fn save(&self, record: &SessionRecord) -> io::Result<()> {
        atomic_file::write(&self.session_file(), &serde_json::to_vec_pretty(record)?)
    }

    /// Reads the session as its journal says, writing nothing. The cache is used as far as it goes.
    ///
    /// # Errors
    /// Neither cache nor journal make sense; names the file, the place and the way out.
    pub fn load(&self) -> Result<SessionRecord, Problem> {
        let cached = fs::read(self.session_file()).ok();
        if let Some(format) = cached.as_deref().and_then(format_of) {
            known_format(&self.session_file(), format)?;
        }
        let cached = cached.and_then(|c| serde_json::from_slice::<SessionRecord>(&c).ok());
        let journal = self.journal();
        let newest = log::newest_event_id(&journal).map_err(|e| unreadable(&journal, &e))?;
        // A cache that is ahead belongs to a journal that was changed since, and the journal is the
        // truth.
        if let Some(record) = cached
            && record.last_event_id == newest
        {
            return Ok(record);
        }
        let replay = log::read(&journal, 0).map_err(|e| unreadable(&journal, &e))?;
        if let Some(Event::SessionStart(start)) = replay.events.first().map(|e| &e.event) {
            known_format(&journal, start.format)?;
        }
        SessionRecord::replay(&replay.events).ok_or_else(|| {
            let broken = replay.broken.first().map(|(line, why)| format!(" (line {line}: {why})")).unwrap_or_default();
            Problem::internal(format!("{} does not begin with session_start{broken}", journal.display()))
                .hint("put the file back as it was, or delete the session with `super-agent rm`")
        })
    }

    /// Takes the session's lock, which dies with the process (architecture.md).
    ///
    /// # Errors
    /// Another process holds it; says which.
    pub fn lock(&self, owner: &Owner) -> Result<SessionLock, LockError> {
        let path = self.path.join("state/lock");
        let mut file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(&serde_json::to_vec(owner)?)?;
                Ok(SessionLock { file, folder: None })
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                Err(LockError::Held(serde_json::from_str(&text).ok()))
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Who holds the session's lock now, if anyone does.
    pub fn holder(&self) -> Option<Option<Owner>> {
        let path = self.path.join("state/lock");
        let mut file = File::open(path).ok()?;
        match file.try_lock_shared() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                Some(serde_json::from_str(&text).ok())
            }
            Err(TryLockError::Error(_)) => None,
        }
    }
}

/// The format that a state file names, even where this version does not understand the rest.
fn format_of(content: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    serde_json::from_slice::<Format>(content).ok().map(|f| f.format)
}

fn known_format(path: &Path, format: u32) -> Result<(), Problem> {
    if format <= FORMAT {
        return Ok(());
    }
    Err(Problem::usage(format!("{} has format {format}, this version knows up to {FORMAT}", path.display()))
        .hint("open it with the newer version that made it"))
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::internal(format!("{} can't be read: {error}", path.display()))
        .hint("check that the folder is a session's and may be read")
}

/// Who holds a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process.
    pub pid: u32,
    /// Where it takes commands.
    pub socket: Option<PathBuf>,
}

/// Holds a session until dropped, and the folder that it works on in place.
#[derive(Debug)]
pub struct SessionLock {
    file: File,
    folder: Option<File>,
}

impl SessionLock {
    /// The same, holding a folder's lock too.
    #[must_use]
    pub fn with_folder(mut self, folder: Option<File>) -> Self {
        self.folder = folder;
        self
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Unlocked rather than only closed: a child that is just being started may still have the
        // descriptor, and would hold the lock a moment longer.
        for file in [Some(&self.file), self.folder.as_ref()].into_iter().flatten() {
            let _ = file.unlock();
        }
    }
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another process holds the session")]
    Held(Option<Owner>),
    /// The lock file can't be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<serde_json::Error> for LockError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

/// The homes below a root, in no order.
pub fn homes(root: &Path) -> Vec<Home> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    entries.flatten().map(|e| Home::at(e.path())).filter(|h| h.id().is_some() && h.journal().exists()).collect()
}
