//! Claims about scenarios: how they are read and played.

use pretty_assertions::assert_eq;

use super::*;
use crate::llm::chat::Content;

const YAML: &str = r#"
name: small
worker:
  - turns:
      - text: I look.
        thinking: hm
        tool_calls:
          - tool: read_file
            arguments: { path: a.txt }
          - { tool: bash_command, arguments: "not json", id: mine }
      - text: "It says {{result 1}} and {{result last}}."
        expect: { contains: [beta] }
  - turns:
      - text: second cycle
checker:
  - turns:
      - text: verdict
"#;

fn request(cycle: u32, role: &str, messages: Vec<ChatMessage>) -> Request {
    Request {
        model: "small".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
        allow_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        caller: Caller { role: role.into(), cycle },
    }
}

async fn call(yaml: &str, request: &Request) -> (Result<Answer, ProviderError>, Vec<String>) {
    let provider = Scripted::new(Scenario::parse(yaml, "test").unwrap(), 0.0);
    let deltas = Mutex::new(Vec::new());
    let answer = provider.call(request, &|delta| deltas.lock().unwrap().push(format!("{delta:?}"))).await;
    (answer, deltas.into_inner().unwrap())
}

fn after_first_turn() -> Vec<ChatMessage> {
    vec![
        ChatMessage::text(ChatRole::User, "go"),
        ChatMessage::text(ChatRole::Assistant, "I look."),
        ChatMessage::tool_result("call_1_1", Content::Text("alpha".into())),
        ChatMessage::tool_result("mine", Content::Text("beta".into())),
    ]
}

#[tokio::test]
async fn the_turn_follows_from_the_history() {
    let (answer, deltas) = call(YAML, &request(1, "worker", vec![ChatMessage::text(ChatRole::User, "go")])).await;
    let answer = answer.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert_eq!(
        answer.message.tool_calls,
        [
            ToolCall::new("call_1_1", "read_file", r#"{"path":"a.txt"}"#),
            ToolCall::new("mine", "bash_command", "not json")
        ]
    );
    assert_eq!(deltas[0], "Thinking(\"hm\")");
    let (answer, _) = call(YAML, &request(1, "worker", after_first_turn())).await;
    assert_eq!(answer.unwrap().message.plain_text(), "It says alpha and beta.");
}

#[tokio::test]
async fn the_last_cycle_repeats_and_roles_are_apart() {
    for cycle in [2, 3, 9] {
        let (answer, _) = call(YAML, &request(cycle, "worker", Vec::new())).await;
        assert_eq!(answer.unwrap().message.plain_text(), "second cycle");
    }
    let (answer, _) = call(YAML, &request(4, "checker", Vec::new())).await;
    assert_eq!(answer.unwrap().message.plain_text(), "verdict");
}

#[tokio::test]
async fn what_the_script_does_not_hold_is_a_scenario_error() {
    let mut history = after_first_turn();
    history.push(ChatMessage::text(ChatRole::Assistant, "done"));
    let (answer, _) = call(YAML, &request(1, "worker", history)).await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Scenario);
    assert_eq!(error.message, "scenario `small`: role `worker`, cycle 1, turn 3: the script has only 2 turns");
    let (answer, _) = call(YAML, &request(1, "planner", Vec::new())).await;
    assert_eq!(answer.unwrap_err().hint.as_deref(), Some("its roles are checker, worker"));
    let mut history = after_first_turn();
    history.pop();
    let (answer, _) = call(YAML, &request(1, "worker", history)).await;
    assert!(answer.unwrap_err().message.contains("expected `beta`"));
}

#[tokio::test]
async fn an_error_is_raised_as_often_as_it_says() {
    let yaml =
        "name: e\nworker:\n  - turns:\n      - text: hi\n        error: {kind: rate_limit, after_s: 2, times: 1}\n";
    let provider = Scripted::new(Scenario::parse(yaml, "test").unwrap(), 0.0);
    let request = request(1, "worker", Vec::new());
    let error = provider.call(&request, &|_| {}).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimit { after: Some(Duration::from_secs(2)) });
    assert_eq!(provider.call(&request, &|_| {}).await.unwrap().message.plain_text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn text_is_spoken_in_words_with_pauses() {
    let yaml = "name: e\npace: {delay_ms: 100, chunk_ms: 10}\nworker:\n  - turns:\n      - text: \"one two  three\"\n";
    let provider = Scripted::new(Scenario::parse(yaml, "test").unwrap(), 1.0);
    let pieces = Mutex::new(Vec::new());
    let started = tokio::time::Instant::now();
    let record = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            pieces.lock().unwrap().push(text.to_owned());
        }
    };
    provider.call(&request(1, "worker", Vec::new()), &record).await.unwrap();
    assert_eq!(*pieces.lock().unwrap(), ["one ", "two  ", "three"]);
    assert_eq!(started.elapsed(), Duration::from_millis(120));
}

#[tokio::test]
async fn no_tool_is_called_when_none_may_be() {
    let mut request = request(1, "worker", Vec::new());
    request.allow_tool_calls = false;
    let (answer, _) = call(YAML, &request).await;
    assert_eq!(answer.unwrap().message.tool_calls, []);
}

#[track_caller]
fn check_rejected(yaml: &str, line: &str, why: &str) {
    let error = Scenario::parse(yaml, "file.yaml").unwrap_err();
    assert!(error.starts_with("file.yaml: ") && error.contains(line) && error.contains(why), "{error}");
}

#[test]
fn a_wrong_scenario_is_refused_with_its_place() {
    check_rejected("name: a\nworkers: yes\n", "line 2", "");
    check_rejected("name: a\nBogus: 1\n", "line 2", "unknown key `Bogus`");
    check_rejected("name: a\nworker:\n  - turns:\n      - txet: hi\n", "line 4", "txet");
    check_rejected("name: a\nworker:\n  - turns:\n      - error: {kind: nothing}\n", "line 4", "nothing");
    check_rejected("name: a\n", "", "no role");
    check_rejected("name: a\nworker: []\n", "", "no cycle");
    check_rejected("name: a\nworker:\n  - turns:\n      - tool_calls: [{tool: x, arguments: [1]}]\n", "turn 1", "`x`");
}

#[test]
fn every_embedded_scenario_is_read_and_named_as_it_is_called() {
    for (name, _) in EMBEDDED {
        let scenario = Scenario::embedded(name).unwrap().unwrap();
        assert_eq!(scenario.name, *name);
        assert!(!scenario.description.is_empty() && !scenario.objective.is_empty(), "{name}");
        for role in ["worker", "checker"] {
            let last = scenario.script(role, 99).and_then(|script| script.turns.last()).unwrap();
            assert!(last.tool_calls.is_empty(), "{name}: {role} never ends");
        }
    }
    assert_eq!(Scenario::embedded("nothing"), None);
}
