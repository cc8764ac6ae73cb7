//! Finding, stopping and going on with sessions, also ones whose files somebody edited.

use std::fs;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::support::shell::{Shell, finish, wait_until};

fn id(home: &Path) -> String {
    home.file_name().unwrap().to_string_lossy().strip_prefix("session-").unwrap().to_owned()
}

fn journal(home: &Path) -> PathBuf {
    home.join("state/events.jsonl")
}

fn events(home: &Path) -> Vec<Value> {
    fs::read_to_string(journal(home)).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replaces the journal's first line.
fn spoil_first_line(home: &Path, with: &str) {
    let text = fs::read_to_string(journal(home)).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(journal(home), format!("{with}\n{rest}")).unwrap();
}

#[test]
fn sessions_are_found_by_id_its_beginning_name_and_last() {
    let shell = Shell::new();
    shell.session("quick", &["--name", "one"], 0);
    let first = id(&shell.home());
    shell.session("quick", &["--name", "two"], 0);
    for which in [first.as_str(), &first[..7], "one"] {
        shell.run(&["show", which], 0).shows(&[&format!("{first} · one"), "✓ passed after 1 of 5 cycles"]);
    }
    shell.run(&["show", "last"], 0).shows(&["· two"]);
    shell.session("quick", &["--name", "two"], 0);
    shell.run(&["show", "two"], 2).says(&["`two` may be any of"]);
    shell.run(&["show", &first, "--cycle", "9"], 2).says(&["there is no cycle 9", "the session has cycles 1"]);
    shell.run(&["stop", &first], 2).says(&["is not running"]);
    shell.run(&["rewind", &first, "--to", "99"], 2).says(&["there is no message 99", "from 2 to"]);
}

#[test]
fn a_session_that_runs_is_stopped_from_another_process_and_goes_on() {
    let mut shell = Shell::new();
    let folder = shell.go("place");
    let model = shell.model("endless");
    let run =
        shell.program(&["run", "--json", "--model", &model, "--in-place", "--name", "long", "x"]).spawn().unwrap();
    wait_until("the command", || folder.join("began").exists().then_some(()));
    let pid = format!("process {}", run.id());
    for command in [&["resume", "long"][..], &["rm", "long"]] {
        shell.run(command, 2).says(&["is in use by", &pid, "super-agent stop"]);
    }
    shell.run(&["export", "long"], 2).says(&["is running", "super-agent stop"]);
    shell.run(&["apply", "long"], 2).says(&["no cycle handed anything in yet"]);
    let shown = shell.run(&["show", "long", "--json"], 0).json()["summary"].clone();
    assert_eq!((&shown["status"], &shown["elsewhere"]), (&"running".into(), &true.into()), "{shown}");
    shell.run(&["stop", "long"], 0);
    let ran = finish(run);
    assert_eq!(ran.code, Some(143));
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&"session_stopped".into(), &"stopped".into()));

    let quick = shell.model("quick");
    shell.run(&["resume", "long", "--model", &quick, "--checker-model", &quick], 0).shows(&["wrote it"]);
}

#[test]
fn a_completed_session_opens_one_more_cycle_with_what_the_person_says() {
    let shell = Shell::new();
    shell.session("scripted/never-passes", &["--max-cycles", "1"], 1);
    let home = shell.home();
    let resumed = shell.run(&["resume", "last", "please hurry"], 1);
    resumed.says(&["goes on with the cycle", "you: please hurry", "cycle 2 of 2"]);
    let starts: Vec<Value> = events(&home).into_iter().filter(|e| e["type"] == "cycle_start").collect();
    assert_eq!(starts[1]["input_payload"]["user_message"], "please hurry");
    assert_eq!(starts[1]["input_payload"]["review_verdict"], "needs_improvement");

    shell.run(&["resume", "last", "--max-cycles", "4"], 1).says(&["cycle 3 of 4", "cycle 4 of 4"]);
    let resumed: Vec<Value> = events(&home).into_iter().filter(|e| e["type"] == "session_resumed").collect();
    let limits: Vec<_> = resumed.iter().map(|e| e["max_cycles"].as_u64().unwrap()).collect();
    assert_eq!(limits, [2, 4]);
    assert_eq!(resumed[0]["after"], "not_passed");
}

#[test]
fn the_files_of_a_resumed_session_are_named_with_their_folder() {
    let shell = Shell::new();
    shell.session("scripted/rehearsal", &[], 0);
    let file = shell.home().join("files/index.html").display().to_string();
    shell.run(&["show", "last"], 0).shows(&[&file]);
    shell.run(&["resume", "last", "again"], 0).shows(&[&file]);
}

