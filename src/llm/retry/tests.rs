//! Claims about trying again: what is, how often, and after which wait.

use std::sync::Mutex;

use super::*;
use crate::llm::chat::Caller;
use crate::llm::scripted::Scripted;
use crate::llm::scripted::scenario::Scenario;
use crate::stdx::random::SeededRandom;

fn scripted(error: &str) -> Scripted {
    let yaml = format!("name: t\nworker:\n  - turns:\n      - text: hello\n        error: {error}\n");
    Scripted::new(Scenario::parse(&yaml, "test").unwrap(), 1.0)
}

fn request() -> Request {
    Request {
        model: "t".into(),
        messages: Vec::new(),
        tools: [].into(),
        allow_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        caller: Caller::default(),
    }
}

struct Outcome {
    result: Result<Answer, CallError>,
    waits: Vec<Duration>,
    streamed: String,
}

/// Streamed text is discarded at every retry, as `on_retry` asks for.
async fn run(provider: &Scripted, attempts: u32, cancel: &CancellationToken) -> Outcome {
    let waits = Mutex::new(Vec::new());
    let streamed = Mutex::new(String::new());
    let random = SeededRandom::new(7);
    let result = call_with_retry(
        provider,
        &request(),
        RetryPolicy { attempts, random: random.as_ref() },
        cancel,
        &|delta| {
            if let Delta::Text(text) = delta {
                streamed.lock().unwrap().push_str(text);
            }
        },
        &|notice| {
            waits.lock().unwrap().push(notice.wait);
            streamed.lock().unwrap().clear();
        },
    )
    .await;
    Outcome { result, waits: waits.into_inner().unwrap(), streamed: streamed.into_inner().unwrap() }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_tried_again_and_its_deltas_do_not_count() {
    let outcome = run(&scripted("{kind: network, times: 2}"), 4, &CancellationToken::new()).await;
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.streamed, "hello");
    assert_eq!(outcome.waits.len(), 2);
    assert!((0.5..=1.0).contains(&outcome.waits[0].as_secs_f64()), "{:?}", outcome.waits);
    assert!((1.0..=2.0).contains(&outcome.waits[1].as_secs_f64()), "{:?}", outcome.waits);
}

#[tokio::test(start_paused = true)]
async fn the_wait_a_provider_asks_for_is_never_shortened() {
    let outcome = run(&scripted("{kind: rate_limit, after_s: 20, times: 1}"), 4, &CancellationToken::new()).await;
    assert!(outcome.result.is_ok());
    assert!((20.0..=22.0).contains(&outcome.waits[0].as_secs_f64()), "{:?}", outcome.waits);
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_returned_with_the_number_of_tries() {
    let outcome = run(&scripted("{kind: overloaded, message: busy}"), 3, &CancellationToken::new()).await;
    let Err(CallError::Provider(error)) = outcome.result else { panic!("no error") };
    assert_eq!(error.to_string(), "scripted: busy (tried 3 times)");
    assert_eq!(outcome.waits.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_waiting_does_not_help_is_not_tried_again() {
    for kind in ["authentication", "quota", "bad_request", "context_too_long", "unknown_model"] {
        let outcome = run(&scripted(&format!("{{kind: {kind}}}")), 4, &CancellationToken::new()).await;
        assert!(matches!(outcome.result, Err(CallError::Provider(_))), "{kind}");
        assert!(outcome.waits.is_empty(), "{kind}");
    }
    let outcome = run(&scripted("{kind: rate_limit, after_s: 3600}"), 4, &CancellationToken::new()).await;
    assert!(outcome.waits.is_empty(), "an hour is not waited for");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_run_is_stopped() {
    let cancel = CancellationToken::new();
    let provider = scripted("{kind: rate_limit, after_s: 600}");
    let stop = cancel.clone();
    let (outcome, ()) = tokio::join!(run(&provider, 4, &cancel), async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    });
    assert_eq!(outcome.result, Err(CallError::Cancelled));
}
