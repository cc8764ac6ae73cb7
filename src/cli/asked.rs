//! What the arguments amount to: the layer of settings they make, the launch they describe, the
//! command they send. Reads nothing but the objective, where an option says so.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toml::Table;

use super::args::{
    ApplyArgs, Arguments, Command, ExportArgs, LimitArgs, ModelArgs, PlaceArgs, ResumeArgs, RewindArgs, RunArgs,
};
use crate::config::PermissionSetting;
use crate::config::duration;
use crate::config::environment::Environment;
use crate::config::layers::set;
use crate::events::command::{Command as Sent, LaunchSpec, Overrides, Where};
use crate::events::data::{Budget, Contract, PermissionMode};
use crate::events::event::PerRole;
use crate::events::problem::Problem;
use crate::ids::{SessionId, TraceId};

/// Longest objective taken, in bytes.
const LONGEST_OBJECTIVE: u64 = 1024 * 1024;

impl Arguments {
    /// The topmost layer of configuration: settings that were given as options, with the keys of
    /// `config.toml`. Options of `resume` concern one session and are in [`ResumeArgs::overrides`].
    pub fn layer(&self) -> Table {
        let mut table = Table::new();
        if let Some(workspace) = &self.common.workspace {
            put(&mut table, "workspace", workspace.to_string_lossy().into_owned());
        }
        if let Some(Command::Run(run)) = &self.command {
            run.layer(&mut table);
        }
        table
    }
}

impl RunArgs {
    /// The objective: the argument itself, a file's content, or what `input` gives for `-`.
    ///
    /// # Errors
    /// There is none, it is empty, can't be read, or is too long.
    pub fn read_objective(&self, environment: &Environment, input: impl Read) -> Result<String, Problem> {
        let (source, text) = match (&self.objective, &self.file) {
            (Some(text), _) if text != "-" => ("the objective".to_owned(), Ok(text.clone())),
            (Some(_), _) => ("standard input".to_owned(), read_text(input)),
            (None, Some(file)) => {
                let file = environment.absolute(file, &environment.current_dir);
                (format!("`{}`", file.display()), fs::File::open(&file).and_then(read_text))
            }
            (None, None) => {
                return Err(Problem::usage("there is no objective")
                    .hint("say what is to be done: `super-agent run \"…\"`, `-f FILE`, or `-` for standard input"));
            }
        };
        let text = text.map_err(|error| Problem::usage(format!("can't read the objective from {source}: {error}")))?;
        if text.trim().is_empty() {
            return Err(Problem::usage(format!("{source} is empty")).hint("say what is to be done"));
        }
        Ok(text.trim().to_owned())
    }

    fn layer(&self, table: &mut Table) {
        let texts = [
            ("model", self.models.model.clone()),
            ("checker_model", self.models.checker_model.clone()),
            ("permission_mode", self.permission_mode.map(|mode| permission_mode(mode).1.to_owned())),
            ("where", self.place.asked().map(|place| place_word(place).to_owned())),
            ("budget.time", self.limits.timeout.map(duration::words)),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                put(table, key, text);
            }
        }
        let numbers = [
            ("max_cycles", self.limits.max_cycles.map(u64::from)),
            ("worker.max_turns", self.max_turns.map(u64::from)),
            ("budget.tokens", self.limits.budget_tokens),
        ];
        for (key, n) in numbers {
            // Beyond what TOML can hold is beyond any budget.
            if let Some(n) = n {
                put(table, key, i64::try_from(n).unwrap_or(i64::MAX));
            }
        }
        if let Some(usd) = self.limits.budget_usd {
            put(table, "budget.usd", usd);
        }
    }

    /// The launch: what was given as options stands in it, the rest is absent and comes from
    /// profile and configuration.
    pub fn launch_spec(&self, objective: String, environment: &Environment) -> LaunchSpec {
        let contract = Contract {
            objective,
            expected_output: expected_output(&self.expect_file, &self.require),
            inputs: self.input.clone().unwrap_or_default(),
            checks: self.check.clone(),
            protected: Vec::new(),
        };
        LaunchSpec {
            contract,
            name: self.name.clone(),
            dir: self.place.dir(environment),
            place: self.place.asked(),
            profiles: PerRole { worker: self.profile.clone(), checker: self.checker_profile.clone() },
            models: self.models.per_role(),
            max_cycles: self.limits.max_cycles,
            max_turns: self.max_turns,
            budget: self.limits.budget(),
            permission_mode: self.permission_mode.map(|mode| permission_mode(mode).0),
            headless: true,
        }
    }
}

