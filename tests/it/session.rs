//! A whole session of the real program, from the command line to what lies on disk.

use serde_json::{Value, json};

use crate::support::desk::{Desk, SessionFolder, all, assert_order, condensed, files_below, last, only};

const OBJECTIVE: &str = "Create a Hello World web page.";

fn rehearsal() -> (Desk, Vec<Value>, SessionFolder) {
    let desk = Desk::new();
    let events = desk.events(&["run", "--json", "--model", "scripted/rehearsal", OBJECTIVE], 0);
    let session = desk.session();
    (desk, events, session)
}

#[test]
fn a_session_tells_everything_in_order_and_leaves_the_layout_of_the_documents() {
    let (desk, events, session) = rehearsal();
    assert_every_required_type(&events);
    assert_order(&events);
    assert_journal_is_what_was_printed(&events, &session);
    assert_layout(&events, &session);
    assert_delivered(&events, &session);
    assert!(files_below(&desk.start_folder()).is_empty(), "nothing is left where it was started");
    insta::assert_snapshot!("rehearsal", condensed(&events).join("\n"));
}

fn assert_every_required_type(events: &[Value]) {
    for kind in [
        "session_start",
        "cycle_start",
        "worker_start",
        "worker_tool_call",
        "worker_tool_result",
        "worker_complete",
        "checker_start",
        "checker_stream",
        "checker_complete",
        "cycle_end",
        "session_complete",
        "goal_added",
        "goal_updated",
        "message_added",
        "snapshot",
        "text_delta",
        "tool_call_delta",
    ] {
        assert!(!all(events, kind).is_empty(), "there is no {kind}");
    }
    assert!(all(events, "session_error").is_empty());
    let verdicts: Vec<&Value> = all(events, "cycle_end").iter().map(|e| &e["verdict"]).collect();
    assert_eq!(verdicts, ["needs_improvement", "passed"]);
}

fn assert_journal_is_what_was_printed(events: &[Value], session: &SessionFolder) {
    let printed: Vec<&Value> = events.iter().filter(|e| e.get("event_id").is_some()).collect();
    let journal = session.journal();
    assert_eq!(journal.iter().collect::<Vec<_>>(), printed);
    assert_eq!(printed[0]["event_id"], 1);
    assert_eq!(printed[0]["type"], "session_start");
    assert_eq!(printed.last().unwrap()["type"], "session_complete");
    for event in events {
        assert_eq!(event["session_id"], session.id().as_str());
        let is_delta = event["type"].as_str().unwrap().ends_with("_delta");
        assert_eq!(is_delta, event.get("event_id").is_none(), "{event}");
    }
}

fn assert_layout(events: &[Value], session: &SessionFolder) {
    let record = session.record();
    assert_eq!(record["status"], "completed");
    assert_eq!(record["outcome"], "passed");
    assert_eq!(record["last_event_id"], events.last().unwrap()["event_id"]);
    assert_eq!(record["format"], 1);
    let starts: Vec<&Value> = events.iter().filter(|e| e["type"] == "trace_start").collect();
    assert_eq!(starts.len(), 4, "a Worker and a Checker in each of two cycles");
    for start in starts {
        let trace = start["trace_id"].as_str().unwrap();
        let meta = session.json(&format!(".trace/{trace}/meta.json"));
        assert_eq!(meta["trace_id"], trace);
        assert_eq!(meta["status"], "completed");
        session.json(&format!(".trace/{trace}/goal.json"));
        assert!(session.file(&format!(".trace/{trace}/outputs")).is_dir());
        let first = session.json(&format!(".trace/{trace}/messages/{trace}-0001.json"));
        assert_eq!((&first["role"], &first["parent_sequence"]), (&json!("system"), &Value::Null));
        let numbers: Vec<u64> = session.messages(trace).into_keys().collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(session.main_path(trace), numbers, "nothing was rewound");
        let copy = session.events(&format!(".trace/{trace}/events.jsonl"));
        let own: Vec<Value> = session.journal().into_iter().filter(|e| e["trace_id"] == trace).collect();
        assert_eq!(copy, own, "the trace's copy of its events, ids included");
        assert_eq!(meta["last_event_id"], own.last().unwrap()["event_id"]);
        assert_eq!(meta["last_sequence"], numbers.len() as u64);
    }
    assert!(session.file("snapshots").is_dir());
    assert!(session.file("state/lock").exists());
}

fn assert_delivered(events: &[Value], session: &SessionFolder) {
    let page = session.text("files/index.html");
    for tag in ["<title>Hello World</title>", "<h1>Hello World</h1>", "<p>", "</html>"] {
        assert_eq!(page.matches(tag).count(), 1, "{tag} in:\n{page}");
    }
    assert!(session.file("files/style.css").exists());
    assert!(!session.file("files/__output.json").exists(), "it is taken into the archive");
    let handed_in = |cycle: u64| {
        let write = events.iter().find(|e| {
            e["type"] == "message_added" && e["cycle"] == cycle && {
                let trace = e["trace_id"].as_str().unwrap();
                let message = &session.messages(trace)[&e["sequence"].as_u64().unwrap()];
                written(message).is_some()
            }
        });
        let write = write.expect("the Worker wrote its hand-over");
        let message =
            session.messages(write["trace_id"].as_str().unwrap())[&write["sequence"].as_u64().unwrap()].clone();
        written(&message).unwrap()
    };
    assert_eq!(session.text("__output_cycle_0001.json"), handed_in(1), "verbatim");
    assert_eq!(session.text("__output_cycle_0002.json"), handed_in(2), "verbatim");
    let newest = session.json("__output.json");
    assert_eq!(newest["summary"], "Gave the Hello World page its missing title");
    assert_eq!(only(events, "session_complete")["deliverable"], newest);
}

