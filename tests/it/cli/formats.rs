//! What the commands print: for people, for programs, for shells.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::support::shell::{Shell, finish};

#[test]
fn progress_goes_to_standard_error_and_the_deliverable_to_standard_output() {
    let shell = Shell::new();
    let ran = shell.session("quick", &[], 0);
    let file = shell.home().join("files/result.txt").display().to_string();
    assert_eq!(ran.stdout, format!("wrote it\n\n{file}\n"));
    ran.says(&["cycle 1 of 5", "✓ write_file write result.txt (new, 1 line)", "verdict: ✓ passed", "✓ passed · "]);
    assert!(!ran.stderr.contains('\u{1b}'), "no colours without a terminal");

    let ran = shell.session("quick", &["--quiet"], 0);
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.starts_with("wrote it\n"), "{}", ran.stdout);
    // How it ended badly is said all the same.
    let ran = shell.session("scripted/never-passes", &["-q", "--max-cycles", "1"], 1);
    assert_eq!(ran.stdout, "");
    ran.says(&["✗ not_passed", "the 1 allowed cycles are used up"]);
}

#[test]
fn events_are_json_lines_and_nothing_else() {
    let shell = Shell::new();
    let ran = shell.session("quick", &["--json"], 0);
    assert_eq!(ran.stderr, "");
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<u64> = events.iter().filter_map(|e| e["event_id"].as_u64()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "without gap or repeat");
    assert_eq!(events[0]["type"], "session_start");
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&"session_complete".into(), &"passed".into()));
    assert_eq!(last["deliverable"]["summary"], "wrote it");
}

#[test]
fn the_objective_comes_from_argument_file_or_standard_input() {
    let shell = Shell::new();
    let model = shell.model("quick");
    fs::write(shell.folder().join("task.md"), "  from a file\n").unwrap();
    shell.run(&["run", "--model", &model, "-f", "task.md"], 0);
    shell.read(&["run", "--model", &model, "-"], "from a pipe\n", 0);
    let all = shell.run(&["sessions", "--json"], 0).json();
    let objectives: Vec<&str> = all.as_array().unwrap().iter().map(|s| s["objective"].as_str().unwrap()).collect();
    assert_eq!(objectives, ["from a pipe", "from a file"]);
}

#[test]
fn sessions_and_one_session_are_also_data() {
    let shell = Shell::new();
    assert_eq!(shell.run(&["sessions", "--json"], 0).json(), Value::Array(Vec::new()));
    shell.session("scripted/rehearsal", &["--name", "page"], 0);
    let all = shell.run(&["sessions", "--json"], 0).json();
    let session = &all[0];
    assert_eq!(all.as_array().unwrap().len(), 1);
    for (key, expected) in [("name", "page"), ("status", "completed"), ("outcome", "passed"), ("objective", "do it")] {
        assert_eq!(session[key], expected, "{session}");
    }
    let shown = shell.run(&["show", "page", "--json"], 0).json();
    assert_eq!(shown["cycles"].as_array().unwrap().len(), 2);
    assert_eq!(shown["cycles"][0]["checker"]["verdict"], "needs_improvement");
    let second = shell.run(&["show", "page", "--json", "--cycle", "2"], 0).json();
    assert_eq!(second["cycles"].as_array().unwrap().len(), 1);
    assert_eq!(second["cycles"][0], shown["cycles"][1]);
    shell.run(&["show", "page", "--cycle", "1"], 0).shows(&["cycle 1 ◐ needs_improvement", "no title element"]);
}