impl PlaceArgs {
    /// The place that was asked for.
    fn asked(&self) -> Option<Where> {
        match (&self.in_place, self.worktree, self.scratch) {
            (Some(_), _, _) => Some(Where::InPlace),
            (None, true, _) => Some(Where::Worktree),
            (None, false, true) => Some(Where::Scratch),
            (None, false, false) => None,
        }
    }

    /// The folder it is about, absolute.
    fn dir(&self, environment: &Environment) -> PathBuf {
        let here = &environment.current_dir;
        self.in_place.as_deref().map_or_else(|| here.clone(), |dir| environment.absolute(dir, here))
    }
}

impl ModelArgs {
    fn per_role(&self) -> PerRole<Option<String>> {
        PerRole { worker: self.model.clone(), checker: self.checker_model.clone() }
    }
}

impl LimitArgs {
    fn budget(&self) -> Budget {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Budget { tokens: self.budget_tokens, usd: self.budget_usd, time_ms: self.timeout.map(ms) }
    }
}

impl ResumeArgs {
    /// What changes for the session.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            max_cycles: self.limits.max_cycles,
            budget: self.limits.budget(),
            models: self.models.per_role(),
            checks: self.check.clone(),
            headless: true,
        }
    }

    /// The command for the session that was found.
    pub fn command(&self, session: SessionId) -> Sent {
        Sent::Resume { session, message: self.message.clone(), overrides: Box::new(self.overrides()) }
    }
}

impl RewindArgs {
    /// The command for the session that was found.
    pub fn command(&self, session: SessionId) -> Sent {
        Sent::Rewind {
            session,
            trace: self.trace(),
            to: self.to,
            restore_files: !self.keep_files,
            overwrite_changed: self.overwrite_changed,
            message: self.message.clone(),
            run: self.message.is_some(),
            headless: true,
        }
    }

    /// The trace that was named.
    pub fn trace(&self) -> Option<TraceId> {
        self.trace.as_deref().map(TraceId::new)
    }
}

impl ApplyArgs {
    /// Where to, absolute.
    pub fn target(&self, environment: &Environment) -> Option<PathBuf> {
        self.to.as_deref().map(|dir| environment.absolute(dir, &environment.current_dir))
    }

    /// The command for the session that was found.
    pub fn command(&self, session: SessionId, environment: &Environment) -> Sent {
        Sent::Apply { session, cycle: self.cycle, to: self.target(environment), force: self.force }
    }
}

impl ExportArgs {
    /// The command for the session that was found.
    pub fn command(&self, session: SessionId, environment: &Environment) -> Sent {
        let absolute = |file: &Path| environment.absolute(file, &environment.current_dir);
        Sent::Export { session, file: self.output.as_deref().map(absolute) }
    }
}

