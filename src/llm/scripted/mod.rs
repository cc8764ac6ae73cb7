//! A model that plays a scenario file turn by turn, for the demo, rehearsals and tests. It keeps
//! no position: which turn comes next follows from the caller's cycle and from how many answers
//! the history holds, so a resumed or rewound run goes on at the right place. Only how often an
//! error was raised is counted. A scenario fits runs that begin with a fresh conversation.

pub mod scenario;
mod template;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::Provider;
use super::chat::{Answer, Caller, ChatMessage, ChatRole, Delta, FinishReason, Request, ToolCall, Usage};
use super::error::{ErrorKind, ProviderError};
use super::prices::{estimate_message_tokens, estimate_request_tokens};
use scenario::{EMBEDDED, Pace, Scenario, ScriptedError, ScriptedErrorKind, Turn};

/// The provider's name, the part before `/` of `scripted/rehearsal`.
pub const NAME: &str = "scripted";

/// A provider that plays one scenario.
#[derive(Debug)]
pub struct Scripted {
    scenario: Arc<Scenario>,
    speed: f64,
    /// How often an error was raised, by role, cycle and turn.
    raised: Mutex<BTreeMap<(String, u32, usize), u32>>,
}

impl Scripted {
    /// Plays `scenario`. Every wait is multiplied by `speed`: 0 plays without waiting.
    pub fn new(scenario: Scenario, speed: f64) -> Self {
        let speed = if speed.is_finite() { speed.clamp(0.0, 100.0) } else { 1.0 };
        Self { scenario: Arc::new(scenario), speed, raised: Mutex::default() }
    }

    /// What is played.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    async fn wait(&self, milliseconds: Option<u64>) {
        let wait = Duration::from_millis(milliseconds.unwrap_or(0)).mul_f64(self.speed);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    async fn speak(&self, text: &str, pace: Pace, say: impl Fn(&str) + Send) {
        if self.speed == 0.0 && pace.chunk.is_none() {
            if !text.is_empty() {
                say(text);
            }
            return;
        }
        for (i, piece) in pieces(text, pace.chunk.unwrap_or(1)).into_iter().enumerate() {
            if i > 0 {
                self.wait(pace.chunk_ms).await;
            }
            say(piece);
        }
    }

    /// The error of this turn, unless it was raised often enough.
    fn raise(&self, caller: &Caller, turn: usize, error: &ScriptedError) -> Option<ProviderError> {
        if let Some(times) = error.times {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            let count = raised.entry((caller.role.clone(), caller.cycle, turn)).or_default();
            if *count >= times {
                return None;
            }
            *count += 1;
        }
        Some(provider_error(error))
    }
}

/// What a scenario answers to a history.
#[derive(Clone, Debug)]
pub struct Played<'a> {
    /// Which turn of the cycle, from 0.
    pub index: usize,
    /// The turn as it is written.
    pub turn: &'a Turn,
    /// Its text, quotations filled in.
    pub text: String,
    /// Its calls, quotations filled in.
    pub tool_calls: Vec<ToolCall>,
}

/// What `scenario` answers `caller` after `messages`. Pure: no waiting, no error raised.
///
/// # Errors
/// [`ErrorKind::Scenario`] when there is no such role or turn, when something expected was not
/// received, or when a quoted result is missing.
pub fn play<'a>(
    scenario: &'a Scenario,
    caller: &Caller,
    messages: &[Arc<ChatMessage>],
) -> Result<Played<'a>, ProviderError> {
    let role = if caller.role.is_empty() { "worker" } else { caller.role.as_str() };
    let place = |turn: usize| format!("role `{role}`, cycle {}, turn {}", caller.cycle.max(1), turn + 1);
    let fail = |message: String| {
        ProviderError::new(NAME, ErrorKind::Scenario, format!("scenario `{}`: {message}", scenario.name))
    };
    let index = messages.iter().filter(|message| message.role == ChatRole::Assistant).count();
    let script = scenario.script(role, caller.cycle).ok_or_else(|| {
        let known: Vec<&str> = scenario.roles.keys().map(String::as_str).collect();
        fail(format!("it has no role `{role}`")).hint(format!("its roles are {}", known.join(", ")))
    })?;
    let turn = script.turns.get(index).ok_or_else(|| {
        fail(format!("{}: the script has only {} turns", place(index), script.turns.len()))
            .hint("end the script with a turn that calls no tool, or add turns to it")
    })?;
    check_expectation(turn, messages).map_err(|why| fail(format!("{}: {why}", place(index))))?;
    let results: Vec<String> =
        messages.iter().filter(|message| message.role == ChatRole::Tool).map(|message| message.plain_text()).collect();
    let text = template::fill(&turn.text, &results).map_err(|why| fail(format!("{}: {why}", place(index))))?;
    let tool_calls = tool_calls(turn, index, &results).map_err(|why| fail(format!("{}: {why}", place(index))))?;
    Ok(Played { index, turn, text, tool_calls })
}

