//! What a killed or stopped process leaves behind, and how the session goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use super_agent::llm::chat::Caller;
use super_agent::llm::scripted::scenario::Scenario;

use crate::support::desk::{Desk, Live, SessionFolder, all, assert_order, last, only, wait_until};
use crate::support::provider_server::{KEY, ProviderServer, ReceivedRequest, scenario_answers};

/// A Worker that hangs in a command with children of every kind, beside other calls.
const HANGS: &str = r#"
worker:
  - turns:
      - text: I plan.
        tool_calls:
          - {tool: goal, arguments: {add: [Write the file, Hand it in]}}
          - {tool: write_file, arguments: {path: a.txt, content: "one\n"}}
      - text: I run a long command.
        tool_calls:
          - {tool: goal, arguments: {done: Wrote it, focus: "2"}}
          - tool: bash_command
            arguments:
              command: "sleep 300 & echo $! >> pids.txt; setsid sleep 300 & echo $! >> pids.txt; (sleep 300 & echo $! >> pids.txt); echo $$ >> pids.txt; echo > ready.txt; sleep 300"
          - {tool: read_file, arguments: {path: a.txt}}
      - text: I hand it in.
        tool_calls:
          - tool: write_file
            arguments: {path: __output.json, content: "{\"summary\": \"wrote a.txt\", \"files\": [\"a.txt\"]}"}
          - {tool: goal, arguments: {done: Handed it in}}
      - text: It is handed in.
checker:
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "passed", "reason": "it is there", "feedback": "", "verified": ["a.txt is there [1]"]}'
"#;

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until the long command runs; returns it and its children.
fn hanging(desk: &Desk) -> (SessionFolder, Vec<i32>) {
    let homes = || desk.session_homes();
    let ready = || homes().first().is_some_and(|home| home.join("files/ready.txt").exists());
    wait_until("the long command", || ready().then_some(()));
    let session = desk.session();
    let pids: Vec<i32> = session.text("files/pids.txt").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 4);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "the command and its children run");
    (session, pids)
}

fn assert_gone(pids: &[i32]) {
    let left: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(left.is_empty(), "still alive: {left:?}");
}

/// Everything printed is in the journal, at its place.
fn assert_kept(printed: &[Value], session: &SessionFolder) {
    let journal = session.journal();
    for event in printed.iter().filter(|e| e.get("event_id").is_some()) {
        let at = usize::try_from(event["event_id"].as_u64().unwrap()).unwrap() - 1;
        assert_eq!(journal.get(at), Some(event), "what was shown is kept");
    }
}

/// Every call on every trace's main path has one result directly after it, histories begin with
/// instruction and task, stored messages, goals and copies of events are what the journal tells.
fn assert_traces_are_whole(session: &SessionFolder) {
    let journal = session.journal();
    let mut traces: Vec<&str> = journal.iter().filter_map(|e| e["trace_id"].as_str()).collect();
    traces.sort_unstable();
    traces.dedup();
    for trace in traces {
        let events: Vec<&Value> = journal.iter().filter(|e| e["trace_id"] == trace).collect();
        if !events.iter().any(|e| e["type"] == "message_added") {
            // Killed before anything of it was stored; another took its place.
            continue;
        }
        let copy = session.events(&format!(".trace/{trace}/events.jsonl"));
        assert_eq!(copy.iter().collect::<Vec<_>>(), events, "{trace}");
        let messages = session.messages(trace);
        for added in events.iter().filter(|e| e["type"] == "message_added") {
            let message = &messages[&added["sequence"].as_u64().unwrap()];
            assert_eq!(message["parent_sequence"], added["parent_sequence"]);
            assert_eq!(message["role"], added["role"]);
        }
        if trace.starts_with('w') {
            assert_path_is_whole(session, trace, &messages);
        }
        assert_goals(session, trace, &events);
    }
}

fn assert_path_is_whole(session: &SessionFolder, trace: &str, messages: &BTreeMap<u64, Value>) {
    let path: Vec<&Value> = session.main_path(trace).iter().map(|s| &messages[s]).collect();
    let roles: Vec<&str> = path.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles[..2], ["system", "user"], "{trace}");
    let mut open: Vec<String> = Vec::new();
    for message in path {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|open| open == id).expect("a result belongs to a call before it");
            open.remove(at);
            continue;
        }
        assert!(open.is_empty(), "{trace}: calls without a result: {open:?}");
        let calls = message["content"]["tool_calls"].as_array().cloned().unwrap_or_default();
        open = calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
    }
    assert!(open.is_empty(), "{trace}: calls without a result: {open:?}");
}

