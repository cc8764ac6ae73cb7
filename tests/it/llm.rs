//! The provider adapters against a real server on this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use super_agent::config::Config;
use super_agent::llm::Provider;
use super_agent::llm::chat::{
    Answer, Caller, ChatMessage, ChatRole, Content, Delta, FinishReason, Request, ToolCall, ToolSpec, Usage,
};
use super_agent::llm::error::{ErrorKind, ProviderError};
use super_agent::llm::registry::Registry;
use super_agent::llm::retry::{RetryPolicy, call_with_retry};
use super_agent::llm::scripted::scenario::Scenario;
use super_agent::llm::scripted::{Scripted, play};
use super_agent::stdx::random::SeededRandom;
use tokio_util::sync::CancellationToken;

use crate::support::provider_server::{
    Ending, KEY, ProviderServer, ReceivedRequest, ServerAnswer, Speech, scenario_answers,
};

const BOTH: [&str; 2] = ["oai/m", "ant/m"];

fn request(messages: Vec<ChatMessage>) -> Request {
    let tool =
        ToolSpec { name: "read_file".into(), description: "reads".into(), parameters: json!({"type": "object"}) };
    Request {
        model: "m".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [tool].into(),
        allow_tool_calls: true,
        temperature: Some(0.3),
        max_output_tokens: None,
        caller: Caller::default(),
    }
}

fn go() -> Request {
    request(vec![ChatMessage::text(ChatRole::System, "be good"), ChatMessage::text(ChatRole::User, "go")])
}

fn provider(server: &ProviderServer, reference: &str) -> Arc<dyn Provider> {
    with_config(server, reference, &server.config())
}

fn with_config(server: &ProviderServer, reference: &str, config: &Config) -> Arc<dyn Provider> {
    Registry::new(config, server.env(), ".").resolve(reference).unwrap().provider
}

async fn call(server: &ProviderServer, reference: &str) -> Result<Answer, ProviderError> {
    provider(server, reference).call(&go(), &|_| {}).await
}