#[test]
fn an_archive_can_be_looked_at_elsewhere() {
    let mut shell = Shell::new();
    shell.session("scripted/rehearsal", &["--name", "page"], 0);
    let archive = shell.path("page.tar.gz").display().to_string();
    shell.run(&["export", "page", "-o", &archive], 0).shows(&["page.tar.gz"]);
    let before = shell.run(&["show", "page", "--json"], 0).json();

    shell.set("HOME", shell.path("other-home").display().to_string());
    let root = shell.go("unpacked");
    tar::Archive::new(GzDecoder::new(fs::File::open(&archive).unwrap())).unpack(&root).unwrap();
    let after = shell.run(&["show", "page", "--json", "--workspace", "."], 0).json();
    assert_eq!(after["cycles"], before["cycles"]);
    assert_eq!(after["deliverable"], before["deliverable"]);
    shell.run(&["apply", "page", "--workspace", ".", "--to", "result"], 0);
    assert!(fs::read_to_string(root.join("result/index.html")).unwrap().contains("<title>"));
    // A place that can't be written is named.
    shell.run(&["export", "page", "--workspace", ".", "-o", "/nowhere/a.tgz"], 7).says(&["/nowhere/a.tgz", "-o"]);
}

#[test]
fn doctor_says_where_each_value_comes_from_and_never_a_key() {
    let mut shell = Shell::new();
    let file = shell.configure("config.toml", "model = \"openai/gpt-x\"\nmax_cycles = 4\n[http]\nattempts = 2\n");
    shell.set("OPENAI_API_KEY", "sk-very-secret-value");
    shell.set("SUPER_AGENT_MAX_CYCLES", "7");
    let text = shell.run(&["doctor"], 0);
    text.shows(&[
        &format!("http.attempts  2  ({}:4)", file.display()),
        "max_cycles     7  ($SUPER_AGENT_MAX_CYCLES)",
        "openai/gpt-x",
        "key in OPENAI_API_KEY",
    ]);
    let data = shell.run(&["doctor", "--json"], 0);
    assert_eq!(data.json()["sections"][0]["title"], "configuration");
    for ran in [&text, &data] {
        assert!(!ran.stdout.contains("very-secret") && !ran.stderr.contains("very-secret"));
    }
}

#[test]
fn completions_parse_and_the_manual_is_one() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish"] {
        let script = shell.run(&["completions", name], 0).stdout;
        assert!(script.contains("super-agent"), "{name}");
        let file = shell.path(&format!("completions.{name}"));
        fs::write(&file, script).unwrap();
        if Path::new("/bin").join(name).exists() || Path::new("/usr/bin").join(name).exists() {
            let check = std::process::Command::new(name).arg("-n").arg(&file).output().unwrap();
            assert!(check.status.success(), "{name}: {}", String::from_utf8_lossy(&check.stderr));
        }
    }
    shell.run(&["completions", "tcl"], 2).says(&["'tcl'", "bash"]);
    let manual = shell.run(&["man"], 0).stdout;
    for part in [".TH super-agent 1", ".SH NAME", ".SH SYNOPSIS", "sessions"] {
        assert!(manual.contains(part), "{part}");
    }
}

#[test]
fn a_reader_that_leaves_ends_nothing_badly() {
    let shell = Shell::new();
    shell.session("quick", &["--name", "one"], 0);
    let model = shell.model("quick");
    let run = ["run", "--json", "--model", &model, "x"];
    for arguments in [&["sessions"][..], &["show", "one"], &["man"], &["completions", "bash"], &["doctor"], &run] {
        let mut child = shell.program(arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ran = finish(child);
        let expected = if arguments == ["doctor"] { 2 } else { 0 };
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(expected), ""), "{arguments:?}");
        assert!(!line.is_empty());
    }
    assert_eq!(shell.run(&["sessions", "--json"], 0).json()[0]["outcome"], "passed", "the work went on");
}

#[test]
fn colours_are_as_asked() {
    let mut shell = Shell::new();
    shell.session("quick", &["--name", "one"], 0);
    let check = |shell: &Shell, arguments: &[&str], expected: bool| {
        let ran = shell.run(&[&["show", "one"], arguments].concat(), 0);
        assert_eq!(ran.stdout.contains("\u{1b}["), expected, "{arguments:?}");
    };
    check(&shell, &[], false);
    check(&shell, &["--color", "always"], true);
    check(&shell, &["--color", "never"], false);
    shell.set("NO_COLOR", "1");
    check(&shell, &["--color", "auto"], false);
    shell.run(&["show", "one", "--color", "pink"], 2).says(&["'pink'"]);
}
