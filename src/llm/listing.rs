//! Lists of models: read from a provider's answer, and shown when a model is unknown.

use std::time::Duration;

use serde_json::Value;

use super::Provider;
use super::error::{ErrorKind, ProviderError};

/// An error is not held up longer than this by the list that would make it better.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most names shown.
const SHOWN: usize = 12;

/// The names in `{"data": [{"id": …}]}`, sorted.
pub fn names(document: &Value) -> Option<Vec<String>> {
    let list = document.get("data").or_else(|| document.get("models")).unwrap_or(document).as_array()?;
    let name = |entry: &Value| entry.get("id").or_else(|| entry.get("name"))?.as_str().map(str::to_owned);
    let mut names: Vec<String> = list.iter().filter_map(name).collect();
    names.sort();
    Some(names)
}

/// `error` with what this key may use instead, when it is about an unknown model.
pub async fn with_known_models(error: ProviderError, model: &str, provider: &dyn Provider) -> ProviderError {
    if error.kind != ErrorKind::UnknownModel {
        return error;
    }
    match tokio::time::timeout(PATIENCE, provider.models()).await {
        Ok(Ok(models)) if !models.is_empty() => {
            let hint = format!("this key may use {}", nearest(model, models));
            error.hint(hint)
        }
        Ok(_) | Err(_) => error,
    }
}

/// The names most like `model` first, as one line.
fn nearest(model: &str, mut models: Vec<String>) -> String {
    let wanted = words(model);
    models.sort_by_cached_key(|name| {
        let shared = words(name).into_iter().filter(|word| wanted.contains(word)).count();
        (std::cmp::Reverse(shared), name.clone())
    });
    let more = models.len().saturating_sub(SHOWN);
    models.truncate(SHOWN);
    let shown = models.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let models = ["gpt-4o", "claude-haiku-4-5", "claude-sonnet-4-5"].map(str::to_owned).to_vec();
        assert_eq!(nearest("claude-sonnet-9", models), "claude-sonnet-4-5, claude-haiku-4-5, gpt-4o");
        let many = (0..20).map(|n| format!("m{n:02}")).collect();
        assert!(nearest("x", many).ends_with("m11 and 8 more"));
    }

    #[test]
    fn names_are_found_in_every_known_form() {
        let read = |json| names(&json);
        assert_eq!(read(serde_json::json!({"data": [{"id": "b"}, {"id": "a"}]})).unwrap(), ["a", "b"]);
        assert_eq!(read(serde_json::json!({"models": [{"name": "a"}]})).unwrap(), ["a"]);
        assert_eq!(read(serde_json::json!({"error": "x"})), None);
    }
}