#[test]
fn a_spoilt_cache_is_made_again_from_the_journal() {
    let shell = Shell::new();
    shell.session("quick", &["--name", "mine"], 0);
    let home = shell.home();
    let cache = home.join("state/session.json");
    let before = shell.run(&["show", "last", "--json"], 0).json();
    for garbage in ["{{{", "", "[]", "{\"format\": 1}"] {
        fs::write(&cache, garbage).unwrap();
        assert_eq!(shell.run(&["show", "mine", "--json"], 0).json(), before, "{garbage}");
    }
    fs::remove_file(&cache).unwrap();
    assert_eq!(shell.run(&["show", "mine", "--json"], 0).json(), before);

    // A cache that is ahead of the journal, as after a copy that brought the old journal back.
    shell.run(&["resume", "mine", "--max-cycles", "3"], 1);
    let text = fs::read_to_string(journal(&home)).unwrap();
    let kept: Vec<&str> = text.lines().take_while(|line| !line.contains("\"session_resumed\"")).collect();
    fs::write(journal(&home), kept.join("\n") + "\n").unwrap();
    assert_eq!(shell.run(&["show", "mine", "--json"], 0).json(), before);
}

#[test]
fn a_spoilt_journal_is_named_and_the_other_sessions_are_still_there() {
    let shell = Shell::new();
    shell.session("quick", &["--name", "spoilt"], 0);
    let home = shell.home();
    shell.session("quick", &["--name", "whole"], 0);
    let good = fs::read_to_string(journal(&home)).unwrap();
    spoil_first_line(&home, "garbage");
    fs::remove_file(home.join("state/session.json")).unwrap();
    let which = id(&home);
    let name = journal(&home).display().to_string();
    let bad = fs::read(journal(&home)).unwrap();
    for command in [&["show", &which][..], &["resume", &which], &["apply", &which]] {
        shell.run(command, 7).says(&[&name, "does not begin with session_start", "line 1", "super-agent rm"]);
    }
    assert_eq!(fs::read(journal(&home)).unwrap(), bad, "what is there is left alone");
    let list = shell.run(&["sessions"], 0);
    list.shows(&["✗ broken", "does not begin with session_start", "whole"]);
    let all = shell.run(&["sessions", "--json"], 0).json();
    let broken = all.as_array().unwrap().iter().find(|s| s["id"] == *which).unwrap();
    assert!(broken["broken"].as_str().unwrap().contains("line 1"), "{broken}");

    fs::write(journal(&home), good).unwrap();
    shell.run(&["show", "spoilt"], 0).shows(&["✓ passed"]);
    spoil_first_line(&home, "garbage");
    shell.run(&["rm", &which], 0);
    assert!(!home.exists());
}

#[test]
fn a_session_of_a_newer_version_is_left_alone() {
    let shell = Shell::new();
    shell.session("quick", &[], 0);
    let home = shell.home();
    let mut start = events(&home).remove(0);
    start["format"] = 99.into();
    spoil_first_line(&home, &start.to_string());
    let cache = home.join("state/session.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
    fs::remove_file(&cache).unwrap();
    let expected = ["has format 99, this version knows up to 1", "newer version"];
    shell.run(&["show", "last"], 2).says(&expected);
    shell.run(&["resume", "last"], 2).says(&expected);
    // Even when the cache has a form that is not understood.
    record["format"] = 99.into();
    record["cycles"] = "many".into();
    fs::write(&cache, record.to_string()).unwrap();
    shell.run(&["show", "last"], 2).says(&expected);
    shell.run(&["sessions"], 0).shows(&["has format 99"]);
}

#[test]
fn a_spoilt_message_stops_what_needs_it_and_is_named() {
    let shell = Shell::new();
    let model = shell.model("endless");
    let run = shell.program(&["run", "--json", "--model", &model, "x"]).spawn().unwrap();
    let home = wait_until("the command", || shell.homes().into_iter().find(|h| h.join("files/began").exists()));
    shell.run(&["stop", "last"], 0);
    finish(run);
    let trace = fs::read_dir(home.join(".trace")).unwrap().flatten().next().unwrap().path();
    let name = format!("{}-0002.json", trace.file_name().unwrap().to_string_lossy());
    let message = trace.join("messages").join(&name);
    let good = fs::read(&message).unwrap();
    let quick = shell.model("quick");
    let resume = ["resume", "last", "--model", &quick, "--checker-model", &quick];
    fs::write(&message, "{").unwrap();
    shell.run(&resume, 7).says(&[&name, "can't be continued", "put the file back"]);
    fs::remove_file(&message).unwrap();
    shell.run(&resume, 7).says(&["message 2 is missing", "put the file back"]);
    fs::write(&message, good).unwrap();
    shell.run(&resume, 0);
}
