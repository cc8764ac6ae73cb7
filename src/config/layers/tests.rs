//! Claims about the layers: their order, their errors word by word, and what a project may do.

use pretty_assertions::assert_eq;

use super::*;
use crate::config::{MaxCycles, PermissionSetting};

/// A home with a project below it, and what is set around them.
struct Scene {
    dir: tempfile::TempDir,
    environment: Environment,
    paths: Paths,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let project = home.join("project");
        fs::create_dir_all(project.join("deep")).unwrap();
        let environment = Environment {
            variables: [("HOME".to_owned(), home.to_string_lossy().into_owned())].into(),
            current_dir: project.join("deep"),
        };
        let paths = Paths::resolve(&environment).unwrap();
        fs::create_dir_all(&paths.config).unwrap();
        Self { dir, environment, paths }
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("home/project")
    }

    fn user(&self, text: &str) -> &Self {
        fs::write(self.paths.config_file(), text).unwrap();
        self
    }

    fn project_file(&self, text: &str) -> &Self {
        fs::create_dir_all(self.project().join(".super-agent")).unwrap();
        fs::write(self.project().join(".super-agent/config.toml"), text).unwrap();
        self
    }

    fn trusted(&self) -> &Self {
        TrustStore::new(&self.paths).trust(&self.project()).unwrap();
        self
    }

    fn set(&mut self, name: &str, value: &str) -> &Self {
        self.environment.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load_with(&self, flags: &str) -> Result<Loaded, ConfigError> {
        let flags: Table = toml::from_str(flags).unwrap();
        load(&Request { environment: &self.environment, paths: &self.paths, file: None, flags: &flags })
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        self.load_with("")
    }

    /// The error without the folder that differs from run to run.
    fn error(&self) -> String {
        self.load().unwrap_err().to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let scene = Scene::new();
    let file = scene.user(text).paths.config_file();
    let file = file.strip_prefix(scene.dir.path()).unwrap().display().to_string();
    assert_eq!(scene.error(), expected.replace("FILE", &file));
}

#[test]
fn nothing_set_means_the_defaults() {
    let loaded = Scene::new().load().unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.sources.is_empty() && loaded.notes.is_empty() && loaded.project.is_none());
    assert!(!loaded.file.found);
}

#[test]
fn a_later_layer_wins_and_each_value_knows_where_it_came_from() {
    let mut scene = Scene::new();
    scene
        .user("model = \"a/user\"\nmax_cycles = 1\n[worker]\nmax_turns = 11\n[ui]\ntheme = \"light\"\nmouse = false\n");
    scene.project_file("max_cycles = 2\n[worker]\nmax_turns = 22\n").trusted();
    scene.set("SUPER_AGENT_MAX_CYCLES", "3");
    scene.set("SUPER_AGENT_THEME", "mono");
    let loaded = scene.load_with("max_cycles = 4").unwrap();
    let config = &loaded.config;
    assert_eq!(config.model.as_deref(), Some("a/user"));
    assert_eq!(config.max_cycles, MaxCycles(4));
    assert_eq!(config.worker.max_turns, 22);
    assert_eq!((config.ui.theme.as_str(), config.ui.mouse), ("mono", false));
    let user = scene.paths.config_file();
    let expected = [
        ("max_cycles", Source::Flag),
        ("model", Source::File { path: user.clone(), line: Some(1) }),
        ("ui.mouse", Source::File { path: user, line: Some(7) }),
        ("ui.theme", Source::Variable { name: "SUPER_AGENT_THEME".into() }),
        ("worker.max_turns", Source::File { path: scene.project().join(".super-agent/config.toml"), line: Some(3) }),
    ];
    assert_eq!(loaded.sources, expected.map(|(key, source)| (key.to_owned(), source)).into());
    assert_eq!(loaded.source("checker.max_turns"), Source::BuiltIn);
}

#[test]
fn an_unknown_key_names_the_nearest_one() {
    check_error("modle = \"a/b\"\n", "unknown key `modle`; did you mean `model`? (FILE:1)");
    check_error(
        "model = \"a/b\"\n\n[worker]\nmax_turn = 3\n",
        "unknown key `worker.max_turn`; did you mean `max_turns`? (FILE:4)",
    );
    check_error(
        "[checker]\nzzz = 1\n",
        "unknown key `checker.zzz`; valid here: `max_turns`, `on_failing_gates`, `check_timeout`, `clean`, `network` (FILE:2)",
    );
    check_error(
        "[providers.own]\nbaseurl = \"http://x\"\n",
        "unknown key `providers.own.baseurl`; did you mean `base_url`? (FILE:2)",
    );
    check_error("[workers]\nmax_turns = 3\n", "unknown key `workers`; did you mean `worker`? (FILE:1)");
}

