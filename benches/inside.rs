//! What single parts cost: `cargo bench --bench inside`. The program as a whole is measured by
//! `cargo bench --bench measure`.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput};
use jiff::Timestamp;
use super_agent::config::{Config, SnapshotsConfig};
use super_agent::events::data::{CallRef, Totals};
use super_agent::events::event::{Envelope, Event, MessageAdded, ToolCallEvent, ToolResultEvent};
use super_agent::events::log;
use super_agent::events::recorder::Recorder;
use super_agent::ids::{SessionId, TraceId, message_id};
use super_agent::llm::chat::{ChatMessage, ChatRole};
use super_agent::llm::sse::SseParser;
use super_agent::session::snapshot::{SnapshotStore, WalkOptions};
use super_agent::stdx::clock::SteppingClock;
use super_agent::trace::message::{Message, Slot};
use super_agent::trace::store::read_messages;
use super_agent::tui::{Offscreen, Terminal};

/// Events in one measured journal.
const EVENTS: u64 = 1000;

/// Bytes of text of the streamed answer, and of one of its pieces.
const ANSWER: (usize, usize) = (5_000_000, 40);

/// Tool turns behind the events that the screen folds: seven events each.
const TURNS: u64 = 1430;

/// Messages of the trace that is loaded.
const MESSAGES: u64 = 5000;

/// Files of the tree that is recorded, and in one folder of it.
const FILES: (usize, usize) = (20_000, 50);

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).expect("a temporary folder can be written");
}

fn folder(path: &Path) {
    fs::create_dir_all(path).expect("a temporary folder can be written");
}

fn note(n: u64) -> Event {
    Event::Note { text: format!("{n}: {}", "what happened, in a sentence of ordinary length ".repeat(4)) }
}

/// Fills a new journal; the recorder is returned so that closing it is not measured.
fn record(place: &tempfile::TempDir) -> Arc<Recorder> {
    folder(&place.path().join("state"));
    let clock = SteppingClock::new(0, 1);
    let recorder = Recorder::open("k7m2x9qa".into(), place.path(), clock).expect("a new journal opens");
    for n in 0..EVENTS {
        recorder.record(Some(1), None, note(n)).expect("a temporary folder can be written");
    }
    recorder
}

fn journal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(EVENTS));
    group.bench_function("append 1000 events", |bencher| {
        bencher.iter_batched_ref(temporary, |place| record(place), BatchSize::PerIteration);
    });
    let place = temporary();
    drop(record(&place));
    let path = place.path().join("state/events.jsonl");
    group.bench_function("read 1000 events", |bencher| {
        bencher.iter(|| black_box(log::read(&path, 0)).expect("the journal was just written").events.len());
    });
    group.finish();
}

