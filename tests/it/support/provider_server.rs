//! A model provider on this machine: real HTTP, real SSE, in both protocols, with answers decided
//! by a closure.
//!
//! ```ignore
//! let server = ProviderServer::start(|request| ServerAnswer::text("hello"));
//! let registry = Registry::new(&server.config(), server.env(), ".");   // providers `oai` and `ant`
//! let choice = registry.resolve("oai/some-model")?;                    // or "ant/some-model"
//! …
//! assert_eq!(server.requests().len(), 1);
//! server.assert_histories_are_whole();
//! ```
//!
//! - The protocol follows from the path: `/chat/completions` or `/v1/messages`. `GET …/models`
//!   is answered with `model-a` and `model-b`; everything else goes to the closure.
//! - [`scenario_answers`] plays a scenario file (`super_agent::llm::scripted`) against what is
//!   received; the caller (role, cycle) is found by a second closure, for example from the system
//!   prompt.
//! - [`ProviderServer::with_pieces`] sets how many bytes are sent at a time (1 … whole).
//! - Every history received is checked: each tool call must be answered directly after it.
//! - It runs on threads of its own, so a test's runtime, paused clock or process don't matter.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use super_agent::config::{Config, Protocol, ProviderConfig};
use super_agent::llm::chat::{Caller, ChatMessage, ChatRole, Content, FinishReason, ToolCall, Usage};
use super_agent::llm::scripted;
use super_agent::llm::scripted::scenario::Scenario;

/// The key that [`ProviderServer::env`] holds.
pub const KEY: &str = "sk-test-0123456789";

/// What a client sent.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// `GET`, `POST`.
    pub method: String,
    /// With query.
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as it came.
    pub bytes: Vec<u8>,
    /// The body as JSON; null when it is none.
    pub body: Value,
}

impl ReceivedRequest {
    /// Whether it is in Anthropic's form.
    pub fn is_anthropic(&self) -> bool {
        self.path.contains("/messages")
    }

    /// The history in OpenAI form, whichever protocol it came in.
    pub fn messages(&self) -> Vec<ChatMessage> {
        let list = self.body["messages"].as_array().cloned().unwrap_or_default();
        if !self.is_anthropic() {
            return list.into_iter().map(|message| serde_json::from_value(message).expect("a chat message")).collect();
        }
        let mut messages = Vec::new();
        for block in self.body["system"].as_array().into_iter().flatten() {
            messages.push(ChatMessage::text(ChatRole::System, text_of(&block["text"])));
        }
        list.iter().for_each(|message| push_anthropic(&mut messages, message));
        messages
    }

