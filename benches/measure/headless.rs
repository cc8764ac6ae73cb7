//! The rows without a screen: `super-agent run --json` from its start to its exit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Options;
use crate::model::{Exchange, Model, Part};
use crate::place::{Place, is_program, tail};
use crate::proc;
use crate::report::{Row, median, percentile, size, time};

/// No run takes longer unless something is wrong.
const LIMIT: Duration = Duration::from_secs(180);

/// Whether memory is looked at while the program runs. Looking costs time, so it has runs of its own.
#[derive(Clone, Copy, PartialEq)]
enum Watch {
    Time,
    Memory,
}

/// One run of the program.
struct Run {
    started: Instant,
    ended: Instant,
    /// Of the program and everything it started.
    processor: Duration,
    /// Most memory seen; none when it was not looked at.
    memory: Option<u64>,
    exchanges: Vec<Exchange>,
    /// What the program says it holds its tools within.
    boundary: String,
}

/// All headless rows.
pub fn measure(options: &Options) -> Vec<Row> {
    if !is_program(&options.binary) {
        let why = format!("{} is not a program", options.binary.display());
        return vec![Row::new("headless", "", Err(why))];
    }
    let mut rows = Vec::new();
    eprintln!("headless: start and exit");
    let short = several(options, Part::Turns(0), options.runs * 2, Watch::Time);
    rows.push(Row::new("headless: start to first request", "≤ 40 ms", each(&short, start_to_request)));
    rows.push(Row::new("last byte of the answer to process exit", "≤ 15 ms", each(&short, answer_to_exit)));
    eprintln!("headless: 50 turns");
    let fifty = several(options, Part::Turns(50), options.runs, Watch::Time);
    rows.push(Row::new(
        "one tool turn, p50 at 50 turns",
        "≤ 6 ms (files), ≤ 10 ms (namespaces), ≤ 3 ms (none)",
        turns(&fifty, 50),
    ));
    rows.push(Row::new("one tool turn, p95 at 50 turns", "≤ 10 ms", turns(&fifty, 95)));
    eprintln!("headless: 200 turns");
    let many = several(options, Part::Turns(200), options.runs.min(3), Watch::Time);
    rows.push(Row::new("one tool turn, p50 at 200 turns", "as at 50", turns(&many, 50)));
    rows.push(Row::new("one tool turn, p95 at 200 turns", "as at 50", turns(&many, 95)));
    rows.push(Row::new("growth from turn 10 to turn 200", "what the bytes cost", growth(&many)));
    rows.push(Row::new("processor time per turn", "≤ 5 ms", per_turn(&short, &many)));
    rows.push(Row::new(
        "200 tool turns, wall, start to exit",
        "≤ 2 s",
        each(&many, |run| Some(run.ended - run.started)),
    ));
    rows.push(Row::new("first request", "≤ 8 KB", first_request(&short)));
    eprintln!("headless: memory");
    let watched = several(options, Part::Turns(200), 1, Watch::Memory);
    rows.push(Row::new("peak memory in 200 turns (PSS)", "≤ 30 MB", memory(&watched)));
    eprintln!("headless: 5 MB answer");
    let long = several(options, Part::LongAnswer(5_000_000), options.runs.min(3), Watch::Time);
    rows.push(Row::new("5 MB answer in 40-byte deltas: processor time", "≤ 0.5 s", beyond(&short, &long)));
    rows.push(Row::new("tools are held within", "", short.map(|runs| runs[0].boundary.clone())));
    rows
}

fn several(options: &Options, part: Part, count: usize, watch: Watch) -> Result<Vec<Run>, String> {
    (0..count).map(|_| run(options, part, watch)).collect()
}

fn run(options: &Options, part: Part, watch: Watch) -> Result<Run, String> {
    let model = Model::start(part).map_err(|error| format!("the local server: {error}"))?;
    let place = Place::new(&model.base_url()).map_err(|error| format!("temporary folders: {error}"))?;
    let before = proc::processor_time_of_children().unwrap_or_default();
    let started = Instant::now();
    let mut child = Command::new(&options.binary)
        .args(["run", "--json", "--scratch", "--max-turns", "300", "--model", "local/test", "--workspace"])
        .arg(place.workspace())
        .arg("Echo numbers, then hand in.")
        .env_clear()
        .envs(place.environment())
        .current_dir(place.here())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", options.binary.display()))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let (memory, ended) = wait(&mut child, started, watch)?;
    let processor = proc::processor_time_of_children().unwrap_or_default().saturating_sub(before);
    let events = stdout.join().unwrap_or_default();
    let complaints = stderr.join().unwrap_or_default();
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("the program ended with {status}: {} {}", tail(&complaints), tail(&events)));
    }
    Ok(Run { started, ended, processor, memory, exchanges: model.exchanges(), boundary: boundary(&events) })
}

