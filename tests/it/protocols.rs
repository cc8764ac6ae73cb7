//! The same session over both protocols, however the stream is cut into pieces.

use std::collections::BTreeMap;

use serde_json::Value;
use super_agent::llm::chat::Caller;
use super_agent::llm::scripted::scenario::Scenario;

use crate::support::desk::{Desk, assert_order, condensed, files_below};
use crate::support::provider_server::{KEY, ProviderServer, ReceivedRequest, scenario_answers};

const OBJECTIVE: &str = "Create a Hello World web page.";

/// Who asks, told by the standing instruction and by what the Worker was given.
fn caller(request: &ReceivedRequest) -> Caller {
    let texts: String = request.messages().iter().map(|m| m.plain_text()).collect();
    let is_checker = request.system_text().contains("independent quality auditor");
    // In cycle 2 the Worker hears of the verdict, and the Checker of the mended page.
    let second = if is_checker { texts.contains("its missing title") } else { texts.contains("review_verdict") };
    Caller { role: if is_checker { "checker" } else { "worker" }.to_owned(), cycle: if second { 2 } else { 1 } }
}

fn rehearsal() -> Scenario {
    Scenario::embedded("rehearsal").expect("it is embedded").expect("it is valid")
}

/// What a session came to, apart from ids, times and costs.
#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<String>,
    files: BTreeMap<String, Vec<u8>>,
    archive: Vec<String>,
    messages: Vec<(String, String)>,
}

fn story(desk: &Desk, events: &[Value]) -> Story {
    let session = desk.session();
    let mut messages = Vec::new();
    for start in events.iter().filter(|e| e["type"] == "trace_start") {
        let trace = start["trace_id"].as_str().unwrap();
        // The Worker's task names time and folder, the Checker's a random boundary.
        for message in session.messages(trace).into_values().filter(|m| m["role"] != "user" && m["role"] != "system") {
            let description = message["description"].as_str().unwrap_or_default().to_owned();
            messages.push((message["role"].as_str().unwrap().to_owned(), description));
        }
    }
    Story {
        events: condensed(events),
        files: session.tree("files"),
        archive: (1..=2).map(|cycle| session.text(&format!("__output_cycle_000{cycle}.json"))).collect(),
        messages,
    }
}

fn over_server(provider: &str, piece: usize) -> Story {
    let server = ProviderServer::start(scenario_answers(rehearsal(), caller)).with_pieces(piece);
    let desk = Desk::new().with("TEST_KEY", KEY).with("NO_PROXY", "*");
    desk.configure(&format!(
        "[providers.oai]\nprotocol = \"openai\"\nbase_url = \"{url}/v1\"\napi_key_env = \"TEST_KEY\"\n\
         [providers.ant]\nprotocol = \"anthropic\"\nbase_url = \"{url}\"\napi_key_env = \"TEST_KEY\"\n",
        url = server.url()
    ));
    let model = format!("{provider}/some-model");
    let ended = desk.run(&["run", "--json", "--model", &model, OBJECTIVE]);
    assert_eq!(ended.code, Some(0), "{provider} in pieces of {piece}: {}", ended.stderr);
    let events = ended.events();
    assert_order(&events);
    assert_eq!(events[0]["models"]["worker"], model.as_str());
    server.assert_histories_are_whole();
    assert_prefixes_stay(&server);
    let usage: u64 =
        events.iter().filter_map(|e| e["totals"]["prompt_tokens"].as_u64().filter(|_| e["type"] == "usage")).sum();
    assert_eq!(usage, 100 * server.requests().len() as u64, "what the provider reports is counted");
    assert_no_key(&desk, &[&ended.stdout, &ended.stderr]);
    story(&desk, &events)
}

/// History is append-only: each request of a conversation begins with the one before it, byte for
/// byte, so that a provider's cache hits.
fn assert_prefixes_stay(server: &ProviderServer) {
    let mut before: Vec<Value> = Vec::new();
    for request in server.requests() {
        let now: Vec<Value> =
            request.messages().iter().map(|m| serde_json::to_value(m).expect("a message is JSON")).collect();
        if now.len() > before.len() && now.first() == before.first() {
            assert_eq!(now[..before.len()], before[..], "the history before stays as it was sent");
        }
        before = now;
    }
}

