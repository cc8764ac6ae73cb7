//! Taking `__output.json` out of the working directory into the session's archive (A8, A25), so
//! that a stale one can never pass for the next cycle's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cycle::Step;
use super::home::Home;
use crate::events::data::Deliverable;
use crate::stdx::atomic_file;

/// The Worker's hand-over file.
pub const OUTPUT: &str = "__output.json";

/// Larger hand-overs are refused, in bytes.
const MAX_OUTPUT: u64 = 16 * 1024 * 1024;

/// What a cycle handed in.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The archived file's name in the session's home; none when nothing was handed in.
    pub archive: Option<String>,
    /// The file verbatim.
    pub raw: String,
    /// What it says, or what is wrong with it.
    pub deliverable: Result<Deliverable, String>,
}

/// Name of a cycle's archived output.
pub fn archive_name(cycle: u32) -> String {
    format!("__output_cycle_{cycle:04}.json")
}

/// Name that an archived output gets when a rewind puts its cycle aside.
pub fn superseded_name(cycle: u32, number: u32) -> String {
    format!("__output_cycle_{cycle:04}.superseded-{number}.json")
}

/// Moves an `__output.json` that was there before the session out of the way.
///
/// # Errors
/// It can't be moved.
pub fn put_aside(cwd: &Path, home: &Home) -> io::Result<bool> {
    let there = cwd.join(OUTPUT);
    if fs::symlink_metadata(&there).is_err() {
        return Ok(false);
    }
    move_file(&there, &home.put_aside())?;
    Ok(true)
}

/// The same when a session goes on. Only before a new cycle can the file be the person's; in the
/// middle of a Worker's run it is the Worker's own.
///
/// # Errors
/// It can't be moved.
pub fn put_aside_for_resume(cwd: &Path, home: &Home, step: &Step) -> io::Result<()> {
    match step {
        Step::Start { .. } => put_aside(cwd, home).map(|_| ()),
        Step::Work { .. } | Step::Check { .. } => Ok(()),
    }
}

/// Puts it back where it was, when nothing has taken its place.
///
/// # Errors
/// It can't be moved.
pub fn put_back(cwd: &Path, home: &Home) -> io::Result<()> {
    let aside = home.put_aside();
    let there = cwd.join(OUTPUT);
    if aside.exists() && !there.exists() { move_file(&aside, &there) } else { Ok(()) }
}

fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    // Another file system: copy, then remove.
    fs::copy(from, to)?;
    fs::remove_file(from)
}

/// Takes what cycle `cycle` handed in: verbatim into the archive, normalised to the session's
/// `__output.json` when valid, and out of the working directory. A file that a crash left archived
/// already is read from there.
///
/// # Errors
/// The archive can't be written. What is wrong with the file itself is in the result.
pub fn take(cwd: &Path, home: &Home, cycle: u32) -> io::Result<Taken> {
    let name = archive_name(cycle);
    let archived = home.path().join(&name);
    let there = cwd.join(OUTPUT);
    let raw = match read_output(&there) {
        Ok(Some(raw)) => {
            atomic_file::write(&archived, &raw)?;
            raw
        }
        Ok(None) if archived.exists() => fs::read(&archived)?,
        Ok(None) => {
            let why = format!("no `{OUTPUT}` was written into the working directory");
            return Ok(Taken { archive: None, raw: String::new(), deliverable: Err(why) });
        }
        Err(why) => {
            remove(&there)?;
            return Ok(Taken { archive: None, raw: String::new(), deliverable: Err(why) });
        }
    };
    let deliverable = parse(&raw);
    if let Ok(deliverable) = &deliverable {
        atomic_file::write(&home.output(), &serde_json::to_vec_pretty(deliverable)?)?;
    }
    remove(&there)?;
    let raw = String::from_utf8_lossy(&raw).into_owned();
    Ok(Taken { archive: Some(name), raw, deliverable })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}

fn read_output(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("`{OUTPUT}` can't be read: {e}")),
    };
    if !meta.is_file() {
        return Err(format!("`{OUTPUT}` is not an ordinary file"));
    }
    if meta.len() > MAX_OUTPUT {
        return Err(format!(
            "`{OUTPUT}` has {} bytes; at most {MAX_OUTPUT} are taken, put long results into files",
            meta.len()
        ));
    }
    fs::read(path).map(Some).map_err(|e| format!("`{OUTPUT}` can't be read: {e}"))
}

