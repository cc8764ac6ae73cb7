//! A person's desk: a home folder, a folder to start in and a root for sessions, all temporary,
//! and the program started there as a process of its own. Reads back what it left on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use super_agent::events::event::{Envelope, Event};
use tempfile::TempDir;

/// How long anything may take before a test gives up; generous, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done` gives something.
#[track_caller]
pub fn wait_until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The desk. Everything on it goes when it is dropped.
pub struct Desk {
    dir: TempDir,
    variables: BTreeMap<String, String>,
}

impl Desk {
    /// An empty desk. Scripted models speak without pauses.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("desk").tempdir().expect("a temporary folder");
        for name in ["home", "start", "sessions"] {
            fs::create_dir(dir.path().join(name)).expect("a folder");
        }
        let path = |name: &str| dir.path().join(name).display().to_string();
        let variables = BTreeMap::from([
            ("HOME".to_owned(), path("home")),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("SUPER_AGENT_WORKSPACE".to_owned(), path("sessions")),
            ("SUPER_AGENT_SCRIPTED_DELAY".to_owned(), "0".to_owned()),
            // Tests must not find a model server that happens to run on this machine.
            ("OLLAMA_HOST".to_owned(), "127.0.0.1:1".to_owned()),
        ]);
        Self { dir, variables }
    }

    /// Sets a variable for every start from now on.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Everything below it.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder the program is started in.
    pub fn start_folder(&self) -> PathBuf {
        self.path().join("start")
    }

    /// The root of the session folders.
    pub fn root(&self) -> PathBuf {
        self.path().join("sessions")
    }

    /// Writes the person's `config.toml`.
    pub fn configure(&self, toml: &str) {
        let folder = self.path().join("home/.config/super-agent");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), toml).expect("a file");
    }

    /// Writes a scenario; returns the model that plays it.
    pub fn scenario(&self, name: &str, yaml: &str) -> String {
        fs::write(self.start_folder().join(format!("{name}.yaml")), yaml).expect("a file");
        format!("scripted/{name}.yaml")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_super-agent"));
        command.args(arguments).current_dir(self.start_folder()).env_clear().envs(&self.variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program.
    pub fn start(&self, arguments: &[&str]) -> Live {
        let mut child = self.command(arguments).spawn().expect("the program starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let sink = lines.clone();
        let out = thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                sink.lock().unwrap().push(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let mut stderr = child.stderr.take().expect("it is piped");
        let err = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Live { child, lines, readers: Some((out, err)) }
    }

    /// Runs the program to its end.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs it with `--json` and expects this exit code; returns its events.
    #[track_caller]
    pub fn events(&self, arguments: &[&str], code: i32) -> Vec<Value> {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}\n{}", ended.stderr, tail(&ended.stdout));
        ended.events()
    }

    /// The only session there is.
    #[track_caller]
    pub fn session(&self) -> SessionFolder {
        let mut homes = self.session_homes();
        assert_eq!(homes.len(), 1, "{homes:?}");
        SessionFolder { home: homes.remove(0) }
    }

    /// All session folders.
    pub fn session_homes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root()).into_iter().flatten().flatten().map(|e| e.path());
        entries.filter(|p| p.join("state/events.jsonl").exists()).collect()
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(6)..].join("\n")
}

/// The program while it runs. Killed when dropped.
pub struct Live {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Option<(JoinHandle<()>, JoinHandle<String>)>,
}

impl Live {
    /// What it printed so far, as events; a last line that is not whole is left out.
    pub fn seen(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap().clone();
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits until it printed an event like this.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, || self.seen().into_iter().find(&is))
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if Instant::now() > deadline {
                let seen: Vec<_> = self.lines.lock().unwrap().clone();
                panic!("it does not end; last lines:\n{}", tail(&seen.join("\n")));
            }
            thread::sleep(Duration::from_millis(3));
        };
        let (out, err) = self.readers.take().expect("taken only here");
        out.join().expect("the reader does not panic");
        let stderr = err.join().expect("the reader does not panic");
        let stdout = self.lines.lock().unwrap().iter().map(|line| format!("{line}\n")).collect();
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// All of it.
    pub stdout: String,
    /// All of it.
    pub stderr: String,
}

