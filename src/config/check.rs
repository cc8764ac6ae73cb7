//! What types can't say: values that are well formed and still make no sense. Looks at one
//! configuration, changes nothing.

use std::time::Duration;

use super::Config;
use super::positions::dotted;

/// A setting that makes no sense: its dotted key and why, with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonsense {
    /// The key.
    pub key: String,
    /// Why, after the key: `must be at least 1`.
    pub why: String,
}

/// Everything in `config` that makes no sense.
pub fn check(config: &Config) -> Vec<Nonsense> {
    let mut found = Found::default();
    found.models(config);
    found.numbers(config);
    found.budgets(config);
    found.providers(config);
    found.0
}

/// Whether a text is `PROVIDER/MODEL`.
///
/// # Errors
/// What is missing.
pub fn model_reference(model: &str) -> Result<(), String> {
    match model.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(()),
        _ => Err(format!(
            "`{model}` does not name provider and model; write `PROVIDER/MODEL`, as in `anthropic/…` or `ollama/…`"
        )),
    }
}

/// Whether a text can be the name of a variable.
fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[derive(Default)]
struct Found(Vec<Nonsense>);

impl Found {
    fn add(&mut self, key: impl Into<String>, why: impl Into<String>) {
        self.0.push(Nonsense { key: key.into(), why: why.into() });
    }

    fn models(&mut self, config: &Config) {
        let models = [
            ("model", &config.model),
            ("checker_model", &config.checker_model),
            ("utility_model", &config.utility_model),
        ];
        for (key, model) in models {
            if let Some(Err(why)) = model.as_deref().map(model_reference) {
                self.add(key, why);
            }
        }
    }

    fn numbers(&mut self, config: &Config) {
        let at_least_one = [
            ("worker.max_turns", u64::from(config.worker.max_turns)),
            ("checker.max_turns", u64::from(config.checker.max_turns)),
            ("http.attempts", u64::from(config.http.attempts)),
            ("tools.output_chars", config.tools.output_chars as u64),
        ];
        for (key, n) in at_least_one {
            if n == 0 {
                self.add(key, "must be at least 1");
            }
        }
        let durations = [
            ("checker.check_timeout", config.checker.check_timeout),
            ("http.connect_timeout", config.http.connect_timeout),
            ("http.first_byte_timeout", config.http.first_byte_timeout),
            ("http.idle_timeout", config.http.idle_timeout),
            ("tools.command_timeout", config.tools.command_timeout),
        ];
        for (key, duration) in durations {
            if duration == Duration::ZERO {
                self.add(key, "must be longer than nothing");
            }
        }
        let parts = [
            ("compaction.level1_at", config.compaction.level1_at),
            ("compaction.level2_at", config.compaction.level2_at),
        ];
        for (key, part) in parts {
            if !(part > 0.0 && part <= 1.0) {
                self.add(key, "must be a part of the model's window, above 0 and at most 1");
            }
        }
    }

    fn budgets(&mut self, config: &Config) {
        let budget = &config.budget;
        let limits = [
            ("budget", budget.tokens, budget.usd, budget.time),
            ("budget.worker", budget.worker.tokens, budget.worker.usd, budget.worker.time),
            ("budget.checker", budget.checker.tokens, budget.checker.usd, budget.checker.time),
        ];
        for (above, tokens, usd, time) in limits {
            if tokens == Some(0) {
                self.add(format!("{above}.tokens"), "must be at least 1; leave it out for no limit");
            }
            if usd.is_some_and(|usd| !(usd > 0.0 && usd.is_finite())) {
                self.add(format!("{above}.usd"), "must be more than 0; leave it out for no limit");
            }
            if time == Some(Duration::ZERO) {
                self.add(format!("{above}.time"), "must be longer than nothing; leave it out for no limit");
            }
        }
    }

    fn providers(&mut self, config: &Config) {
        for (name, provider) in &config.providers {
            let above = dotted("providers", name);
            if name.is_empty() || name.contains('/') {
                self.add(above.clone(), "a provider's name is not empty and has no `/`");
            }
            if let Some(url) = &provider.base_url
                && !(url.starts_with("https://") || url.starts_with("http://"))
            {
                self.add(format!("{above}.base_url"), "must begin with `https://` or `http://`");
            }
            // A key pasted here by mistake must not be shown.
            if provider.api_key_env.as_deref().is_some_and(|name| !name.is_empty() && !is_variable(name)) {
                self.add(format!("{above}.api_key_env"), "must be the name of a variable, not the key itself");
            }
        }
        for (name, secret) in &config.secrets {
            if !is_variable(&secret.env) {
                let key = format!("{}.env", dotted("secrets", name));
                self.add(key, "must be the name of a variable, not the secret itself");
            }
        }
        for (model, price) in &config.prices {
            let above = dotted("prices", model);
            if let Err(why) = model_reference(model) {
                self.add(above.clone(), why);
            }
            let parts = [
                ("input", Some(price.input)),
                ("output", Some(price.output)),
                ("cached_input", price.cached_input),
                ("cache_write", price.cache_write),
            ];
            for (key, part) in parts {
                if part.is_some_and(|part| !(part >= 0.0 && part.is_finite())) {
                    self.add(format!("{above}.{key}"), "must be a price in US dollars, 0 or more");
                }
            }
        }
    }
}
