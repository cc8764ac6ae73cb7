//! Wrong input: each says what, where, why and what to do, and ends with the exit code of cli.md.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::support::provider_server::{KEY, ProviderServer, ServerAnswer};
use crate::support::shell::Shell;

#[track_caller]
fn check(arguments: &[&str], code: i32, expected: &[&str]) {
    let shell = Shell::new();
    let ran = shell.run(arguments, code);
    ran.says(expected);
    assert_eq!(ran.stdout, "");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(shell.homes().len(), 0, "no session is left behind");
}

#[test]
fn wrong_arguments_name_the_nearest() {
    check(&["run", "--max-cycle", "3", "x"], 2, &["--max-cycle", "--max-cycles"]);
    check(&["sesions"], 2, &["'sesions'", "'sessions'"]);
    check(&["run", "--max-cycles", "0", "x"], 2, &["'0'", "--max-cycles", "at least 1"]);
    check(&["run", "--input", "{", "x"], 2, &["--input", "not JSON", "column 1"]);
    check(&["run", "--input", "[1]", "x"], 2, &["--input", "no object", "write an object"]);
    check(&["run", "--timeout", "soon", "x"], 2, &["'soon'", "--timeout"]);
    check(&["run", "--budget-usd", "-1", "x"], 2, &["'-1'", "--budget-usd", "above 0"]);
    check(&["run", "--permission-mode", "yolo", "x"], 2, &["'yolo'", "acceptEdits"]);
    check(&["run", "--worktree", "--scratch", "x"], 2, &["--worktree", "--scratch", "cannot be used with"]);
}

#[test]
fn a_missing_objective_says_how_to_give_one() {
    check(&["run"], 2, &["there is no objective", "-f FILE"]);
    check(&["run", "  "], 2, &["the objective is empty"]);
    check(&["run", "-f", "nothing.md"], 2, &["nothing.md", "No such file"]);
    check(&["run", "-"], 2, &["standard input is empty"]);
}

#[test]
fn an_unknown_model_or_profile_is_wrong_use() {
    check(&["run", "--model", "nope/m", "x"], 2, &["`nope/m`", "PROVIDER/MODEL", "anthropic"]);
    check(&["run", "--model", "scripted/nope", "x"], 2, &["no scenario `nope`", "rehearsal"]);
    check(&["run", "--profile", "defualt", "x"], 2, &["no profile `defualt`", "`default`"]);
}

#[test]
fn without_a_key_and_without_a_model_nothing_is_played() {
    check(&["run", "x"], 3, &["no model was chosen", "ANTHROPIC_API_KEY", "Ollama", "super-agent demo"]);
    check(&["run", "--model", "openai/gpt-x", "x"], 3, &["OPENAI_API_KEY is not set", "set OPENAI_API_KEY"]);
}

#[test]
fn without_a_terminal_the_interface_names_the_way_without() {
    check(&[], 2, &["needs a terminal", "super-agent run"]);
    check(&["demo"], 2, &["needs a terminal", "scripted/rehearsal"]);
}

#[test]
fn a_session_that_is_not_there_is_named() {
    for command in ["show", "stop", "rm", "resume", "apply", "export"] {
        check(&[command, "nope"], 2, &["there is no session `nope`", "super-agent sessions"]);
        check(&[command, "last"], 2, &["there is no session yet", "super-agent demo"]);
    }
    check(&["rewind", "nope", "--to", "3"], 2, &["there is no session `nope`"]);
}

#[test]
fn a_wrong_configuration_names_file_line_and_nearest_key() {
    let shell = Shell::new();
    let file = shell.configure("config.toml", "max_cycles = 3\nmodle = \"a/b\"\n");
    let place = format!("{}:2", file.display());
    shell.run(&["sessions"], 2).says(&["unknown key `modle`", &place, "did you mean `model`?"]);
    shell.configure("config.toml", "max_cycles = \"many\"\n");
    shell.run(&["sessions"], 2).says(&["max_cycles", "config.toml:1"]);
    shell.configure("config.toml", "[worker\n");
    shell.run(&["sessions"], 2).says(&["config.toml:1"]);
    shell.run(&["--config", "elsewhere.toml", "sessions"], 2).says(&["elsewhere.toml"]);
    // What one asks then works all the same.
    shell.run(&["doctor"], 2).shows(&["can't be used", "config.toml:1"]);
    shell.run(&["completions", "bash"], 0);

    shell.configure("config.toml", "");
    shell.configure("workers.yaml", "default:\n  model: a/b\n  max_turn: 3\n");
    shell.run(&["sessions"], 2).says(&["max_turn", "workers.yaml:3", "`max_turns`"]);
    shell.run(&["doctor"], 2).shows(&["✗ profiles", "max_turn", "workers.yaml:3"]);
    shell.configure("workers.yaml", "default:\n  model: [a\n");
    shell.run(&["run", "--model", "scripted/rehearsal", "x"], 2).says(&["workers.yaml:"]);
    assert_eq!(shell.homes().len(), 0);
}

