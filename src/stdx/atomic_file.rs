//! Writing a file so that a reader, or a crash, sees the old content or the new, never a part.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `content` beside `path` and renames it into place. Survives the death of the process;
/// a power cut may bring the old content back (architecture.md, "Two promises").
///
/// # Errors
/// Whatever the file system says; the temporary file is removed then.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with(path, content, |_| Ok(()))
}

/// As [`write()`], and on stable storage when it returns.
///
/// # Errors
/// Whatever the file system says; the temporary file is removed then.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with(path, content, |file| file.sync_data())
}

fn write_with(path: &Path, content: &[u8], sync: impl Fn(&fs::File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_beside(path);
    let result = (|| {
        let mut file = fs::File::create_new(&temporary)?;
        file.write_all(content)?;
        sync(&file)?;
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// A name in the same folder that nobody else uses: `.name.PID-N.tmp`.
pub fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Names may be up to 255 bytes long; the marks around them must fit too.
    let short: String = name.chars().take(40).collect();
    path.with_file_name(format!(".{short}.{}-{n}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write(&path, b"one").unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        assert!(write(&dir.path().join("d"), b"two").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
