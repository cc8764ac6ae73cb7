//! Profiles of `workers.yaml`, and what the Worker is told because of them, of the flags and of
//! `AGENTS.md` (A7, A9, A27).

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::support::provider_server::{KEY, ProviderServer, ServerAnswer};
use crate::support::shell::Shell;

/// The first messages of the only session's first Worker: system and user.
fn told(shell: &Shell) -> (String, String) {
    let traces = fs::read_dir(shell.home().join(".trace")).unwrap().flatten().map(|e| e.path());
    let trace = traces.into_iter().find(|p| p.file_name().unwrap().to_string_lossy().starts_with("w1-")).unwrap();
    let text = |n: u32| {
        let name = format!("{}-{n:04}.json", trace.file_name().unwrap().to_string_lossy());
        let message: Value = serde_json::from_slice(&fs::read(trace.join("messages").join(name)).unwrap()).unwrap();
        message["content"].as_str().unwrap().to_owned()
    };
    (text(1), text(2))
}

#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not where it should be in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn the_worker_is_told_everything_in_order() {
    let mut shell = Shell::new();
    let folder = shell.go("place");
    fs::write(folder.join("AGENTS.md"), "Use four spaces.\n").unwrap();
    let profiles = "careful:\n  max_turns: 9\n  prompt:\n    system: |\n      You are careful.\n    user: Own words.\n";
    shell.configure("workers.yaml", profiles);
    let options = ["--in-place", "--profile", "careful", "--input", "{\"topic\": \"tides\"}"];
    let outcome = ["--expect-file", "result.txt", "--require", "It says new"];
    shell.session("quick", &[&options[..], &outcome].concat(), 0);
    let (system, user) = told(&shell);
    in_order(&system, &["You are careful.", "AGENTS.md", "Use four spaces.", "__output.json"]);
    let cwd = folder.display().to_string();
    let task = ["do it", "result.txt", "It says new", "Own words.", "Input:", "\"topic\": \"tides\""];
    in_order(&user, &[&["Current time: ", " UTC", &cwd, "strictly inside the working directory"][..], &task].concat());
}

#[test]
fn a_profile_sets_turns_tools_and_model() {
    let shell = Shell::new();
    let quick = shell.model("quick");
    let profiles = format!(
        "default:\n  model: {quick}\n  mcp_servers: {{ files: {{ command: x }} }}\nshort:\n  model: {quick}\n  max_turns: 1\n\
         blocked:\n  model: {quick}\n  tools_block: [write_file]\n"
    );
    shell.configure("workers.yaml", &profiles);
    // No model is named: the default profile's is used, also for the Checker.
    let ran = shell.run(&["run", "x"], 0);
    ran.says(&["profile `default` names `mcp_servers`", "not", "named in the profile"]);

    // It had handed in by then, so that its work counts.
    let ran = shell.run(&["run", "--max-cycles", "1", "--profile", "short", "x"], 0);
    ran.says(&["the limit of turns is reached"]);
    let ran = shell.run(&["run", "--max-cycles", "1", "--profile", "blocked", "x"], 1);
    ran.says(&["✗ write_file"]);
}

#[test]
fn a_profiles_address_gets_no_other_providers_key() {
    let server = ProviderServer::start(|_| ServerAnswer::text("nothing"));
    let mut shell = Shell::new();
    let profile =
        format!("default:\n  provider: anthropic\n  model: claude-x\n  endpoint: {}\n  max_turns: 1\n", server.url());
    shell.configure("workers.yaml", &profile);
    shell.configure("config.toml", "[http]\nattempts = 1\n[providers.openai]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    shell.set("ANTHROPIC_API_KEY", KEY);
    shell.set("OPENAI_API_KEY", "sk-of-another");
    shell.run(&["run", "--model", "openai/m", "x"], 3).says(&["127.0.0.1:1"]);
    shell.session("quick", &[], 0);
    assert_eq!(server.requests().len(), 0);

    shell.run(&["run", "--max-cycles", "1", "x"], 1);
    let requests = server.requests();
    assert!(requests.iter().all(|r| r.is_anthropic() && r.headers["x-api-key"] == KEY), "{requests:?}");
    assert!(!requests.is_empty());
}
