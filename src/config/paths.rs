//! The folders that are the program's own: configuration, data, state, cache, runtime. Follows
//! the XDG variables where they are set, else the platform's habit. Creates nothing.

use std::fs;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::ConfigError;

/// The program's name as a folder.
const NAME: &str = "super-agent";

/// The program's own folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// `config.toml`, `workers.yaml`, `themes/`, `prompts/`, `skills/`.
    pub config: PathBuf,
    /// Sessions, where no other root is chosen.
    pub data: PathBuf,
    /// Trust, roots, logs, locks.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    /// Sockets of running sessions.
    pub runtime: PathBuf,
}

impl Paths {
    /// Finds the folders.
    ///
    /// # Errors
    /// Neither the XDG variables nor `HOME` say where they are.
    pub fn resolve(environment: &Environment) -> Result<Self, ConfigError> {
        let habit = Habit::of_platform();
        let folder = |variable: &str, below_home: &str| {
            // The XDG specification has relative paths ignored.
            let named = environment.get(variable).map(Path::new).filter(|path| path.is_absolute());
            let base = named.map(Path::to_owned).or_else(|| Some(environment.home()?.join(below_home)));
            base.map(|base| base.join(NAME)).ok_or_else(|| {
                ConfigError::new(format!("neither `{variable}` nor `HOME` is set to an absolute path"))
                    .hint("set `HOME` to your home folder")
            })
        };
        let state = folder("XDG_STATE_HOME", habit.state)?;
        let runtime = environment.get("XDG_RUNTIME_DIR").map(Path::new).filter(|path| path.is_absolute());
        Ok(Self {
            config: folder("XDG_CONFIG_HOME", habit.config)?,
            data: folder("XDG_DATA_HOME", habit.data)?,
            cache: folder("XDG_CACHE_HOME", habit.cache)?,
            runtime: runtime.map_or_else(|| state.join("run"), |base| base.join(NAME)),
            state,
        })
    }

    /// The person's `config.toml`, when no other is named.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Where the log files lie, one a day.
    pub fn log_dir(&self) -> PathBuf {
        self.state.join("log")
    }

    /// The newest log file, if there is any.
    pub fn newest_log(&self) -> Option<PathBuf> {
        let files = fs::read_dir(self.log_dir()).ok()?.flatten().map(|entry| entry.path());
        // Their names end in the day, so the order of names is the order of days.
        files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max()
    }

    /// Which projects' configuration the person accepted.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The workspace roots that were used.
    pub fn roots_file(&self) -> PathBuf {
        self.state.join("roots.json")
    }

    /// The workspace root when nothing else is chosen.
    pub fn default_workspace(&self) -> PathBuf {
        self.data.join("sessions")
    }
}

/// Where a platform keeps such folders, below the home folder.
struct Habit {
    config: &'static str,
    data: &'static str,
    state: &'static str,
    cache: &'static str,
}

impl Habit {
    fn of_platform() -> Self {
        if cfg!(target_os = "macos") {
            let support = "Library/Application Support";
            return Self { config: support, data: support, state: support, cache: "Library/Caches" };
        }
        Self { config: ".config", data: ".local/share", state: ".local/state", cache: ".cache" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Environment { variables, current_dir: "/here".into() }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn home_decides_where_xdg_variables_are_silent() {
        let paths = Paths::resolve(&environment(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")])).unwrap();
        let expected = Paths {
            config: "/etc/ada/super-agent".into(),
            data: "/home/ada/.local/share/super-agent".into(),
            state: "/home/ada/.local/state/super-agent".into(),
            cache: "/home/ada/.cache/super-agent".into(),
            runtime: "/home/ada/.local/state/super-agent/run".into(),
        };
        assert_eq!(paths, expected);
    }

    #[test]
    fn relative_xdg_variables_are_ignored() {
        let with = environment(&[("HOME", "/home/ada"), ("XDG_STATE_HOME", "here"), ("XDG_RUNTIME_DIR", "run")]);
        let without = environment(&[("HOME", "/home/ada")]);
        assert_eq!(Paths::resolve(&with), Paths::resolve(&without));
    }

    #[test]
    fn a_missing_home_is_named() {
        let error = Paths::resolve(&environment(&[])).unwrap_err().to_string();
        assert_eq!(
            error,
            "neither `XDG_STATE_HOME` nor `HOME` is set to an absolute path; set `HOME` to your home folder"
        );
    }
}