fn assert_goals(session: &SessionFolder, trace: &str, events: &[&Value]) {
    let mut told: BTreeMap<String, Value> = BTreeMap::new();
    for goal in events.iter().filter(|e| e["goal"].is_object()).map(|e| &e["goal"]) {
        told.insert(goal["id"].to_string(), goal.clone());
    }
    let stored = session.json(&format!(".trace/{trace}/goal.json"));
    let stored = stored["goals"].as_array().unwrap();
    assert_eq!(stored.len(), told.len(), "{trace}: goals");
    for goal in stored {
        let told = &told[&goal["id"].to_string()];
        for key in ["description", "status", "summary", "parent_id"] {
            assert_eq!(goal[key], told[key], "{trace}: {key}");
        }
    }
}

fn kill(live: Live) -> Vec<Value> {
    live.signal(Signal::SIGKILL);
    let ended = live.end();
    assert_eq!(ended.code, None, "a signal ended it");
    ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn caller(request: &ReceivedRequest) -> Caller {
    let is_checker = request.system_text().contains("independent quality auditor");
    Caller { role: if is_checker { "checker" } else { "worker" }.to_owned(), cycle: 1 }
}

#[test]
fn a_kill_in_the_middle_of_a_tool_call_loses_nothing_and_resume_passes() {
    let scenario = Scenario::parse(HANGS, "hangs").unwrap();
    let server = ProviderServer::start(scenario_answers(scenario, caller)).with_pieces(7);
    let desk = Desk::new().with("TEST_KEY", KEY).with("NO_PROXY", "*");
    desk.configure(&format!(
        "[providers.ant]\nprotocol = \"anthropic\"\nbase_url = \"{}\"\napi_key_env = \"TEST_KEY\"\n",
        server.url()
    ));
    let live = desk.start(&["run", "--json", "--model", "ant/m", "write a.txt"]);
    let (session, pids) = hanging(&desk);
    let printed = kill(live);
    assert_kept(&printed, &session);

    // Readers show it as interrupted and write nothing.
    let before = session.tree("");
    let listed = desk.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["outcome"], "interrupted", "{listed}");
    assert_eq!(session.tree(""), before);

    // The last lines of journal and copy are torn.
    let trace = session.worker(1);
    for file in ["state/events.jsonl".to_owned(), format!(".trace/{trace}/events.jsonl")] {
        let mut journal = fs::OpenOptions::new().append(true).open(session.file(&file)).unwrap();
        journal.write_all(b"{\"event_id\":99,\"at\":\"2026-1").unwrap();
    }
    let head = session.main_path(&trace);

    let resumed = desk.events(&["resume", "last", "--json"], 0);
    assert_order(&resumed);
    assert_gone(&pids);
    assert_eq!(only(&resumed, "session_resumed")["after"], "interrupted");
    assert_eq!(only(&resumed, "session_resumed")["from"], "worker");
    assert_kept(&printed, &session);
    assert_order(&session.journal());
    assert_traces_are_whole(&session);
    assert_eq!(session.worker(1), trace, "the same trace goes on");
    let path = session.main_path(&trace);
    assert!(path.starts_with(&head), "{path:?} goes on from {head:?}");
    let healed: Vec<Value> = session.messages(&trace).into_values().filter(|m| m["role"] == "tool").collect();
    let interrupted = healed.iter().filter(|m| m["content"].to_string().contains("was interrupted")).count();
    assert_eq!(interrupted, 2, "the command and the call behind it");
    server.assert_histories_are_whole();
    assert_eq!(session.record()["outcome"], "passed");
}

/// Every turn can be repeated or left out; whatever a crash takes, a later cycle makes good.
const STURDY: &str = r#"
pace: {delay_ms: 2, chunk_ms: 1}
worker:
  - turns:
      - text: I plan and write the first file.
        tool_calls:
          - {tool: goal, arguments: {add: [First file, Second file]}}
          - {tool: write_file, arguments: {path: a.txt, content: "one\n"}}
      - text: I write another with a command.
        tool_calls:
          - {tool: bash_command, arguments: {command: "date +%N > b.txt; mkdir -p d; date +%N > d/c.txt"}}
          - {tool: goal, arguments: {add: Third file}}
          - {tool: read_file, arguments: {path: b.txt}}
          - {tool: list_files, arguments: {path: "."}}
      - text: I hand it in.
        tool_calls:
          - tool: bash_command
            arguments:
              command: "date +%N > a.txt; date +%N > b.txt; printf '{\"summary\": \"both\", \"text_content\": \"%s\", \"files\": [\"a.txt\", \"b.txt\"]}' \"$(date +%N)\" > __output.json"
      - text: It is handed in.
checker:
  - turns:
      - tool_calls:
          - {tool: read_file, arguments: {path: a.txt}}
          - {tool: bash_command, arguments: {command: "cat b.txt"}}
      - text: '{"verdict": "needs_improvement", "reason": "more", "feedback": "once more", "verified": ["a.txt [1]"]}'
  - turns:
      - tool_calls: [{tool: list_files, arguments: {path: "."}}]
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["the files [1]"]}'
"#;