/// Reads a hand-over (A8).
///
/// # Errors
/// Says what is wrong, with line and column or the field's name.
pub fn parse(raw: &[u8]) -> Result<Deliverable, String> {
    let value: serde_json::Value =
        serde_json::from_slice(raw).map_err(|e| format!("`{OUTPUT}` is not valid JSON: {e}"))?;
    if !value.is_object() {
        return Err(format!("`{OUTPUT}` must be a JSON object with `summary`, `text_content` and `files`"));
    }
    let deliverable: Deliverable =
        serde_json::from_value(value).map_err(|e| format!("`{OUTPUT}` does not fit its schema: {e}"))?;
    if deliverable.summary.trim().is_empty() {
        return Err(format!("`{OUTPUT}` has an empty `summary`"));
    }
    Ok(deliverable)
}

/// Renames archived outputs from the first to the second name where they exist; safe to repeat.
///
/// # Errors
/// A file can't be renamed.
pub fn rename(home: &Home, from: &str, to: &str) -> io::Result<()> {
    let (from, to): (PathBuf, PathBuf) = (home.path().join(from), home.path().join(to));
    if from.exists() { fs::rename(from, to) } else { Ok(()) }
}

/// Brings the session's `__output.json` to the newest valid cycle's; removes it when there is none.
///
/// # Errors
/// A file can't be read or written.
pub fn refresh_newest(home: &Home, cycle: Option<u32>) -> io::Result<()> {
    let newest = cycle.and_then(|c| fs::read(home.path().join(archive_name(c))).ok());
    match newest.map(|raw| parse(&raw)) {
        Some(Ok(deliverable)) => atomic_file::write(&home.output(), &serde_json::to_vec_pretty(&deliverable)?),
        _ => remove(&home.output()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> (tempfile::TempDir, Home, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::of(dir.path(), &"abcdefgh".into());
        home.create().unwrap();
        let cwd = dir.path().join("cwd");
        fs::create_dir(&cwd).unwrap();
        (dir, home, cwd)
    }

    #[test]
    fn a_hand_over_is_archived_verbatim_normalised_and_gone_from_the_folder() {
        let (_dir, home, cwd) = folders();
        fs::write(cwd.join(OUTPUT), "{\"summary\": \"s\",\"files\":[\"a\"],   \"own\": 1}").unwrap();
        let taken = take(&cwd, &home, 3).unwrap();
        assert_eq!(taken.archive.as_deref(), Some("__output_cycle_0003.json"));
        assert!(!cwd.join(OUTPUT).exists());
        assert!(fs::read_to_string(home.path().join("__output_cycle_0003.json")).unwrap().contains("   \"own\""));
        let normal: serde_json::Value = serde_json::from_slice(&fs::read(home.output()).unwrap()).unwrap();
        assert_eq!(normal, serde_json::json!({"summary": "s", "text_content": "", "files": ["a"], "own": 1}));
        assert_eq!(take(&cwd, &home, 3).unwrap(), taken, "after a crash it is found in the archive");
        assert_eq!(take(&cwd, &home, 4).unwrap().archive, None, "and never passes for the next cycle's");
    }

    #[test]
    fn a_bad_hand_over_says_what_is_wrong_and_keeps_the_newest_valid_one() {
        let (_dir, home, cwd) = folders();
        fs::write(cwd.join(OUTPUT), "{\"summary\":\"good\"}").unwrap();
        take(&cwd, &home, 1).unwrap();
        for (text, why) in [
            ("{\"summary\":", "not valid JSON: EOF while parsing"),
            ("[]", "must be a JSON object"),
            ("{\"files\":[]}", "missing field `summary`"),
            ("{\"summary\":\" \"}", "empty `summary`"),
            ("{\"summary\":\"a\",\"files\":\"x\"}", "does not fit its schema"),
        ] {
            fs::write(cwd.join(OUTPUT), text).unwrap();
            let taken = take(&cwd, &home, 2).unwrap();
            assert!(taken.deliverable.unwrap_err().contains(why), "{text}");
        }
        assert!(fs::read_to_string(home.output()).unwrap().contains("good"));
        fs::create_dir(cwd.join(OUTPUT)).unwrap();
        assert!(take(&cwd, &home, 5).unwrap().deliverable.unwrap_err().contains("not an ordinary file"));
    }

    #[test]
    fn a_file_from_before_the_session_comes_back() {
        let (_dir, home, cwd) = folders();
        fs::write(cwd.join(OUTPUT), "mine").unwrap();
        assert!(put_aside(&cwd, &home).unwrap());
        assert_eq!(take(&cwd, &home, 1).unwrap().archive, None);
        put_back(&cwd, &home).unwrap();
        assert_eq!(fs::read_to_string(cwd.join(OUTPUT)).unwrap(), "mine");
    }
}
