//! The model: a local HTTP server that speaks OpenAI Chat Completions over SSE and plays a fixed
//! part, noting when each request came in whole and when the last byte of each answer went out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Bytes of one piece of a long answer.
const PIECE: usize = 40;

/// The end of a long answer, to be looked for on the screen.
pub const END_OF_ANSWER: &str = "the-end-of-it";

/// What the model does.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The Worker calls `echo` this often, one call an answer, then hands in; the Checker reads
    /// what was handed in and passes it.
    Turns(usize),
    /// The Worker hands in, then says so in a text of this many bytes; the Checker passes it.
    LongAnswer(usize),
    /// The Worker begins a text of this many bytes and does not end its answer.
    OpenAnswer(usize),
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// When the request had come in whole.
    pub asked: Instant,
    /// Bytes of the request's body.
    pub bytes: usize,
    /// When the first byte of the answer went out.
    pub began: Instant,
    /// Just before the last byte of the answer went out; for an open answer, of its last piece.
    pub answered: Instant,
    /// Whether the Checker asked.
    pub by_checker: bool,
}

/// A model that listens until it is dropped.
pub struct Model {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    part: Part,
    exchanges: Mutex<Vec<Exchange>>,
    changed: Condvar,
    /// How many requests came, by the Worker and by the Checker.
    asked: Mutex<(usize, usize)>,
    closing: Mutex<bool>,
}

impl Model {
    /// Listens on a free port.
    pub fn start(part: Part) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            part,
            exchanges: Mutex::default(),
            changed: Condvar::new(),
            asked: Mutex::default(),
            closing: Mutex::new(false),
        });
        let for_threads = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if *lock(&for_threads.closing) {
                    return;
                }
                let shared = for_threads.clone();
                // A connection that breaks off is the program's end; nothing is lost with it.
                thread::spawn(move || serve(&shared, stream).ok());
            }
        });
        Ok(Self { port, shared })
    }

    /// Where it listens, as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// All exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.shared.exchanges).clone()
    }

    /// Waits until this many exchanges are over.
    pub fn wait_for(&self, count: usize, limit: Duration) -> Result<Vec<Exchange>, String> {
        let done = lock(&self.shared.exchanges);
        let (done, _) = self
            .shared
            .changed
            .wait_timeout_while(done, limit, |done| done.len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        match done.len() >= count {
            true => Ok(done.clone()),
            false => Err(format!("{} of {count} requests came within {} s", done.len(), limit.as_secs())),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        *lock(&self.shared.closing) = true;
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of one connection.
fn serve(shared: &Shared, stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(1 << 20, stream.try_clone()?);
    let mut writer = stream;
    while let Some((head, body)) = read_request(&mut reader)? {
        let asked = Instant::now();
        if head.starts_with("GET") {
            let list = json!({"object": "list", "data": [{"id": "test", "object": "model"}]}).to_string();
            let length = list.len();
            write!(
                writer,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{list}"
            )?;
            continue;
        }
        let bytes = body.len();
        let by_checker = !offers_write_file(&body);
        let number = {
            let mut asked = lock(&shared.asked);
            let count = if by_checker { &mut asked.1 } else { &mut asked.0 };
            *count += 1;
            *count - 1
        };
        let answer = if by_checker { checker(number) } else { worker(shared.part, number) };
        let (began, answered) = answer.send(&mut writer)?;
        lock(&shared.exchanges).push(Exchange { asked, bytes, began, answered, by_checker });
        shared.changed.notify_all();
        if answer.stays_open {
            // The other side closes the connection when it has seen enough.
            reader.read_to_end(&mut Vec::new())?;
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// Only the Worker may write. Looked for in the list of tools, which holds names as JSON strings;
/// in the text of messages the quotes would be escaped.
fn offers_write_file(body: &[u8]) -> bool {
    let name = b"\"name\":\"write_file\",\"description\"";
    body.windows(name.len()).any(|window| window == name) || offers_write_file_in_any_form(body)
}

/// The same whatever the order of keys and the white space. Slower, so it comes second.
fn offers_write_file_in_any_form(body: &[u8]) -> bool {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return false };
    let tools = request["tools"].as_array();
    tools.into_iter().flatten().any(|tool| tool["function"]["name"] == "write_file")
}

/// An answer as the events it is sent in.
struct Answer {
    pieces: Vec<Value>,
    finish: &'static str,
    stays_open: bool,
}

fn worker(part: Part, number: usize) -> Answer {
    let hand_in = json!({"summary": "measured", "text_content": "Everything was echoed.", "files": []}).to_string();
    let hand_in = json!({"path": "__output.json", "content": hand_in});
    match part {
        Part::Turns(turns) if number < turns => {
            call(number, "bash_command", &json!({"command": format!("echo {number}")}))
        }
        Part::Turns(turns) if number == turns => call(number, "write_file", &hand_in),
        Part::LongAnswer(_) if number == 0 => call(number, "write_file", &hand_in),
        Part::LongAnswer(bytes) => long_text(bytes, false),
        Part::OpenAnswer(bytes) => long_text(bytes, true),
        Part::Turns(_) => text("The output was written."),
    }
}

fn checker(number: usize) -> Answer {
    match number {
        0 => call(number, "read_file", &json!({"path": "__output.json"})),
        _ => text(
            &json!({
                "verdict": "passed",
                "reason": "The output is there and says what was asked for.",
                "feedback": "",
                "verified": ["__output.json was read [1]"]
            })
            .to_string(),
        ),
    }
}

fn call(number: usize, tool: &str, arguments: &Value) -> Answer {
    let id = format!("call_{tool}_{number}");
    let first = json!({"tool_calls": [{"index": 0, "id": id, "type": "function",
        "function": {"name": tool, "arguments": ""}}]});
    let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments.to_string()}}]});
    Answer { pieces: vec![first, rest], finish: "tool_calls", stays_open: false }
}