/// What an assistant message writes to `__output.json`.
fn written(message: &Value) -> Option<String> {
    let calls = message["content"]["tool_calls"].as_array().or_else(|| message["tool_calls"].as_array())?;
    calls.iter().find_map(|call| {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str()?).ok()?;
        (arguments["path"] == "__output.json").then(|| arguments["content"].as_str().map(str::to_owned))?
    })
}

#[test]
fn a_checker_that_never_passes_fails_the_session_after_its_cycles() {
    let desk = Desk::new();
    let arguments = ["run", "--json", "--model", "scripted/never-passes", "--max-cycles", "2", "Keep a log in log.txt"];
    let events = desk.events(&arguments, 1);
    assert_order(&events);
    assert_eq!(all(&events, "cycle_end").len(), 2);
    let end = events.last().unwrap();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("session_failed"), &json!("not_passed")));
    assert!(end["reason"].as_str().unwrap().contains("not long enough"), "{end}");
    let session = desk.session();
    assert_eq!(session.record()["status"], "failed");
    assert_eq!(session.text("files/log.txt"), "line 1\nline 2\n");

    // A finished session opens one more cycle, which it needs to be allowed.
    let more = desk.events(&["resume", "last", "--json"], 1);
    assert_order(&more);
    let resumed = only(&more, "session_resumed");
    assert_eq!((&resumed["after"], &resumed["max_cycles"]), (&json!("not_passed"), &json!(3)));
    assert_eq!(only(&more, "cycle_start")["cycle"], 3);
    let feedback = &only(&more, "cycle_start")["input_payload"]["review_feedback"];
    assert_eq!(feedback, "Add another line to log.txt.");
    assert_eq!(session.text("files/log.txt"), "line 1\nline 2\nline 3\n");
}

#[test]
fn without_a_key_and_a_named_model_nothing_is_played_and_nothing_is_left() {
    let desk = Desk::new();
    let ended = desk.run(&["run", "--json", OBJECTIVE]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    for way_out in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "Ollama", "demo"] {
        assert!(ended.stderr.contains(way_out), "`{way_out}` is not in:\n{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    assert!(files_below(&desk.root()).is_empty(), "no session is left behind");
}

#[test]
fn bad_input_is_named_with_the_way_out_and_leaves_nothing() {
    let desk = Desk::new();
    desk.scenario("broken", "worker:\n  - turns: [\n");
    let check = |arguments: &[&str], code: i32, says: &[&str]| {
        let ended = desk.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        for text in says {
            assert!(ended.stderr.contains(text), "{arguments:?}: `{text}` is not in:\n{}", ended.stderr);
        }
    };
    check(&["run", "--jsn", "x"], 2, &["--jsn", "--json"]);
    check(&["run", "--model", "scripted/nothing", "x"], 2, &["nothing", "rehearsal"]);
    check(&["run", "--model", "scripted/broken.yaml", "x"], 2, &["broken.yaml", "line"]);
    check(&["run", "--model", "nobody/x", "x"], 2, &["nobody"]);
    check(&["run", "--model", "anthropic/claude", "x"], 3, &["ANTHROPIC_API_KEY"]);
    check(&["run", "--model", "scripted/rehearsal", ""], 2, &["objective"]);
    check(&["show", "zzzzzzzz"], 2, &["zzzzzzzz", "sessions"]);
    check(&["resume", "last"], 2, &["session"]);
    assert!(files_below(&desk.root()).is_empty(), "no session is left behind");
    desk.configure("max_cycle = 3\n");
    check(&["run", "--model", "scripted/rehearsal", "x"], 2, &["config.toml", "max_cycle", "max_cycles"]);
}

#[test]
fn readers_of_a_session_see_it_without_changing_it() {
    let (desk, _, session) = rehearsal();
    let before = session.tree("");
    let shown = desk.run(&["show", "last", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["summary"]["outcome"], "passed");
    assert_eq!(shown["cycles"].as_array().unwrap().len(), 2);
    let listed = desk.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["id"], session.id().as_str());
    assert_eq!(listed[0]["scripted"], true);
    assert_eq!(session.tree(""), before, "looking writes nothing");
}

#[test]
fn the_record_is_rebuilt_from_the_journal_when_it_is_lost_or_spoilt() {
    let (desk, events, session) = rehearsal();
    let record = session.record();
    for spoilt in [None, Some("{"), Some("{\"format\": 1}")] {
        match spoilt {
            None => std::fs::remove_file(session.file("state/session.json")).unwrap(),
            Some(text) => std::fs::write(session.file("state/session.json"), text).unwrap(),
        }
        let shown = desk.run(&["show", "last", "--json"]);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["summary"]["outcome"], "passed");
    }
    let more = desk.events(&["resume", "last", "--json"], 0);
    assert_eq!(more[0]["event_id"].as_u64().unwrap(), events.last().unwrap()["event_id"].as_u64().unwrap() + 1);
    assert_eq!(last(&more, "cycle_end")["cycle"], 3);
    let now = session.record();
    assert_eq!(now["cycles"][0], record["cycles"][0]);
    assert_eq!(now["cycles"][1], record["cycles"][1]);
}
