//! What is known of each provider: the built-in ones, changed and joined by the configuration and
//! the environment. Makes no connection.

use std::collections::BTreeMap;

use crate::config::{Config, Protocol, ProviderConfig};

/// The environment as it was when the program started.
pub type Env = BTreeMap<String, String>;

/// Where Ollama listens unless told otherwise.
const OLLAMA_PORT: u16 = 11434;

struct BuiltIn {
    name: &'static str,
    protocol: Protocol,
    base_url: &'static str,
    base_url_variable: Option<&'static str>,
    key_variable: Option<&'static str>,
    default_model: Option<&'static str>,
}

/// In the order in which a default is looked for.
const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "anthropic",
        protocol: Protocol::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        default_model: Some("claude-sonnet-4-20250514"),
    },
    BuiltIn {
        name: "openai",
        protocol: Protocol::Openai,
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        default_model: Some("gpt-4o"),
    },
    BuiltIn {
        name: "openrouter",
        protocol: Protocol::Openai,
        base_url: "https://openrouter.ai/api/v1",
        base_url_variable: None,
        key_variable: Some("OPENROUTER_API_KEY"),
        default_model: Some("openai/gpt-4o"),
    },
    BuiltIn {
        name: "gemini",
        protocol: Protocol::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variable: Some("GEMINI_BASE_URL"),
        key_variable: Some("GEMINI_API_KEY"),
        default_model: Some("gemini-2.5-flash"),
    },
    BuiltIn {
        name: "ollama",
        protocol: Protocol::Openai,
        base_url: "http://127.0.0.1:11434/v1",
        base_url_variable: None,
        key_variable: None,
        default_model: None,
    },
];

/// Everything needed to reach one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Its address; absent when the configuration forgot it.
    pub base_url: Option<String>,
    /// Where the address comes from, for `doctor`.
    pub base_url_from: String,
    /// The variable that holds the key; absent: none is needed.
    pub key_variable: Option<String>,
    /// Headers sent besides.
    pub headers: BTreeMap<String, String>,
    /// The model used when none is named.
    pub default_model: Option<String>,
}

impl Settings {
    /// The key, when its variable is set to something.
    pub fn key<'e>(&self, env: &'e Env) -> Option<&'e str> {
        let value = env.get(self.key_variable.as_deref()?)?.trim();
        (!value.is_empty()).then_some(value)
    }
}

/// All providers in the order in which a default is looked for: built-in ones, then those of the
/// configuration by name.
pub fn all(config: &Config, env: &Env) -> Vec<Settings> {
    let mut all: Vec<Settings> = BUILT_IN.iter().map(|known| built_in(known, config, env)).collect();
    for (name, own) in &config.providers {
        if !BUILT_IN.iter().any(|known| known.name == name) {
            all.push(configured(name, own));
        }
    }
    all
}

fn built_in(known: &BuiltIn, config: &Config, env: &Env) -> Settings {
    let own = config.providers.get(known.name).cloned().unwrap_or_default();
    let from_env = base_url_of_env(known, env);
    let (base_url, base_url_from) = match (from_env, own.base_url) {
        (Some((variable, address)), _) => (address, variable.to_owned()),
        (None, Some(address)) => (address, format!("[providers.{}]", known.name)),
        (None, None) => (known.base_url.to_owned(), "built in".to_owned()),
    };
    let key_variable = match own.api_key_env {
        Some(variable) => Some(variable).filter(|variable| !variable.is_empty()),
        None => known.key_variable.map(str::to_owned),
    };
    Settings {
        name: known.name.to_owned(),
        protocol: own.protocol.unwrap_or(known.protocol),
        base_url: Some(base_url),
        base_url_from,
        key_variable,
        headers: own.headers,
        default_model: own.default_model.or_else(|| known.default_model.map(str::to_owned)),
    }
}

fn base_url_of_env(known: &BuiltIn, env: &Env) -> Option<(&'static str, String)> {
    let set = |variable: &str| env.get(variable).map(|value| value.trim()).filter(|value| !value.is_empty());
    if known.name == "ollama" {
        return set("OLLAMA_HOST").map(|host| ("OLLAMA_HOST", ollama_base(host)));
    }
    let variable = known.base_url_variable?;
    set(variable).map(|address| (variable, address.to_owned()))
}

fn configured(name: &str, own: &ProviderConfig) -> Settings {
    Settings {
        name: name.to_owned(),
        protocol: own.protocol.unwrap_or(Protocol::Openai),
        base_url: own.base_url.clone(),
        base_url_from: format!("[providers.{name}]"),
        key_variable: own.api_key_env.clone().filter(|variable| !variable.is_empty()),
        headers: own.headers.clone(),
        default_model: own.default_model.clone(),
    }
}

