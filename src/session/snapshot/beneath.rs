//! A folder that nothing leads out of: every path is opened part by part and no symbolic link is
//! followed, so neither a doctored manifest nor a link that appears meanwhile reaches other files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::walk::{Kind, Stat};

/// How temporary files in a working directory begin; the walk never takes one for the person's.
pub(super) const TEMPORARY: &str = ".super-agent-restoring-";

/// An opened folder below which paths are resolved.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

/// The folder that a path's last part is in.
struct Parent<'a> {
    root: &'a OwnedFd,
    own: Option<OwnedFd>,
}

impl AsFd for Parent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_ref().unwrap_or(self.root).as_fd()
    }
}

/// What is done about folders that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Create,
}

const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Root {
    /// Opens the folder; the path to it may itself lead through links, since it was named so.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Self { fd: file.into(), path: path.to_owned() })
    }

    /// As [`Root::open`]; makes the folder when it is not there.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn parent<'a, 'p>(&'a self, path: &'p str, missing: Missing) -> io::Result<(Parent<'a>, &'p str)> {
        let mut parent = Parent { root: &self.fd, own: None };
        let Some((folders, name)) = path.rsplit_once('/') else { return Ok((parent, path)) };
        for part in folders.split('/') {
            parent.own = Some(open_folder(&parent, part, missing)?);
        }
        Ok((parent, name))
    }

    /// Opens a file for reading; a link in its place is an error, a pipe never blocks.
    pub(super) fn open_file(&self, path: &str) -> io::Result<File> {
        let (parent, name) = self.parent(path, Missing::Fail)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        Ok(openat(&parent, name, flags, Mode::empty())?.into())
    }

    /// What is at `path`, links not followed.
    pub(super) fn stat(&self, path: &str) -> io::Result<(Kind, Stat)> {
        let (parent, name) = self.parent(path, Missing::Fail)?;
        let stat = Stat::from(&fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?);
        Ok((Kind::of_mode(stat.mode), stat))
    }

    /// Where a symbolic link points.
    pub(super) fn read_link(&self, path: &str) -> io::Result<OsString> {
        let (parent, name) = self.parent(path, Missing::Fail)?;
        Ok(readlinkat(&parent, name)?)
    }

    /// Writes a file beside its place and renames it there. Returns what the system says of it.
    pub(super) fn write_file<E: From<io::Error>>(
        &self,
        path: &str,
        mode: u32,
        content: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<Stat, E> {
        let (parent, name) = self.parent(path, Missing::Create)?;
        let temporary = temporary_name();
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&parent, temporary.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from)?;
        let mut file = File::from(fd);
        let written = content(&mut file).and_then(|()| {
            file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
            renameat(&parent, temporary.as_str(), &parent, name).map_err(io::Error::from)?;
            Ok(Stat::from(&fstat(&file).map_err(io::Error::from)?))
        });
        if written.is_err() {
            let _ = unlinkat(&parent, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        written
    }

    /// Makes a symbolic link, in place of what was there.
    pub(super) fn write_link(&self, path: &str, target: &str) -> io::Result<Stat> {
        let (parent, name) = self.parent(path, Missing::Create)?;
        let temporary = temporary_name();
        symlinkat(target, &parent, temporary.as_str())?;
        if let Err(error) = renameat(&parent, temporary.as_str(), &parent, name) {
            let _ = unlinkat(&parent, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
            return Err(error.into());
        }
        Ok(Stat::from(&fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
    }

    /// Sets a file's permission bits.
    pub(super) fn set_mode(&self, path: &str, mode: u32) -> io::Result<Stat> {
        let file = self.open_file(path)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        Ok(Stat::from(&fstat(&file)?))
    }

    /// Makes a folder and those above it, where they are missing.
    pub(super) fn make_folder(&self, path: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path, Missing::Create)?;
        open_folder(&parent, name, Missing::Create).map(drop)
    }

    /// Removes a file or link. One that is gone already is fine.
    pub(super) fn remove_file(&self, path: &str) -> io::Result<()> {
        let removed = self
            .parent(path, Missing::Fail)
            .and_then(|(parent, name)| Ok(unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir)?));
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Removes a folder if it is empty.
    pub(super) fn remove_folder(&self, path: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path, Missing::Fail)?;
        Ok(unlinkat(&parent, name, UnlinkatFlags::RemoveDir)?)
    }
}

fn open_folder(parent: &Parent<'_>, name: &str, missing: Missing) -> io::Result<OwnedFd> {
    let opened = match openat(parent, name, FOLDER, Mode::empty()) {
        Err(Errno::ENOENT) if missing == Missing::Create => {
            match mkdirat(parent, name, Mode::from_bits_truncate(0o777)) {
                // Another thread of ours may have made it in between.
                Ok(()) | Err(Errno::EEXIST) => openat(parent, name, FOLDER, Mode::empty()),
                Err(error) => Err(error),
            }
        }
        other => other,
    };
    opened.map_err(|error| match error {
        Errno::ENOTDIR | Errno::ELOOP => {
            io::Error::new(io::ErrorKind::NotADirectory, format!("`{name}` on the way to it is not a folder"))
        }
        other => other.into(),
    })
}

fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{TEMPORARY}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
