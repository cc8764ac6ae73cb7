//! Finds a model of a local Ollama that can call tools, when no model was chosen and no key is set.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::llm::error::ProviderError;
use crate::llm::http::{Endpoint, Http};

/// A server on this machine answers at once or is not there.
const PATIENCE: Duration = Duration::from_secs(3);

/// Most models that are asked what they can do.
const ASKED: usize = 20;

/// The first listed model that can call tools.
///
/// # Errors
/// Why there is none, as the end of a sentence.
pub async fn first_with_tools(http: &Http, api: &Endpoint) -> Result<String, String> {
    let host = api.host();
    let models = match timeout(PATIENCE, http.get_json(api, "/api/tags")).await {
        Ok(Ok(document)) => names(&document),
        Ok(Err(error)) => return Err(format!("no Ollama answers at {host} ({})", error.message)),
        Err(_) => return Err(format!("no Ollama answers at {host}")),
    };
    if models.is_empty() {
        return Err(format!("the Ollama at {host} has no model yet"));
    }
    for model in models.iter().take(ASKED) {
        if let Ok(Ok(true)) = timeout(PATIENCE, can_call_tools(http, api, model)).await {
            return Ok(model.clone());
        }
    }
    Err(format!("none of the models of the Ollama at {host} can call tools"))
}

fn names(document: &Value) -> Vec<String> {
    let list = document.get("models").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|model| Some(model.get("name")?.as_str()?.to_owned())).collect()
}

/// Servers before capabilities were listed only show the template.
async fn can_call_tools(http: &Http, api: &Endpoint, model: &str) -> Result<bool, ProviderError> {
    let body = json!({ "model": model }).to_string().into_bytes();
    let bytes = http.post(api, "/api/show", body).await?.whole().await?;
    let shown: Value = serde_json::from_slice(&bytes).map_err(|_| api.not_json(&bytes))?;
    if let Some(capabilities) = shown.get("capabilities").and_then(Value::as_array) {
        return Ok(capabilities.iter().any(|capability| capability == "tools"));
    }
    Ok(shown.get("template").and_then(Value::as_str).is_some_and(|template| template.contains(".Tools")))
}
