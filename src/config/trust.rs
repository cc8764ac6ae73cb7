//! Whether a project's own configuration was accepted by the person. The answer is kept in the
//! state folder with a hash of the files it was given for; another hash is another question.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::paths::Paths;
use super::project;
use crate::stdx::atomic_file;

/// Version of the file's form.
const FORMAT: u32 = 1;

/// What the person said about a project's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Accepted as it is now.
    Trusted,
    /// Refused as it is now.
    Refused,
    /// Accepted or refused once, but the files have changed since.
    Changed,
    /// Not asked yet.
    Unasked,
}

/// The answers.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answers {
    format: u32,
    projects: BTreeMap<PathBuf, Answer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    hash: String,
    trusted: bool,
}

impl TrustStore {
    /// The answers kept in the state folder.
    pub fn new(paths: &Paths) -> Self {
        Self { file: paths.trust_file() }
    }

    /// What was said about the project at `root`.
    ///
    /// # Errors
    /// The answers or the project's files can't be read; nothing may count then.
    pub fn state(&self, root: &Path) -> Result<Trust, ConfigError> {
        let answers = self.read()?;
        let Some(answer) = answers.projects.get(&key(root)) else { return Ok(Trust::Unasked) };
        Ok(match (answer.hash == fingerprint(root)?, answer.trusted) {
            (true, true) => Trust::Trusted,
            (true, false) => Trust::Refused,
            (false, _) => Trust::Changed,
        })
    }

    /// Whether the project's configuration counts.
    ///
    /// # Errors
    /// As [`TrustStore::state`].
    pub fn is_trusted(&self, root: &Path) -> Result<bool, ConfigError> {
        Ok(self.state(root)? == Trust::Trusted)
    }

    /// Accepts the project's configuration as it is now.
    ///
    /// # Errors
    /// The project's files can't be read or the answer can't be kept.
    pub fn trust(&self, root: &Path) -> Result<(), ConfigError> {
        self.answer(root, true)
    }

    /// Refuses it as it is now, so that nobody asks again before it changes.
    ///
    /// # Errors
    /// As [`TrustStore::trust`].
    pub fn refuse(&self, root: &Path) -> Result<(), ConfigError> {
        self.answer(root, false)
    }

    /// Forgets the answer. Says whether there was one.
    ///
    /// # Errors
    /// The answers can't be read or written.
    pub fn untrust(&self, root: &Path) -> Result<bool, ConfigError> {
        let mut answers = self.read()?;
        let forgotten = answers.projects.remove(&key(root)).is_some();
        if forgotten {
            self.write(&answers)?;
        }
        Ok(forgotten)
    }

    fn answer(&self, root: &Path, trusted: bool) -> Result<(), ConfigError> {
        let mut answers = self.read()?;
        answers.projects.insert(key(root), Answer { hash: fingerprint(root)?, trusted });
        self.write(&answers)
    }

    fn read(&self) -> Result<Answers, ConfigError> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Answers { format: FORMAT, projects: BTreeMap::new() });
            }
            Err(error) => return Err(ConfigError::file("read", &self.file, &error)),
        };
        let answers: Answers = serde_json::from_str(&text).map_err(|error| {
            ConfigError::new(format!("the list of trusted projects can't be understood: {error}"))
                .hint("delete it to be asked again")
                .at(&self.file, Some(error.line()))
        })?;
        if answers.format != FORMAT {
            return Err(ConfigError::new(format!("the list of trusted projects has format {}", answers.format))
                .hint(format!("this version reads format {FORMAT}; delete it to be asked again"))
                .at(&self.file, None));
        }
        Ok(answers)
    }

    fn write(&self, answers: &Answers) -> Result<(), ConfigError> {
        write_json(&self.file, answers)
    }
}

/// Writes a small state file, its folder included.
pub(super) fn write_json(file: &Path, value: &impl Serialize) -> Result<(), ConfigError> {
    let written = (|| {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        atomic_file::write(file, &text)
    })();
    written.map_err(|error| ConfigError::file("write", file, &error))
}

/// The same folder has one name, however it was reached.
fn key(root: &Path) -> PathBuf {
    fs::canonicalize(root).unwrap_or_else(|_| root.to_owned())
}

fn fingerprint(root: &Path) -> Result<String, ConfigError> {
    project::fingerprint(root)
        .map_err(|error| ConfigError::new(format!("the project `{}` can't be trusted: {error}", root.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> (tempfile::TempDir, TrustStore, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        fs::create_dir_all(root.join(".super-agent/prompts")).unwrap();
        fs::write(root.join(".super-agent/config.toml"), "max_cycles = 2\n").unwrap();
        let store = TrustStore { file: dir.path().join("state/trust.json") };
        (dir, store, root)
    }

    #[test]
    fn an_answer_holds_until_a_file_changes() {
        let (_dir, store, root) = project();
        assert_eq!(store.state(&root), Ok(Trust::Unasked));
        store.trust(&root).unwrap();
        assert_eq!(store.state(&root), Ok(Trust::Trusted));
        assert_eq!(store.is_trusted(&root), Ok(true));
        store.refuse(&root).unwrap();
        assert_eq!(store.state(&root), Ok(Trust::Refused));
        store.trust(&root).unwrap();
        fs::write(root.join(".super-agent/prompts/worker.prompt"), "new").unwrap();
        assert_eq!(store.state(&root), Ok(Trust::Changed));
        assert_eq!(store.is_trusted(&root), Ok(false));
        store.trust(&root).unwrap();
        fs::write(root.join("workers.yaml"), "a:\n").unwrap();
        assert_eq!(store.state(&root), Ok(Trust::Changed));
    }

    #[test]
    fn an_answer_can_be_taken_back() {
        let (_dir, store, root) = project();
        assert_eq!(store.untrust(&root), Ok(false));
        store.trust(&root).unwrap();
        assert_eq!(store.untrust(&root), Ok(true));
        assert_eq!(store.state(&root), Ok(Trust::Unasked));
    }

    #[test]
    fn a_broken_list_trusts_nobody_and_says_what_to_do() {
        let (dir, store, root) = project();
        fs::create_dir_all(dir.path().join("state")).unwrap();
        fs::write(&store.file, "{").unwrap();
        let error = store.is_trusted(&root).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("delete it to be asked again"));
        fs::write(&store.file, r#"{"format":9,"projects":{}}"#).unwrap();
        assert!(store.is_trusted(&root).unwrap_err().to_string().contains("has format 9"));
    }

    #[test]
    #[cfg(unix)]
    fn a_linked_folder_is_not_trusted() {
        let (dir, store, root) = project();
        fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), root.join(".super-agent/skills")).unwrap();
        let error = store.trust(&root).unwrap_err().to_string();
        assert!(error.contains("`.super-agent/skills` is a link to a folder"), "{error}");
    }
}
