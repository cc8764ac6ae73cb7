//! What happens when an agent does not do its part: scenario files play it, the real program runs it.

use std::fs;

use serde_json::{Value, json};

use crate::support::desk::{Desk, SessionFolder, all, assert_order, last, only, wait_until};

const HAND_IN: &str = r#"{tool: write_file, arguments: {path: __output.json, content: "{\"summary\": \"done\", \"files\": [\"a.txt\"]}"}}"#;
const WRITE: &str = r#"{tool: write_file, arguments: {path: a.txt, content: "one\n"}}"#;
const PASSES: &str = r#"
checker:
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["a.txt [1]"]}'
"#;

/// A scenario whose Worker makes these calls, one turn each, and then ends.
fn worker(turns: &[&str]) -> String {
    let turns: Vec<String> = turns.iter().map(|calls| format!("      - tool_calls: [{calls}]\n")).collect();
    format!("worker:\n  - turns:\n{}      - text: That is all.\n", turns.concat())
}

struct Played {
    desk: Desk,
    events: Vec<Value>,
    session: SessionFolder,
}

fn play(scenario: &str, arguments: &[&str], code: i32) -> Played {
    let desk = Desk::new();
    let model = desk.scenario("case", scenario);
    let mut all = vec!["run", "--json", "--model", &model];
    all.extend(arguments);
    all.push("write a.txt");
    let events = desk.events(&all, code);
    assert_order(&events);
    let session = desk.session();
    Played { desk, events, session }
}

