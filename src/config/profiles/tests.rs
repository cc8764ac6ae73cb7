//! Claims about `workers.yaml`: what is read, and its errors word by word.

use pretty_assertions::assert_eq;

use super::*;
use crate::config::Config;
use crate::config::layers::{ConfigFile, ProjectConfig};
use crate::config::trust::Trust;

fn loaded(user: &Path, project: Option<&Path>) -> Loaded {
    Loaded {
        config: Config::default(),
        sources: BTreeMap::new(),
        notes: Vec::new(),
        file: ConfigFile { path: user.join("config.toml"), found: false },
        project: project.map(|root| ProjectConfig { root: root.into(), trust: Trust::Trusted, files: Vec::new() }),
    }
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(parse(text, Path::new("workers.yaml")).unwrap_err().to_string(), expected);
}

#[test]
fn a_full_profile_is_read() {
    let text = "\
default:
  model: claude-sonnet-4-20250514
  provider: anthropic
  endpoint: api.anthropic.com
  max_turns: 50
  permission_mode: bypassPermissions
  prompt:
    system: |
      Write with care.
      Test what you write.
    user: \"\"
  tools_allow: null
  tools_block: [web_fetch]
  mcp_servers: {}
small:
";
    let profiles = parse(text, Path::new("workers.yaml")).unwrap();
    let expected = Profile {
        model: Some("claude-sonnet-4-20250514".into()),
        provider: Some("anthropic".into()),
        endpoint: Some("api.anthropic.com".into()),
        max_turns: Some(50),
        permission_mode: Some(PermissionSetting::BypassPermissions),
        prompt: ProfilePrompt {
            system: Some("Write with care.\nTest what you write.\n".into()),
            user: Some(String::new()),
        },
        tools_allow: None,
        tools_block: Some(vec!["web_fetch".into()]),
        mcp_servers: BTreeMap::new(),
    };
    assert_eq!(profiles["default"], expected);
    assert_eq!(profiles["small"], Profile::default());
    assert_eq!(expected.model_reference().as_deref(), Some("anthropic/claude-sonnet-4-20250514"));
    assert_eq!(expected.endpoint_url().as_deref(), Some("https://api.anthropic.com"));
}

#[test]
fn a_model_reference_is_made_of_provider_and_model() {
    let check = |provider: Option<&str>, model: Option<&str>, expected: Option<&str>| {
        let profile =
            Profile { provider: provider.map(Into::into), model: model.map(Into::into), ..Profile::default() };
        assert_eq!(profile.model_reference().as_deref(), expected);
    };
    check(None, None, None);
    check(Some("ollama"), None, Some("ollama"));
    check(None, Some("ollama/x"), Some("ollama/x"));
    check(Some("ollama"), Some("ollama/x"), Some("ollama/x"));
    check(Some("openrouter"), Some("a/x"), Some("openrouter/a/x"));
}

#[test]
fn mistakes_name_line_and_nearest_key() {
    check_error("a:\n  modle: x/y\n", "unknown key `modle`; did you mean `model`? (workers.yaml:2)");
    check_error("a:\n  prompt:\n    sytem: x\n", "unknown key `sytem`; did you mean `system`? (workers.yaml:3)");
    check_error(
        "a:\n  max_turns: fifty\n",
        "`max_turns: fifty`: expected a whole number, not negative (workers.yaml:2)",
    );
    check_error(
        "a:\n  permission_mode: asks\n",
        "`permission_mode: asks`: not one of `bypassPermissions`, `acceptEdits`, `ask`, `plan`; did you mean `ask`? (workers.yaml:2)",
    );
    check_error("a:\n  tools_allow: bash\n", "`tools_allow: bash`: expected a list (workers.yaml:2)");
    check_error("- a\n", "`- a`: expected a table (workers.yaml:1)");
    check_error("a:\n  model: x/y\n  model: x/z\n", "the key `model` is there twice (workers.yaml:3)");
    check_error("a: {\n", "`a: {`: unclosed bracket '{' (workers.yaml:1)");
    check_error("b:\n\na:\n  max_turns: 0\n", "profile `a`: `max_turns` must be at least 1 (workers.yaml:3)");
    check_error(
        "a:\n  model: sonnet\n",
        "profile `a`: `sonnet` does not name provider and model; write `PROVIDER/MODEL`, as in `anthropic/…` or `ollama/…`, or set `provider` as well (workers.yaml:1)",
    );
    check_error("a:\n  endpoint: x.org\n", "profile `a`: `endpoint` needs a `provider` beside it (workers.yaml:1)");
    check_error(
        "a:\n  mcp_servers:\n    s: {}\n",
        "profile `a`: `mcp_servers.s` needs either `command` or `url` (workers.yaml:1)",
    );
}

#[test]
fn a_profile_of_the_project_counts_instead_of_the_persons() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir_all(project.join(".super-agent")).unwrap();
    std::fs::write(dir.path().join(FILE), "fast: {max_turns: 5}\nown: {max_turns: 6}\n").unwrap();
    let theirs =
        "fast: {max_turns: 7, permission_mode: ask, provider: p, endpoint: x.org, mcp_servers: {s: {command: c}}}\n";
    std::fs::write(project.join(".super-agent").join(FILE), theirs).unwrap();

    let profiles = Profiles::load(&loaded(dir.path(), Some(&project))).unwrap();
    assert_eq!(profiles.names().collect::<Vec<_>>(), ["default", "fast", "own"]);
    let fast = profiles.get("fast").unwrap();
    assert_eq!((fast.max_turns, fast.permission_mode, &fast.endpoint), (Some(7), None, &None));
    let path = project.join(".super-agent").join(FILE);
    let expected = [
        format!(
            "`fast.endpoint` is ignored: a project can't set it; put it into your own `workers.yaml` ({})",
            path.display()
        ),
        format!(
            "`fast.permission_mode` is ignored: a project can't set it; put it into your own `workers.yaml` ({})",
            path.display()
        ),
        format!(
            "profile `fast` names `mcp_servers`, which this version does not start yet; they are ignored ({})",
            path.display()
        ),
    ];
    assert_eq!(profiles.notes, expected);

    let alone = Profiles::load(&loaded(dir.path(), None)).unwrap();
    assert_eq!(alone.get("fast").unwrap().max_turns, Some(5));
}

#[test]
fn a_missing_profile_names_those_there_are() {
    let profiles = Profiles::built_in();
    assert_eq!(profiles.get(DEFAULT), Ok(&Profile::default()));
    assert_eq!(
        profiles.get("defualt").unwrap_err().to_string(),
        "there is no profile `defualt`; there are: `default`; did you mean `default`?"
    );
    assert_eq!(
        profiles.get("zzz").unwrap_err().to_string(),
        "there is no profile `zzz`; there are: `default`; profiles are kept in `workers.yaml`, beside `config.toml`"
    );
}

#[test]
fn a_file_of_comments_has_no_profiles() {
    assert_eq!(parse("# nothing yet\n", Path::new(FILE)), Ok(BTreeMap::new()));
    assert_eq!(parse("", Path::new(FILE)), Ok(BTreeMap::new()));
}
