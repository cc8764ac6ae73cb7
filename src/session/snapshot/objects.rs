//! Contents, each named by its BLAKE3 hash and packed with zstd. An object is complete or absent:
//! it is written under a temporary name and renamed. Knows nothing of paths and snapshots.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use blake3::{Hash, Hasher};

use super::error::{Result, SnapshotError};

const LEVEL: i32 = 1;

/// Temporary files not written to for this long are left from a process that died.
const STALE: Duration = Duration::from_secs(60);

/// Most objects that are brought to stable storage one by one; with more, the file system as a
/// whole is asked.
const SYNC_ONE_BY_ONE: usize = 64;

/// The objects of one session.
#[derive(Debug)]
pub(super) struct Objects {
    dir: PathBuf,
    temporary: PathBuf,
    total: AtomicU64,
    cap: u64,
    unsynced: Mutex<Vec<PathBuf>>,
}

/// What became of a content that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) hash: Hash,
    pub(super) size: u64,
    /// False: there was no room.
    pub(super) stored: bool,
}

/// Threads that wait for the disk at the same time.
const SYNC_AT_ONCE: usize = 4;

impl Objects {
    /// Opens the objects in `dir`, holding `total` bytes, up to `cap`.
    pub(super) fn open(dir: &Path, total: Option<u64>, cap: u64) -> Result<Self> {
        let (objects, temporary) = (dir.join("objects"), dir.join("temporary"));
        for folder in [&objects, &temporary] {
            fs::create_dir_all(folder).map_err(|e| SnapshotError::io("make", folder, e))?;
        }
        remove_stale(&temporary);
        let opened = Self { dir: objects, temporary, total: AtomicU64::new(0), cap, unsynced: Mutex::new(Vec::new()) };
        let total = match total {
            Some(total) => total,
            None => opened.list()?.iter().map(|(_, size)| size).sum(),
        };
        opened.total.store(total, Ordering::Relaxed);
        Ok(opened)
    }

    /// Bytes on disk.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Whether a content of this size surely fits.
    pub(super) fn has_room_for(&self, size: u64) -> bool {
        self.total().saturating_add(size) <= self.cap
    }

    /// Where a content is or would be.
    pub(super) fn path(&self, hash: &Hash) -> PathBuf {
        let hex = hash.to_hex();
        self.dir.join(&hex[..2]).join(&hex[2..])
    }

    /// Whether it is there. An empty file is what a power cut leaves, not an object.
    pub(super) fn has(&self, hash: &Hash) -> bool {
        fs::metadata(self.path(hash)).is_ok_and(|m| m.len() > 0)
    }