impl Played {
    /// The results that the Worker of cycle 1 got, as it got them.
    fn results(&self) -> Vec<String> {
        let messages = self.session.messages(&self.session.worker(1));
        let tools = messages.values().filter(|m| m["role"] == "tool");
        tools.map(|m| m["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The verdict that the gates gave in place of a model.
    fn by_gates(&self, verdict: &str, feedback: &str) {
        let start = only(&self.events, "checker_start");
        assert_eq!((&start["model"], &start["trace_id"], &start["by"]), (&Value::Null, &Value::Null, &json!("gates")));
        let text = only(&self.events, "checker_stream")["text"].as_str().unwrap().to_owned();
        assert!(!text.is_empty());
        let complete = only(&self.events, "checker_complete");
        assert_eq!((&complete["result"]["verdict"], &complete["result"]["by"]), (&json!(verdict), &json!("gates")));
        let told = complete["result"]["feedback"].as_str().unwrap();
        assert!(told.contains(feedback), "{told}");
        let usage = all(&self.events, "usage");
        assert!(usage.iter().all(|e| e["role"] == "worker"), "no model was asked to check");
    }
}

#[test]
fn a_worker_that_hands_nothing_in_fails_by_the_gates_without_a_model() {
    let scenario = worker(&[WRITE]) + PASSES;
    let played = play(&scenario, &["--max-cycles", "1"], 1);
    played.by_gates("failed", "no `__output.json`");
    let end = only(&played.events, "cycle_end");
    assert_eq!((&end["archive"], &end["verdict"]), (&Value::Null, &json!("failed")));
    let result = &only(&played.events, "worker_complete")["result"];
    assert_eq!(result["status"], "error");
    assert!(!played.session.file("__output.json").exists());
}

#[test]
fn an_invalid_hand_over_fails_with_what_is_wrong_and_is_kept_verbatim() {
    let bad = r#"{tool: write_file, arguments: {path: __output.json, content: "{\"summary\": \"x\","}}"#;
    let scenario = worker(&[&format!("{WRITE}, {bad}")]) + PASSES;
    let played = play(&scenario, &["--max-cycles", "1"], 1);
    played.by_gates("failed", "not valid JSON: EOF");
    assert_eq!(only(&played.events, "output_taken")["valid"], false);
    assert_eq!(played.session.text("__output_cycle_0001.json"), "{\"summary\": \"x\",");
    assert!(!played.session.file("__output.json").exists());
    assert!(!played.session.file("files/__output.json").exists());
}

#[test]
fn a_claimed_file_that_is_not_there_is_sent_back_by_the_gates_and_mended() {
    let first = worker(&[HAND_IN]);
    let second = worker(&[&format!("{WRITE}, {HAND_IN}")]).replace("worker:\n", "");
    let played = play(&(first + &second + PASSES), &[], 0);
    let ends: Vec<&Value> = all(&played.events, "cycle_end").iter().map(|e| &e["verdict"]).collect();
    assert_eq!(ends, ["needs_improvement", "passed"]);
    let starts = all(&played.events, "checker_start");
    assert_eq!((&starts[0]["by"], &starts[1]["by"]), (&json!("gates"), &json!("checker")));
    let input = &all(&played.events, "cycle_start")[1]["input_payload"];
    assert!(input["review_feedback"].as_str().unwrap().contains("`a.txt` is claimed but is not"), "{input}");
    assert_eq!(input["previous_attempt_summary"], "done");
    let gates = all(&played.events, "gate_result");
    assert!(gates.iter().any(|g| g["name"] == "claimed_files" && g["ok"] == false));
}

#[test]
fn an_expected_file_that_is_missing_is_named_by_the_gates() {
    let played = play(
        &(worker(&[&format!("{WRITE}, {HAND_IN}")]) + PASSES),
        &["--max-cycles", "1", "--expect-file", "b.txt"],
        1,
    );
    played.by_gates("needs_improvement", "expected file `b.txt` is missing");
    assert!(played.session.file("__output.json").exists(), "the hand-over itself is valid");
}

#[test]
fn a_cycle_that_changes_nothing_is_not_checked_again_by_a_model() {
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")])
        + r#"
checker:
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "needs_improvement", "reason": "more", "feedback": "add more", "verified": ["a.txt [1]"]}'
"#;
    let played = play(&scenario, &["--max-cycles", "2"], 1);
    let starts: Vec<&Value> = all(&played.events, "checker_start").iter().map(|e| &e["by"]).collect();
    assert_eq!(starts, ["checker", "gates"]);
    assert!(last(&played.events, "checker_stream")["text"].as_str().unwrap().contains("nothing changed"));
}

#[test]
fn out_of_turns_the_worker_is_judged_by_what_it_left() {
    let scenario = worker(&[WRITE, r#"{tool: list_files, arguments: {path: "."}}"#, HAND_IN]) + PASSES;
    let played = play(&scenario, &["--max-turns", "2", "--max-cycles", "1"], 1);
    let result = &only(&played.events, "worker_complete")["result"];
    assert_eq!(result["status"], "error");
    assert!(result["error"].as_str().unwrap().contains("limit of turns"), "{result}");
    played.by_gates("failed", "no `__output.json`");

    // What was handed in in time counts.
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}"), r#"{tool: list_files, arguments: {path: "."}}"#]) + PASSES;
    let played = play(&scenario, &["--max-turns", "1"], 0);
    assert_eq!(only(&played.events, "worker_complete")["result"]["status"], "error", "it did not end by itself");
}

#[test]
fn an_agent_that_repeats_itself_is_told_and_then_ended() {
    let same = r#"{tool: bash_command, arguments: {command: "echo x >> count.txt; echo same"}}"#;
    let played = play(&(worker(&[same; 6]) + PASSES), &["--max-cycles", "1"], 1);
    assert_eq!(played.session.text("files/count.txt"), "x\nx\n", "the third and fourth were not run");
    let results = played.results();
    assert_eq!(results.len(), 4);
    assert!(results[2].contains("Not run") && results[3].contains("Not run"), "{results:?}");
    let error = only(&played.events, "worker_complete")["result"]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("repeat") || error.contains("same call"), "{error}");
}

#[test]
fn calls_that_make_no_sense_are_answered_and_the_worker_goes_on() {
    let calls = [
        r#"{tool: teleport, arguments: {to: "there"}}"#,
        r#"{tool: write_file, arguments: '{"path": "x.txt", '}"#,
        r#"{tool: write_file, arguments: {path: x.txt}}"#,
        r#"{tool: write_file, arguments: {path: x.txt, content: 5, mode: 1}}"#,
        r#"{tool: write_file, arguments: {path: "../out.txt", content: "x"}}"#,
        r#"{tool: read_file, arguments: {path: /etc/hostname}}"#,
        r#"{tool: bash_command, arguments: {command: "echo out; exit 3"}}"#,
    ];
    let last = format!("{WRITE}, {HAND_IN}");
    let mut turns = calls.to_vec();
    turns.push(&last);
    let played = play(&(worker(&turns) + PASSES), &[], 0);
    let results = played.results();
    for (result, says) in results.iter().zip([
        &["teleport", "write_file"][..],
        &["JSON"],
        &["content"],
        &["`content` must be string"],
        &["outside"],
        &["outside"],
        &["exit code 3", "out"],
    ]) {
        for text in says {
            assert!(result.contains(text), "`{text}` is not in: {result}");
        }
    }
    let ok: Vec<&Value> = all(&played.events, "worker_tool_result").iter().map(|e| &e["ok"]).collect();
    assert_eq!(ok[..7], [false, false, false, false, false, false, true]);
    assert!(!played.session.file("files/x.txt").exists() && !played.session.file("out.txt").exists());
}

#[test]
fn a_checker_that_gives_no_verdict_is_asked_again_twice_and_leaves_the_cycle_unverified() {
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")])
        + r#"
checker:
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: It looks fine to me.
      - text: '{"verdict": "good"}'
      - text: Passed!
"#;
    let played = play(&scenario, &[], 5);
    let complete = only(&played.events, "checker_complete");
    assert_eq!(complete["result"]["verdict"], Value::Null);
    assert_eq!(only(&played.events, "cycle_end")["verdict"], Value::Null);
    let end = played.events.last().unwrap();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("session_error"), &json!("unverified")));
    let trace = complete["trace_id"].as_str().unwrap();
    let said = played.session.messages(trace).into_values().filter(|m| m["role"] == "user");
    assert_eq!(said.count(), 3, "the task, and twice the question again");