    /// The text of the system prompt.
    pub fn system_text(&self) -> String {
        let system = self.messages().into_iter().filter(|message| message.role == ChatRole::System);
        system.map(|message| message.plain_text()).collect::<Vec<_>>().join("\n")
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn push_anthropic(messages: &mut Vec<ChatMessage>, message: &Value) {
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    if message["role"] == "assistant" {
        let mut answer = ChatMessage::text(ChatRole::Assistant, "");
        let mut text = String::new();
        for block in &blocks {
            match block["type"].as_str() {
                Some("text") => text.push_str(&text_of(&block["text"])),
                Some("tool_use") => answer.tool_calls.push(ToolCall::new(
                    text_of(&block["id"]),
                    text_of(&block["name"]),
                    block["input"].to_string(),
                )),
                _ => {}
            }
        }
        answer.content = Some(Content::Text(text));
        messages.push(answer);
        return;
    }
    for block in &blocks {
        match block["type"].as_str() {
            Some("tool_result") => {
                let result = Content::Text(text_of(&block["content"]));
                messages.push(ChatMessage::tool_result(text_of(&block["tool_use_id"]), result));
            }
            Some("text") => messages.push(ChatMessage::text(ChatRole::User, text_of(&block["text"]))),
            _ => {}
        }
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Complete,
    /// The connection is closed in the middle.
    Cut,
    /// Nothing more comes for this long; then it is closed.
    Stall(Duration),
}

/// What the model says.
#[derive(Clone, Debug, Default)]
pub struct Speech {
    /// Its reasoning.
    pub thinking: String,
    /// Its text.
    pub text: String,
    /// Its calls.
    pub tool_calls: Vec<ToolCall>,
    /// What it cost; absent: nothing is said about it.
    pub usage: Option<Usage>,
    /// Why it stopped; absent: by what it did.
    pub finish: Option<FinishReason>,
    /// Characters of one text delta; 0: the whole text in one.
    pub delta_chars: usize,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum ServerAnswer {
    /// Streams an answer in the request's protocol.
    Speak(Speech),
    /// Streams only the first `events` of an answer.
    SpeakPart {
        /// The whole answer.
        speech: Speech,
        /// How many events are sent.
        events: usize,
        /// What comes then.
        ending: Ending,
    },
    /// Anything else, status and all.
    Http {
        /// The status.
        status: u16,
        /// Headers besides those the server sets.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
        /// How it ends.
        ending: Ending,
    },
    /// Says nothing at all for this long, then closes.
    Silence(Duration),
}

impl ServerAnswer {
    /// A streamed text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Speak(Speech { text: text.into(), ..Speech::default() })
    }

    /// A status with a JSON body.
    pub fn refusal(status: u16, body: Value) -> Self {
        Self::http(status, &[("content-type", "application/json")], body.to_string())
    }

    /// A complete response.
    pub fn http(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::Http { status, headers, body: body.into(), ending: Ending::Complete }
    }
}

/// Answers that play `scenario`: the turn follows from the history received, the role and cycle
/// from `caller_of`. A scenario's own errors become responses of that kind.
pub fn scenario_answers(
    scenario: Scenario,
    caller_of: impl Fn(&ReceivedRequest) -> Caller + Send + Sync + 'static,
) -> impl Fn(&ReceivedRequest) -> ServerAnswer + Send + Sync + 'static {
    move |request| {
        let messages: Vec<Arc<ChatMessage>> = request.messages().into_iter().map(Arc::new).collect();
        match scripted::play(&scenario, &caller_of(request), &messages) {
            Ok(played) => ServerAnswer::Speak(Speech {
                thinking: played.turn.thinking.clone(),
                text: played.text,
                tool_calls: played.tool_calls,
                usage: Some(played.turn.usage.unwrap_or(Usage {
                    prompt_tokens: 100,
                    completion_tokens: 10,
                    ..Usage::default()
                })),
                finish: None,
                delta_chars: 12,
            }),
            Err(error) => ServerAnswer::refusal(400, json!({"error": {"message": error.to_string()}})),
        }
    }
}

type Decide = Box<dyn Fn(&ReceivedRequest) -> ServerAnswer + Send + Sync>;

struct Shared {
    decide: Decide,
    requests: Mutex<Vec<ReceivedRequest>>,
    problems: Mutex<Vec<String>>,
    piece: AtomicUsize,
    is_stopped: AtomicBool,
}

/// The server. Stops when it is dropped.
pub struct ProviderServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ProviderServer {
    /// Listens on a free port of this machine.
    pub fn start(decide: impl Fn(&ReceivedRequest) -> ServerAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            decide: Box::new(decide),
            requests: Mutex::default(),
            problems: Mutex::default(),
            piece: AtomicUsize::new(usize::MAX),
            is_stopped: AtomicBool::new(false),
        });
        let for_thread = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.is_stopped.load(Ordering::Acquire) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = for_thread.clone();
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// Sends bodies `bytes` at a time.
    pub fn with_pieces(self, bytes: usize) -> Self {
        self.shared.piece.store(bytes.max(1), Ordering::Release);
        self
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// A configuration with this server as provider `oai` (Chat Completions) and `ant` (Messages),
    /// both with the key in `TEST_KEY`.
    pub fn config(&self) -> Config {
        let provider = |protocol, base_url: String| ProviderConfig {
            protocol: Some(protocol),
            base_url: Some(base_url),
            api_key_env: Some("TEST_KEY".to_owned()),
            ..ProviderConfig::default()
        };
        let mut config = Config::default();
        config.providers.insert("oai".to_owned(), provider(Protocol::Openai, format!("{}/v1", self.url())));
        config.providers.insert("ant".to_owned(), provider(Protocol::Anthropic, self.url()));
        config
    }

    /// The environment that goes with [`ProviderServer::config`].
    pub fn env(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("TEST_KEY".to_owned(), KEY.to_owned())])
    }

    /// What was received so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Fails when a history received had a tool call without its result directly after it.
    #[track_caller]
    pub fn assert_histories_are_whole(&self) {
        assert_eq!(*self.shared.problems.lock().unwrap(), Vec::<String>::new());
    }
}

impl Drop for ProviderServer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        // Wakes the listener, which then leaves.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let answer = if request.method == "GET" && request.path.contains("/models") {
            ServerAnswer::refusal(200, json!({"data": [{"id": "model-a"}, {"id": "model-b"}]}))
        } else {
            shared.problems.lock().unwrap().extend(orphans(&request));
            shared.requests.lock().unwrap().push(request.clone());
            (shared.decide)(&request)
        };
        if !send(stream, &request, answer, shared.piece.load(Ordering::Acquire)) {
            break;
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).ok()?;
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Some(ReceivedRequest { method, path, headers, bytes, body })
}

/// What is wrong with the tool calls of a history.
fn orphans(request: &ReceivedRequest) -> Vec<String> {
    let messages = request.messages();
    let mut problems = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let following = messages[at + 1..].iter().take_while(|message| message.role == ChatRole::Tool);
        let answered: Vec<&str> = following.filter_map(|message| message.tool_call_id.as_deref()).collect();
        let mut called: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        for id in &called {
            if answered.iter().filter(|answer| *answer == id).count() != 1 {
                problems.push(format!("message {at}: call `{id}` is not answered exactly once after it"));
            }
        }
        called.sort_unstable();
        called.dedup();
        if called.len() != message.tool_calls.len() {
            problems.push(format!("message {at}: two calls have the same id"));
        }
        let is_first_result =
            message.role == ChatRole::Tool && messages[..at].last().is_none_or(|m| m.role != ChatRole::Tool);
        if is_first_result && messages[..at].last().is_none_or(|m| m.tool_calls.is_empty()) {
            problems.push(format!("message {at}: a result without a call before it"));
        }
    }
    problems
}