impl Ended {
    /// Its output as events. Fails when a line is not JSON.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let parse = |line: &str| match serde_json::from_str(line) {
            Ok(value) => value,
            Err(error) => panic!("a line of standard output is not JSON: {error}: {line}"),
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// A session's folder, read by a test.
#[derive(Clone, Debug)]
pub struct SessionFolder {
    /// Where it lies.
    pub home: PathBuf,
}

impl SessionFolder {
    /// Its id.
    pub fn id(&self) -> String {
        let name = self.home.file_name().expect("it has a name").to_string_lossy().into_owned();
        name.strip_prefix("session-").expect("its prefix").to_owned()
    }

    /// A file below it.
    pub fn file(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// A text file below it.
    #[track_caller]
    pub fn text(&self, path: &str) -> String {
        let path = self.file(path);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// A JSON file below it.
    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Its record.
    #[track_caller]
    pub fn record(&self) -> Value {
        self.json("state/session.json")
    }

    /// The events of a journal below it.
    #[track_caller]
    pub fn events(&self, path: &str) -> Vec<Value> {
        let event = |line: &str| {
            // What was written must be read back as what it is, not only be JSON.
            let known: Envelope = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(known.event != Event::Unknown, "of no known type: {line}");
            serde_json::from_str(line).expect("a line is an event")
        };
        self.text(path).lines().map(event).collect()
    }

    /// Its journal.
    #[track_caller]
    pub fn journal(&self) -> Vec<Value> {
        self.events("state/events.jsonl")
    }

    /// All messages of a trace, by number.
    pub fn messages(&self, trace: &str) -> BTreeMap<u64, Value> {
        let folder = self.file(&format!(".trace/{trace}/messages"));
        let files = fs::read_dir(folder).expect("a folder").flatten();
        files
            // A kill in the middle of a write leaves its temporary file.
            .filter(|file| !file.file_name().as_encoded_bytes().starts_with(b"."))
            .map(|file| {
                let path = file.path();
                let message: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("a message");
                (message["sequence"].as_u64().expect("a number"), message)
            })
            .collect()
    }

    /// The messages on a trace's main path.
    pub fn main_path(&self, trace: &str) -> Vec<u64> {
        let messages = self.messages(trace);
        let mut at = self.json(&format!(".trace/{trace}/meta.json"))["head_sequence"].as_u64();
        let mut path = Vec::new();
        while let Some(sequence) = at {
            path.push(sequence);
            at = messages[&sequence]["parent_sequence"].as_u64();
        }
        path.reverse();
        path
    }

    /// Id of the newest Worker trace of a cycle.
    #[track_caller]
    pub fn worker(&self, cycle: u64) -> String {
        let journal = self.journal();
        let start = journal.iter().rev().find(|e| e["type"] == "worker_start" && e["cycle"] == cycle);
        start.expect("the Worker began")["trace_id"].as_str().expect("it has a trace").to_owned()
    }

    /// Every file below a folder of it with its content, by path.
    pub fn tree(&self, path: &str) -> BTreeMap<String, Vec<u8>> {
        files_below(&self.file(path))
    }
}

/// Every file below a folder with its content, by path from there.
pub fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => walk(root, &path, files),
                Ok(kind) if kind.is_file() => {
                    let name = path.strip_prefix(root).expect("it lies below").display().to_string();
                    files.insert(name, fs::read(&path).unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(folder, folder, &mut files);
    files
}

/// Whether an event has this type.
pub fn is(event: &Value, kind: &str) -> bool {
    event["type"] == kind
}

/// All events of one type.
pub fn all<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| is(e, kind)).collect()
}

/// The only event of one type.
#[track_caller]
pub fn only<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found = all(events, kind);
    assert_eq!(found.len(), 1, "events of type {kind}");
    found[0]
}

/// The last event of one type.
#[track_caller]
pub fn last<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    match events.iter().rev().find(|e| is(e, kind)) {
        Some(event) => event,
        None => panic!("there is no {kind}"),
    }
}

/// The journalled events in short: type, cycle, role, tool. Records of files are left out, which
/// are made beside the work, at no fixed place.
pub fn condensed(events: &[Value]) -> Vec<String> {
    let journalled = events.iter().filter(|e| e.get("event_id").is_some() && !is(e, "snapshot"));
    journalled
        .map(|e| {
            let role = match e["trace_id"].as_str().and_then(|t| t.chars().next()) {
                Some('w') => "worker",
                Some('c') => "checker",
                _ => "-",
            };
            let cycle = e["cycle"].as_u64().map_or("-".to_owned(), |c| c.to_string());
            let detail = ["tool", "verdict", "role", "name"].iter().find_map(|k| e[*k].as_str());
            let detail = detail.or_else(|| e["result"]["verdict"].as_str()).or_else(|| e["goal"]["status"].as_str());
            let kind = e["type"].as_str().unwrap_or("?");
            format!("{cycle} {role} {kind} {}", detail.unwrap_or("")).trim_end().to_owned()
        })
        .collect()
}