fn speech() -> Speech {
    Speech {
        thinking: "Let me see 🤔".into(),
        text: "I read the file — straße, 漢字, 😀.".into(),
        tool_calls: vec![
            ToolCall::new("call_a", "read_file", r#"{"path":"ä.txt"}"#),
            ToolCall::new("call_b", "read_file", r#"{"path":"b.txt"}"#),
        ],
        usage: Some(Usage { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 60, ..Usage::default() }),
        finish: None,
        delta_chars: 3,
    }
}

#[tokio::test]
async fn an_answer_is_the_same_however_it_is_cut() {
    for reference in BOTH {
        for piece in [1, 7, 64, usize::MAX] {
            let server = ProviderServer::start(|_| ServerAnswer::Speak(speech())).with_pieces(piece);
            let heard = Mutex::new((String::new(), String::new(), vec![String::new(), String::new()]));
            let listen = |delta: Delta<'_>| {
                let mut heard = heard.lock().unwrap();
                match delta {
                    Delta::Thinking(text) => heard.0.push_str(text),
                    Delta::Text(text) => heard.1.push_str(text),
                    Delta::ToolCall { index, arguments, .. } => heard.2[index].push_str(arguments),
                }
            };
            let answer = provider(&server, reference).call(&go(), &listen).await.unwrap();
            let said = speech();
            assert_eq!(answer.message.plain_text(), said.text);
            assert_eq!(answer.message.tool_calls, said.tool_calls);
            assert_eq!(answer.usage, said.usage);
            assert_eq!(answer.finish, FinishReason::ToolCalls);
            let arguments = said.tool_calls.iter().map(|call| call.function.arguments.clone()).collect();
            assert_eq!(*heard.lock().unwrap(), (said.thinking, said.text, arguments), "{reference} {piece}");
        }
    }
}

/// Plays a whole run: each answer's calls get a result, until one has none.
async fn converse(provider: &dyn Provider) -> Vec<ChatMessage> {
    let mut history = vec![ChatMessage::text(ChatRole::System, "be good"), ChatMessage::text(ChatRole::User, "go")];
    loop {
        let answer = provider.call(&request(history.clone()), &|_| {}).await.unwrap();
        let calls = answer.message.tool_calls.clone();
        history.push(answer.message);
        if calls.is_empty() {
            return history;
        }
        for call in calls {
            history.push(ChatMessage::tool_result(&call.id, Content::Text(format!("result of {}", call.id))));
        }
    }
}

const RUN: &str = r#"
name: run
worker:
  - turns:
      - thinking: first I think
        tool_calls:
          - { tool: read_file, arguments: { path: a }, id: "functions.read:0" }
          - { tool: read_file, arguments: { path: b } }
      - text: And once more.
        tool_calls: [{ tool: read_file, arguments: { path: c }, id: "functions.read:0" }]
      - text: "Read {{result last}}"
"#;

#[tokio::test]
async fn a_whole_run_leaves_no_call_unanswered_and_only_appends() {
    for reference in BOTH {
        let scenario = Scenario::parse(RUN, "run").unwrap();
        let server = ProviderServer::start(scenario_answers(scenario, |request| {
            let role = if request.system_text() == "be good" { "worker" } else { "nobody" };
            Caller { role: role.into(), cycle: 1 }
        }));
        let history = converse(provider(&server, reference).as_ref()).await;
        assert_eq!(history.last().unwrap().plain_text(), "Read result of call_5_0", "a repeated id was made unique");
        server.assert_histories_are_whole();
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        for pair in requests.windows(2) {
            let (shorter, longer) = (stable(&pair[0]), stable(&pair[1]));
            assert!(longer.starts_with(&shorter), "{reference}: what was sent before must stay");
        }
    }
}

/// The body without cache marks and without what closes it.
fn stable(request: &ReceivedRequest) -> String {
    let text = String::from_utf8(request.bytes.clone()).unwrap();
    let text = text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    text.strip_suffix("]}").unwrap().to_owned()
}

#[tokio::test]
async fn thinking_goes_back_unchanged_to_the_model_that_made_it() {
    let server = ProviderServer::start(scenario_answers(Scenario::parse(RUN, "run").unwrap(), |_| Caller::default()));
    converse(provider(&server, "ant/m").as_ref()).await;
    let sent = &server.requests()[1].body["messages"][1]["content"];
    assert_eq!(sent[0], json!({"type": "thinking", "thinking": "first I think", "signature": "signed"}));
}

#[tokio::test]
async fn each_protocol_carries_the_key_in_its_own_header() {
    let server = ProviderServer::start(|_| ServerAnswer::text("hi"));
    for reference in BOTH {
        call(&server, reference).await.unwrap();
    }
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(requests[1].path, "/v1/messages");
    assert_eq!(requests[1].headers["x-api-key"], KEY);
    assert_eq!(requests[1].headers["anthropic-version"], "2023-06-01");
    assert!(!requests[1].headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_key_is_never_carried_to_another_server() {
    let thief = ProviderServer::start(|_| ServerAnswer::text("thanks"));
    for status in [301, 302, 307, 308] {
        let target = format!("{}/v1/x?token=abc", thief.url());
        let server = ProviderServer::start(move |_| ServerAnswer::http(status, &[("location", &target)], ""));
        for reference in BOTH {
            let error = call(&server, reference).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadRequest);
            let expected = format!("{} redirects to {}/v1/x ({status})", server.host(), thief.url());
            assert_eq!(error.message, expected);
        }
    }
    assert_eq!(thief.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed() {
    let server = ProviderServer::start(|request| {
        if request.path.starts_with("/new") {
            return ServerAnswer::text("hi");
        }
        ServerAnswer::http(307, &[("location", "/new/chat/completions")], "")
    });
    assert_eq!(call(&server, "oai/m").await.unwrap().message.plain_text(), "hi");
    assert_eq!(server.requests()[1].body["model"], "m");
}

#[tokio::test]
async fn an_unknown_model_is_answered_with_those_there_are() {
    let refusal = || ServerAnswer::refusal(404, json!({"error": {"type": "not_found_error", "message": "model: m"}}));
    let server = ProviderServer::start(move |_| refusal());
    for reference in BOTH {
        let error = call(&server, reference).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownModel);
        assert_eq!(error.hint.as_deref(), Some("this key may use model-a, model-b"));
    }
}

#[tokio::test]
async fn no_error_holds_the_key() {
    for status in [400, 401, 429, 500] {
        let refusal = json!({"error": {"message": format!("bad key {KEY} or {KEY}x")}});
        let server = ProviderServer::start(move |_| ServerAnswer::refusal(status, refusal.clone()));
        for reference in BOTH {
            let error = call(&server, reference).await.unwrap_err();
            assert!(!format!("{error:?}").contains(KEY), "{error:?}");
            assert!(error.message.contains(&server.host()), "{error}");
        }
    }
}

#[tokio::test]
async fn what_a_model_does_not_take_is_left_out_at_once_and_from_then_on() {
    let server = ProviderServer::start(|request| {
        if request.body.get("temperature").is_some() {
            let message = "`temperature` is not supported with this model";
            return ServerAnswer::refusal(400, json!({"error": {"message": message}}));
        }
        ServerAnswer::text("hi")
    });
    for reference in BOTH {
        let provider = provider(&server, reference);
        for _ in 0..2 {
            provider.call(&go(), &|_| {}).await.unwrap();
        }
    }
    assert_eq!(server.requests().len(), 6, "one refusal each, then two answers each");
}

fn impatient(server: &ProviderServer) -> Config {
    let mut config = server.config();
    config.http.first_byte_timeout = Duration::from_millis(200);
    config.http.idle_timeout = Duration::from_millis(200);
    config
}

async fn failure(answer: impl Fn() -> ServerAnswer + Send + Sync + 'static, reference: &str) -> ProviderError {
    let server = ProviderServer::start(move |_| answer());
    let provider = with_config(&server, reference, &impatient(&server));
    let mut error = provider.call(&go(), &|_| {}).await.unwrap_err();
    error.message = error.message.replace(&server.host(), "HOST");
    error
}

#[tokio::test]
async fn a_broken_or_silent_connection_is_a_network_failure_that_says_when_it_broke() {
    let long = Duration::from_secs(5);
    let part = |ending| move || ServerAnswer::SpeakPart { speech: speech(), events: 4, ending };
    for reference in BOTH {
        let error = failure(move || ServerAnswer::Silence(long), reference).await;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Network, "HOST did not begin to answer within 0.2 s")
        );
        let error = failure(part(Ending::Stall(long)), reference).await;
        assert_eq!(error.message, "HOST stopped mid-answer: nothing came for 0.2 s");
        let error = failure(part(Ending::Cut), reference).await;
        assert_eq!(error.kind, ErrorKind::Network);
        assert!(error.message.starts_with("the connection to HOST broke mid-answer: "), "{error}");
        let error = failure(part(Ending::Complete), reference).await;
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Malformed, "HOST stopped mid-answer"));
    }
}

