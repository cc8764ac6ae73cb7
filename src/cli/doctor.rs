//! What was found on this machine, with what to do about what is missing. Shows where a key is
//! looked for, never a key. Who calls brings the facts; this arranges and words them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::render::paint::{Paint, Tone, pad};
use crate::config::environment::Environment;
use crate::config::error::ConfigError;
use crate::config::layers::{Loaded, Source, VARIABLES};
use crate::config::paths::Paths;
use crate::config::profiles;
use crate::config::trust::Trust;
use crate::config::{Config, SandboxLevel, roots};
use crate::events::problem::Problem;
use crate::events::query::ModelChoice;
use crate::stdx::text::sanitize_line;

mod settings;

/// A provider as it is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderLine {
    /// Its name.
    pub name: String,
    /// Its address.
    pub base_url: String,
    /// The variable its key is read from; absent: it needs none.
    pub key_variable: Option<String>,
    /// Whether that variable is set.
    pub key_set: bool,
    /// What else is worth saying: its models, why it does not answer.
    pub note: Option<String>,
}

/// The terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalFacts {
    /// Whether standard output is one.
    pub is_terminal: bool,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
}

/// Everything that is reported on.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Variables and folder.
    pub environment: &'a Environment,
    /// The program's own folders.
    pub paths: &'a Paths,
    /// The configuration, or what is wrong with it.
    pub config: Result<&'a Loaded, &'a ConfigError>,
    /// What is wrong with `workers.yaml`, if anything is.
    pub profiles: Option<&'a ConfigError>,
    /// The providers known.
    pub providers: Vec<ProviderLine>,
    /// The model a launch would use, or why there is none.
    pub model: Result<ModelChoice, Problem>,
    /// Git's version, when it was found.
    pub git: Option<String>,
    /// The terminal.
    pub terminal: TerminalFacts,
}

/// How an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Only to know.
    Info,
    /// Works, with less.
    Warning,
    /// Must be mended.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// How it is.
    pub status: Status,
    /// What it is.
    pub name: String,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Items that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What they are about.
    pub title: String,
    /// The items.
    pub items: Vec<Item>,
}

/// The report, also as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of the program.
    pub version: String,
    /// The sections.
    pub sections: Vec<Section>,
}

impl Report {
    /// Whether nothing must be mended.
    pub fn is_well(&self) -> bool {
        self.sections.iter().flat_map(|section| &section.items).all(|item| item.status != Status::Bad)
    }
}

/// Looks at the facts, and at the folders on the disk.
pub fn report(facts: &Facts<'_>) -> Report {
    let default = Config::default();
    let config = facts.config.map_or(&default, |loaded| &loaded.config);
    let sections = [
        ("configuration", configuration(facts)),
        ("settings that are not built in", facts.config.map_or_else(|_| Vec::new(), settings::items)),
        ("model", vec![model(&facts.model)]),
        ("providers", facts.providers.iter().map(provider).collect()),
        ("boundary", boundary(config)),
        ("git", vec![git(facts.git.as_deref())]),
        ("terminal", terminal(facts)),
        ("folders", folders(facts, config)),
    ];
    let sections = sections.into_iter().filter(|(_, items)| !items.is_empty());
    let sections = sections.map(|(title, items)| Section { title: title.to_owned(), items }).collect();
    Report { version: env!("CARGO_PKG_VERSION").to_owned(), sections }
}

/// The report as text.
pub fn render(report: &Report, paint: Paint) -> String {
    let mut out = format!("super-agent {}\n", report.version);
    for section in &report.sections {
        out.push_str(&format!("\n{}\n", paint.tone(Tone::Strong, section.title.as_str())));
        let width = section.items.iter().map(|item| item.name.chars().count()).max().unwrap_or(0);
        for item in &section.items {
            let (mark, tone) = match item.status {
                Status::Ok => ("✓", Tone::Good),
                Status::Info => ("·", Tone::Faint),
                Status::Warning => ("!", Tone::Warning),
                Status::Bad => ("✗", Tone::Bad),
            };
            let found = sanitize_line(&item.found);
            let line = format!("  {} {}  {found}", paint.tone(tone, mark), pad(&sanitize_line(&item.name), width));
            out.push_str(line.trim_end());
            out.push('\n');
            if let Some(remedy) = &item.remedy {
                out.push_str(&format!("    {} {}\n", paint.tone(tone, "→"), sanitize_line(remedy)));
            }
        }
    }
    out
}

