//! `workers.yaml`: named ways to run a Worker or a Checker (A27). The person's file, and the
//! project's when it is trusted; a profile of the same name in a later file counts instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::PermissionSetting;
use super::check::model_reference;
use super::error::ConfigError;
use super::layers::{Loaded, read_text};
use super::nearest::nearest;
use super::positions::{unknown_key, wrong_value};
use super::project;

/// The profile that is always there.
pub const DEFAULT: &str = "default";

/// The file's name.
const FILE: &str = "workers.yaml";

/// One way to run an agent. What is absent comes from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// The model: `PROVIDER/MODEL`, or the model alone beside `provider`.
    pub model: Option<String>,
    /// The provider's name.
    pub provider: Option<String>,
    /// The provider's address; without a scheme it is `https://`.
    pub endpoint: Option<String>,
    /// Turns of one run.
    pub max_turns: Option<u32>,
    /// What tools may do unasked.
    pub permission_mode: Option<PermissionSetting>,
    /// Own words to the model.
    pub prompt: ProfilePrompt,
    /// Tools that may be used; absent: all.
    pub tools_allow: Option<Vec<String>>,
    /// Tools that may not be used, even if allowed.
    pub tools_block: Option<Vec<String>>,
    /// Servers that offer further tools.
    pub mcp_servers: BTreeMap<String, McpServer>,
}

/// Own words to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfilePrompt {
    /// Replaces the built-in system prompt; absent: the built-in one.
    pub system: Option<String>,
    /// Added to the task.
    pub user: Option<String>,
}

/// A server that offers further tools: a command, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// The address to connect to.
    pub url: Option<String>,
    /// Headers sent there.
    pub headers: BTreeMap<String, String>,
}

impl Profile {
    /// `PROVIDER/MODEL`, when the profile names a model.
    pub fn model_reference(&self) -> Option<String> {
        // A provider alone means its default model.
        let Some(model) = self.model.as_deref() else { return self.provider.clone() };
        match &self.provider {
            Some(provider) if !model.starts_with(&format!("{provider}/")) => Some(format!("{provider}/{model}")),
            _ => Some(model.to_owned()),
        }
    }

    /// The address with its scheme.
    pub fn endpoint_url(&self) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?.trim_end_matches('/');
        Some(if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") })
    }

    /// The provider that [`Profile::endpoint_url`] is about.
    pub fn endpoint_provider(&self) -> Option<&str> {
        self.provider.as_deref().or_else(|| Some(self.model.as_deref()?.split_once('/')?.0))
    }
}

/// All profiles.
#[derive(Clone, Debug)]
pub struct Profiles {
    profiles: BTreeMap<String, Profile>,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl Profiles {
    /// The profiles of the person's folder and of the project, when that is trusted.
    ///
    /// # Errors
    /// A file has an unknown key or a wrong value, or can't be read.
    pub fn load(loaded: &Loaded) -> Result<Self, ConfigError> {
        let mut all = Self::built_in();
        let own = loaded.user_dir().join(FILE);
        if own.is_file() {
            all.add(&own, read(&own)?);
        }
        if let Some(root) = loaded.trusted_project() {
            for path in [root.join(FILE), root.join(project::FOLDER).join(FILE)] {
                if path.is_file() {
                    let mut profiles = read(&path)?;
                    all.notes
                        .extend(profiles.iter_mut().flat_map(|(name, profile)| take_personal(&path, name, profile)));
                    all.add(&path, profiles);
                }
            }
        }
        Ok(all)
    }

    /// Only what is built in.
    pub fn built_in() -> Self {
        Self { profiles: [(DEFAULT.to_owned(), Profile::default())].into(), notes: Vec::new() }
    }

    /// A profile by its name.
    ///
    /// # Errors
    /// There is none; names those there are.
    pub fn get(&self, name: &str) -> Result<&Profile, ConfigError> {
        self.profiles.get(name).ok_or_else(|| {
            let there: Vec<_> = self.names().map(|name| format!("`{name}`")).collect();
            let error = ConfigError::new(format!("there is no profile `{name}`; there are: {}", there.join(", ")));
            match nearest(name, self.names()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("profiles are kept in `{FILE}`, beside `config.toml`")),
            }
        })
    }

    /// The names of all profiles, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    fn add(&mut self, path: &Path, profiles: BTreeMap<String, Profile>) {
        for (name, profile) in profiles {
            if !profile.mcp_servers.is_empty() {
                self.notes.push(format!(
                    "profile `{name}` names `mcp_servers`, which this version does not start yet; they are ignored ({})",
                    path.display()
                ));
            }
            self.profiles.insert(name, profile);
        }
    }
}