    /// Stores a file's content, if there is room.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<Put> {
        self.put_within(bytes, self.cap)
    }

    /// Stores a part of a snapshot's own list; the cap never stops it.
    pub(super) fn put_own(&self, bytes: &[u8]) -> Result<Put> {
        self.put_within(bytes, u64::MAX)
    }

    fn put_within(&self, bytes: &[u8], cap: u64) -> Result<Put> {
        let (hash, size) = (blake3::hash(bytes), bytes.len() as u64);
        if self.has(&hash) {
            return Ok(Put { hash, size, stored: true });
        }
        let packed = pack(bytes).map_err(|e| SnapshotError::io("pack a content for", &self.dir, e))?;
        if self.total() + packed.len() as u64 > cap {
            return Ok(Put { hash, size, stored: false });
        }
        let temporary = self.temporary_path();
        let written = fs::write(&temporary, &packed).and_then(|()| self.install(&temporary, &hash));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(SnapshotError::io("store a content in", &self.dir, error));
        }
        Ok(Put { hash, size, stored: true })
    }

    /// Stores what `content` yields without holding it in memory.
    pub(super) fn put_stream(&self, content: &mut dyn Read) -> Result<Put> {
        let temporary = self.temporary_path();
        let put = self.stream_to(content, &temporary);
        if !matches!(put, Ok(Put { stored: true, .. })) {
            let _ = fs::remove_file(&temporary);
        }
        put.map_err(|e| SnapshotError::io("store a content in", &self.dir, e))
    }

    fn stream_to(&self, content: &mut dyn Read, temporary: &Path) -> io::Result<Put> {
        let mut hasher = Hasher::new();
        let mut packer = zstd::stream::write::Encoder::new(BufWriter::new(File::create_new(temporary)?), LEVEL)?;
        let size = copy_through(content, |part| {
            hasher.update(part);
            packer.write_all(part)
        })?;
        packer.finish()?.flush()?;
        let hash = hasher.finalize();
        if self.has(&hash) {
            fs::remove_file(temporary)?;
            return Ok(Put { hash, size, stored: true });
        }
        if self.total() + fs::metadata(temporary)?.len() > self.cap {
            return Ok(Put { hash, size, stored: false });
        }
        self.install(temporary, &hash)?;
        Ok(Put { hash, size, stored: true })
    }

    fn install(&self, temporary: &Path, hash: &Hash) -> io::Result<()> {
        let path = self.path(hash);
        let size = fs::metadata(temporary)?.len();
        if let Err(error) = fs::rename(temporary, &path) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            fs::create_dir_all(path.parent().unwrap_or(&self.dir))?;
            fs::rename(temporary, &path)?;
        }
        self.total.fetch_add(size, Ordering::Relaxed);
        let mut unsynced = self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Beyond that number Linux is asked for all at once, and the names no longer matter.
        if unsynced.len() <= SYNC_ONE_BY_ONE || !cfg!(target_os = "linux") {
            unsynced.push(path);
        }
        Ok(())
    }

    /// Reads a part of a snapshot's own list.
    pub(super) fn get_own(&self, hash: &Hash) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.copy(hash, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .map_err(|e| format!("its part {}: {e}", self.path(hash).display()))?;
        Ok(bytes)
    }

    /// Hands the content of `path` to `sink` in parts and proves at the end that it is whole: what
    /// was handed out must be dropped when this fails.
    pub(super) fn read(&self, path: &str, hash: &Hash, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<u64> {
        let mut refused = None;
        let copied = self.copy(hash, &mut |part| {
            sink(part).map_err(|e| {
                let kind = e.kind();
                refused = Some(e);
                io::Error::from(kind)
            })
        });
        match (copied, refused) {
            (_, Some(source)) => Err(SnapshotError::Io { what: format!("can't write `{path}`"), source }),
            (Ok(size), None) => Ok(size),
            (Err(error), None) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => "it is missing".to_owned(),
                    _ => error.to_string(),
                };
                Err(SnapshotError::DamagedObject { path: path.to_owned(), object: self.path(hash), why })
            }
        }
    }

    fn copy(&self, hash: &Hash, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
        let mut unpacker = zstd::stream::read::Decoder::new(File::open(self.path(hash))?)?;
        let mut hasher = Hasher::new();
        let size = copy_through(&mut unpacker, |part| {
            hasher.update(part);
            sink(part)
        })?;
        if hasher.finalize() == *hash {
            Ok(size)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its content does not match its name"))
        }
    }

    /// Brings all that was stored since the last time to stable storage.
    pub(super) fn sync(&self) -> io::Result<()> {
        let paths = std::mem::take(&mut *self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        #[cfg(target_os = "linux")]
        if paths.len() > SYNC_ONE_BY_ONE {
            return Ok(nix::unistd::syncfs(&File::open(&self.dir)?)?);
        }
        sync_all(&paths)
    }

    /// Removes all objects but these; returns the bytes won.
    pub(super) fn sweep(&self, keep: &HashSet<Hash>) -> Result<u64> {
        let (mut freed, mut left) = (0, 0);
        for (path, size) in self.list()? {
            if hash_of(&path).is_some_and(|hash| keep.contains(&hash)) {
                left += size;
            } else {
                fs::remove_file(&path).map_err(|e| SnapshotError::io("remove", &path, e))?;
                freed += size;
            }
        }
        self.total.store(left, Ordering::Relaxed);
        Ok(freed)
    }

    fn list(&self) -> Result<Vec<(PathBuf, u64)>> {
        let list = || -> io::Result<Vec<(PathBuf, u64)>> {
            let mut found = Vec::new();
            for folder in fs::read_dir(&self.dir)? {
                let folder = folder?.path();
                if !folder.is_dir() {
                    continue;
                }
                for object in fs::read_dir(folder)? {
                    let object = object?;
                    found.push((object.path(), object.metadata()?.len()));
                }
            }
            Ok(found)
        };
        list().map_err(|e| SnapshotError::io("look through", &self.dir, e))
    }

    fn temporary_path(&self) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        self.temporary.join(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Brings files to stable storage, several at once: a journalling file system then has one commit
/// for all of them. Files that were swept in the meantime don't matter.
pub(super) fn sync_all(paths: &[PathBuf]) -> io::Result<()> {
    let sync = |path: &PathBuf| match File::open(path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let (first, rest) = match paths {
        [] => return Ok(()),
        [first, rest @ ..] => (first, rest),
    };
    std::thread::scope(|scope| {
        let per_thread = rest.len().div_ceil(SYNC_AT_ONCE).max(1);
        let others: Vec<_> =
            rest.chunks(per_thread).map(|paths| scope.spawn(move || paths.iter().try_for_each(sync))).collect();
        let own = sync(first);
        let joined = others
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that syncs panicked"))));
        joined.fold(own, |all, one| all.and(one))
    })
}

fn hash_of(path: &Path) -> Option<Hash> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent()?.file_name()?.to_str()?;
    Hash::from_hex(format!("{folder}{name}")).ok()
}

fn remove_stale(temporary: &Path) {
    // Best effort: litter that can't be removed does no harm.
    let Ok(files) = fs::read_dir(temporary) else { return };
    for file in files.flatten() {
        let age = file.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(file.path());
        }
    }
}

fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        // Its tables cost more to set up than a small file takes to pack.
        static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    }
    PACKER.with_borrow_mut(|packer| match packer {
        Some(packer) => packer.compress(bytes),
        None => packer.insert(zstd::bulk::Compressor::new(LEVEL)?).compress(bytes),
    })
}

/// Reads to the end, handing every part to `sink`; returns the bytes read.
pub(super) fn copy_through(content: &mut dyn Read, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(n) => {
                sink(&buffer[..n])?;
                total += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