fn assert_no_key(desk: &Desk, texts: &[&str]) {
    for text in texts {
        assert!(!text.contains(KEY), "the key was printed");
    }
    for (path, content) in files_below(desk.path()) {
        let found = content.windows(KEY.len()).any(|w| w == KEY.as_bytes());
        assert!(!found, "the key is in {path}");
    }
}

#[test]
fn both_protocols_in_any_pieces_give_the_session_of_the_script() {
    let desk = Desk::new();
    let events = desk.events(&["run", "--json", "--model", "scripted/rehearsal", OBJECTIVE], 0);
    let scripted = story(&desk, &events);
    for provider in ["oai", "ant"] {
        for piece in [1, usize::MAX] {
            let served = over_server(provider, piece);
            pretty_assertions::assert_eq!(served, scripted, "{provider} in pieces of {piece}");
        }
    }
}

#[test]
fn commands_of_a_session_do_not_see_the_key() {
    let scenario = r#"
worker:
  - turns:
      - tool_calls: [{tool: bash_command, arguments: {command: "env | sort > seen.txt; cat seen.txt"}}]
      - text: done
checker:
  - turns:
      - text: "{}"
"#;
    let scenario = Scenario::parse(scenario, "a scenario").unwrap();
    let server = ProviderServer::start(scenario_answers(scenario, caller));
    let desk = Desk::new().with("TEST_KEY", KEY).with("OPENAI_API_KEY", "sk-other-key-987654").with("NO_PROXY", "*");
    desk.configure(&format!(
        "[providers.oai]\nprotocol = \"openai\"\nbase_url = \"{}/v1\"\napi_key_env = \"TEST_KEY\"\n",
        server.url()
    ));
    let ended = desk.run(&["run", "--json", "--max-cycles", "1", "--model", "oai/some-model", "show the environment"]);
    assert_eq!(ended.code, Some(1), "no hand-over: {}", ended.stderr);
    let seen = desk.session().text("files/seen.txt");
    assert!(seen.contains("PATH="), "{seen}");
    assert!(!seen.contains("KEY"), "{seen}");
    assert_no_key(&desk, &[&ended.stdout, &ended.stderr]);
}

#[test]
fn a_refused_key_ends_with_3_and_the_way_out_and_resume_goes_on() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::support::provider_server::ServerAnswer;

    let accepts = Arc::new(AtomicBool::new(false));
    let (open, play) = (accepts.clone(), scenario_answers(rehearsal(), caller));
    let server = ProviderServer::start(move |request| {
        if open.load(Ordering::Acquire) {
            return play(request);
        }
        ServerAnswer::refusal(401, serde_json::json!({"error": {"message": "bad key sk-test-0123456789"}}))
    });
    let desk = Desk::new().with("TEST_KEY", KEY).with("NO_PROXY", "*");
    desk.configure(&format!(
        "[providers.oai]\nprotocol = \"openai\"\nbase_url = \"{}/v1\"\napi_key_env = \"TEST_KEY\"\n",
        server.url()
    ));
    let ended = desk.run(&["run", "--json", "--model", "oai/some-model", OBJECTIVE]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let events = ended.events();
    assert_order(&events);
    let error = events.last().unwrap();
    assert_eq!((error["type"].as_str(), error["outcome"].as_str()), (Some("session_error"), Some("provider_error")));
    assert_eq!(error["stage"], "worker");
    assert!(error["remedy"].as_str().unwrap().contains("TEST_KEY"), "{error}");
    assert_no_key(&desk, &[&ended.stdout, &ended.stderr]);
    accepts.store(true, Ordering::Release);
    let more = desk.events(&["resume", "last", "--json"], 0);
    assert_order(&more);
    server.assert_histories_are_whole();
    assert_eq!(desk.session().record()["outcome"], "passed");
}
