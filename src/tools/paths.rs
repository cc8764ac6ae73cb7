//! Where a path that a model wrote really leads, and whether that is inside the working directory
//! (A11): every symbolic link on the way is followed, also those that lead to nothing yet.
//! Does not open anything.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::ToolOutcome;

/// Most links that one path may lead through, as in the kernel.
const MOST_LINKS: usize = 40;

/// What a path is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Changing, which git's own files are not for.
    Write,
}

/// A path inside the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Absolute, without links or `..`.
    pub path: PathBuf,
    /// Below the working directory, with `/`; `.` for itself.
    pub shown: String,
}

/// Why a call is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declined {
    /// It can't be.
    Failed(String),
    /// It may not be.
    Refused(String),
}

impl From<Declined> for ToolOutcome {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::Failed(why) => Self::failed(why),
            Declined::Refused(why) => Self::refused(why),
        }
    }
}

/// Finds where `text`, relative to `cwd` or absolute, leads.
///
/// # Errors
/// A refusal that names the working directory when it leads out of it, a failure when it is no path.
pub fn resolve(cwd: &Path, text: &str, access: Access) -> Result<Inside, Declined> {
    if text.trim().is_empty() {
        return Err(Declined::Failed("the path is empty; `.` is the working directory".to_owned()));
    }
    if text.contains('\0') {
        return Err(Declined::Failed("the path holds a NUL character; no file has such a name".to_owned()));
    }
    let path = follow(&cwd.join(text)).map_err(|why| Declined::Failed(format!("`{text}`: {why}")))?;
    let Ok(below) = path.strip_prefix(cwd) else {
        return Err(Declined::Refused(format!(
            "`{text}` leads to `{}`, outside the working directory `{}`; only files below it can be used",
            path.display(),
            cwd.display()
        )));
    };
    let names: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    if access == Access::Write && names.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
        return Err(Declined::Refused(format!(
            "`{text}` belongs to git's own data, which file tools don't change; use git through bash_command"
        )));
    }
    let shown = if names.is_empty() { ".".to_owned() } else { names.join("/") };
    Ok(Inside { path, shown })
}

/// As the kernel walks a path, but going on by name where nothing is.
fn follow(path: &Path) -> Result<PathBuf, String> {
    let mut rest: VecDeque<OsString> = parts(path);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(&part);
        if !fs::symlink_metadata(&at).is_ok_and(|metadata| metadata.is_symlink()) {
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err("it leads through too many symbolic links, perhaps in a circle".to_owned());
        }
        let target = fs::read_link(&at).map_err(|error| format!("a symbolic link can't be read: {error}"))?;
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(at)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Fixture {
        _root: tempfile::TempDir,
        cwd: PathBuf,
    }

    fn fixture() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let cwd = base.join("work");
        fs::create_dir_all(cwd.join("sub/.git")).unwrap();
        fs::create_dir(base.join("work-beside")).unwrap();
        fs::write(base.join("secret"), "s").unwrap();
        symlink("../secret", cwd.join("link-out")).unwrap();
        symlink("../not-yet", cwd.join("dangling-out")).unwrap();
        symlink("sub/new.txt", cwd.join("dangling-in")).unwrap();
        symlink(&base, cwd.join("up")).unwrap();
        symlink("loop", cwd.join("loop")).unwrap();
        Fixture { _root: root, cwd }
    }

    #[test]
    fn paths_inside_are_shown_below_the_working_directory() {
        let Fixture { cwd, _root } = fixture();
        let check = |text: &str, expected: &str| {
            let inside = resolve(&cwd, text, Access::Write).unwrap();
            assert_eq!(inside.shown, expected, "{text}");
        };
        check("a.txt", "a.txt");
        check("./sub/../a.txt", "a.txt");
        check(".", ".");
        check("sub/", "sub");
        check(cwd.join("x/y").to_str().unwrap(), "x/y");
        check("up/work/a.txt", "a.txt");
        check("dangling-in", "sub/new.txt");
        check("../work/漢字.txt", "漢字.txt");
    }

    #[test]
    fn no_way_leads_out() {
        let Fixture { cwd, _root } = fixture();
        let beside = cwd.with_file_name("work-beside");
        let ways = [
            "..",
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "link-out",
            "dangling-out",
            "dangling-out/below",
            "up/secret",
            "up/new",
            "missing/../../secret",
            beside.to_str().unwrap(),
            "/",
        ];
        for way in ways {
            match resolve(&cwd, way, Access::Read) {
                Err(Declined::Refused(why)) => assert!(why.contains(cwd.to_str().unwrap()), "{why}"),
                other => panic!("{way}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_path_says_so() {
        let Fixture { cwd, _root } = fixture();
        for (text, expected) in [("", "empty"), ("a\0b", "NUL"), ("loop", "symbolic links")] {
            match resolve(&cwd, text, Access::Read) {
                Err(Declined::Failed(why)) => assert!(why.contains(expected), "{why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn git_data_is_read_only() {
        let Fixture { cwd, _root } = fixture();
        for path in [".git/config", "sub/.git/hooks/pre-commit", ".git", ".GIT/config"] {
            assert!(matches!(resolve(&cwd, path, Access::Write), Err(Declined::Refused(_))), "{path}");
            assert!(resolve(&cwd, path, Access::Read).is_ok(), "{path}");
        }
        assert!(resolve(&cwd, ".gitignore", Access::Write).is_ok());
    }
}