#[tokio::test]
async fn an_answer_that_lacks_only_its_end_marker_counts() {
    let mut said = speech();
    said.usage = None;
    let whole = crate::support::provider_server::events;
    for (reference, path) in [("oai/m", "/v1/chat/completions"), ("ant/m", "/v1/messages")] {
        let request = ReceivedRequest {
            method: "POST".into(),
            path: path.into(),
            headers: BTreeMap::new(),
            bytes: Vec::new(),
            body: Value::Null,
        };
        let events = whole(&request, &said).len() - 1;
        for ending in [Ending::Complete, Ending::Cut] {
            let speech = said.clone();
            let server =
                ProviderServer::start(move |_| ServerAnswer::SpeakPart { speech: speech.clone(), events, ending });
            let answer = call(&server, reference).await.unwrap();
            assert_eq!(answer.message.tool_calls, said.tool_calls, "{reference} {ending:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = ProviderServer::start(|_| ServerAnswer::text("hi"));
    let mut config = server.config();
    config.providers.get_mut("oai").unwrap().base_url = Some("http://127.0.0.1:9/v1".into());
    config.providers.get_mut("ant").unwrap().base_url = Some("http://name.invalid".into());
    let error = with_config(&server, "oai/m", &config).call(&go(), &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "oai: 127.0.0.1:9 refuses the connection");
    assert_eq!(error.kind, ErrorKind::Network);
    let error = with_config(&server, "ant/m", &config).call(&go(), &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "ant: the address of name.invalid can't be found (DNS)");
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart_from_one_that_is_down() {
    let server = ProviderServer::start(|_| ServerAnswer::text("hi"));
    let mut config = server.config();
    config.providers.get_mut("oai").unwrap().base_url = Some(format!("https://{}/v1", server.host()));
    let error = with_config(&server, "oai/m", &config).call(&go(), &|_| {}).await.unwrap_err();
    assert!(error.message.starts_with(&format!("no secure connection to {}", server.host())), "{error}");
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_points_at_the_address() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    for headers in [&[("content-type", "text/html")][..], &[]] {
        let headers = headers.to_vec();
        let server = ProviderServer::start(move |_| ServerAnswer::http(200, &headers, page));
        for reference in BOTH {
            let error = call(&server, reference).await.unwrap_err();
            assert!(error.message.contains("a web page (“Sign in”)"), "{error}");
            assert!(error.hint.unwrap().contains("base_url"));
        }
    }
}

#[tokio::test]
async fn a_document_in_place_of_a_stream_is_taken() {
    let server = ProviderServer::start(|request| {
        let body = if request.is_anthropic() {
            json!({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"})
        } else {
            json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
        };
        ServerAnswer::refusal(200, body)
    });
    for reference in BOTH {
        assert_eq!(call(&server, reference).await.unwrap().message.plain_text(), "hi");
    }
}

#[tokio::test]
async fn a_refusal_that_passes_is_retried_after_the_wait_it_asks_for() {
    let count = AtomicUsize::new(0);
    let server = ProviderServer::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => ServerAnswer::http(429, &[("retry-after", "0")], "{}"),
        1 => ServerAnswer::http(529, &[("retry-after-ms", "1")], "{}"),
        _ => ServerAnswer::text("hi"),
    });
    let provider = provider(&server, "ant/m");
    let random = SeededRandom::new(1);
    let notices = Mutex::new(Vec::new());
    let answer = call_with_retry(
        provider.as_ref(),
        &go(),
        RetryPolicy { attempts: 4, random: random.as_ref() },
        &CancellationToken::new(),
        &|_| {},
        &|notice| notices.lock().unwrap().push((notice.attempt, notice.error.kind)),
    )
    .await
    .unwrap();
    assert_eq!(answer.message.plain_text(), "hi");
    let expected = [
        (1, ErrorKind::RateLimit { after: Some(Duration::ZERO) }),
        (2, ErrorKind::Overloaded { after: Some(Duration::from_millis(1)) }),
    ];
    assert_eq!(*notices.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_large_answer_in_small_pieces_arrives_whole() {
    let text: String = (0..25_000).map(|n| format!("{n:08} and some words to fill the line.\n")).collect();
    for reference in BOTH {
        let speech = Speech { text: text.clone(), delta_chars: 40, ..Speech::default() };
        let server = ProviderServer::start(move |_| ServerAnswer::Speak(speech.clone())).with_pieces(1460);
        assert_eq!(call(&server, reference).await.unwrap().message.plain_text(), text);
    }
}

#[tokio::test]
async fn this_machine_is_not_reached_through_a_proxy() {
    let server = ProviderServer::start(|_| ServerAnswer::text("hi"));
    let proxy = ProviderServer::start(|_| ServerAnswer::text("through the proxy"));
    let mut env = server.env();
    env.insert("HTTP_PROXY".into(), proxy.url());
    let mut config = server.config();
    let text = async |config: &Config| {
        let provider = Registry::new(config, env.clone(), ".").resolve("oai/m").unwrap().provider;
        provider.call(&go(), &|_| {}).await.unwrap().message.plain_text()
    };
    assert_eq!(text(&config).await, "hi");
    config.providers.get_mut("oai").unwrap().base_url = Some("http://name.invalid/v1".into());
    assert_eq!(text(&config).await, "through the proxy");
}

#[tokio::test]
async fn a_local_ollama_is_the_default_when_no_key_is_set() {
    let server = ProviderServer::start(|request| match request.path.as_str() {
        "/api/tags" => ServerAnswer::refusal(200, json!({"models": [{"name": "embed"}, {"name": "qwen3:8b"}]})),
        "/api/show" if request.body["model"] == "qwen3:8b" => {
            ServerAnswer::refusal(200, json!({"capabilities": ["completion", "tools"]}))
        }
        "/api/show" => ServerAnswer::refusal(200, json!({"capabilities": ["embedding"]})),
        _ => ServerAnswer::text("hi"),
    });
    let env = BTreeMap::from([("OLLAMA_HOST".to_owned(), server.host())]);
    let choice = Registry::new(&Config::default(), env, ".").choose(None).await.unwrap();
    assert_eq!(choice.reference, "ollama/qwen3:8b");
    let reason = choice.reason.unwrap();
    assert!(reason.contains(&server.host()) && reason.contains("no key is set"), "{reason}");
    let answer = choice.provider.call(&go(), &|_| {}).await.unwrap();
    assert_eq!(answer.message.plain_text(), "hi");
    assert_eq!(server.requests().last().unwrap().path, "/v1/chat/completions");
}

/// Carries out one call of the rehearsal in `dir`, as simply as possible.
fn carry_out(dir: &Path, call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.function.arguments).unwrap();
    let text = |name: &str| arguments[name].as_str().unwrap_or_else(|| panic!("{name} of {call:?}")).to_owned();
    let file = || dir.join(text("path"));
    match call.function.name.as_str() {
        "goal" | "list_files" => String::new(),
        "read_file" => std::fs::read_to_string(file()).unwrap(),
        "write_file" => {
            std::fs::write(file(), text("content")).unwrap();
            String::new()
        }
        "edit_file" => {
            let before = std::fs::read_to_string(file()).unwrap();
            assert_eq!(before.matches(&text("old")).count(), 1, "{before}");
            std::fs::write(file(), before.replace(&text("old"), &text("new"))).unwrap();
            String::new()
        }
        "grep_content" => {
            let content = std::fs::read_to_string(file()).unwrap();
            content.lines().filter(|line| line.contains(text("pattern").split(".*").next().unwrap())).collect()
        }
        "bash_command" => {
            let output = Command::new("sh").args(["-c", &text("command")]).current_dir(dir).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{call:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        }
        other => panic!("the rehearsal calls `{other}`"),
    }
}

/// Plays one run of the rehearsal; returns its last text and all results.
async fn rehearse(scripted: &Scripted, dir: &Path, role: &str, cycle: u32) -> (String, Vec<String>) {
    let mut history = vec![ChatMessage::text(ChatRole::User, "the page has no title element")];
    let mut results = Vec::new();
    loop {
        let mut request = request(history.clone());
        request.caller = Caller { role: role.into(), cycle };
        let answer = scripted.call(&request, &|_| {}).await.unwrap();
        let calls = answer.message.tool_calls.clone();
        history.push(answer.message);
        if calls.is_empty() {
            return (history.last().unwrap().plain_text(), results);
        }
        for call in calls {
            let result = carry_out(dir, &call);
            results.push(result.clone());
            history.push(ChatMessage::tool_result(&call.id, Content::Text(result)));
        }
    }
}

#[tokio::test]
async fn the_rehearsal_has_a_real_defect_that_is_really_found_and_mended() {
    let scripted = Scripted::new(Scenario::embedded("rehearsal").unwrap().unwrap(), 0.0);
    let dir = tempfile::tempdir().unwrap();
    let verdict = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let output = dir.path().join("__output.json");
    let page = || std::fs::read_to_string(dir.path().join("index.html")).unwrap();
    let claimed = || {
        let claim: Value = serde_json::from_slice(&std::fs::read(&output).unwrap()).unwrap();
        let files: Vec<String> = serde_json::from_value(claim["files"].clone()).unwrap();
        files.iter().all(|file| dir.path().join(file).is_file())
    };

    rehearse(&scripted, dir.path(), "worker", 1).await;
    assert!(claimed(), "no gate sees the defect");
    assert!(!page().contains("<title>"));
    let (said, results) = rehearse(&scripted, dir.path(), "checker", 1).await;
    assert_eq!(verdict(&said)["verdict"], "needs_improvement");
    assert_eq!(results[3], "", "the Checker's search really finds no title");
    assert_eq!(results[4], "<title>  0\n<h1>     1\n<p>      1\n");

    std::fs::remove_file(&output).unwrap();
    rehearse(&scripted, dir.path(), "worker", 2).await;
    assert!(claimed());
    assert!(page().contains("    <title>Hello World</title>\n    <link rel"), "{}", page());
    let (said, results) = rehearse(&scripted, dir.path(), "checker", 2).await;
    assert_eq!(verdict(&said)["verdict"], "passed");
    assert!(
        results[2].starts_with("<title>   1\n</title>  1\n<h1>      1\n<p>       1\n</p>      1\n"),
        "{}",
        results[2]
    );
}

#[tokio::test]
async fn the_scenario_that_never_passes_changes_something_in_every_cycle() {
    let scripted = Scripted::new(Scenario::embedded("never-passes").unwrap().unwrap(), 0.0);
    let dir = tempfile::tempdir().unwrap();
    for cycle in 1..=3 {
        rehearse(&scripted, dir.path(), "worker", cycle).await;
        let log = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
        assert_eq!(log.lines().count(), cycle as usize);
        let (said, _) = rehearse(&scripted, dir.path(), "checker", cycle).await;
        assert!(said.contains("needs_improvement"));
    }
}

#[test]
fn citations_of_the_rehearsal_point_at_calls_that_were_made() {
    let scenario = Scenario::embedded("rehearsal").unwrap().unwrap();
    for (cycle, script) in (1..).zip(&scenario.roles["checker"]) {
        let calls: usize = script.turns.iter().map(|turn| turn.tool_calls.len()).sum();
        let answer = Arc::new(ChatMessage::text(ChatRole::Assistant, ""));
        let answers: Vec<_> = (1..script.turns.len()).map(|_| answer.clone()).collect();
        let last = play(&scenario, &Caller { role: "checker".into(), cycle }, &answers).unwrap();
        let verdict: Value = serde_json::from_str(&last.text).unwrap();
        for item in verdict["verified"].as_array().unwrap() {
            let item = item.as_str().unwrap();
            let cited = item.rsplit_once('[').unwrap().1.trim_end_matches(']');
            assert!(cited.split(',').all(|n| (1..=calls).contains(&n.parse().unwrap())), "{item}");
        }
    }
}
