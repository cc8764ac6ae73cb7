//! Claims about the report: what is shown, what never is, and that it survives a broken configuration.

use std::fs;

use toml::Table;

use super::*;
use crate::config::layers::{Request, load};
use crate::config::profiles::Profiles;

struct Scene {
    dir: tempfile::TempDir,
    environment: Environment,
    paths: Paths,
}

impl Scene {
    fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let variables = [
            ("HOME".to_owned(), dir.path().to_string_lossy().into_owned()),
            ("OPENAI_API_KEY".to_owned(), "sk-very-secret".to_owned()),
            ("SUPER_AGENT_THEME".to_owned(), "light".to_owned()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
        ]
        .into();
        let environment = Environment { variables, current_dir: dir.path().to_owned() };
        let paths = Paths::resolve(&environment).unwrap();
        fs::create_dir_all(&paths.config).unwrap();
        fs::write(paths.config_file(), config).unwrap();
        Self { dir, environment, paths }
    }

    fn text(&self, model: Result<ModelChoice, Problem>) -> (String, Report) {
        let flags = Table::new();
        let loaded = load(&Request { environment: &self.environment, paths: &self.paths, file: None, flags: &flags });
        let profiles = loaded.as_ref().ok().map(Profiles::load);
        let facts = Facts {
            environment: &self.environment,
            paths: &self.paths,
            config: loaded.as_ref(),
            profiles: profiles.as_ref().and_then(|p| p.as_ref().err()),
            providers: vec![
                ProviderLine {
                    name: "openai".into(),
                    base_url: "https://api.openai.com/v1".into(),
                    key_variable: Some("OPENAI_API_KEY".into()),
                    key_set: true,
                    note: None,
                },
                ProviderLine {
                    name: "gemini".into(),
                    base_url: "https://user:password@g".into(),
                    key_variable: Some("GEMINI_API_KEY".into()),
                    key_set: false,
                    note: None,
                },
                ProviderLine {
                    name: "ollama".into(),
                    base_url: "http://localhost:11434".into(),
                    key_variable: None,
                    key_set: false,
                    note: Some("does not answer".into()),
                },
            ],
            model,
            git: Some("git version 2.50.0\n".into()),
            terminal: TerminalFacts { is_terminal: true, size: Some((60, 20)) },
        };
        let report = report(&facts);
        let text = render(&report, Paint::plain()).replace(&self.dir.path().display().to_string(), "HOME");
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        (text, report)
    }
}

#[test]
fn everything_found_is_shown_with_what_to_do() {
    let scene = Scene::new(
        "model = \"openai/x\"\n[providers.openai.headers]\nAuthorization = \"Bearer hidden\"\n[prices.\"openai/x\"]\ninput = 1.5\n",
    );
    let choice = ModelChoice { model: "openai/x".into(), reason: "set in the configuration".into() };
    let (text, report) = scene.text(Ok(choice));
    assert!(report.is_well());
    let space = regex::Regex::new(r"free space .*").unwrap();
    let text = space.replace(&text, "free space     SOME");
    assert!(
        !text.contains("hidden") && !text.contains("sk-very") && !text.contains("password"),
        "no secret is shown: {text}"
    );
    insta::assert_snapshot!("doctor", text);
}

#[test]
fn a_broken_configuration_is_reported_and_the_rest_still_is() {
    let scene = Scene::new("modle = 1\n");
    let problem = Problem::provider("no provider has a key").hint("set `OPENAI_API_KEY`");
    let (text, report) = scene.text(Err(problem));
    assert!(!report.is_well());
    assert!(
        text.contains("unknown key `modle`; did you mean `model`? (HOME/.config/super-agent/config.toml:1)"),
        "{text}"
    );
    assert!(text.contains("✗ none  no provider has a key\n    → set `OPENAI_API_KEY`"), "{text}");
    assert!(text.contains("2.50.0"), "{text}");
}

#[test]
fn the_report_is_also_data() {
    let (_, report) = Scene::new("").text(Err(Problem::provider("none")));
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["sections"][0]["title"], "configuration");
    assert_eq!(value["sections"][0]["items"][0]["status"], "ok");
}

#[test]
fn a_folder_that_can_not_be_made_is_bad() {
    let scene = Scene::new("");
    let blocked = scene.dir.path().join("file");
    fs::write(&blocked, "").unwrap();
    let item = writable("sessions", &blocked.join("below"));
    assert_eq!(item.status, Status::Bad);
    assert!(item.remedy.is_some());
}

#[test]
fn colours_follow_the_environment() {
    let check = |variables: &[(&str, &str)], expected: &str| {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(colours(&Environment { variables, current_dir: "/".into() }).1, expected);
    };
    check(&[("COLORTERM", "truecolor"), ("TERM", "xterm")], "16 million");
    check(&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")], "none, as `NO_COLOR` asks");
    check(&[("TERM", "screen-256color")], "256");
    check(&[("TERM", "linux")], "16");
    check(&[], "none: `TERM` promises nothing");
}