fn read_text(input: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    input.take(LONGEST_OBJECTIVE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_OBJECTIVE {
        return Err(std::io::Error::other("it is longer than 1 MB; put the material into files and name them"));
    }
    Ok(text)
}

/// The expected outcome that `--expect-file` and `--require` describe (A28).
fn expected_output(files: &[String], requirements: &[String]) -> Option<Value> {
    let mut expected = Map::new();
    if !files.is_empty() {
        expected.insert("files".to_owned(), json!(files));
    }
    if !requirements.is_empty() {
        expected.insert("requirements".to_owned(), json!(requirements));
    }
    (!expected.is_empty()).then_some(Value::Object(expected))
}

/// The setting as the vocabulary has it, and its word.
fn permission_mode(mode: PermissionSetting) -> (PermissionMode, &'static str) {
    match mode {
        PermissionSetting::BypassPermissions => (PermissionMode::BypassPermissions, "bypassPermissions"),
        PermissionSetting::AcceptEdits => (PermissionMode::AcceptEdits, "acceptEdits"),
        PermissionSetting::Ask => (PermissionMode::Ask, "ask"),
        PermissionSetting::Plan => (PermissionMode::Plan, "plan"),
    }
}

fn place_word(place: Where) -> &'static str {
    match place {
        Where::Auto => "auto",
        Where::Scratch => "scratch",
        Where::InPlace => "in-place",
        Where::Worktree => "worktree",
    }
}

