//! What is wrong with a configuration, and where: file, line, and the way out.

use std::fmt;
use std::path::{Path, PathBuf};

/// A mistake in a configuration file, variable or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong: lower case, no full stop.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The file.
    pub file: Option<PathBuf>,
    /// The line in it, from 1.
    pub line: Option<usize>,
}

impl ConfigError {
    /// A mistake.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, file: None, line: None }
    }

    /// The same with the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with its place.
    #[must_use]
    pub fn at(mut self, file: &Path, line: Option<usize>) -> Self {
        self.file = Some(file.to_owned());
        self.line = line;
        self
    }

    /// A file that can't be read or written.
    pub fn file(verb: &str, file: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("can't {verb} `{}`: {error}", file.display()))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({}:{line})", file.display()),
            (Some(file), None) => write!(f, " ({})", file.display()),
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}
