//! Brings the layers of configuration together: built in, the person's file, the project's file
//! (when trusted), variables, flags; later wins. Remembers where each value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::environment::Environment;
use super::error::ConfigError;
use super::nearest::nearest;
use super::paths::Paths;
use super::positions::{self, Positions, dotted};
use super::trust::{Trust, TrustStore};
use super::{Config, check, project};

/// The variable that names another `config.toml`.
pub const CONFIG_VARIABLE: &str = "SUPER_AGENT_CONFIG";

/// The variable that says what is logged.
pub const LOG_VARIABLE: &str = "SUPER_AGENT_LOG";

/// The variable that changes how fast scripted models speak: a factor, 0 without waiting.
pub const SCRIPTED_DELAY_VARIABLE: &str = "SUPER_AGENT_SCRIPTED_DELAY";

/// A variable that sets a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The dotted key it sets.
    pub key: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Number,
}

/// Every variable that sets a key. Values are written as in the file, without quotes.
pub const VARIABLES: &[Variable] = &[
    Variable { name: "SUPER_AGENT_MODEL", key: "model", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_CHECKER_MODEL", key: "checker_model", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_UTILITY_MODEL", key: "utility_model", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_WORKSPACE", key: "workspace", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_MAX_CYCLES", key: "max_cycles", kind: Kind::Whole },
    Variable { name: "SUPER_AGENT_PERMISSION_MODE", key: "permission_mode", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_WHERE", key: "where", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_BUDGET_TOKENS", key: "budget.tokens", kind: Kind::Whole },
    Variable { name: "SUPER_AGENT_BUDGET_USD", key: "budget.usd", kind: Kind::Number },
    Variable { name: "SUPER_AGENT_TIMEOUT", key: "budget.time", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_SANDBOX", key: "sandbox.level", kind: Kind::Text },
    Variable { name: "SUPER_AGENT_THEME", key: "ui.theme", kind: Kind::Text },
];

/// Keys that only the person sets: a project could send keys and files elsewhere with them.
const PERSONAL: [&str; 4] = ["providers", "sandbox", "secrets", "permission_mode"];

/// What is brought together.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Variables and the folder the project is looked for in.
    pub environment: &'a Environment,
    /// The program's own folders.
    pub paths: &'a Paths,
    /// `--config FILE`.
    pub file: Option<&'a Path>,
    /// The layer that flags make, with the keys of `config.toml`.
    pub flags: &'a Table,
}

/// The configuration that counts.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// All settings, defaults filled in.
    pub config: Config,
    /// Where each value that is not built in came from, by dotted key.
    pub sources: BTreeMap<String, Source>,
    /// What a person should know: files left aside and why.
    pub notes: Vec<String>,
    /// The person's `config.toml`, and whether it is there.
    pub file: ConfigFile,
    /// The project's configuration, if the folder has any.
    pub project: Option<ProjectConfig>,
}

impl Loaded {
    /// Where a value came from.
    pub fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::BuiltIn)
    }

    /// The folder of the person's own files: `workers.yaml`, `themes/`, `prompts/`, `skills/`.
    pub fn user_dir(&self) -> &Path {
        self.file.path.parent().unwrap_or(Path::new(""))
    }

    /// The folder of the project's own files, when the person accepted them.
    pub fn project_dir(&self) -> Option<PathBuf> {
        self.trusted_project().map(|root| root.join(project::FOLDER))
    }

    /// The root of the project, when the person accepted its configuration.
    pub fn trusted_project(&self) -> Option<&Path> {
        self.project.as_ref().filter(|project| project.trust == Trust::Trusted).map(|project| project.root.as_path())
    }

    /// Folders that hold a kind of file (`themes`, `prompts`, `skills`), the person's first; a
    /// file of the same name in a later one counts instead.
    pub fn folders(&self, kind: &str) -> Vec<PathBuf> {
        let all = [Some(self.user_dir().to_owned()), self.project_dir()];
        all.into_iter().flatten().map(|folder| folder.join(kind)).filter(|folder| folder.is_dir()).collect()
    }
}

/// The person's configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is there.
    pub found: bool,
}