/// `OLLAMA_HOST` as its own client reads it: scheme and port may be missing, and the address a
/// server listens on at all interfaces is reached on this machine.
fn ollama_base(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = match address.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => (name, port.to_owned()),
        Some(_) | None => (address, default_port(scheme, host)),
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "::" | "[::]" => "[::1]",
        name => name,
    };
    let path = path.trim_end_matches("v1").trim_end_matches('/');
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    format!("{scheme}://{name}:{port}{path}/v1")
}

fn default_port(scheme: &str, host: &str) -> String {
    match (scheme, host.contains("://")) {
        ("https", _) => "443".to_owned(),
        ("http", true) => "80".to_owned(),
        _ => OLLAMA_PORT.to_string(),
    }
}

/// The base URL for an `endpoint` of a profile (A27): without a scheme it means `https://`, and a
/// bare host gets the path that the provider's own address has.
pub fn endpoint_base(endpoint: &str, settings: &Settings) -> String {
    let endpoint = endpoint.trim().trim_end_matches('/');
    let address = if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") };
    let after_scheme = address.split_once("://").map_or("", |(_, rest)| rest);
    if after_scheme.contains('/') {
        return address;
    }
    let own = settings.base_url.as_deref().and_then(|base| base.split_once("://")).map_or("", |(_, rest)| rest);
    let own_path = own.split_once('/').map(|(_, path)| path.trim_end_matches('/')).filter(|path| !path.is_empty());
    match (own_path, settings.protocol) {
        (Some(path), _) => format!("{address}/{path}"),
        (None, Protocol::Openai) => format!("{address}/v1"),
        (None, Protocol::Anthropic | Protocol::Gemini) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(config: &Config, env: &[(&str, &str)], name: &str) -> Settings {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        all(config, &env).into_iter().find(|settings| settings.name == name).unwrap()
    }

    #[test]
    fn the_environment_goes_before_the_configuration_and_that_before_what_is_built_in() {
        let mut config = Config::default();
        let base = |config: &Config, env: &[(&str, &str)]| {
            let settings = find(config, env, "openai");
            (settings.base_url.unwrap(), settings.base_url_from)
        };
        assert_eq!(base(&config, &[]), ("https://api.openai.com/v1".into(), "built in".into()));
        let own = ProviderConfig { base_url: Some("http://own/v1".into()), ..ProviderConfig::default() };
        config.providers.insert("openai".into(), own);
        assert_eq!(base(&config, &[]), ("http://own/v1".into(), "[providers.openai]".into()));
        let env = [("OPENAI_BASE_URL", " http://env/v1 ")];
        assert_eq!(base(&config, &env), ("http://env/v1".into(), "OPENAI_BASE_URL".into()));
    }

    #[test]
    fn the_host_of_ollama_is_read_as_its_client_does() {
        for (host, expected) in [
            ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            (":8080", "http://127.0.0.1:8080/v1"),
            ("box", "http://box:11434/v1"),
            ("http://box", "http://box:80/v1"),
            ("https://box/", "https://box:443/v1"),
            ("https://box:8443/ollama/v1", "https://box:8443/ollama/v1"),
            ("[::1]:99", "http://[::1]:99/v1"),
        ] {
            assert_eq!(ollama_base(host), expected, "{host}");
        }
    }

    #[test]
    fn an_empty_key_is_no_key_and_an_empty_variable_needs_none() {
        let settings = find(&Config::default(), &[], "openai");
        let env = |value: &str| Env::from([("OPENAI_API_KEY".to_owned(), value.to_owned())]);
        assert_eq!(settings.key(&env(" \n")), None);
        assert_eq!(settings.key(&env("sk-1\n")), Some("sk-1"));
        let mut config = Config::default();
        let own = ProviderConfig { api_key_env: Some(String::new()), ..ProviderConfig::default() };
        config.providers.insert("openai".into(), own);
        assert_eq!(find(&config, &[], "openai").key_variable, None);
    }

    #[test]
    fn an_endpoint_without_scheme_or_path_gets_those_of_its_provider() {
        let base = |name: &str, endpoint: &str| endpoint_base(endpoint, &find(&Config::default(), &[], name));
        assert_eq!(base("anthropic", "api.anthropic.com"), "https://api.anthropic.com");
        assert_eq!(base("openai", "proxy.example.com"), "https://proxy.example.com/v1");
        assert_eq!(base("openrouter", "openrouter.ai"), "https://openrouter.ai/api/v1");
        assert_eq!(base("openai", "http://127.0.0.1:8080/v2/"), "http://127.0.0.1:8080/v2");
    }
}