    // Resumed, only the Checker runs, with a model that can.
    let model = played.desk.scenario("good", &(worker(&[]) + PASSES));
    let events = played.desk.events(&["resume", "last", "--json", "--checker-model", &model], 0);
    assert_order(&events);
    assert!(all(&events, "worker_start").is_empty());
    assert_eq!(only(&events, "session_resumed")["from"], "checker");
    assert_order(&played.session.journal());
}

#[test]
fn a_pass_without_any_tool_run_is_sent_back_once_and_then_not_believed() {
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")])
        + r#"
checker:
  - turns:
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["all of it [1]"]}'
"#;
    let twice = scenario.clone() + &scenario[scenario.rfind("      - text").unwrap()..];
    let played = play(&twice, &["--max-cycles", "1"], 1);
    let result = &only(&played.events, "checker_complete")["result"];
    assert_eq!((&result["verdict"], &result["by"]), (&json!("needs_improvement"), &json!("harness")));
    assert!(result["reason"].as_str().unwrap().contains("no tool was run"), "{result}");
    assert_eq!(result["evidence"][0]["calls"], json!([]), "it cites nothing that was done");

    // Sent back, a Checker that then looks is believed.
    let looks = r#"
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["a.txt holds one [1]"]}'
"#;
    let played = play(&(scenario.trim_end().to_owned() + looks), &["--max-cycles", "1"], 0);
    let result = &only(&played.events, "checker_complete")["result"];
    assert_eq!((&result["by"], &result["evidence"][0]["calls"][0]["tool"]), (&json!("checker"), &json!("read_file")));
}

