//! Turns `PROVIDER/MODEL` into something that can be called, and chooses when nobody chose. Keys
//! and addresses come from the configuration and from the environment that is passed in; a
//! scripted model is only ever used when it is named.

mod ollama;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Provider;
use super::anthropic::Anthropic;
use super::error::{ErrorKind, ProviderError};
use super::http::{Auth, Endpoint, Http, Secret, without_password};
use super::openai::OpenAi;
use super::scripted::scenario::{EMBEDDED, Scenario};
use super::scripted::{self, Scripted};
use crate::config::layers::SCRIPTED_DELAY_VARIABLE;
use crate::config::{Config, Protocol};
use settings::Settings;

pub use settings::Env;

/// Whose error it is when no provider could be chosen.
const NOBODY: &str = "model";

/// All providers.
pub struct Registry {
    settings: Vec<Settings>,
    env: Env,
    http: Arc<Http>,
    dir: PathBuf,
    scripted_speed: f64,
    /// Made once, so that connections and what was learned of a model are shared.
    made: Mutex<BTreeMap<(String, String), Arc<dyn Provider>>>,
}

impl fmt::Debug for Registry {
    /// Without the environment and the headers: they hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("providers", &self.names()).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// A model to call.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Who is called.
    pub provider: Arc<dyn Provider>,
    /// The model's name without the provider.
    pub model: String,
    /// `PROVIDER/MODEL` in full, to be recorded; resolves to the same again from anywhere.
    pub reference: String,
    /// Why this one, as a sentence, when nobody named it.
    pub reason: Option<String>,
}

/// One provider as `doctor` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderDescription {
    /// Its name.
    pub name: String,
    /// How it is spoken to: `openai`, `anthropic` or `gemini`.
    pub protocol: &'static str,
    /// Its address.
    pub base_url: Option<String>,
    /// Where the address comes from: `built in`, a variable or a table of the configuration.
    pub base_url_from: String,
    /// The variable that holds the key; absent: none is needed.
    pub key_variable: Option<String>,
    /// Whether the key is set. Its value is never told.
    pub key_is_set: bool,
    /// The model used when none is named.
    pub default_model: Option<String>,
    /// What keeps it from being used, and what to do.
    pub problem: Option<String>,
}

impl Registry {
    /// The providers of `config`, with keys and addresses of `env`. Files of scenarios are looked
    /// for from `dir`. Connects to nothing.
    pub fn new(config: &Config, env: Env, dir: impl Into<PathBuf>) -> Self {
        let scripted_speed =
            env.get(SCRIPTED_DELAY_VARIABLE).and_then(|factor| factor.trim().parse().ok()).unwrap_or(1.0);
        Self {
            settings: settings::all(config, &env),
            http: Arc::new(Http::new(&config.http, &env)),
            env,
            dir: dir.into(),
            scripted_speed,
            made: Mutex::default(),
        }
    }

    /// Scripted models speak without pauses.
    #[must_use]
    pub fn without_scripted_delay(mut self) -> Self {
        self.scripted_speed = 0.0;
        self
    }

    /// The model that was `asked` for (by flag, profile or configuration), else the default.
    ///
    /// # Errors
    /// As [`Registry::resolve`] and [`Registry::choose_default`].
    pub async fn choose(&self, asked: Option<&str>) -> Result<Choice, ProviderError> {
        match asked {
            Some(reference) => self.resolve(reference),
            None => self.choose_default().await,
        }
    }

    /// What `PROVIDER/MODEL` names. A provider alone means its default model; a model alone is
    /// given to the provider whose form of name it has.
    ///
    /// # Errors
    /// When there is no such provider, scenario or key; each says what to do.
    pub fn resolve(&self, reference: &str) -> Result<Choice, ProviderError> {
        let (provider, model) = self.split(reference)?;
        if provider == scripted::NAME {
            return self.scripted(model);
        }
        let settings = self.find(provider).ok_or_else(|| self.unknown(reference.trim()))?;
        self.with_model(settings, model)
    }

    /// As [`Registry::resolve`], with the provider at another address when a profile names one
    /// (A27). The provider's key is sent there, so the address must come from the person, never
    /// from a project's files.
    ///
    /// # Errors
    /// As [`Registry::resolve`], and when the endpoint is no address.
    pub fn resolve_at(&self, reference: &str, endpoint: Option<&str>) -> Result<Choice, ProviderError> {
        let Some(endpoint) = endpoint else { return self.resolve(reference) };
        let (provider, model) = self.split(reference)?;
        let settings = self.find(provider).ok_or_else(|| self.unknown(reference))?;
        let base_url = Some(settings::endpoint_base(endpoint, settings));
        self.with_model(&Settings { base_url, base_url_from: "profile".to_owned(), ..settings.clone() }, model)
    }

