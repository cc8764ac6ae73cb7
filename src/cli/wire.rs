//! The only place that builds everything: configuration, providers, tools, the Supervisor, and
//! what the interface asks of outside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::args::{Arguments, Command};
use super::log::{self, LogGuard};
use crate::agent::config::Model;
use crate::agent::ports::Models;
use crate::config::environment::Environment;
use crate::config::layers::{self, Loaded, Request};
use crate::config::paths::Paths;
use crate::config::profiles::Profiles;
use crate::config::roots;
use crate::config::{Config, SandboxLevel};
use crate::events::problem::Problem;
use crate::events::query::ModelChoice;
use crate::llm::error::{ErrorKind, ProviderError};
use crate::llm::prices::Prices;
use crate::llm::registry::Registry;
use crate::prompts::Library;
use crate::session::context::Surroundings;
use crate::stdx::clock::SystemClock;
use crate::stdx::random::SystemRandom;
use crate::supervisor::{Places, Supervisor};
use crate::tools;
use crate::tui::External;

/// Everything a command needs.
pub struct World {
    /// Variables and the current folder.
    pub environment: Environment,
    /// The program's own folders.
    pub paths: Paths,
    /// The configuration.
    pub loaded: Loaded,
    /// The owner of all sessions.
    pub supervisor: Arc<Supervisor>,
    /// What a person should know before anything starts.
    pub notes: Vec<String>,
    /// Keeps the log open.
    pub log: LogGuard,
}

/// The variables and the current folder.
///
/// # Errors
/// The folder is gone.
pub fn environment() -> Result<Environment, Problem> {
    Environment::of_process()
        .map_err(|e| Problem::usage(format!("the current folder can't be used: {e}")).hint("go to one that exists"))
}

/// Reads the configuration that these arguments ask for.
///
/// # Errors
/// A file is wrong; names file, line and the way out.
pub fn configuration(arguments: &Arguments, environment: &Environment, paths: &Paths) -> Result<Loaded, Problem> {
    let file = arguments.common.config.as_deref().map(|f| environment.absolute(f, &environment.current_dir));
    let flags = arguments.layer();
    layers::load(&Request { environment, paths, file: file.as_deref(), flags: &flags }).map_err(Problem::from)
}

/// Builds everything for these arguments.
///
/// # Errors
/// The configuration is wrong, or a folder can't be used.
pub fn build(arguments: &Arguments) -> Result<World, Problem> {
    let environment = environment()?;
    let paths = Paths::resolve(&environment)?;
    let loaded = configuration(arguments, &environment, &paths)?;
    let profiles = Profiles::load(&loaded)?;
    let registry = Arc::new(Registry::new(&loaded.config, environment.variables.clone(), &environment.current_dir));
    let secrets = registry.key_variables().iter().filter_map(|v| environment.get(v).map(str::to_owned)).collect();
    let log = log::start(&paths, &environment, secrets)?;
    let user_prompts = loaded.user_dir().join("prompts");
    let project_prompts = loaded.project_dir().map(|d| d.join("prompts"));
    let (prompts, warnings) = Library::load(
        user_prompts.is_dir().then_some(user_prompts.as_path()),
        project_prompts.as_deref().filter(|d| d.is_dir()),
    );
    let mut notes = loaded.notes.clone();
    notes.extend(profiles.notes.iter().cloned());
    notes.extend(warnings);
    notes.extend(without_effect(&loaded)?);
    let launches = matches!(arguments.command, None | Some(Command::Run(_) | Command::Demo));
    let places = places(&loaded, &environment, &paths, launches)?;
    let surroundings = Surroundings {
        config: Arc::new(loaded.config.clone()),
        models: Arc::new(RegistryModels {
            registry: registry.clone(),
            prices: Arc::new(Prices::new(loaded.config.prices.clone())),
            attempts: loaded.config.http.attempts.max(1),
        }),
        registry: Arc::new(tools::registry::Registry::builtin()),
        prompts: Arc::new(prompts),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        environment: Arc::new(for_tools(&environment, &registry)),
        cache: paths.cache.clone(),
        user_home: environment.home().map(PathBuf::from),
    };
    let supervisor = Supervisor::new(surroundings, profiles, places);
    Ok(World { environment, paths, loaded, supervisor, notes, log })
}

