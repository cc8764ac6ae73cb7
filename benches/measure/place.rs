//! Where a measured program runs: folders of its own in a temporary one, nothing of the person's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A home, a configuration and a workspace, gone when dropped.
pub struct Place {
    dir: TempDir,
}

impl Place {
    /// Makes the folders, and a configuration that names the model at `base_url`.
    pub fn new(base_url: &str) -> io::Result<Self> {
        let place = Self { dir: tempfile::tempdir()? };
        for folder in ["home", "config/super-agent", "data", "state", "cache", "run", "workspace", "here"] {
            fs::create_dir_all(place.path(folder))?;
        }
        let config = format!(
            "model = \"local/test\"\n\n[providers.local]\nprotocol = \"openai\"\nbase_url = \"{base_url}\"\napi_key_env = \"\"\n"
        );
        fs::write(place.path("config/super-agent/config.toml"), config)?;
        Ok(place)
    }

    /// A folder of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The folder the program is started in: empty, and in no repository.
    pub fn here(&self) -> PathBuf {
        self.path("here")
    }

    /// The whole environment of the program.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let mut all = vec![
            ("PATH", PathBuf::from(path)),
            ("LANG", PathBuf::from("C.UTF-8")),
            ("TERM", PathBuf::from("xterm-256color")),
        ];
        let folders = [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
        ];
        all.extend(folders.map(|(name, folder)| (name, self.path(folder))));
        all
    }

    /// The root of the session folders.
    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }
}

/// The end of a text, for an error: its last few lines.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// Whether a program can be started from here at all.
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
