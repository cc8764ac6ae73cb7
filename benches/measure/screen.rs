//! The rows with a screen: the program in a pseudo-terminal, seen as a person would see it.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::Options;
use crate::model::{END_OF_ANSWER, Model, Part};
use crate::place::{Place, tail};
use crate::proc;
use crate::report::{Row, median, size, time};

const ROWS: u16 = 40;
const COLUMNS: u16 = 140;

/// How long anything on the screen is waited for.
const LIMIT: Duration = Duration::from_secs(20);

/// How long a long answer is waited for.
const LONG_LIMIT: Duration = Duration::from_secs(90);

/// Until then threads that were needed for the start are gone again.
const SETTLE: Duration = Duration::from_secs(12);

/// How long the program is left alone to see what it does unasked.
const IDLE: Duration = Duration::from_secs(10);

/// A word that is on the start screen only once it can be used: the footer offers help.
const USABLE: &str = "help";

/// All rows with a screen.
pub fn measure(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    eprintln!("screen: start, keys, rest");
    let starts: Result<Vec<Duration>, String> = (0..options.runs).map(|_| start(options)).collect();
    rows.push(Row::new("TUI: start to usable screen", "≤ 50 ms", middle(starts)));
    rows.push(Row::new("TUI: key to frame", "≤ 5 ms", keys(options)));
    let (idle, memory) = match rest(options) {
        Ok((idle, memory)) => (Ok(idle), Ok(memory)),
        Err(why) => (Err(why.clone()), Err(why)),
    };
    rows.push(Row::new("TUI idle", "no wake-up at all", idle));
    rows.push(Row::new("TUI: memory after start (PSS)", "≤ 20 MB", memory));
    eprintln!("screen: long answers");
    rows.push(Row::new(
        "TUI: 0.5 MB answer in 40-byte deltas, end on screen / processor time",
        "≤ 0.3 s / ≤ 0.3 s",
        answers(options, 500_000),
    ));
    rows.push(Row::new(
        "TUI: 5 MB answer in 40-byte deltas, end on screen / processor time",
        "≤ 1.5 s / ≤ 1 s",
        answers(options, 5_000_000),
    ));
    rows
}

fn middle(values: Result<Vec<Duration>, String>) -> Result<String, String> {
    median(&values?).map(time).ok_or_else(|| "no runs".to_owned())
}

fn start(options: &Options) -> Result<Duration, String> {
    let model = Model::start(Part::Turns(0)).map_err(|error| error.to_string())?;
    let mut terminal = Terminal::start(options, &model)?;
    let seen = terminal.wait("the start screen", LIMIT, |text| text.contains(USABLE))?;
    terminal.end();
    Ok(seen - terminal.started)
}

/// From a typed letter to the frame that shows it, in the launch form.
fn keys(options: &Options) -> Result<String, String> {
    let model = Model::start(Part::Turns(0)).map_err(|error| error.to_string())?;
    let mut terminal = Terminal::start(options, &model)?;
    terminal.wait("the start screen", LIMIT, |text| text.contains(USABLE))?;
    open_form(&mut terminal)?;
    let mut times = Vec::new();
    for n in 1..=30 {
        // Rest between keys, as between those of a person: each has a frame of its own.
        thread::sleep(Duration::from_millis(60));
        let typed = "q".repeat(n);
        let pressed = Instant::now();
        terminal.press("q")?;
        let seen = terminal.wait("the typed letter", LIMIT, |text| text.contains(&typed))?;
        times.push(seen - pressed);
    }
    terminal.end();
    median(&times).map(time).ok_or_else(|| "no key".to_owned())
}

/// What the program does when nobody touches it, and the memory it takes.
fn rest(options: &Options) -> Result<(String, String), String> {
    let model = Model::start(Part::Turns(0)).map_err(|error| error.to_string())?;
    let mut terminal = Terminal::start(options, &model)?;
    terminal.wait("the start screen", LIMIT, |text| text.contains(USABLE))?;
    thread::sleep(SETTLE);
    let look = || Some((proc::sleeps(terminal.pid)?, proc::processor_time(terminal.pid)?));
    let gone = || "the program has gone".to_owned();
    let memory = proc::pss(terminal.pid).ok_or_else(gone)?;
    let before = look().ok_or_else(gone)?;
    thread::sleep(IDLE);
    let after = look().ok_or_else(gone)?;
    terminal.end();
    let wakes = proc::wake_ups(&before.0, &after.0);
    let processor = after.1 - before.1;
    let idle = format!("{wakes} wake-ups and {} of processor time in {} s", time(processor), IDLE.as_secs());
    Ok((idle, size(memory)))
}