fn configuration(facts: &Facts<'_>) -> Vec<Item> {
    let loaded = match facts.config {
        Ok(loaded) => loaded,
        Err(error) => {
            return vec![Item::new(Status::Bad, "can't be used", error.to_string(), "mend it, then look again")];
        }
    };
    let file = &loaded.file;
    let mut items = vec![match file.found {
        true => Item::plain(Status::Ok, "your file", file.path.display()),
        false => Item::new(
            Status::Info,
            "your file",
            format!("{} is not there: the defaults hold", file.path.display()),
            "write one to change them",
        ),
    }];
    if let Some(project) = &loaded.project {
        let root = project.root.display();
        items.push(match project.trust {
            Trust::Trusted => Item::plain(Status::Ok, "project", format!("{root}, accepted")),
            Trust::Refused => Item::plain(Status::Info, "project", format!("{root}, refused by you")),
            Trust::Changed | Trust::Unasked => Item::new(
                Status::Warning,
                "project",
                format!("{root}, left aside until you accept it"),
                "look at its files, then run `super-agent trust`",
            ),
        });
    }
    items.extend(match facts.profiles {
        Some(error) => vec![Item::new(Status::Bad, "profiles", error.to_string(), "mend it, then look again")],
        None => profiles::files(loaded).iter().map(|p| Item::plain(Status::Ok, "profiles", p.display())).collect(),
    });
    let set = VARIABLES.iter().filter(|variable| facts.environment.get(variable.name).is_some());
    items.extend(
        set.map(|variable| Item::plain(Status::Ok, "variable", format!("{} sets `{}`", variable.name, variable.key))),
    );
    items.extend(loaded.notes.iter().map(|note| Item::plain(Status::Warning, "note", note)));
    items
}

fn model(choice: &Result<ModelChoice, Problem>) -> Item {
    match choice {
        Ok(choice) => Item::plain(Status::Ok, "would be used", format!("{} ({})", choice.model, choice.reason)),
        Err(problem) => {
            let remedy = problem.hint.as_deref().unwrap_or("set a provider's key, or try `super-agent demo`");
            Item::new(Status::Bad, "none", problem.what.clone(), remedy)
        }
    }
}

fn provider(provider: &ProviderLine) -> Item {
    let note = provider.note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
    let url = settings::without_password(&provider.base_url);
    match &provider.key_variable {
        None => Item::plain(Status::Info, &provider.name, format!("{url}, needs no key{note}")),
        Some(variable) if provider.key_set => {
            Item::plain(Status::Ok, &provider.name, format!("{url}, key in {variable}{note}"))
        }
        Some(variable) => Item::new(
            Status::Info,
            &provider.name,
            format!("{url}, no key{note}"),
            format!("set `{variable}` to use it"),
        ),
    }
}

fn boundary(config: &Config) -> Vec<Item> {
    let files = Item::plain(Status::Ok, "file tools", "confined to the working directory");
    let commands = "not confined: a command can read and change whatever you can, and use the network";
    let remedy = match config.sandbox.level {
        SandboxLevel::Strict | SandboxLevel::Files => {
            "the level that `sandbox.level` asks for is not there yet; use a container or another user, or `permission_mode = \"ask\"`"
        }
        SandboxLevel::Auto | SandboxLevel::None => {
            "work in a worktree or a scratch folder, and set `permission_mode = \"ask\"` to be asked before each command"
        }
    };
    vec![files, Item::new(Status::Warning, "commands", commands, remedy)]
}

fn git(version: Option<&str>) -> Item {
    match version {
        Some(version) => Item::plain(Status::Ok, "git", version.trim().trim_start_matches("git version ")),
        None => Item::new(
            Status::Warning,
            "git",
            "not found: there are no worktrees, sessions work in scratch folders or in place",
            "install git and put it on `PATH`",
        ),
    }
}

