use pretty_assertions::assert_eq;

use super::*;
use crate::config::ProviderConfig;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn keys() -> Env {
    env(&[("ANTHROPIC_API_KEY", "a-key"), ("OPENAI_API_KEY", "o-key"), ("OPENROUTER_API_KEY", "r-key")])
}

fn registry(env: Env) -> Registry {
    Registry::new(&Config::default(), env, "/nowhere")
}

#[track_caller]
fn check(asked: &str, provider: &str, model: &str) {
    let choice = registry(keys()).resolve(asked).unwrap();
    assert_eq!((choice.provider.name(), choice.model.as_str()), (provider, model));
    assert_eq!(choice.reference, format!("{provider}/{model}"));
}

#[test]
fn a_reference_is_split_at_its_first_slash_and_completed() {
    check("anthropic/claude-x", "anthropic", "claude-x");
    check("openrouter/meta-llama/llama-3", "openrouter", "meta-llama/llama-3");
    check("anthropic", "anthropic", "claude-sonnet-4-20250514");
    check("openai/", "openai", "gpt-4o");
    check("ollama/qwen3:8b", "ollama", "qwen3:8b");
    check("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5");
    check(" gpt-4o-mini ", "openai", "gpt-4o-mini");
    check("qwen3:8b", "ollama", "qwen3:8b");
    check("scripted/rehearsal", "scripted", "rehearsal");
}

#[track_caller]
fn check_error(env: Env, asked: &str, message: &str, hint: &str) {
    let error = registry(env).resolve(asked).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.hint.as_deref().unwrap_or("").contains(hint), "{:?}", error.hint);
}

#[test]
fn what_can_not_be_resolved_says_what_to_do() {
    check_error(env(&[]), "anthropic/x", "anthropic: ANTHROPIC_API_KEY is not set", "set ANTHROPIC_API_KEY");
    check_error(keys(), "mystery", "model: no provider is known for `mystery`", "anthropic, openai, openrouter");
    check_error(keys(), "meta/llama", "model: no provider is known for `meta/llama`", "openrouter/meta/llama");
    check_error(keys(), "", "model: the model's name is empty", "PROVIDER/MODEL");
    check_error(keys(), "ollama", "ollama: no model is named and none is its default", "ollama/MODEL");
    check_error(
        keys(),
        "gemini/x",
        "gemini: Gemini's own protocol is not yet supported in this version",
        "openrouter/google",
    );
    check_error(keys(), "scripted", "scripted: there is no scenario ``", "rehearsal, never-passes");
    check_error(keys(), "scripted/nope.yaml", "scripted: there is no scenario `nope.yaml`", "YAML file");
}

#[test]
fn a_scenario_file_is_found_from_the_folder_and_named_in_full() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), "name: a\nworker:\n  - turns: [{text: hi}]\n").unwrap();
    std::fs::write(dir.path().join("bad.yaml"), "name: a\nworker: 3\n").unwrap();
    let registry = Registry::new(&Config::default(), env(&[]), dir.path());
    let choice = registry.resolve("scripted/a.yaml").unwrap();
    assert!(choice.provider.is_scripted());
    let again = Registry::new(&Config::default(), env(&[]), "/").resolve(&choice.reference).unwrap();
    assert_eq!(again.reference, choice.reference);
    let error = registry.resolve("scripted/bad.yaml").unwrap_err();
    assert!(error.message.contains("bad.yaml") && error.message.contains("line 2"), "{error}");
}

#[tokio::test]
async fn the_first_provider_with_a_key_is_the_default_and_says_why() {
    let choice = registry(keys()).choose_default().await.unwrap();
    assert_eq!(choice.reference, "anthropic/claude-sonnet-4-20250514");
    assert_eq!(
        choice.reason.as_deref(),
        Some("no model was chosen; anthropic/claude-sonnet-4-20250514 is used because ANTHROPIC_API_KEY is set")
    );
    let choice = registry(env(&[("OPENROUTER_API_KEY", "k"), ("GEMINI_API_KEY", "g")])).choose(None).await.unwrap();
    assert_eq!(choice.reference, "openrouter/openai/gpt-4o");
}

#[tokio::test]
async fn without_key_and_ollama_the_error_names_every_way_out() {
    // Port 9 (discard) of this machine: nothing listens there.
    let error =
        registry(env(&[("OLLAMA_HOST", "127.0.0.1:9"), ("GEMINI_API_KEY", "g")])).choose(None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
    assert!(error.message.contains("no Ollama answers at 127.0.0.1:9"), "{error}");
    assert!(error.message.contains("Gemini"), "{error}");
    let hint = error.hint.unwrap();
    for way in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "Ollama", "super-agent demo"] {
        assert!(hint.contains(way), "{hint}");
    }
    assert!(!hint.contains("GEMINI"), "{hint}");
}

#[tokio::test]
async fn a_profile_may_name_provider_and_endpoint_apart() {
    let registry = registry(keys());
    let choose = async |model, provider, endpoint| {
        registry.choose_for_profile(ProfileModel { model, provider, endpoint }).await.map(|choice| choice.reference)
    };
    let plain = choose(Some("claude-sonnet-4-20250514"), Some("anthropic"), Some("api.anthropic.com")).await;
    assert_eq!(plain.unwrap(), "anthropic/claude-sonnet-4-20250514");
    assert_eq!(choose(Some("openai/gpt-4o"), Some("openai"), None).await.unwrap(), "openai/gpt-4o");
    assert_eq!(choose(Some("openai/gpt-4o"), Some("openrouter"), None).await.unwrap(), "openrouter/openai/gpt-4o");
    assert_eq!(choose(Some("openai/m"), None, Some("127.0.0.1:1")).await.unwrap(), "openai/m");
    assert_eq!(choose(None, None, None).await.unwrap(), "anthropic/claude-sonnet-4-20250514");
    assert!(choose(Some("m"), None, Some("host")).await.unwrap_err().message.contains("has no provider"));
    assert!(choose(Some("m"), Some("nobody"), None).await.unwrap_err().message.contains("`nobody`"));
}

#[test]
fn a_provider_of_the_configuration_is_used_by_its_name() {
    let mut config = Config::default();
    let own = ProviderConfig {
        base_url: Some("http://127.0.0.1:8080/v1".into()),
        default_model: Some("local".into()),
        ..ProviderConfig::default()
    };
    config.providers.insert("mine".into(), own);
    config.providers.insert("broken".into(), ProviderConfig::default());
    let registry = Registry::new(&config, env(&[]), "/");
    assert_eq!(registry.resolve("mine").unwrap().reference, "mine/local");
    assert_eq!(registry.resolve("broken/x").unwrap_err().to_string(), "broken: it has no base_url");
}

#[test]
fn the_description_tells_whether_a_key_is_set_but_never_which() {
    let registry = registry(env(&[("OPENAI_API_KEY", "very-secret")]));
    let all = registry.describe();
    let names: Vec<&str> = all.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["anthropic", "openai", "openrouter", "gemini", "ollama"]);
    assert!(all[1].key_is_set && all[1].problem.is_none());
    assert!(!all[0].key_is_set && all[0].problem.as_deref().unwrap().contains("ANTHROPIC_API_KEY is not set"));
    assert!(all[3].problem.as_deref().unwrap().contains("not yet supported"));
    assert_eq!(all[4].base_url.as_deref(), Some("http://127.0.0.1:11434/v1"));
    assert!(!format!("{all:?} {registry:?}").contains("very-secret"));
    assert!(registry.key_variables().contains("GEMINI_API_KEY"));
}