fn put(table: &mut Table, key: &str, value: impl Into<toml::Value>) {
    set(table, key, value.into());
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use pretty_assertions::assert_eq;

    use super::*;

    fn parse(arguments: &[&str]) -> Arguments {
        Arguments::try_parse_from(std::iter::once("super-agent").chain(arguments.iter().copied())).unwrap()
    }

    fn environment() -> Environment {
        Environment { variables: Default::default(), current_dir: "/here".into() }
    }

    fn run(arguments: &[&str]) -> LaunchSpec {
        let parsed = parse(&[&["run"], arguments].concat());
        let Some(Command::Run(run)) = parsed.command else { panic!("not `run`: {parsed:?}") };
        run.launch_spec(run.objective.clone().unwrap_or_default(), &environment())
    }

    #[test]
    fn a_bare_run_leaves_everything_to_profile_and_configuration() {
        let contract = Contract { objective: "build it".into(), ..Contract::default() };
        let expected = LaunchSpec { contract, dir: "/here".into(), headless: true, ..LaunchSpec::default() };
        assert_eq!(run(&["build it"]), expected);
        assert_eq!(parse(&["run", "build it"]).layer(), Table::new());
    }

    #[test]
    fn every_option_of_run_reaches_the_launch_and_the_settings() {
        #[rustfmt::skip]
        let options = [
            "--in-place=sub", "--profile", "fast", "--checker-profile", "strict", "--model", "a/x",
            "--checker-model", "b/y", "--max-cycles", "3", "--max-turns", "9", "--budget-tokens", "200k",
            "--budget-usd", "2.5", "--timeout", "1h30m", "--expect-file", "a.html", "--expect-file", "b.css",
            "--require", "it works", "--check", "cargo test", "--check", "true", "--input", r#"{"n": 1}"#,
            "--permission-mode", "acceptEdits", "--name", "page", "build it",
        ];
        let expected = LaunchSpec {
            contract: Contract {
                objective: "build it".into(),
                expected_output: Some(json!({"files": ["a.html", "b.css"], "requirements": ["it works"]})),
                inputs: [("n".to_owned(), json!(1))].into_iter().collect(),
                checks: vec!["cargo test".into(), "true".into()],
                protected: Vec::new(),
            },
            name: Some("page".into()),
            dir: "/here/sub".into(),
            place: Some(Where::InPlace),
            profiles: PerRole { worker: Some("fast".into()), checker: Some("strict".into()) },
            models: PerRole { worker: Some("a/x".into()), checker: Some("b/y".into()) },
            max_cycles: Some(3),
            max_turns: Some(9),
            budget: Budget { tokens: Some(200_000), usd: Some(2.5), time_ms: Some(5_400_000) },
            permission_mode: Some(PermissionMode::AcceptEdits),
            headless: true,
        };
        assert_eq!(run(&options), expected);
        let arguments = parse(&[&["run", "--workspace", "w"], &options[..]].concat());
        let expected: Table = toml::from_str(
            "workspace = 'w'\nmodel = 'a/x'\nchecker_model = 'b/y'\npermission_mode = 'acceptEdits'\n\
             where = 'in-place'\nmax_cycles = 3\n[worker]\nmax_turns = 9\n\
             [budget]\ntime = '1h30m'\ntokens = 200000\nusd = 2.5\n",
        )
        .unwrap();
        assert_eq!(arguments.layer(), expected);
    }

    #[test]
    fn the_objective_is_read_from_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("task.md"), "from a file\n").unwrap();
        fs::write(dir.path().join("empty.md"), " \n").unwrap();
        let environment = Environment { variables: Default::default(), current_dir: dir.path().to_owned() };
        let read = |arguments: &[&str]| {
            let Some(Command::Run(run)) = parse(&[&["run"], arguments].concat()).command else { panic!("not `run`") };
            run.read_objective(&environment, &b"from a pipe\n"[..]).map_err(|problem| problem.what)
        };
        assert_eq!(read(&["as it is"]), Ok("as it is".into()));
        assert_eq!(read(&["-"]), Ok("from a pipe".into()));
        assert_eq!(read(&["-f", "task.md"]), Ok("from a file".into()));
        assert_eq!(read(&[]), Err("there is no objective".into()));
        assert_eq!(read(&[""]), Err("the objective is empty".into()));
        let file = |name: &str| format!("`{}`", dir.path().join(name).display());
        assert_eq!(read(&["-f", "empty.md"]), Err(format!("{} is empty", file("empty.md"))));
        let missing = read(&["-f", "none.md"]).unwrap_err();
        assert!(missing.starts_with(&format!("can't read the objective from {}: ", file("none.md"))), "{missing}");
    }

    #[test]
    fn a_place_is_taken_as_it_was_asked_for() {
        let check = |options: &[&str], place: Option<Where>, dir: &str| {
            let spec = run(&[options, &["x"]].concat());
            assert_eq!((spec.place, spec.dir), (place, PathBuf::from(dir)));
        };
        check(&["--in-place"], Some(Where::InPlace), "/here");
        check(&["--in-place=/tmp"], Some(Where::InPlace), "/tmp");
        check(&["--worktree"], Some(Where::Worktree), "/here");
        check(&["--scratch"], Some(Where::Scratch), "/here");
    }

    #[test]
    fn the_other_commands_reach_the_session_that_was_found() {
        let id = || SessionId::new("23456789");
        let command = |arguments: &[&str]| match parse(arguments).command {
            Some(Command::Resume(args)) => args.command(id()),
            Some(Command::Rewind(args)) => args.command(id()),
            Some(Command::Apply(args)) => args.command(id(), &environment()),
            Some(Command::Export(args)) => args.command(id(), &environment()),
            other => panic!("unexpected: {other:?}"),
        };
        let overrides =
            Overrides { max_cycles: Some(8), checks: vec!["true".into()], headless: true, ..Overrides::default() };
        assert_eq!(
            command(&["resume", "last", "--max-cycles", "8", "--check", "true", "and quickly"]),
            Sent::Resume { session: id(), message: Some("and quickly".into()), overrides: Box::new(overrides) }
        );
        assert_eq!(
            command(&["rewind", "last", "--to", "12", "--trace", "t1", "--keep-files"]),
            Sent::Rewind {
                session: id(),
                trace: Some(TraceId::new("t1")),
                to: 12,
                restore_files: false,
                overwrite_changed: false,
                message: None,
                run: false,
                headless: true,
            }
        );
        assert_eq!(
            command(&["apply", "last", "--to", "home", "--cycle", "2", "--force"]),
            Sent::Apply { session: id(), cycle: Some(2), to: Some("/here/home".into()), force: true }
        );
        assert_eq!(
            command(&["export", "last", "-o", "a.tgz"]),
            Sent::Export { session: id(), file: Some("/here/a.tgz".into()) }
        );
    }
}