fn tool_calls(turn: &Turn, index: usize, results: &[String]) -> Result<Vec<ToolCall>, String> {
    turn.tool_calls
        .iter()
        .enumerate()
        .map(|(i, call)| {
            let arguments = match template::fill_value(&call.arguments, results)? {
                Value::String(raw) => raw,
                Value::Null => "{}".to_owned(),
                filled => filled.to_string(),
            };
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{}", index + 1, i + 1));
            Ok(ToolCall::new(id, call.tool.clone(), arguments))
        })
        .collect()
}

fn check_expectation(turn: &Turn, messages: &[Arc<ChatMessage>]) -> Result<(), String> {
    let Some(expect) = &turn.expect else { return Ok(()) };
    let newest: Vec<String> = messages
        .iter()
        .rev()
        .take_while(|message| message.role != ChatRole::Assistant)
        .map(|message| message.plain_text())
        .collect();
    let received = |wanted: &String| newest.iter().any(|text| text.contains(wanted.as_str()));
    if let Some(missing) = expect.contains.iter().find(|wanted| !received(wanted)) {
        return Err(format!("expected `{missing}` in the newest messages, but it is not there"));
    }
    if let Some(unwanted) = expect.not_contains.iter().find(|wanted| received(wanted)) {
        return Err(format!("`{unwanted}` is in the newest messages, but should not be"));
    }
    Ok(())
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        NAME
    }

    fn is_scripted(&self) -> bool {
        true
    }

    async fn call(
        &self,
        request: &Request,
        on_delta: &(dyn for<'d> Fn(Delta<'d>) + Send + Sync),
    ) -> Result<Answer, ProviderError> {
        let played = play(&self.scenario, &request.caller, &request.messages)?;
        let turn = played.turn;
        let pace = turn.pace(self.scenario.pace);
        self.wait(pace.delay_ms).await;
        self.speak(&turn.thinking, pace, |piece| on_delta(Delta::Thinking(piece))).await;
        self.speak(&played.text, pace, |piece| on_delta(Delta::Text(piece))).await;
        if let Some(error) = turn.error.as_ref().and_then(|error| self.raise(&request.caller, played.index, error)) {
            return Err(error);
        }
        // A model that may not call tools now can only talk.
        let calls = if request.allow_tool_calls { played.tool_calls } else { Vec::new() };
        for (index, call) in calls.iter().enumerate() {
            self.wait(pace.chunk_ms).await;
            let name = Some(call.function.name.as_str());
            on_delta(Delta::ToolCall { index, name, arguments: "" });
            // Arguments arrive in larger pieces than words.
            let quick = Pace { chunk: Some(pace.chunk.unwrap_or(1).max(24)), ..pace };
            self.speak(&call.function.arguments, quick, |piece| {
                on_delta(Delta::ToolCall { index, name: None, arguments: piece });
            })
            .await;
        }
        Ok(answer(request, turn, &played.text, calls))
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        Ok(EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect())
    }
}

fn answer(request: &Request, turn: &Turn, text: &str, tool_calls: Vec<ToolCall>) -> Answer {
    let finish = if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let mut message = ChatMessage::text(ChatRole::Assistant, text);
    if text.is_empty() && !tool_calls.is_empty() {
        message.content = None;
    }
    message.tool_calls = tool_calls;
    let usage = turn.usage.unwrap_or_else(|| Usage {
        prompt_tokens: estimate_request_tokens(request),
        completion_tokens: estimate_message_tokens(&message),
        ..Usage::default()
    });
    Answer { message, finish, usage: Some(usage) }
}

fn provider_error(error: &ScriptedError) -> ProviderError {
    let after = error.after_s.map(Duration::from_secs_f64);
    let (kind, default) = match error.kind {
        ScriptedErrorKind::Authentication => (ErrorKind::Authentication, "the key is not accepted"),
        ScriptedErrorKind::Quota => (ErrorKind::Quota, "the quota is used up"),
        ScriptedErrorKind::RateLimit => (ErrorKind::RateLimit { after }, "too many requests"),
        ScriptedErrorKind::Overloaded => (ErrorKind::Overloaded { after }, "overloaded"),
        ScriptedErrorKind::BadRequest => (ErrorKind::BadRequest, "the request is wrong"),
        ScriptedErrorKind::ContextTooLong => (ErrorKind::ContextTooLong, "the history is too long for the model"),
        ScriptedErrorKind::UnknownModel => (ErrorKind::UnknownModel, "there is no such model"),
        ScriptedErrorKind::Network => (ErrorKind::Network, "the connection broke"),
        ScriptedErrorKind::Malformed => (ErrorKind::Malformed, "the answer stopped before its end"),
    };
    ProviderError::new(NAME, kind, error.message.clone().unwrap_or_else(|| default.to_owned()))
        .hint("the scenario raises this error on purpose")
}

/// `text` in pieces of at least `least` characters, each ending at the end of a word.
fn pieces(text: &str, least: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut length = 0;
    let mut in_space = false;
    for (at, c) in text.char_indices() {
        if in_space && !c.is_whitespace() && length >= least {
            pieces.push(&text[start..at]);
            (start, length) = (at, 0);
        }
        in_space = c.is_whitespace();
        length += 1;
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests;