fn terminal(facts: &Facts<'_>) -> Vec<Item> {
    let terminal = &facts.terminal;
    if !terminal.is_terminal {
        let found = "standard output is none; the interface needs one, `super-agent run` does not";
        return vec![Item::plain(Status::Info, "terminal", found)];
    }
    let size = match terminal.size {
        Some((columns, rows)) if columns < 80 || rows < 24 => {
            Item::new(Status::Warning, "size", format!("{columns}×{rows}"), "80×24 or more shows everything")
        }
        Some((columns, rows)) => Item::plain(Status::Ok, "size", format!("{columns}×{rows}")),
        None => Item::plain(Status::Warning, "size", "not known"),
    };
    let (status, colours) = colours(facts.environment);
    vec![size, Item::plain(status, "colours", colours)]
}

/// What colours the environment promises.
fn colours(environment: &Environment) -> (Status, &'static str) {
    let term = environment.get("TERM").unwrap_or_default();
    match environment.get("COLORTERM") {
        _ if environment.get("NO_COLOR").is_some() => (Status::Info, "none, as `NO_COLOR` asks"),
        Some("truecolor" | "24bit") => (Status::Ok, "16 million"),
        _ if term.is_empty() || term == "dumb" => (Status::Warning, "none: `TERM` promises nothing"),
        _ if term.contains("256color") => (Status::Ok, "256"),
        _ => (Status::Info, "16"),
    }
}

fn folders(facts: &Facts<'_>, config: &Config) -> Vec<Item> {
    let paths = facts.paths;
    let root = roots::workspace_root(config, facts.environment, paths);
    let log = paths.newest_log().unwrap_or_else(|| paths.log_dir());
    let mut items = vec![writable("sessions", &root), space(&root)];
    items.extend(
        [("state", &paths.state), ("cache", &paths.cache), ("runtime", &paths.runtime)]
            .map(|(name, path)| writable(name, path)),
    );
    items.push(Item::plain(Status::Info, "configuration", paths.config.display()));
    items.push(Item::plain(Status::Info, "log", log.display()));
    items
}

/// The nearest folder upwards that is there already.
fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| folder.exists()).map(Path::to_owned)
}

fn writable(name: &str, path: &Path) -> Item {
    let can = existing(path).is_some_and(|folder| folder.is_dir() && is_writable(&folder));
    match (can, path.exists()) {
        (true, true) => Item::plain(Status::Ok, name, path.display()),
        (true, false) => Item::plain(Status::Ok, name, format!("{} (made when needed)", path.display())),
        (false, _) => Item::new(
            Status::Bad,
            name,
            format!("{} can't be written", path.display()),
            "make it a folder you may write to",
        ),
    }
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    use nix::unistd::{AccessFlags, access};
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|metadata| !metadata.permissions().readonly())
}

/// Less than this gets tight for a session.
const LITTLE_SPACE: u64 = 1_000_000_000;

fn space(root: &Path) -> Item {
    match existing(root).as_deref().and_then(free_bytes) {
        Some(bytes) if bytes < LITTLE_SPACE => {
            Item::new(Status::Warning, "free space", size(bytes), "make room, or set `workspace` to another disk")
        }
        Some(bytes) => Item::plain(Status::Ok, "free space", size(bytes)),
        None => Item::plain(Status::Info, "free space", "not known"),
    }
}

fn size(bytes: u64) -> String {
    match bytes / 1_000_000_000 {
        0 => format!("{} MB", bytes / 1_000_000),
        gigabytes => format!("{gigabytes} GB"),
    }
}

// The figures are `u32` on some systems.
#[cfg(unix)]
#[allow(clippy::useless_conversion)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(folder).ok()?;
    u64::from(disk.blocks_available()).checked_mul(u64::from(disk.fragment_size()))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

impl Item {
    fn plain(status: Status, name: &str, found: impl ToString) -> Self {
        Self { status, name: name.to_owned(), found: found.to_string(), remedy: None }
    }

    fn new(status: Status, name: &str, found: impl ToString, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..Self::plain(status, name, found) }
    }
}

#[cfg(test)]
mod tests;
