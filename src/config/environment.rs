//! What the process was started with: variables and current folder, taken once and passed in, so
//! that nothing below reads the process itself and tests decide what is there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A snapshot of the process's surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables by name.
    pub variables: BTreeMap<String, String>,
    /// The folder it was started in, absolute.
    pub current_dir: PathBuf,
}

impl Environment {
    /// Takes the snapshot. Variables that are not text are left out; an unset `HOME` is filled in
    /// from what the system knows of the user.
    ///
    /// # Errors
    /// The current folder is gone or can't be entered.
    pub fn of_process() -> io::Result<Self> {
        let current_dir = std::env::current_dir()?;
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let home = directories::BaseDirs::new().and_then(|dirs| dirs.home_dir().to_str().map(str::to_owned));
        if let (None, Some(home)) = (variables.get("HOME"), home) {
            variables.insert("HOME".to_owned(), home);
        }
        Ok(Self { variables, current_dir })
    }

    /// A variable's value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The person's home folder.
    pub fn home(&self) -> Option<&Path> {
        self.get("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// A path as a person types it: `~` is home, anything relative lies below `base`.
    pub fn absolute(&self, path: &Path, base: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.home()) {
            (Ok(rest), Some(home)) => home.join(rest).components().collect(),
            _ => base.join(path).components().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_people_type_them() {
        let environment = Environment {
            variables: [("HOME".to_owned(), "/home/ada".to_owned())].into(),
            current_dir: "/here".into(),
        };
        let check = |path: &str, expected: &str| {
            assert_eq!(environment.absolute(Path::new(path), Path::new("/base")), Path::new(expected));
        };
        check("~/x", "/home/ada/x");
        check("~", "/home/ada");
        check("~x", "/base/~x");
        check("./x/", "/base/x");
        check("/x", "/x");
    }
}