#[test]
fn what_a_checker_changes_is_neither_delivered_nor_seen_by_the_next() {
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")])
        + r#"  - turns:
      - tool_calls:
          - {tool: bash_command, arguments: {command: "test ! -e planted.txt && echo two >> a.txt; ls"}}
"# + &format!("          - {HAND_IN}\n      - text: Done again.\n")
        + r#"
checker:
  - turns:
      - tool_calls:
          - {tool: bash_command, arguments: {command: "echo spoilt > a.txt; echo x > planted.txt; rm -f __output.json; cat a.txt"}}
      - text: '{"verdict": "needs_improvement", "reason": "more", "feedback": "add two", "verified": ["a.txt [1]"]}'
  - turns:
      - tool_calls:
          - {tool: bash_command, arguments: {command: "cat a.txt; test ! -e planted.txt"}}
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["a.txt [1]"]}'
"#;
    let played = play(&scenario, &[], 0);
    assert_eq!(played.session.text("files/a.txt"), "one\ntwo\n");
    assert!(!played.session.file("files/planted.txt").exists());
    let seen = last(&played.events, "checker_tool_result");
    assert_eq!(seen["exit_code"], 0, "{seen}");
    assert!(seen["output"].as_str().unwrap().contains("one\ntwo\n"), "{seen}");
}

#[test]
fn an_acceptance_command_that_fails_sends_back_and_one_that_succeeds_lets_the_checker_decide() {
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")])
        + "  - turns:\n      - tool_calls: [{tool: bash_command, arguments: {command: \"echo two >> a.txt\"}}]\n"
        + &format!("      - tool_calls: [{HAND_IN}]\n      - text: Done again.\n")
        + PASSES;
    let check = "echo looked > trace-of-check.txt; grep two a.txt";
    let played = play(&scenario, &["--check", check], 0);
    let gates: Vec<&Value> = all(&played.events, "gate_result").into_iter().filter(|g| g["name"] == "check").collect();
    assert_eq!((&gates[0]["ok"], &gates[1]["ok"]), (&json!(false), &json!(true)));
    assert!(gates[0]["detail"].as_str().unwrap().contains("exit code 1"), "{}", gates[0]);
    let starts: Vec<&Value> = all(&played.events, "checker_start").iter().map(|e| &e["by"]).collect();
    assert_eq!(starts, ["gates", "checker"]);
    assert!(!played.session.file("files/trace-of-check.txt").exists(), "it runs in the copy");
    let contract = only(&played.events, "contract");
    assert_eq!(contract["contract"]["checks"], json!([check]));
}

#[test]
fn a_used_up_budget_stops_and_raising_it_goes_on() {
    let turns = [WRITE, r#"{tool: list_files, arguments: {path: "."}}"#, HAND_IN];
    let usage = "      - usage: {prompt_tokens: 900, completion_tokens: 100}\n        tool_calls";
    let scenario = worker(&turns).replace("      - tool_calls", usage) + PASSES;
    let played = play(&scenario, &["--budget-tokens", "1100"], 4);
    let end = played.events.last().unwrap();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("session_stopped"), &json!("budget")));
    assert!(end["reason"].as_str().unwrap().contains("1100"), "{end}");
    assert_eq!(all(&played.events, "usage").len(), 2, "the call that reaches the limit is the last");
    assert!(!all(&played.events, "budget_warning").is_empty());
    let same = played.desk.run(&["resume", "last", "--json"]);
    assert_eq!(same.code, Some(4), "not raised: {}", same.stderr);
    let events = played.desk.events(&["resume", "last", "--json", "--budget-tokens", "100k"], 0);
    assert_order(&events);
    assert_eq!(only(&events, "budget_set")["budget"]["tokens"], 100_000);
    assert_order(&played.session.journal());
}

