//! Which folder is the project, and which of its files would count if the person accepts them.
//! Reads names and contents; whether they are accepted is kept by `trust`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::environment::Environment;

/// The folder of a project's own configuration.
pub const FOLDER: &str = ".super-agent";

/// Files beside [`FOLDER`] that count as well.
const BESIDE: [&str; 2] = ["workers.yaml", "presets.json"];

/// More files than this are no configuration.
const MOST_FILES: usize = 2000;

/// More bytes than this are no configuration.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// Finds the project that `dir` belongs to: the nearest folder upwards that has configuration,
/// up to the root of the git repository, or else up to the home folder. Outside both, only `dir`
/// itself counts, so that nobody plants configuration in a folder that many share.
pub fn find(dir: &Path, environment: &Environment) -> Option<PathBuf> {
    let git = dir.ancestors().find(|folder| folder.join(".git").exists());
    let home = environment.home().filter(|home| dir.starts_with(home));
    let last = git.or(home).unwrap_or(dir);
    dir.ancestors()
        .take_while(|folder| folder.starts_with(last))
        .find(|folder| is_configured(folder))
        .map(Path::to_owned)
}

fn is_configured(folder: &Path) -> bool {
    folder.join(FOLDER).is_dir() || folder.join("workers.yaml").is_file()
}

/// The files of the project at `root` that would count, relative to it, sorted.
///
/// # Errors
/// A folder can't be read, there are too many files, or one is a link to a folder.
pub fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = BESIDE.iter().map(PathBuf::from).filter(|name| root.join(name).is_file()).collect();
    let folder = root.join(FOLDER);
    if folder.is_dir() {
        collect(root, Path::new(FOLDER), &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &path, found)?;
        } else if kind.is_symlink() && root.join(&path).is_dir() {
            // What lies behind it could change without the fingerprint changing.
            return Err(io::Error::other(format!(
                "`{}` is a link to a folder; copy the folder instead",
                path.display()
            )));
        } else {
            found.push(path);
        }
        if found.len() > MOST_FILES {
            return Err(io::Error::other(format!("`{FOLDER}` has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// A hash over the names and contents of the files that would count.
///
/// # Errors
/// One of them can't be read, or together they are too large.
pub fn fingerprint(root: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut total = 0;
    for path in files(root)? {
        let content = read(&root.join(&path)).map_err(|error| {
            io::Error::new(error.kind(), format!("can't read `{}`: {error}", root.join(&path).display()))
        })?;
        total += content.len() as u64;
        if total > MOST_BYTES {
            return Err(io::Error::other(format!("`{FOLDER}` has more than {} MB", MOST_BYTES / 1024 / 1024)));
        }
        let name = path.to_string_lossy();
        // Lengths keep two files from passing for one.
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    // A pipe or a device would be waited for.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MOST_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    fs::read(path)
}