/// Fails unless the events are in the order of A5: sessions begin with `session_start`, ids rise
/// by one, each stretch ends with exactly one closing event, each cycle goes through its steps,
/// and each tool call has one result between the start and the end of its agent.
#[track_caller]
pub fn assert_order(events: &[Value]) {
    let journalled: Vec<&Value> = events.iter().filter(|e| e.get("event_id").is_some()).collect();
    let ids: Vec<u64> = journalled.iter().map(|e| e["event_id"].as_u64().expect("a number")).collect();
    let first = ids.first().copied().unwrap_or(0);
    assert_eq!(ids, (first..first + ids.len() as u64).collect::<Vec<_>>(), "event ids rise by one");
    let mut order = Order::default();
    for event in journalled {
        if let Err(why) = order.next(event) {
            panic!("{why}: event {} {}", event["event_id"], event["type"]);
        }
    }
    assert!(order.open.is_empty(), "calls without a result: {:?}", order.open);
    assert!(!order.running, "the last stretch has a closing event");
}

#[derive(Default)]
struct Order {
    running: bool,
    step: &'static str,
    cycle: Option<u64>,
    open: Vec<(String, String)>,
}

impl Order {
    fn next(&mut self, event: &Value) -> Result<(), String> {
        let kind = event["type"].as_str().unwrap_or_default();
        let outside =
            ["session_start", "session_resumed", "budget_set", "contract", "rewind", "rewind_applied", "note"];
        if !self.running && !outside.contains(&kind) {
            return Err("it happened while nothing ran".to_owned());
        }
        match kind {
            "session_start" | "session_resumed" => self.begin(kind)?,
            "cycle_start" => self.go(&["begun", "cycle_end"], "cycle_start", event)?,
            "worker_start" => self.go(&["begun", "cycle_start"], "worker", event)?,
            "worker_complete" => self.go(&["worker"], "worker_complete", event)?,
            "checker_start" => self.go(&["begun", "worker_complete"], "checker", event)?,
            "checker_stream" => self.go(&["checker"], "checker", event)?,
            "checker_complete" => self.go(&["checker"], "checker_complete", event)?,
            "cycle_end" => self.go(&["checker_complete"], "cycle_end", event)?,
            "worker_tool_call" | "checker_tool_call" => self.call(event, kind)?,
            "worker_tool_result" | "checker_tool_result" => self.result(event)?,
            "session_complete" | "session_failed" => self.go(&["cycle_end"], "ended", event)?,
            "session_stopped" | "session_error" => self.step = "ended",
            _ => {}
        }
        if self.step == "ended" {
            // What a stop interrupts has no result; it gets one when the session goes on.
            if kind == "session_stopped" || kind == "session_error" {
                self.open.clear();
            }
            self.running = false;
            self.step = "";
        }
        Ok(())
    }

    fn begin(&mut self, kind: &str) -> Result<(), String> {
        if kind == "session_start" && self.cycle.is_some() {
            return Err("a session begins only once".to_owned());
        }
        (self.running, self.step) = (true, "begun");
        self.open.clear();
        Ok(())
    }

    fn go(&mut self, from: &[&str], to: &'static str, event: &Value) -> Result<(), String> {
        if !from.contains(&self.step) {
            return Err(format!("it follows on `{}`", self.step));
        }
        if to != "ended" && !(to == "checker" && self.step == "checker") && !self.open.is_empty() {
            return Err(format!("calls are still open: {:?}", self.open));
        }
        self.step = to;
        self.cycle = event["cycle"].as_u64();
        Ok(())
    }

    fn call(&mut self, event: &Value, kind: &str) -> Result<(), String> {
        let role = kind.split('_').next().unwrap_or_default();
        if self.step != role {
            return Err(format!("a call of the {role} during `{}`", self.step));
        }
        self.open.push(Self::key(event));
        Ok(())
    }

    fn result(&mut self, event: &Value) -> Result<(), String> {
        let key = Self::key(event);
        let at =
            self.open.iter().position(|k| *k == key).ok_or_else(|| format!("a result without its call: {key:?}"))?;
        self.open.remove(at);
        Ok(())
    }

    fn key(event: &Value) -> (String, String) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        (text("trace_id"), text("tool_call_id"))
    }
}