/// Launches a session and watches a long answer come in.
fn answers(options: &Options, bytes: usize) -> Result<String, String> {
    let runs: Result<Vec<(Duration, Duration)>, String> =
        (0..options.runs.min(3)).map(|_| answer(options, bytes)).collect();
    let runs = runs?;
    let shown: Vec<Duration> = runs.iter().map(|run| run.0).collect();
    let processor: Vec<Duration> = runs.iter().map(|run| run.1).collect();
    match (median(&shown), median(&processor)) {
        (Some(shown), Some(processor)) => Ok(format!("{} / {}", time(shown), time(processor))),
        _ => Err("no runs".to_owned()),
    }
}

fn answer(options: &Options, bytes: usize) -> Result<(Duration, Duration), String> {
    let model = Model::start(Part::OpenAnswer(bytes)).map_err(|error| error.to_string())?;
    let mut terminal = Terminal::start(options, &model)?;
    terminal.wait("the start screen", LIMIT, |text| text.contains(USABLE))?;
    open_form(&mut terminal)?;
    terminal.press("Say much.")?;
    terminal.wait("the objective", LIMIT, |text| text.contains("Say much."))?;
    let before = proc::processor_time(terminal.pid).unwrap_or_default();
    // Ctrl+S launches.
    terminal.press("\x13")?;
    let seen = terminal.wait("the end of the answer", LONG_LIMIT, |text| text.contains(END_OF_ANSWER))?;
    let after = proc::processor_time(terminal.pid).unwrap_or_default();
    let exchanges = model.wait_for(1, LIMIT)?;
    terminal.end();
    Ok((seen.saturating_duration_since(exchanges[0].began), after.saturating_sub(before)))
}

fn open_form(terminal: &mut Terminal) -> Result<(), String> {
    let before = terminal.text();
    terminal.press("n")?;
    terminal.wait("the launch form", LIMIT, |text| text != before && text.to_lowercase().contains("objective"))?;
    Ok(())
}

/// A program in a terminal of its own.
struct Terminal {
    started: Instant,
    pid: u32,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    view: Arc<View>,
    // Closing it would hang up on the program.
    _master: Box<dyn MasterPty + Send>,
    _place: Place,
}

/// What is on the screen, and word of each change to it.
struct View {
    state: Mutex<Screen>,
    changed: Condvar,
}

struct Screen {
    parser: vt100::Parser,
    /// When the newest bytes came in.
    at: Instant,
    over: bool,
}

impl View {
    fn lock(&self) -> MutexGuard<'_, Screen> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    fn start(options: &Options, model: &Model) -> Result<Self, String> {
        let place = Place::new(&model.base_url()).map_err(|error| format!("temporary folders: {error}"))?;
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).map_err(|error| error.to_string())?;
        let mut command = CommandBuilder::new(&options.binary);
        command.arg("--workspace");
        command.arg(place.workspace());
        command.cwd(place.here());
        command.env_clear();
        for (name, value) in place.environment() {
            command.env(name, value);
        }
        let reader = pair.master.try_clone_reader().map_err(|error| error.to_string())?;
        let keys = pair.master.take_writer().map_err(|error| error.to_string())?;
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).map_err(|error| error.to_string())?;
        drop(pair.slave);
        let rows = NonZeroU16::new(ROWS).ok_or("no rows")?;
        let columns = NonZeroU16::new(COLUMNS).ok_or("no columns")?;
        let screen = Screen { parser: vt100::Parser::new(rows, columns, 0), at: started, over: false };
        let view = Arc::new(View { state: Mutex::new(screen), changed: Condvar::new() });
        let for_thread = view.clone();
        thread::spawn(move || read(&for_thread, reader));
        let pid = child.process_id().ok_or("the program has no process id")?;
        Ok(Self { started, pid, child, keys, view, _master: pair.master, _place: place })
    }

    fn text(&self) -> String {
        self.view.lock().parser.screen().contents()
    }

    fn press(&mut self, keys: &str) -> Result<(), String> {
        let sent = self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush());
        sent.map_err(|error| format!("the terminal is gone: {error}"))
    }

    /// When the bytes came in that made the screen as wanted.
    fn wait(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> Result<Instant, String> {
        let end = Instant::now() + limit;
        let mut screen = self.view.lock();
        loop {
            let text = screen.parser.screen().contents();
            if wanted(&text) {
                return Ok(screen.at);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || screen.over {
                let why = if screen.over { "the program ended" } else { "it did not come" };
                return Err(format!("waiting for {what}: {why}; the screen ends with: {}", tail(&text)));
            }
            let waited = self.view.changed.wait_timeout(screen, left);
            screen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(view: &View, mut reader: Box<dyn Read + Send>) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = reader.read(&mut bytes).unwrap_or(0);
        let at = Instant::now();
        let mut screen = view.lock();
        screen.at = at;
        screen.over = read == 0;
        screen.parser.process(&bytes[..read]);
        drop(screen);
        view.changed.notify_all();
        if read == 0 {
            return;
        }
    }
}