#[test]
fn a_wrong_value_is_shown_with_what_was_expected() {
    check_error("\nmax_cycles = \"five\"\n", "`max_cycles = \"five\"`: expected a whole number, not negative (FILE:2)");
    check_error("max_cycles = 0\n", "`max_cycles = 0`: must be at least 1 (FILE:1)");
    check_error(
        "[worker]\nmax_turns = -1\n",
        "`worker.max_turns = -1`: expected a whole number, not negative (FILE:2)",
    );
    check_error("[ui]\nmouse = 1\n", "`ui.mouse = 1`: expected `true` or `false` (FILE:2)");
    check_error("model = 3\n", "`model = 3`: expected a text in quotes (FILE:1)");
    check_error("worker = 3\n", "`worker = 3`: expected a table (FILE:1)");
    check_error(
        "[budget]\ntime = \"5 parsecs\"\n",
        "`budget.time = \"5 parsecs\"`: `5 parsecs` is not a duration; write it as `90s`, `5m` or `1h30m` (FILE:2)",
    );
    check_error(
        "[http]\nidle_timeout = true\n",
        "`http.idle_timeout = true`: expected a duration like `90s`, `5m` or `1h30m` (FILE:2)",
    );
    check_error(
        "permission_mode = \"acceptedits\"\n",
        "`permission_mode = \"acceptedits\"`: not one of `bypassPermissions`, `acceptEdits`, `ask`, `plan`; did you mean `acceptEdits`? (FILE:1)",
    );
    check_error("[keys.list]\nopen = 3\n", "`keys.list.open = 3`: expected a text or a list of texts (FILE:2)");
    check_error("model = \n", "string values must be quoted, expected literal string (FILE:1)");
    check_error("[secrets.token]\ndomains = []\n", "`secrets.token`: missing field `env` (FILE:1)");
}

#[test]
fn a_value_without_sense_names_its_line_and_the_way_out() {
    check_error(
        "[worker]\nmax_turns = 3\n[checker]\nmax_turns = 0\n",
        "`checker.max_turns`: must be at least 1 (FILE:4)",
    );
    check_error(
        "model = \"sonnet\"\n",
        "`model`: `sonnet` does not name provider and model; write `PROVIDER/MODEL`, as in `anthropic/…` or `ollama/…` (FILE:1)",
    );
    check_error(
        "[budget.worker]\nusd = -1.0\n",
        "`budget.worker.usd`: must be more than 0; leave it out for no limit (FILE:2)",
    );
    check_error(
        "[providers.own]\nbase_url = \"localhost:1\"\n",
        "`providers.own.base_url`: must begin with `https://` or `http://` (FILE:2)",
    );
    check_error(
        "[providers.own]\napi_key_env = \"sk-1234\"\n",
        "`providers.own.api_key_env`: must be the name of a variable, not the key itself (FILE:2)",
    );
    check_error(
        "[secrets.x]\nenv = \"sk-1234\"\n",
        "`secrets.x.env`: must be the name of a variable, not the secret itself (FILE:2)",
    );
    check_error(
        "[prices.\"a/b.c\"]\ninput = nan\n",
        "`prices.\"a/b.c\".input`: must be a price in US dollars, 0 or more (FILE:2)",
    );
    check_error(
        "[compaction]\nlevel1_at = 50\n",
        "`compaction.level1_at`: must be a part of the model's window, above 0 and at most 1 (FILE:2)",
    );
}

#[test]
fn a_wrong_variable_is_named() {
    let check = |name: &str, value: &str, expected: &str| {
        let mut scene = Scene::new();
        scene.set(name, value);
        assert_eq!(scene.error(), expected);
    };
    check("SUPER_AGENT_MAX_CYCLES", "five", "$SUPER_AGENT_MAX_CYCLES = `five`: expected a whole number");
    check("SUPER_AGENT_MAX_CYCLES", "0", "$SUPER_AGENT_MAX_CYCLES = `0`: must be at least 1");
    check(
        "SUPER_AGENT_WHERE",
        "inplace",
        "$SUPER_AGENT_WHERE = `inplace`: not one of `auto`, `scratch`, `in-place`, `worktree`; did you mean `in-place`?",
    );
    check(
        "SUPER_AGENT_TIMEOUT",
        "soon",
        "$SUPER_AGENT_TIMEOUT = `soon`: `soon` is not a duration; write it as `90s`, `5m` or `1h30m`",
    );
}

#[test]
fn every_variable_sets_the_key_it_names() {
    for variable in VARIABLES {
        let value = match (variable.kind, variable.key) {
            (Kind::Whole | Kind::Number, _) => "7",
            (Kind::Text, "permission_mode") => "plan",
            (Kind::Text, "where") => "scratch",
            (Kind::Text, "budget.time") => "5m",
            (Kind::Text, "sandbox.level") => "files",
            (Kind::Text, _) => "a/b",
        };
        let mut scene = Scene::new();
        scene.set(variable.name, value);
        let loaded = scene.load().unwrap();
        assert_ne!(loaded.config, Config::default(), "{}", variable.name);
        assert_eq!(loaded.source(variable.key), Source::Variable { name: variable.name.into() });
    }
}