#[test]
fn a_kill_at_any_point_is_resumed_to_the_end() {
    // Numbers of the event after which it is killed; the second kill hits the resumed run.
    let points: &[(usize, usize)] =
        &[(1, 1), (3, 9), (5, 4), (6, 2), (7, 21), (9, 30), (14, 8), (22, 17), (31, 3), (38, 45), (47, 5), (60, 12)];
    thread::scope(|scope| {
        for half in points.chunks(points.len() / 2) {
            scope.spawn(move || half.iter().for_each(|(first, second)| kill_twice(*first, *second)));
        }
    });
}

fn kill_twice(first: usize, second: usize) {
    let desk = Desk::new().with("SUPER_AGENT_SCRIPTED_DELAY", "1");
    let model = desk.scenario("sturdy", STURDY);
    let mut printed = Vec::new();
    let run = ["run", "--json", "--max-cycles", "9", "--model", &model, "write two files"];
    printed.extend(kill_after(desk.start(&run), first));
    let session = desk.session();
    assert_kept(&printed, &session);
    printed.extend(kill_after(desk.start(&["resume", "last", "--json"]), second));
    assert_kept(&printed, &session);
    let ended = desk.run(&["resume", "last", "--json"]);
    let context = format!("killed after {first} and {second}");
    assert_eq!(ended.code, Some(0), "{context}: {}\n{}", ended.stderr, ended.stdout);
    assert_kept(&printed, &session);
    assert_order(&session.journal());
    assert_traces_are_whole(&session);
    let record = session.record();
    assert_eq!(record["outcome"], "passed", "{context}");
    let shown = all(&printed, "cycle_end");
    for end in shown {
        let number = end["cycle"].as_u64().unwrap();
        let cycle = &record["cycles"][usize::try_from(number).unwrap() - 1];
        assert_eq!(cycle["checker"]["verdict"], end["verdict"], "{context}: the verdict of cycle {number} is kept");
    }
    assert!(session.file("__output.json").exists());
}

fn kill_after(live: Live, events: usize) -> Vec<Value> {
    let journalled = |seen: &[Value]| seen.iter().filter(|e| e.get("event_id").is_some()).count();
    let mut live = live;
    while journalled(&live.seen()) < events && live.is_running() {
        thread::sleep(Duration::from_micros(300));
    }
    live.signal(Signal::SIGKILL);
    let ended = live.end();
    ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn stopped_by(stop: impl FnOnce(&Desk, &Live), code: i32) {
    let desk = Desk::new();
    let model = desk.scenario("hangs", HANGS);
    let live = desk.start(&["run", "--json", "--model", &model, "write a.txt"]);
    let (session, pids) = hanging(&desk);
    stop(&desk, &live);
    let ended = live.end();
    // At the program's end nothing of the command is left; no later moment is waited for.
    assert_gone(&pids);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let events = ended.events();
    assert_order(&events);
    let end = events.last().unwrap();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("session_stopped"), &json!("stopped")));
    assert_eq!(session.record()["status"], "stopped");
    let trace = session.worker(1);
    assert_eq!(session.json(&format!(".trace/{trace}/meta.json"))["status"], "stopped");
    assert_eq!(last(&events, "trace_complete")["status"], "stopped");

    let resumed = desk.events(&["resume", "last", "--json", "go on, please"], 0);
    assert_order(&resumed);
    assert_order(&session.journal());
    assert_traces_are_whole(&session);
    assert_eq!(only(&resumed, "session_resumed")["after"], "stopped");
    let said = session.messages(&trace).into_values().filter(|m| m["content"].to_string().contains("go on, please"));
    assert_eq!(said.count(), 1, "the Worker is told once");
    assert_eq!(session.record()["outcome"], "passed");
}

#[test]
fn an_interrupt_ends_the_command_with_all_its_children_and_resume_passes() {
    stopped_by(|_, live| live.signal(Signal::SIGINT), 130);
}

#[test]
fn a_termination_ends_the_command_with_all_its_children_and_resume_passes() {
    stopped_by(|_, live| live.signal(Signal::SIGTERM), 143);
}

#[test]
fn another_process_stops_a_session_and_can_talk_to_it() {
    let stop = |desk: &Desk, _: &Live| {
        let taken = desk.run(&["resume", "last"]);
        assert_eq!(taken.code, Some(2), "{}", taken.stderr);
        assert!(
            taken.stderr.contains("in use by process") && taken.stderr.contains("super-agent stop"),
            "{}",
            taken.stderr
        );
        let stopped = desk.run(&["stop", "last"]);
        assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    };
    stopped_by(stop, 130);
}

#[test]
fn stopping_what_does_not_run_says_so() {
    let desk = Desk::new();
    desk.events(&["run", "--json", "--max-cycles", "1", "--model", "scripted/never-passes", "Keep a log"], 1);
    let stopped = desk.run(&["stop", "last"]);
    assert_eq!(stopped.code, Some(2), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("not running"), "{}", stopped.stderr);
}