/// Takes out what a project can't set, and says so.
fn take_personal(path: &Path, name: &str, profile: &mut Profile) -> Vec<String> {
    let endpoint = profile.endpoint.take().map(|_| "endpoint");
    let mode = profile.permission_mode.take().map(|_| "permission_mode");
    let note = |key: &str| {
        format!("`{name}.{key}` is ignored: a project can't set it; put it into your own `{FILE}` ({})", path.display())
    };
    endpoint.into_iter().chain(mode).map(note).collect()
}

/// Reads one file strictly.
fn read(path: &Path) -> Result<BTreeMap<String, Profile>, ConfigError> {
    parse(&read_text(path)?, path)
}

fn parse(text: &str, path: &Path) -> Result<BTreeMap<String, Profile>, ConfigError> {
    // A file of nothing but comments is an empty one.
    let parsed: Result<Option<BTreeMap<String, Option<Profile>>>, _> = serde_saphyr::from_str(text);
    let profiles = parsed.map_err(|error| explain(path, text, &error))?.unwrap_or_default();
    let profiles: BTreeMap<_, _> =
        profiles.into_iter().map(|(name, profile)| (name, profile.unwrap_or_default())).collect();
    for (name, profile) in &profiles {
        if let Err(why) = check(profile) {
            return Err(ConfigError::new(format!("profile `{name}`: {why}")).at(path, line_of_profile(text, name)));
        }
    }
    Ok(profiles)
}

/// What types can't say.
fn check(profile: &Profile) -> Result<(), String> {
    if profile.max_turns == Some(0) {
        return Err("`max_turns` must be at least 1".to_owned());
    }
    if let (Some(model), None) = (&profile.model, &profile.provider) {
        model_reference(model).map_err(|why| format!("{why}, or set `provider` as well"))?;
    }
    if profile.endpoint.is_some() && profile.endpoint_provider().is_none() {
        return Err("`endpoint` needs a `provider` beside it".to_owned());
    }
    if profile.endpoint_url().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
        return Err("`endpoint` must be an `https://` or `http://` address".to_owned());
    }
    for (name, server) in &profile.mcp_servers {
        if server.command.is_some() == server.url.is_some() {
            return Err(format!("`mcp_servers.{name}` needs either `command` or `url`"));
        }
    }
    Ok(())
}

/// Where a top-level key stands.
fn line_of_profile(text: &str, name: &str) -> Option<usize> {
    let is_it = |line: &str| {
        let key = line.split(':').next().unwrap_or_default().trim_end();
        !line.starts_with([' ', '#']) && key.trim_matches(['"', '\'']) == name
    };
    text.lines().position(is_it).map(|i| i + 1)
}

/// A parser's complaint in our words.
fn explain(path: &Path, text: &str, error: &serde_saphyr::Error) -> ConfigError {
    let error = error.without_snippet();
    let line = error.location().and_then(|location| usize::try_from(location.line()).ok()).filter(|line| *line > 0);
    let shown = line.and_then(|line| text.lines().nth(line - 1)).map(|line| format!("`{}`", line.trim()));
    let explained = match error {
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
            let valid: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
            unknown_key(field, field, &valid)
        }
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
            let valid: Vec<String> = expected.iter().map(|word| format!("`{word}`")).collect();
            wrong_value(
                &shown.unwrap_or_else(|| "the file".to_owned()),
                &format!("unknown variant `{variant}`, expected one of {}", valid.join(", ")),
            )
        }
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
            ConfigError::new(format!("the key `{}` is there twice", key.as_deref().unwrap_or("…")))
        }
        other => {
            let message = other.to_string().replace('\n', ", ");
            let message = match message.split(" at line ").next().unwrap_or(&message) {
                "expected sequence start" => "expected a list",
                "expected mapping start" => "expected a table",
                message => message,
            };
            wrong_value(&shown.unwrap_or_else(|| "the file".to_owned()), message)
        }
    };
    explained.at(path, line)
}

/// The files that [`Profiles::load`] would read, for showing.
pub fn files(loaded: &Loaded) -> Vec<PathBuf> {
    let own = Some(loaded.user_dir().join(FILE));
    let root = loaded.trusted_project();
    let projects = root.into_iter().flat_map(|root| [root.join(FILE), root.join(project::FOLDER).join(FILE)]);
    own.into_iter().chain(projects).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests;
