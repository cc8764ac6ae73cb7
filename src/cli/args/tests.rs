//! Claims about the arguments: what is taken, what is refused and with which words.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("super-agent").chain(arguments.iter().copied()))
}

/// The first line of what the person is told, and the exit code 2.
#[track_caller]
fn check_error(arguments: &[&str], expected: &str) {
    let error = parse(arguments).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.render().to_string();
    let told: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage")).collect();
    assert_eq!(told.join(" ").trim(), expected);
}

#[test]
fn the_description_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn help_changes_only_on_purpose() {
    let mut program = Arguments::command().term_width(100);
    program.build();
    let mut text = format!("{}\n", program.render_long_help());
    for command in program.get_subcommands_mut() {
        let help = command.clone().term_width(100).render_long_help();
        text.push_str(&format!("\n══ {} ══\n{help}\n", command.get_name()));
    }
    insta::assert_snapshot!("help", text);
}

#[test]
fn no_command_is_the_interface() {
    let expected = Arguments { common: Common::default(), command: None };
    assert_eq!(parse(&[]).unwrap(), expected);
}

#[test]
fn common_options_may_follow_the_command() {
    let parsed = parse(&["sessions", "--workspace", "w", "--color", "never", "--config", "c.toml"]).unwrap();
    let expected = Common { workspace: Some("w".into()), config: Some("c.toml".into()), color: ColorWhen::Never };
    assert_eq!(parsed.common, expected);
}

#[test]
fn the_objective_may_come_from_standard_input_or_a_file() {
    let run = |arguments: &[&str]| match parse(arguments).unwrap().command {
        Some(Command::Run(run)) => (run.objective, run.file),
        other => panic!("unexpected: {other:?}"),
    };
    assert_eq!(run(&["run", "-"]), (Some("-".into()), None));
    assert_eq!(run(&["run", "-f", "task.md"]), (None, Some("task.md".into())));
    assert_eq!(run(&["run", "--in-place", "task"]), (Some("task".into()), None));
    assert_eq!(parse(&["run", "-f", "a", "b"]).unwrap_err().kind(), ErrorKind::ArgumentConflict);
}

#[test]
fn an_unknown_option_names_the_nearest_one() {
    check_error(
        &["run", "--modle", "a/b", "x"],
        "error: unexpected argument '--modle' found  tip: a similar argument exists: '--model'",
    );
    check_error(&["sesions"], "error: unrecognized subcommand 'sesions'  tip: a similar subcommand exists: 'sessions'");
}

#[test]
fn wrong_values_are_explained() {
    let value = |option: &str, value: &str, name: &str, why: &str| {
        check_error(
            &["run", option, value, "x"],
            &format!(
                "error: invalid value '{value}' for '{option} <{name}>': {why}  For more information, try '--help'."
            ),
        );
    };
    value("--max-cycles", "0", "N", "it must be at least 1");
    value("--max-turns", "many", "N", "it must be a whole number, at least 1");
    value("--budget-tokens", "0", "N", "it must be a whole number above 0, as `200000`, `200k` or `2M`");
    value("--budget-usd", "0", "X", "it must be an amount in US dollars above 0, as `2.50`");
    value("--budget-usd", "nan", "X", "it must be an amount in US dollars above 0, as `2.50`");
    value("--timeout", "soon", "DURATION", "`soon` is not a duration; write it as `90s`, `5m` or `1h30m`");
    value("--timeout", "0s", "DURATION", "it must be longer than nothing");
    value(
        "--model",
        "sonnet",
        "PROVIDER/MODEL",
        "`sonnet` does not name provider and model; write `PROVIDER/MODEL`, as in `anthropic/…` or `ollama/…`",
    );
    value("--permission-mode", "Ask", "MODE", "it must be `bypassPermissions`, `acceptEdits`, `ask` or `plan`");
    value("--input", "[1]", "JSON", "it is JSON, but no object; write an object, as '{\"topic\": \"tides\"}'");
    value(
        "--input",
        "{topic}",
        "JSON",
        "it is not JSON: key must be a string at line 1 column 2; write an object, as '{\"topic\": \"tides\"}'",
    );
}

#[test]
fn places_exclude_each_other() {
    for places in [["--worktree", "--scratch"], ["--in-place", "--scratch"], ["--in-place=x", "--worktree"]] {
        assert_eq!(parse(&["run", places[0], places[1], "x"]).unwrap_err().kind(), ErrorKind::ArgumentConflict);
    }
}