/// The project's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectConfig {
    /// The project's folder.
    pub root: PathBuf,
    /// Whether it counts.
    pub trust: Trust,
    /// The files it is about, below the folder.
    pub files: Vec<PathBuf>,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// The program itself.
    BuiltIn,
    /// A file.
    File {
        /// Which.
        path: PathBuf,
        /// Where in it.
        line: Option<usize>,
    },
    /// A variable.
    Variable {
        /// Which.
        name: String,
    },
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable { name } => write!(f, "${name}"),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// Brings the layers together.
///
/// # Errors
/// A file that counts can't be read, has an unknown key or a wrong value; a variable or a flag
/// has a wrong value.
pub fn load(request: &Request<'_>) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::default();
    let file = user_file(request)?;
    if file.found {
        let layer = Layer::read(&file.path)?;
        layers.put(layer.absolute(request.environment, file.path.parent()));
    }
    let project = find_project(request, &mut layers.notes);
    if let Some(found) = project.as_ref().filter(|project| project.trust == Trust::Trusted) {
        let path = found.root.join(project::FOLDER).join("config.toml");
        if path.is_file() {
            let mut layer = Layer::read(&path)?;
            layers.notes.extend(layer.without_personal(&file.path));
            layers.put(layer.absolute(request.environment, Some(&found.root)));
        }
    }
    for variable in VARIABLES {
        if let Some(value) = request.environment.get(variable.name) {
            let layer = Layer::of_variable(variable, value)?;
            layers.put(layer.absolute(request.environment, Some(&request.environment.current_dir)));
        }
    }
    layers.notes.extend(unknown_variables(request.environment));
    let flags = Layer::of_flags(request.flags)?;
    layers.put(flags.absolute(request.environment, Some(&request.environment.current_dir)));
    let config = Config::deserialize(Value::Table(layers.merged))
        .map_err(|error| ConfigError::new(format!("the configuration does not fit together: {}", error.message())))?;
    Ok(Loaded { config, sources: layers.sources, notes: layers.notes, file, project })
}

/// The person's file: `--config`, else the variable, else the usual one, which may be missing.
fn user_file(request: &Request<'_>) -> Result<ConfigFile, ConfigError> {
    let environment = request.environment;
    let named = match (request.file, environment.get(CONFIG_VARIABLE)) {
        (Some(file), _) => Some((file, "--config")),
        (None, Some(file)) => Some((Path::new(file), CONFIG_VARIABLE)),
        (None, None) => None,
    };
    let Some((named, by)) = named else {
        let path = request.paths.config_file();
        let found = path.exists();
        return Ok(ConfigFile { path, found });
    };
    let path = environment.absolute(named, &environment.current_dir);
    if !path.is_file() {
        return Err(ConfigError::new(format!("there is no file `{}`, which {by} names", path.display())));
    }
    Ok(ConfigFile { path, found: true })
}

/// Finds the project and asks whether it is trusted; anything in doubt is left aside with a note.
fn find_project(request: &Request<'_>, notes: &mut Vec<String>) -> Option<ProjectConfig> {
    let root = project::find(&request.environment.current_dir, request.environment)?;
    // The person's own folder can't be a stranger's project.
    if root.join(project::FOLDER) == request.paths.config {
        return None;
    }
    let files = project::files(&root).unwrap_or_default();
    let trust = TrustStore::new(request.paths).state(&root).unwrap_or_else(|error| {
        notes.push(format!("the configuration of `{}` is left aside: {error}", root.display()));
        Trust::Unasked
    });
    let why = match trust {
        Trust::Trusted => None,
        Trust::Refused => Some("you refused it"),
        Trust::Changed => Some("it changed since you were asked"),
        Trust::Unasked => Some("you have not accepted it yet"),
    };
    if let Some(why) = why {
        notes.push(format!(
            "the configuration of `{}` is left aside because {why}; look at it, then accept it with `super-agent trust`",
            root.display()
        ));
    }
    Some(ProjectConfig { root, trust, files })
}

/// Variables that look like ours and set nothing.
fn unknown_variables(environment: &Environment) -> Vec<String> {
    let others = [CONFIG_VARIABLE, LOG_VARIABLE, SCRIPTED_DELAY_VARIABLE];
    let known = || VARIABLES.iter().map(|variable| variable.name).chain(others);
    let ours = environment.variables.keys().filter(|name| name.starts_with("SUPER_AGENT_"));
    ours.filter(|name| !known().any(|known| known == name.as_str()))
        .map(|name| match nearest(name, known()) {
            Some(near) => format!("the variable `{name}` sets nothing; did you mean `{near}`?"),
            None => format!("the variable `{name}` sets nothing"),
        })
        .collect()
}

/// One layer, checked by itself.
struct Layer {
    table: Table,
    place: Place,
}