/// Returns whether the connection can be used again.
fn send(mut stream: &TcpStream, request: &ReceivedRequest, answer: ServerAnswer, piece: usize) -> bool {
    let (status, headers, body, ending) = match answer {
        ServerAnswer::Silence(wait) => {
            thread::sleep(wait);
            return false;
        }
        ServerAnswer::Http { status, headers, body, ending } => (status, headers, body, ending),
        ServerAnswer::Speak(speech) => (200, event_stream(), events(request, &speech).concat(), Ending::Complete),
        ServerAnswer::SpeakPart { speech, events: count, ending } => {
            let mut events = events(request, &speech);
            events.truncate(count);
            (200, event_stream(), events.concat(), ending)
        }
    };
    let mut head = format!("HTTP/1.1 {status} Status\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut is_open = stream.write_all(head.as_bytes()).is_ok();
    for chunk in body.chunks(piece) {
        let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
        is_open = is_open && stream.write_all(&framed).is_ok();
    }
    match ending {
        Ending::Complete => is_open && stream.write_all(b"0\r\n\r\n").is_ok(),
        Ending::Cut => {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            false
        }
        Ending::Stall(wait) => {
            thread::sleep(wait);
            let _ = stream.shutdown(std::net::Shutdown::Both);
            false
        }
    }
}

fn event_stream() -> Vec<(String, String)> {
    vec![("content-type".to_owned(), "text/event-stream".to_owned())]
}

/// The events of an answer in the protocol of the request.
pub fn events(request: &ReceivedRequest, speech: &Speech) -> Vec<Vec<u8>> {
    if request.is_anthropic() { anthropic_events(speech) } else { openai_events(speech) }
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    if chars == 0 {
        return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(chars).map(|piece| piece.iter().collect()).collect()
}

fn openai_events(speech: &Speech) -> Vec<Vec<u8>> {
    let event = |value: Value| format!("data: {value}\n\n").into_bytes();
    let choice = |delta: Value, finish: Value| {
        event(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), Value::Null)];
    for piece in pieces(&speech.thinking, speech.delta_chars) {
        events.push(choice(json!({"reasoning_content": piece}), Value::Null));
    }
    for piece in pieces(&speech.text, speech.delta_chars) {
        events.push(choice(json!({"content": piece}), Value::Null));
    }
    for (index, call) in speech.tool_calls.iter().enumerate() {
        let function = json!({"name": call.function.name, "arguments": ""});
        let begin = json!({"index": index, "id": call.id, "type": "function", "function": function});
        events.push(choice(json!({"tool_calls": [begin]}), Value::Null));
        for piece in pieces(&call.function.arguments, speech.delta_chars) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            events.push(choice(json!({"tool_calls": [more]}), Value::Null));
        }
    }
    events.push(choice(json!({}), json!(finish_of(speech).word())));
    if let Some(usage) = speech.usage {
        events.push(event(json!({"choices": [], "usage": {
            "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens}}})));
    }
    events.push(b"data: [DONE]\n\n".to_vec());
    events
}

fn finish_of(speech: &Speech) -> FinishReason {
    let by_deed = if speech.tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    speech.finish.unwrap_or(by_deed)
}

fn anthropic_events(speech: &Speech) -> Vec<Vec<u8>> {
    let usage = speech.usage.unwrap_or_default();
    let mut events =
        vec![anthropic_event(json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant",
        "usage": {"input_tokens": usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens, "output_tokens": 1}}}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
        events.extend(
            deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
        events.into_iter().map(anthropic_event).collect::<Vec<_>>()
    };
    let deltas = |text: &str, kind: &str, field: &str| -> Vec<Value> {
        pieces(text, speech.delta_chars).into_iter().map(|piece| json!({"type": kind, field: piece})).collect()
    };
    if !speech.thinking.is_empty() {
        let mut parts = deltas(&speech.thinking, "thinking_delta", "thinking");
        parts.push(json!({"type": "signature_delta", "signature": "signed"}));
        events.extend(block(json!({"type": "thinking", "thinking": "", "signature": ""}), parts));
    }
    if !speech.text.is_empty() {
        events.extend(block(json!({"type": "text", "text": ""}), deltas(&speech.text, "text_delta", "text")));
    }
    for call in &speech.tool_calls {
        let start = json!({"type": "tool_use", "id": call.id, "name": call.function.name, "input": {}});
        events.extend(block(start, deltas(&call.function.arguments, "input_json_delta", "partial_json")));
    }
    let reason = match finish_of(speech) {
        FinishReason::Stop | FinishReason::Other => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
    };
    events.push(anthropic_event(json!({"type": "message_delta", "delta": {"stop_reason": reason},
        "usage": {"output_tokens": usage.completion_tokens}})));
    events.push(anthropic_event(json!({"type": "message_stop"})));
    events
}

fn anthropic_event(value: Value) -> Vec<u8> {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()).into_bytes()
}