#[test]
fn a_root_that_can_not_be_used_is_named() {
    let shell = Shell::new();
    fs::write(shell.path("file"), "").unwrap();
    let below = shell.path("file/below").display().to_string();
    for arguments in [&["sessions"][..], &["run", "--model", "scripted/rehearsal", "x"]] {
        let ran = shell.run(&[arguments, &["--workspace", &below]].concat(), 2);
        ran.says(&["the workspace root", &below, "choose another with --workspace"]);
    }
    // Who only looks leaves nothing behind.
    let typo = shell.path("typo");
    shell.run(&["sessions", "--workspace", &typo.display().to_string()], 0);
    assert!(!typo.exists());
}

/// Runs a session against a provider that answers with `answer`; exit 3, and both the session and
/// what can be done are there.
#[track_caller]
fn provider_fails(answer: ServerAnswer, expected: &[&str]) {
    let server = ProviderServer::start(move |_| answer.clone());
    let mut shell = Shell::new();
    for (name, protocol, path) in [("oai", "openai", "/v1"), ("ant", "anthropic", "")] {
        let config = format!(
            "[http]\nattempts = 1\n[providers.{name}]\nprotocol = \"{protocol}\"\nbase_url = \"{}{path}\"\napi_key_env = \"TEST_KEY\"\n",
            server.url()
        );
        shell.configure("config.toml", &config);
        shell.set("TEST_KEY", KEY);
        let ran = shell.run(&["run", "--model", &format!("{name}/m"), "x"], 3);
        ran.says(expected).says(&["✗ provider_error", "worker: "]);
        assert!(!ran.stderr.contains(KEY) && !ran.stderr.contains("panicked"), "{}", ran.stderr);
        let shown = shell.run(&["show", "last", "--json"], 0).json();
        assert_eq!(shown["summary"]["outcome"], "provider_error", "{shown}");
        shell.run(&["rm", "last"], 0);
    }
}

#[test]
fn a_failing_provider_ends_with_3_and_the_session_is_kept() {
    let refused = json!({"error": {"message": "invalid api key", "type": "authentication_error"}});
    provider_fails(ServerAnswer::refusal(401, refused), &["TEST_KEY", "invalid api key"]);
    let page = ServerAnswer::http(200, &[("content-type", "text/html")], "<html><body>Log in first</body></html>");
    provider_fails(page, &["base_url"]);
    let stream = ServerAnswer::http(200, &[("content-type", "text/event-stream")], "data: {\"broken\n\ndata: [DO\n\n");
    provider_fails(stream, &["m"]);
    let fault = json!({"error": {"message": "out of order"}});
    provider_fails(ServerAnswer::refusal(503, fault), &["out of order"]);
}

#[test]
fn an_unreachable_provider_is_named_and_the_session_goes_on_later() {
    let shell = Shell::new();
    let config =
        "[http]\nattempts = 1\n[providers.near]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    shell.configure("config.toml", config);
    let ran = shell.run(&["run", "--model", "near/m", "x"], 3);
    ran.says(&["127.0.0.1:1", "refuses the connection", "[providers.near]"]);
    // Only a scripted model stands in for it, and only when named.
    let model = shell.model("quick");
    let resumed = shell.run(&["resume", "last", "--model", &model, "--checker-model", &model], 0);
    resumed.shows(&["wrote it"]);
}

#[test]
fn a_full_disk_under_the_output_is_an_error() {
    let shell = Shell::new();
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let model = shell.model("quick");
    let run = shell.program(&["run", "--json", "--model", &model, "x"]).stdout(full.try_clone().unwrap()).spawn();
    let ran = crate::support::shell::finish(run.unwrap());
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    ran.says(&["could not be written to standard output", "super-agent show"]);
    shell.run(&["show", "last"], 0).shows(&["✓ passed"]);
    let list = shell.program(&["sessions"]).stdout(full).spawn();
    assert_eq!(crate::support::shell::finish(list.unwrap()).code, Some(7));
}