/// An answer as its stream: every piece in an event of its own.
fn stream() -> Vec<u8> {
    let (bytes, piece) = ANSWER;
    let mut stream = Vec::new();
    for n in 0..bytes / piece {
        let text = format!("{n:>39} ");
        let chunk = serde_json::json!({"id": "measured", "object": "chat.completion.chunk", "created": 0,
            "model": "test", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
        stream.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    }
    stream
}

fn sse(criterion: &mut Criterion) {
    let stream = stream();
    let mut group = criterion.benchmark_group("sse");
    group.throughput(Throughput::Bytes(stream.len() as u64));
    group.sample_size(20);
    group.bench_function("5 MB of text in 40-byte pieces", |bencher| {
        bencher.iter(|| {
            let mut parser = SseParser::default();
            let mut events = 0;
            for bytes in stream.chunks(8 * 1024) {
                let taken = parser.push(bytes, &mut |event| {
                    events += usize::from(!event.data.is_empty());
                    true
                });
                taken.expect("no event is near the limit");
            }
            assert_eq!(events, ANSWER.0 / ANSWER.1);
        });
    });
    group.finish();
}

/// The events of a session of many tool turns, as a Worker leaves them.
struct Script {
    session: SessionId,
    trace: TraceId,
    events: Vec<Arc<Envelope>>,
}

impl Script {
    fn new() -> Self {
        Self { session: "k7m2x9qa".into(), trace: "w1-aaaaaa".into(), events: Vec::new() }
    }

    fn event(&mut self, event: Event) {
        let id = self.events.len() as u64 + 1;
        let at = Timestamp::from_millisecond(id.cast_signed()).expect("a second after the epoch is a time");
        let (session_id, trace_id) = (self.session.clone(), Some(self.trace.clone()));
        let envelope = Envelope { event_id: Some(id), at, session_id, cycle: Some(1), trace_id, event };
        self.events.push(Arc::new(envelope));
    }

    fn message(&mut self, sequence: u64, role: &str, text: &str, call: Option<CallRef>) {
        self.event(Event::MessageAdded(Box::new(MessageAdded {
            sequence,
            parent_sequence: Some(sequence - 1),
            role: role.to_owned(),
            goal_id: None,
            description: text.to_owned(),
            preview: text.to_owned(),
            bytes: text.len() as u64,
            tool_calls: call.into_iter().collect(),
            tool_call_id: None,
            finish_reason: None,
            branch_type: None,
            duration_ms: Some(3),
        })));
    }

    fn turn(&mut self, n: u64) {
        let id = format!("call_{n}");
        let tool = "bash_command".to_owned();
        let (role, number) = (super_agent::events::data::Role::Worker, u32::try_from(n).unwrap_or(u32::MAX));
        let totals = Totals { calls: 1, prompt_tokens: 1000 + n, completion_tokens: 50, ..Totals::default() };
        self.event(Event::Usage { role, model: "local/test".to_owned(), totals, reported: true });
        self.event(Event::TextDelta { text: "I look at it.".to_owned() });
        self.message(2 * n + 1, "assistant", "I look at it.", Some(CallRef { id: id.clone(), tool: tool.clone() }));
        self.event(Event::WorkerToolCall(ToolCallEvent {
            tool_call_id: id.clone(),
            number,
            tool: tool.clone(),
            title: format!("echo {n}"),
            arguments: serde_json::json!({"command": format!("echo {n}")}),
            arguments_bytes: 20,
        }));
        self.message(2 * n + 2, "tool", &format!("{n}\n(exit code 0)"), None);
        self.event(Event::WorkerToolResult(ToolResultEvent {
            tool_call_id: id,
            number,
            tool,
            ok: true,
            title: format!("echo {n}"),
            output: format!("{n}\n").repeat(10),
            output_bytes: 40,
            output_lines: 10,
            exit_code: Some(0),
            files: Vec::new(),
            duration_ms: 3,
        }));
        self.event(Event::Note { text: format!("turn {n} is over") });
    }
}

fn offscreen(script: &Script) -> Offscreen {
    let terminal = Terminal::from_environment(|name| (name == "COLORTERM").then(|| "truecolor".to_owned()));
    let screen = Offscreen::new(script.session.clone(), Config::default(), terminal, (200, 60));
    screen.expect("the embedded keys and themes are right")
}

fn screen(criterion: &mut Criterion) {
    let mut script = Script::new();
    script.event(Event::CycleStart { input_payload: serde_json::json!({}) });
    script.event(Event::WorkerStart { model: "local/test".to_owned() });
    for n in 1..=TURNS {
        script.turn(n);
    }
    let mut group = criterion.benchmark_group("screen");
    group.sample_size(20);
    group.bench_function("fold 10,000 events", |bencher| {
        let new = || offscreen(&script);
        bencher.iter_batched_ref(new, |screen| screen.events(&script.events), BatchSize::PerIteration);
    });
    let mut full = offscreen(&script);
    full.events(&script.events);
    full.draw();
    let text = full.text();
    assert!(text.contains(&format!("echo {TURNS}")), "the newest call is on the screen:\n{text}");
    group.bench_function("draw 200×60 over 10,000 events", |bencher| bencher.iter(|| full.draw()));
    group.finish();
}

fn trace(criterion: &mut Criterion) {
    let place = temporary();
    let id = TraceId::new("w1-aaaaaa");
    let messages = place.path().join(id.as_str()).join("messages");
    folder(&messages);
    for sequence in 1..=MESSAGES {
        let slot = Slot {
            trace_id: id.clone(),
            sequence,
            parent_sequence: (sequence > 1).then(|| sequence - 1),
            goal_id: None,
            created_at: Timestamp::UNIX_EPOCH,
        };
        let text = format!("{sequence}: {}", "some words of a message ".repeat(20));
        let message = Message::from_chat(slot, &ChatMessage::text(ChatRole::User, text));
        let json = serde_json::to_vec(&message).expect("a message is JSON");
        write(&messages.join(format!("{}.json", message_id(&id, sequence))), json);
    }
    let mut group = criterion.benchmark_group("trace");
    group.sample_size(20);
    group.throughput(Throughput::Elements(MESSAGES));
    group.bench_function("load 5,000 messages", |bencher| {
        bencher.iter(|| {
            let read = read_messages(place.path(), &id).expect("the messages were just written");
            assert_eq!(read.len() as u64, MESSAGES);
        });
    });
    group.finish();
}

fn snapshot(criterion: &mut Criterion) {
    let place = temporary();
    let files = place.path().join("files");
    for n in 0..FILES.0 {
        let below = files.join(format!("folder-{}", n / FILES.1));
        if n % FILES.1 == 0 {
            folder(&below);
        }
        write(&below.join(format!("file-{n}.txt")), format!("{n}: {}", "content ".repeat(n % 60)));
    }
    let options = WalkOptions { beneath_git: false, exclude: Vec::new(), tracked: Vec::new(), home: None };
    let store = SnapshotStore::open(&place.path().join("store"), &files, &SnapshotsConfig::default(), options);
    let store = store.expect("a new store opens");
    store.take().expect("the files can be recorded");
    // Files as young as the snapshot are read again, for their times could hide a change.
    std::thread::sleep(std::time::Duration::from_secs(2));
    store.take().expect("the files can be recorded");
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10);
    group.throughput(Throughput::Elements(FILES.0 as u64));
    group.bench_function("20,000 files, none changed", |bencher| {
        bencher.iter(|| {
            let taken = store.take().expect("the files can be recorded");
            assert_eq!(taken.changed_total, 0);
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    journal(&mut criterion);
    sse(&mut criterion);
    screen(&mut criterion);
    trace(&mut criterion);
    snapshot(&mut criterion);
    criterion.final_summary();
}