    /// Provider and model of a reference; the model may be empty.
    fn split<'r>(&self, reference: &'r str) -> Result<(&'r str, &'r str), ProviderError> {
        let reference = reference.trim();
        match reference.split_once('/') {
            Some((provider, model)) => Ok((provider, model.trim())),
            None if reference == scripted::NAME || self.find(reference).is_some() => Ok((reference, "")),
            None => Ok((provider_of(reference).ok_or_else(|| self.unknown(reference))?, reference)),
        }
    }

    /// The choice when nobody chose: the first provider with a key, in a fixed order, else a
    /// local Ollama with a model that can call tools. Never a scripted model.
    ///
    /// # Errors
    /// When there is neither: which variables to set, Ollama, and the demo.
    pub async fn choose_default(&self) -> Result<Choice, ProviderError> {
        for settings in &self.settings {
            let (Some(variable), Some(model)) = (&settings.key_variable, &settings.default_model) else { continue };
            if settings.key(&self.env).is_none() || settings.protocol == Protocol::Gemini {
                continue;
            }
            let mut choice = self.with_model(settings, model)?;
            choice.reason =
                Some(format!("no model was chosen; {} is used because {variable} is set", choice.reference));
            return Ok(choice);
        }
        match self.ollama().await {
            Ok(choice) => Ok(choice),
            Err(why) => Err(self.nothing_found(&why)),
        }
    }

    async fn ollama(&self) -> Result<Choice, String> {
        let settings = self.find("ollama").ok_or("no Ollama is known")?;
        let api = Settings {
            base_url: settings
                .base_url
                .as_deref()
                .map(|base| base.trim_end_matches('/').trim_end_matches("/v1").to_owned()),
            ..settings.clone()
        };
        let endpoint = self.endpoint(&api).map_err(|error| error.message)?;
        let model = ollama::first_with_tools(&self.http, &endpoint).await?;
        let mut choice = self.with_model(settings, &model).map_err(|error| error.message)?;
        choice.reason = Some(format!(
            "no model was chosen and no key is set; {} is used because the Ollama at {} answers",
            choice.reference,
            endpoint.host()
        ));
        Ok(choice)
    }

    fn nothing_found(&self, ollama: &str) -> ProviderError {
        let usable = self.settings.iter().filter(|s| s.protocol != Protocol::Gemini);
        let variables: Vec<&str> = usable.filter_map(|s| s.key_variable.as_deref()).collect();
        let gemini = self.find("gemini").filter(|s| s.protocol == Protocol::Gemini && s.key(&self.env).is_some());
        let but = if gemini.is_some() { format!(" ({})", gemini_problem()) } else { String::new() };
        let message = format!("no model was chosen, no key is set and {ollama}{but}");
        ProviderError::new(NOBODY, ErrorKind::Authentication, message).hint(format!(
            "set one of {}, start Ollama with a model that can call tools, or try `super-agent demo`, which needs neither",
            variables.join(", ")
        ))
    }

    /// Every provider for `doctor`, without any key's value.
    pub fn describe(&self) -> Vec<ProviderDescription> {
        self.settings
            .iter()
            .map(|settings| ProviderDescription {
                name: settings.name.clone(),
                protocol: word(settings.protocol),
                base_url: settings.base_url.as_deref().map(without_password),
                base_url_from: settings.base_url_from.clone(),
                key_variable: settings.key_variable.clone(),
                key_is_set: settings.key(&self.env).is_some(),
                default_model: settings.default_model.clone(),
                problem: self.make(settings).err().map(|error| problem_text(&error)),
            })
            .collect()
    }

    /// What a provider's list of models says for this key: what `doctor --probe` tries.
    ///
    /// # Errors
    /// As a call would fail.
    pub async fn probe(&self, provider: &str) -> Result<Vec<String>, ProviderError> {
        let settings = self.find(provider).ok_or_else(|| self.unknown(provider))?;
        self.make(settings)?.models().await
    }

    /// The variables that hold keys, to be kept from tools.
    pub fn key_variables(&self) -> BTreeSet<String> {
        self.settings.iter().filter_map(|settings| settings.key_variable.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<&Settings> {
        self.settings.iter().find(|settings| settings.name == name)
    }

    fn with_model(&self, settings: &Settings, model: &str) -> Result<Choice, ProviderError> {
        let model = match (model, &settings.default_model) {
            ("", Some(default)) => default.clone(),
            ("", None) => {
                return Err(ProviderError::new(
                    &settings.name,
                    ErrorKind::UnknownModel,
                    "no model is named and none is its default",
                )
                .hint(format!("write `{0}/MODEL`, or set default_model of [providers.{0}]", settings.name)));
            }
            (model, _) => model.to_owned(),
        };
        let provider = self.make(settings)?;
        Ok(Choice { provider, reference: format!("{}/{model}", settings.name), model, reason: None })
    }

    fn make(&self, settings: &Settings) -> Result<Arc<dyn Provider>, ProviderError> {
        let slot = (settings.name.clone(), settings.base_url.clone().unwrap_or_default());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = made.get(&slot) {
            return Ok(provider.clone());
        }
        if settings.protocol == Protocol::Gemini {
            return Err(ProviderError::new(&settings.name, ErrorKind::BadRequest, gemini_problem()).hint(
                "use it through `openrouter/google/…`, or through its OpenAI-compatible address: set protocol = \"openai\" \
                 and base_url = \"https://generativelanguage.googleapis.com/v1beta/openai\" in [providers.gemini]",
            ));
        }
        if let Some(variable) = &settings.key_variable
            && settings.key(&self.env).is_none()
        {
            return Err(ProviderError::new(
                &settings.name,
                ErrorKind::Authentication,
                format!("{variable} is not set"),
            )
            .hint(format!(
                "set {variable} to your key, choose another model, or try `super-agent demo`, which needs none"
            )));
        }
        let endpoint = self.endpoint(settings)?;
        let provider: Arc<dyn Provider> = match settings.protocol {
            Protocol::Anthropic => Arc::new(Anthropic::new(endpoint, self.http.clone())),
            Protocol::Openai | Protocol::Gemini => Arc::new(OpenAi::new(endpoint, self.http.clone())),
        };
        made.insert(slot, provider.clone());
        Ok(provider)
    }

    fn endpoint(&self, settings: &Settings) -> Result<Endpoint, ProviderError> {
        let Some(base_url) = settings.base_url.as_deref() else {
            return Err(ProviderError::new(&settings.name, ErrorKind::BadRequest, "it has no base_url")
                .hint(format!("set base_url in [providers.{}]", settings.name)));
        };
        let auth = match settings.protocol {
            Protocol::Anthropic => Auth::ApiKeyHeader,
            Protocol::Openai | Protocol::Gemini => Auth::Bearer,
        };
        let base_url = base_url.trim().trim_end_matches('/');
        // This protocol's paths begin with `/v1`; an address that holds it already means the same.
        let base_url = match settings.protocol {
            Protocol::Anthropic => base_url.strip_suffix("/v1").unwrap_or(base_url),
            Protocol::Openai | Protocol::Gemini => base_url,
        };
        let key = settings.key(&self.env).map(Secret::new);
        Endpoint::new(&settings.name, base_url, auth, key, settings.key_variable.as_deref(), &settings.headers)
    }

    fn scripted(&self, name: &str) -> Result<Choice, ProviderError> {
        let fail = |message: String| ProviderError::new(scripted::NAME, ErrorKind::Scenario, message);
        let (scenario, model) = match Scenario::embedded(name) {
            Some(scenario) => (scenario.map_err(fail)?, name.to_owned()),
            None => {
                let path = scenario_file(&self.dir, name).ok_or_else(|| no_scenario(name))?;
                let yaml = std::fs::read_to_string(&path)
                    .map_err(|error| fail(format!("the scenario {} can't be read: {error}", path.display())))?;
                let mut scenario = Scenario::parse(&yaml, &path.display().to_string()).map_err(fail)?;
                if scenario.name.is_empty() {
                    // Errors name it.
                    scenario.name = name.to_owned();
                }
                (scenario, path.display().to_string())
            }
        };
        let provider = Arc::new(Scripted::new(scenario, self.scripted_speed));
        Ok(Choice { provider, reference: format!("{}/{model}", scripted::NAME), model, reason: None })
    }

    fn unknown(&self, reference: &str) -> ProviderError {
        let message = if reference.is_empty() {
            "the model's name is empty".to_owned()
        } else {
            format!("no provider is known for `{reference}`")
        };
        let through =
            self.find("openrouter").filter(|router| reference.contains('/') && router.key(&self.env).is_some());
        let hint = match through {
            Some(_) => format!("write PROVIDER/MODEL ({}); perhaps `openrouter/{reference}`", self.names()),
            None => format!("write PROVIDER/MODEL with one of {}", self.names()),
        };
        ProviderError::new(NOBODY, ErrorKind::UnknownModel, message).hint(hint)
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.settings.iter().map(|settings| settings.name.as_str()).collect();
        format!("{}, {}", names.join(", "), scripted::NAME)
    }
}

/// The provider whose models have names of this form.
fn provider_of(model: &str) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
    if begins(&["claude-"]) {
        Some("anthropic")
    } else if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4-"]) {
        Some("openai")
    } else if begins(&["gemini-"]) {
        Some("gemini")
    } else if model.split_once(':').is_some_and(|(name, tag)| !name.is_empty() && !tag.is_empty()) {
        Some("ollama")
    } else {
        None
    }
}

fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Openai => "openai",
        Protocol::Anthropic => "anthropic",
        Protocol::Gemini => "gemini",
    }
}

fn gemini_problem() -> &'static str {
    "Gemini's own protocol is not yet supported in this version"
}

fn problem_text(error: &ProviderError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message.clone(),
    }
}

/// The file a scenario is in, absolute, so that the reference holds from any folder.
fn scenario_file(dir: &Path, name: &str) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    std::fs::canonicalize(dir.join(name)).ok().filter(|path| path.is_file())
}

fn no_scenario(name: &str) -> ProviderError {
    let embedded: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
    ProviderError::new(scripted::NAME, ErrorKind::UnknownModel, format!("there is no scenario `{name}`"))
        .hint(format!("name a YAML file or one of {}", embedded.join(", ")))
}

#[cfg(test)]
mod tests;