#[test]
fn time_that_is_used_up_ends_the_running_command() {
    let slow = r#"{tool: bash_command, arguments: {command: "echo > begun.txt; sleep 300"}}"#;
    let played = play(&(worker(&[WRITE, slow, HAND_IN]) + PASSES), &["--timeout", "2s"], 4);
    assert_eq!(played.events.last().unwrap()["outcome"], "budget");
    let events = played.desk.events(&["resume", "last", "--json", "--timeout", "10m"], 0);
    assert_order(&events);
    assert_order(&played.session.journal());
}

#[test]
fn nobody_there_to_be_asked_ends_with_6_and_changes_nothing() {
    let played = play(&(worker(&[WRITE, HAND_IN]) + PASSES), &["--permission-mode", "ask"], 6);
    let end = played.events.last().unwrap();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("session_stopped"), &json!("needs_human")));
    assert!(!played.session.file("files/a.txt").exists());
    let again = played.desk.run(&["resume", "last", "--json"]);
    assert_eq!(again.code, Some(6), "it asks again: {}", again.stderr);
    assert_order(&played.session.journal());
}

#[test]
fn a_worker_that_may_only_read_has_no_tool_to_change_anything() {
    let played = play(&(worker(&[WRITE]) + PASSES), &["--permission-mode", "plan", "--max-cycles", "1"], 1);
    assert!(!played.session.file("files/a.txt").exists());
    let result = &played.results()[0];
    assert!(result.contains("write_file") && result.contains("read_file"), "it names what is allowed: {result}");
}

#[test]
fn a_message_reaches_the_running_worker_at_its_next_step() {
    let desk = Desk::new();
    let waits =
        r#"{tool: bash_command, arguments: {command: "echo > ready.txt; while [ ! -e go.txt ]; do sleep 0.05; done"}}"#;
    let model = desk.scenario("waits", &(worker(&[waits, &format!("{WRITE}, {HAND_IN}")]) + PASSES));
    let live = desk.start(&["run", "--json", "--model", &model, "write a.txt"]);
    let ready = || desk.session_homes().first().is_some_and(|home| home.join("files/ready.txt").exists());
    wait_until("the command", || ready().then_some(()));
    let session = desk.session();
    let said = desk.run(&["resume", "last", "use blue, please"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("next step"), "{}", said.stdout);
    live.wait_for("the message", |e| e["type"] == "user_message");
    fs::write(session.file("files/go.txt"), "").unwrap();
    let ended = live.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let events = ended.events();
    assert_order(&events);
    let states: Vec<&Value> = all(&events, "user_message").iter().map(|e| &e["state"]).collect();
    assert_eq!(states, ["queued", "delivered"]);
    let messages = session.messages(&session.worker(1));
    let at =
        messages.values().position(|m| m["content"].to_string().contains("use blue")).expect("it is in the history");
    let before = messages.values().nth(at - 1).unwrap();
    assert_eq!(before["role"], "tool", "right after the command's result");
}

#[test]
fn a_provider_that_fails_for_a_while_is_asked_again_and_one_that_stays_away_ends_with_3() {
    let error = "      - error: {kind: overloaded, after_s: 0.01, times: 2}\n        tool_calls";
    let scenario = worker(&[&format!("{WRITE}, {HAND_IN}")]).replace("      - tool_calls", error) + PASSES;
    let played = play(&scenario, &[], 0);
    let retries: Vec<u64> = all(&played.events, "retry").iter().map(|e| e["attempt"].as_u64().unwrap()).collect();
    assert_eq!(retries, [1, 2]);

    let error = "      - error: {kind: quota}\n        tool_calls";
    let scenario = worker(&[WRITE]).replace("      - tool_calls", error) + PASSES;
    let played = play(&scenario, &[], 3);
    let end = played.events.last().unwrap();
    assert_eq!(
        (&end["type"], &end["outcome"], &end["stage"]),
        (&json!("session_error"), &json!("provider_error"), &json!("worker"))
    );
    assert!(end["cause"].as_str().unwrap().contains("quota"), "{end}");
}