/// Settings that this version takes and can't carry out: promises of containment are refused,
/// the rest is said.
fn without_effect(loaded: &Loaded) -> Result<Vec<String>, Problem> {
    let (config, defaults) = (&loaded.config, Config::default());
    if matches!(config.sandbox.level, SandboxLevel::Strict | SandboxLevel::Files) {
        return Err(Problem::usage("commands can't be confined in this version, and `sandbox.level` asks for it")
            .hint("set `sandbox.level` to `auto` or `none`; file tools stay in the working directory all the same"));
    }
    let idle = [
        ("worker.continuity", config.worker.continuity != defaults.worker.continuity),
        ("utility_model", config.utility_model.is_some()),
        ("compaction", config.compaction != defaults.compaction),
        ("secrets", !config.secrets.is_empty()),
        ("sandbox.read, sandbox.write, sandbox.network", {
            let set = &config.sandbox;
            !set.read.is_empty() || !set.write.is_empty() || !set.network
        }),
        ("checker.network", config.checker.network),
    ];
    let set = idle.into_iter().filter(|(_, set)| *set);
    Ok(set.map(|(key, _)| format!("`{key}` is set, but this version does not act on it yet")).collect())
}

/// The environment of tools: the person's, without any provider's key.
fn for_tools(environment: &Environment, registry: &Registry) -> BTreeMap<String, String> {
    let keys = registry.key_variables();
    environment
        .variables
        .iter()
        .filter(|(name, _)| !keys.contains(*name))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// The workspace root is made, and remembered, only for commands that may launch a session: who
/// merely looks leaves nothing behind.
fn places(loaded: &Loaded, environment: &Environment, paths: &Paths, launches: bool) -> Result<Places, Problem> {
    let root = roots::workspace_root(&loaded.config, environment, paths);
    let unusable = |e: std::io::Error| {
        Problem::usage(format!("the workspace root {} can't be used: {e}", root.display()))
            .hint("choose another with --workspace DIR or `workspace` in config.toml")
    };
    if launches {
        std::fs::create_dir_all(&root).map_err(unusable)?;
    }
    let root = match root.canonicalize() {
        Ok(root) => root,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => root,
        Err(e) => return Err(unusable(e)),
    };
    if launches {
        roots::remember(paths, &root)?;
    }
    let mut all = roots::known(paths)?;
    if !all.contains(&root) {
        all.insert(0, root.clone());
    }
    Ok(Places { root, roots: all, runtime: paths.runtime.clone(), state: paths.state.clone(), log: paths.log_dir() })
}

/// Finds models among the providers, with their prices.
struct RegistryModels {
    registry: Arc<Registry>,
    prices: Arc<Prices>,
    attempts: u32,
}

#[async_trait]
impl Models for RegistryModels {
    async fn resolve(&self, reference: &str, endpoint: Option<&str>) -> Result<Model, Problem> {
        let choice = self.registry.resolve_at(reference, endpoint);
        let choice = choice.map_err(problem)?;
        let (prices, reference) = (self.prices.clone(), choice.reference.clone());
        let free = choice.provider.is_scripted();
        Ok(Model {
            provider: choice.provider,
            name: choice.model,
            price: Arc::new(move |usage| if free { Some(0.0) } else { prices.cost(&reference, usage) }),
            reference: choice.reference,
            attempts: self.attempts,
        })
    }

    async fn default_choice(&self) -> Result<ModelChoice, Problem> {
        let choice = self.registry.choose_default().await.map_err(problem)?;
        Ok(ModelChoice { model: choice.reference, reason: choice.reason.unwrap_or_default() })
    }
}

/// A provider's failure as a person reads it.
pub fn problem(error: ProviderError) -> Problem {
    // Nothing was sent yet: an unknown name is wrong use here, not a provider's refusal.
    let wrong_use = matches!(error.kind, ErrorKind::BadRequest | ErrorKind::Scenario | ErrorKind::UnknownModel);
    let problem =
        if wrong_use { Problem::usage(error.message.clone()) } else { Problem::provider(error.message.clone()) };
    match error.hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// What the interface asks of outside.
pub struct Outside {
    /// Variables: `VISUAL`, `EDITOR`.
    pub environment: Environment,
    /// Where the choice of a theme is kept.
    pub config_file: PathBuf,
    /// For files that an editor works on.
    pub cache: PathBuf,
}

#[async_trait]
impl External for Outside {
    async fn edit(&self, text: String, suffix: &str) -> Result<String, Problem> {
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|v| self.environment.get(v)).unwrap_or("vi");
        let folder = self.cache.join("edit");
        std::fs::create_dir_all(&folder)?;
        let name = crate::stdx::random::name(&SystemRandom, crate::ids::SESSION_ALPHABET, 8);
        let file = folder.join(format!("{name}{suffix}"));
        std::fs::write(&file, &text)?;
        let edited = crate::sandbox::interactive::edit(editor, &file, &self.environment.variables).await;
        let result = edited.and_then(|()| std::fs::read_to_string(&file));
        let _ = std::fs::remove_file(&file);
        result.map_err(|e| {
            Problem::usage(format!("the editor `{editor}` failed: {e}")).hint("set `VISUAL` or `EDITOR` to your editor")
        })
    }

    async fn copy(&self, _text: String) -> Result<(), Problem> {
        // The terminal is asked by OSC 52; there is no second clipboard that works everywhere.
        Err(Problem::usage("the terminal did not take the text").hint("select it with the mouse while holding Shift"))
    }

    async fn keep_theme(&self, theme: String) -> Result<(), Problem> {
        keep_theme(&self.config_file, &theme)
    }
}

/// Writes `ui.theme` into the person's configuration, everything else in it left as it is.
fn keep_theme(file: &std::path::Path, theme: &str) -> Result<(), Problem> {
    let old = std::fs::read_to_string(file).unwrap_or_default();
    let line = format!("theme = {}", toml::Value::String(theme.to_owned()));
    let new = with_theme(&old, &line);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    crate::stdx::atomic_file::write(file, new.as_bytes())?;
    Ok(())
}

/// `old` with `line` as the `theme` of its `[ui]` table; comments and order stay.
fn with_theme(old: &str, line: &str) -> String {
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    let Some(table) = lines.iter().position(|l| l.trim() == "[ui]") else {
        let gap = if old.is_empty() || old.ends_with("\n\n") { "" } else { "\n" };
        let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        return format!("{old}{end}{gap}[ui]\n{line}\n");
    };
    let is_theme = |l: &String| l.trim_start().strip_prefix("theme").is_some_and(|r| r.trim_start().starts_with('='));
    let end = lines
        .iter()
        .skip(table + 1)
        .position(|l| l.trim_start().starts_with('['))
        .map_or(lines.len(), |i| table + 1 + i);
    match lines[table + 1..end].iter().position(is_theme) {
        Some(i) => line.clone_into(&mut lines[table + 1 + i]),
        None => lines.insert(table + 1, line.to_owned()),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeping_a_theme_leaves_the_rest_of_the_file_alone() {
        let line = "theme = \"light\"";
        assert_eq!(with_theme("", line), "[ui]\ntheme = \"light\"\n");
        assert_eq!(with_theme("model = \"a/b\"", line), "model = \"a/b\"\n\n[ui]\ntheme = \"light\"\n");
        assert_eq!(
            with_theme("# mine\n[ui]\nmouse = false\ntheme = \"dark\" # x\n[http]\nattempts = 2\n", line),
            "# mine\n[ui]\nmouse = false\ntheme = \"light\"\n[http]\nattempts = 2\n"
        );
        assert_eq!(with_theme("[ui]\n", line), "[ui]\ntheme = \"light\"\n");
    }
}