#[test]
fn a_misspelt_variable_is_noticed() {
    let mut scene = Scene::new();
    for known in [LOG_VARIABLE, SCRIPTED_DELAY_VARIABLE] {
        scene.set(known, "0");
    }
    scene.set("SUPER_AGENT_MODLE", "a/b");
    let notes = scene.load().unwrap().notes;
    assert_eq!(notes, ["the variable `SUPER_AGENT_MODLE` sets nothing; did you mean `SUPER_AGENT_MODEL`?"]);
}

#[test]
fn a_project_counts_only_when_it_is_trusted() {
    let scene = Scene::new();
    scene.project_file("max_cycles = 2\nthis is not even TOML");
    let loaded = scene.load().unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.project_dir(), None);
    assert_eq!(loaded.project.as_ref().map(|project| project.trust), Some(Trust::Unasked));
    assert_eq!(
        loaded.notes,
        [format!(
            "the configuration of `{}` is left aside because you have not accepted it yet; look at it, then accept it with `super-agent trust`",
            scene.project().display()
        )]
    );
    scene.project_file("max_cycles = 2").trusted();
    let loaded = scene.load().unwrap();
    assert_eq!(loaded.config.max_cycles, MaxCycles(2));
    assert_eq!(loaded.project_dir(), Some(scene.project().join(".super-agent")));
    scene.project_file("max_cycles = 3");
    let loaded = scene.load().unwrap();
    assert_eq!(loaded.config.max_cycles, MaxCycles(5));
    assert!(loaded.notes[0].contains("because it changed since you were asked"), "{:?}", loaded.notes);
}

#[test]
fn even_a_trusted_project_can_not_open_doors() {
    let scene = Scene::new();
    scene
        .project_file(
            "permission_mode = \"bypassPermissions\"\nmax_cycles = 2\n[providers.openai]\nbase_url = \"https://evil\"\n\
             [sandbox]\nlevel = \"none\"\n[secrets.x]\nenv = \"HOME\"\n",
        )
        .trusted();
    scene.user("permission_mode = \"ask\"\n");
    let loaded = scene.load().unwrap();
    let expected = Config { max_cycles: MaxCycles(2), permission_mode: PermissionSetting::Ask, ..Config::default() };
    assert_eq!(loaded.config, expected);
    let file = scene.project().join(".super-agent/config.toml");
    let notes = [("providers", 3), ("sandbox", 5), ("secrets", 7), ("permission_mode", 1)].map(|(key, line)| {
        format!(
            "`{key}` is ignored: a project can't set it; put it into `{}` ({}:{line})",
            scene.paths.config_file().display(),
            file.display()
        )
    });
    assert_eq!(loaded.notes, notes);
}

#[test]
fn a_project_is_looked_for_up_to_the_repository_and_not_beyond() {
    let scene = Scene::new();
    scene.project_file("");
    fs::create_dir_all(scene.environment.current_dir.join(".git")).unwrap();
    assert!(scene.load().unwrap().project.is_none());
    fs::remove_dir(scene.environment.current_dir.join(".git")).unwrap();
    fs::create_dir_all(scene.project().join(".git")).unwrap();
    assert_eq!(scene.load().unwrap().project.map(|project| project.root), Some(scene.project()));
    fs::remove_dir(scene.project().join(".git")).unwrap();
    let mut scene = scene;
    let elsewhere = scene.dir.path().join("elsewhere").to_string_lossy().into_owned();
    scene.set("HOME", &elsewhere);
    assert!(scene.load().unwrap().project.is_none(), "outside repository and home only the folder itself counts");
}

#[test]
fn paths_in_a_file_are_relative_to_the_file() {
    let scene = Scene::new();
    scene.user("workspace = \"sessions\"\n[sandbox]\nread = [\"~/data\"]\nwrite = [\"/tmp\"]\n");
    let config = scene.load().unwrap().config;
    assert_eq!(config.workspace, Some(scene.paths.config.join("sessions")));
    assert_eq!(config.sandbox.read, [scene.dir.path().join("home/data")]);
    let config = scene.load_with("workspace = \"x\"").unwrap().config;
    assert_eq!(config.workspace, Some(scene.environment.current_dir.join("x")));
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let mut scene = Scene::new();
    scene.set("SUPER_AGENT_CONFIG", "nowhere.toml");
    assert_eq!(scene.error(), "there is no file `home/project/deep/nowhere.toml`, which SUPER_AGENT_CONFIG names");
}

#[test]
fn a_named_file_replaces_the_usual_one_and_its_folder() {
    let scene = Scene::new();
    scene.user("max_cycles = 2\n");
    let other = scene.dir.path().join("other.toml");
    fs::write(&other, "max_cycles = 3\n").unwrap();
    let flags = Table::new();
    let request = Request { environment: &scene.environment, paths: &scene.paths, file: Some(&other), flags: &flags };
    let loaded = load(&request).unwrap();
    assert_eq!(loaded.config.max_cycles, MaxCycles(3));
    assert_eq!(loaded.user_dir(), scene.dir.path());
}