/// Reads a stream to its end in the background, so that the program never waits for us.
fn drain(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            // What came until a broken pipe is still worth showing.
            let _ = stream.read_to_end(&mut all);
        }
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// Waits for the end. Without watching it sleeps in the system, so that the end is seen at once.
fn wait(child: &mut Child, started: Instant, watch: Watch) -> Result<(Option<u64>, Instant), String> {
    if watch == Watch::Time {
        let guard = kill_after(child.id(), LIMIT);
        child.wait().map_err(|error| error.to_string())?;
        let ended = Instant::now();
        drop(guard);
        return Ok((None, ended));
    }
    let mut most = 0;
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if started.elapsed() > LIMIT {
            child.kill().map_err(|error| error.to_string())?;
            return Err(format!("not done after {} s", LIMIT.as_secs()));
        }
        most = most.max(proc::pss(child.id()).unwrap_or_default());
        thread::sleep(Duration::from_millis(10));
    }
    Ok((Some(most), Instant::now()))
}

/// Ends the process after `limit` unless what is returned is dropped first.
fn kill_after(pid: u32, limit: Duration) -> std::sync::mpsc::Sender<()> {
    let (tx, rx) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        if rx.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap_or_default());
            // It may have ended by itself just now.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    });
    tx
}

/// The newest word of the program on what it holds its tools within.
fn boundary(events: &str) -> String {
    let newest = events.lines().rev().find_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).ok()?;
        (event["type"] == "boundary").then(|| event["level"].as_str().map(str::to_owned))?
    });
    newest.unwrap_or_else(|| "not said".to_owned())
}

/// The median over all runs, shown as a time.
fn each(runs: &Result<Vec<Run>, String>, value: impl Fn(&Run) -> Option<Duration>) -> Result<String, String> {
    let values: Vec<Duration> = runs.as_ref().map_err(Clone::clone)?.iter().filter_map(value).collect();
    median(&values).map(time).ok_or_else(|| "no run had it".to_owned())
}

fn start_to_request(run: &Run) -> Option<Duration> {
    Some(run.exchanges.first()?.asked - run.started)
}

fn answer_to_exit(run: &Run) -> Option<Duration> {
    Some(run.ended.saturating_duration_since(run.exchanges.last()?.answered))
}

/// From the last byte of each answer that called `echo` to the next request.
fn gaps(run: &Run) -> Vec<Duration> {
    let worker: Vec<&Exchange> = run.exchanges.iter().filter(|exchange| !exchange.by_checker).collect();
    // The last two gaps belong to the hand-in and to what comes after it.
    let echoes = worker.len().saturating_sub(2);
    worker.windows(2).take(echoes).map(|pair| pair[1].asked - pair[0].answered).collect()
}

fn turns(runs: &Result<Vec<Run>, String>, percent: usize) -> Result<String, String> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    let values: Vec<Duration> = runs.iter().filter_map(|run| percentile(&gaps(run), percent)).collect();
    median(&values).map(time).ok_or_else(|| "no tool was called".to_owned())
}

fn growth(runs: &Result<Vec<Run>, String>) -> Result<String, String> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    let around = |from: usize, to: usize| {
        let values: Vec<Duration> = runs.iter().flat_map(|run| gaps(run).into_iter().take(to).skip(from)).collect();
        median(&values)
    };
    let (Some(early), Some(late)) = (around(5, 15), around(185, 200)) else { return Err("too few turns".to_owned()) };
    let bytes = |at: usize| runs[0].exchanges.get(at).map_or(0, |exchange| exchange.bytes as u64);
    Ok(format!(
        "×{:.2} ({} at {}, {} at {})",
        late.as_secs_f64() / early.as_secs_f64(),
        time(early),
        size(bytes(10)),
        time(late),
        size(bytes(199))
    ))
}

/// What 200 turns cost beyond a run without any, for each of them.
fn per_turn(short: &Result<Vec<Run>, String>, many: &Result<Vec<Run>, String>) -> Result<String, String> {
    Ok(time(difference(short, many)? / 200))
}

fn beyond(short: &Result<Vec<Run>, String>, long: &Result<Vec<Run>, String>) -> Result<String, String> {
    difference(short, long).map(time)
}

/// Processor time of the one kind of run less that of the other, medians of both.
fn difference(less: &Result<Vec<Run>, String>, more: &Result<Vec<Run>, String>) -> Result<Duration, String> {
    let middle = |runs: &Result<Vec<Run>, String>| {
        let values: Vec<Duration> = runs.as_ref().map_err(Clone::clone)?.iter().map(|run| run.processor).collect();
        median(&values).ok_or_else(|| "no runs".to_owned())
    };
    Ok(middle(more)?.saturating_sub(middle(less)?))
}

fn first_request(runs: &Result<Vec<Run>, String>) -> Result<String, String> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    let first = runs.first().and_then(|run| run.exchanges.first()).ok_or("no request came")?;
    Ok(size(first.bytes as u64))
}

fn memory(runs: &Result<Vec<Run>, String>) -> Result<String, String> {
    let runs = runs.as_ref().map_err(Clone::clone)?;
    let most = runs.iter().filter_map(|run| run.memory).max().filter(|most| *most > 0);
    most.map(size).ok_or_else(|| "the system does not say".to_owned())
}
