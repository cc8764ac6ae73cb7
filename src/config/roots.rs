//! The workspace roots that were used, so that sessions of all of them are listed; and which root
//! a new session goes to.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Config;
use super::environment::Environment;
use super::error::ConfigError;
use super::paths::Paths;
use super::trust::write_json;

/// A file that makes `./workspace` the root when one starts beside it.
pub const MARKER: &str = ".super-agent-root";

/// Most roots kept; the ones used longest ago are forgotten.
const MOST: usize = 200;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Roots {
    format: u32,
    /// Newest first.
    roots: Vec<PathBuf>,
}

/// The root of new sessions: what is configured, else `./workspace` when it holds [`MARKER`], else
/// the platform's data folder.
pub fn workspace_root(config: &Config, environment: &Environment, paths: &Paths) -> PathBuf {
    if let Some(root) = &config.workspace {
        return environment.absolute(root, &environment.current_dir);
    }
    let here = environment.current_dir.join("workspace");
    if here.join(MARKER).is_file() { here } else { paths.default_workspace() }
}

/// The roots that were used and are still there, newest first.
///
/// # Errors
/// The list is there and can't be read.
pub fn known(paths: &Paths) -> Result<Vec<PathBuf>, ConfigError> {
    Ok(read(paths)?.roots.into_iter().filter(|root| root.is_dir()).collect())
}

/// Remembers a root. One that is there already moves to the front.
///
/// # Errors
/// The list can't be read or written.
pub fn remember(paths: &Paths, root: &Path) -> Result<(), ConfigError> {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut roots = read(paths)?.roots;
    if roots.first() == Some(&root) {
        return Ok(());
    }
    roots.retain(|known| *known != root);
    roots.insert(0, root);
    roots.truncate(MOST);
    write_json(&paths.roots_file(), &Roots { format: 1, roots })
}

fn read(paths: &Paths) -> Result<Roots, ConfigError> {
    let file = paths.roots_file();
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Roots::default()),
        Err(error) => return Err(ConfigError::file("read", &file, &error)),
    };
    serde_json::from_str(&text).map_err(|error| {
        ConfigError::new(format!("the list of workspace roots can't be understood: {error}"))
            .hint("delete it; the next start begins a new one")
            .at(&file, Some(error.line()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> (Environment, Paths) {
        let variables = [("HOME".to_owned(), dir.join("home").to_string_lossy().into_owned())].into();
        let environment = Environment { variables, current_dir: dir.join("work") };
        let paths = Paths::resolve(&environment).unwrap();
        (environment, paths)
    }

    #[test]
    fn a_root_is_remembered_once_and_the_newest_is_first() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (_, paths) = place(&dir);
        let (one, two) = (dir.join("one"), dir.join("two"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        assert_eq!(known(&paths), Ok(vec![]));
        for root in [&one, &two, &one] {
            remember(&paths, root).unwrap();
        }
        assert_eq!(known(&paths), Ok(vec![one.clone(), two.clone()]));
        fs::remove_dir(&one).unwrap();
        assert_eq!(known(&paths), Ok(vec![two]));
    }

    #[test]
    fn a_broken_list_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (_, paths) = place(dir.path());
        fs::create_dir_all(&paths.state).unwrap();
        fs::write(paths.roots_file(), "nonsense").unwrap();
        let error = known(&paths).unwrap_err();
        assert_eq!((error.file, error.line), (Some(paths.roots_file()), Some(1)));
    }

    #[test]
    fn the_root_is_the_configured_one_else_the_marked_one_else_the_data_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (environment, paths) = place(dir.path());
        let check = |workspace: Option<&str>, expected: PathBuf| {
            let config = Config { workspace: workspace.map(PathBuf::from), ..Config::default() };
            assert_eq!(workspace_root(&config, &environment, &paths), expected);
        };
        check(None, paths.data.join("sessions"));
        fs::create_dir_all(environment.current_dir.join("workspace")).unwrap();
        check(None, paths.data.join("sessions"));
        fs::write(environment.current_dir.join("workspace/.super-agent-root"), "").unwrap();
        check(None, environment.current_dir.join("workspace"));
        check(Some("there"), environment.current_dir.join("there"));
    }
}