fn text(text: &str) -> Answer {
    Answer { pieces: vec![json!({"content": text})], finish: "stop", stays_open: false }
}

/// Lines of words, `bytes` long, the last line being [`END_OF_ANSWER`].
fn long_text(bytes: usize, stays_open: bool) -> Answer {
    const LINE: &str = "A long answer is made of many lines, and each of them is as wide as a page.\n";
    let count = bytes / LINE.len();
    let whole = format!("{}\n{END_OF_ANSWER}\n", LINE.repeat(count));
    let pieces =
        whole.as_bytes().chunks(PIECE).map(|piece| json!({"content": String::from_utf8_lossy(piece)})).collect();
    Answer { pieces, finish: "stop", stays_open }
}

impl Answer {
    /// Sends everything as fast as it is taken, in steps, so that a long answer streams. Returns
    /// when the first byte went out, and the time just before the last did.
    fn send(&self, stream: &mut TcpStream) -> std::io::Result<(Instant, Instant)> {
        let encoded = self.encode()?;
        let began = Instant::now();
        let mut answered = began;
        for step in encoded.chunks(8 * 1024) {
            answered = Instant::now();
            stream.write_all(step)?;
        }
        Ok((began, answered))
    }

    fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        out.extend_from_slice(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        event(&mut out, &json!({"role": "assistant"}), None)?;
        for piece in &self.pieces {
            event(&mut out, piece, None)?;
        }
        if !self.stays_open {
            event(&mut out, &json!({}), Some(self.finish))?;
            let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100});
            let last = json!({"id": "measured", "object": "chat.completion.chunk", "created": 0, "model": "test",
                "choices": [], "usage": usage});
            chunk(&mut out, &last.to_string())?;
            chunk(&mut out, "[DONE]")?;
            out.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(out)
    }
}

fn event(out: &mut Vec<u8>, delta: &Value, finish: Option<&str>) -> std::io::Result<()> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let event = json!({"id": "measured", "object": "chat.completion.chunk", "created": 0, "model": "test",
        "choices": [choice]});
    chunk(out, &event.to_string())
}

/// One server-sent event as one chunk of the body.
fn chunk(out: &mut Vec<u8>, data: &str) -> std::io::Result<()> {
    write!(out, "{:x}\r\ndata: {data}\n\n\r\n", data.len() + "data: \n\n".len())
}