enum Place {
    File { path: PathBuf, positions: Positions },
    Variable(&'static str),
    Flags,
}

impl Place {
    fn source(&self, key: &str) -> Source {
        match self {
            Self::File { path, positions } => Source::File { path: path.clone(), line: positions.line(key) },
            Self::Variable(name) => Source::Variable { name: (*name).to_owned() },
            Self::Flags => Source::Flag,
        }
    }
}

impl Layer {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text(path)?;
        let config: Config = positions::read(&text, path)?;
        let positions = Positions::of(&text);
        if let Some(nonsense) = check::check(&config).into_iter().next() {
            let line = positions.line(&nonsense.key);
            return Err(ConfigError::new(format!("`{}`: {}", nonsense.key, nonsense.why)).at(path, line));
        }
        let table = positions::read(&text, path)?;
        Ok(Self { table, place: Place::File { path: path.to_owned(), positions } })
    }

    fn of_variable(variable: &Variable, value: &str) -> Result<Self, ConfigError> {
        let shown = format!("${} = `{value}`", variable.name);
        let whole = || value.trim().parse().map(Value::Integer).ok();
        let number = || value.trim().parse().map(Value::Float).ok();
        let (value, expected) = match variable.kind {
            Kind::Text => (Some(Value::String(value.to_owned())), ""),
            Kind::Whole => (whole(), "expected a whole number"),
            Kind::Number => (number(), "expected a number"),
        };
        let value = value.ok_or_else(|| ConfigError::new(format!("{shown}: {expected}")))?;
        let mut table = Table::new();
        set(&mut table, variable.key, value);
        check_table(&table, |_| shown.clone())?;
        Ok(Self { table, place: Place::Variable(variable.name) })
    }

    fn of_flags(flags: &Table) -> Result<Self, ConfigError> {
        check_table(flags, |key| format!("command line, `{key}`"))?;
        Ok(Self { table: flags.clone(), place: Place::Flags })
    }

    /// Takes out what a project can't set, and says so.
    fn without_personal(&mut self, own: &Path) -> Vec<String> {
        let removed = PERSONAL.into_iter().filter(|key| self.table.remove(*key).is_some());
        let removed: Vec<&str> = removed.collect();
        let note = |key: &str| {
            format!(
                "`{key}` is ignored: a project can't set it; put it into `{}` ({})",
                own.display(),
                self.place.source(key)
            )
        };
        removed.into_iter().map(note).collect()
    }

    /// Makes the paths in it absolute, so that they mean the same wherever they are used.
    fn absolute(mut self, environment: &Environment, base: Option<&Path>) -> Self {
        let base = base.unwrap_or(&environment.current_dir);
        let mend = |value: &mut Value| {
            if let Value::String(text) = value {
                *text = environment.absolute(Path::new(text), base).to_string_lossy().into_owned();
            }
        };
        if let Some(workspace) = self.table.get_mut("workspace") {
            mend(workspace);
        }
        if let Some(Value::Table(sandbox)) = self.table.get_mut("sandbox") {
            for key in ["read", "write"] {
                if let Some(Value::Array(folders)) = sandbox.get_mut(key) {
                    folders.iter_mut().for_each(mend);
                }
            }
        }
        self
    }
}

/// Reads a file as text.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let bytes = fs::read(path).map_err(|error| ConfigError::file("read", path, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        ConfigError::file("read", path, &io::Error::other("it is not UTF-8 text")).at(path, Some(line))
    })
}

/// Holds a table without a text against the types and the sense of it.
fn check_table(table: &Table, shown: impl Fn(&str) -> String) -> Result<(), ConfigError> {
    let first = table.keys().next().map(String::as_str).unwrap_or_default();
    let config = Config::deserialize(Value::Table(table.clone()))
        .map_err(|error| positions::wrong_value(&shown(first), error.message()))?;
    match check::check(&config).into_iter().next() {
        Some(nonsense) => Err(ConfigError::new(format!("{}: {}", shown(&nonsense.key), nonsense.why))),
        None => Ok(()),
    }
}

/// Sets a dotted key whose parts need no quotes.
pub fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(below) = below {
                set(below, rest, value);
            }
        }
    }
}

#[derive(Default)]
struct Layers {
    merged: Table,
    sources: BTreeMap<String, Source>,
    notes: Vec<String>,
}

impl Layers {
    /// Lays one more layer on top.
    fn put(&mut self, layer: Layer) {
        let place = layer.place;
        merge(&mut self.merged, layer.table, "", &mut |key| {
            self.sources.insert(key.to_owned(), place.source(key));
        });
    }
}

/// Tables grow together, anything else is replaced. Tells each key that is set.
fn merge(into: &mut Table, from: Table, above: &str, on_set: &mut impl FnMut(&str)) {
    for (name, value) in from {
        let key = dotted(above, &name);
        match (into.get_mut(&name), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from, &key, on_set),
            (_, Value::Table(from)) => {
                let mut table = Table::new();
                merge(&mut table, from, &key, on_set);
                into.insert(name, Value::Table(table));
            }
            (_, value) => {
                on_set(&key);
                into.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
