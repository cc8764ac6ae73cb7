//! Running a session without the interface: starts it, shows its events, ends with the exit code
//! that its outcome has (cli.md).

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::{ColorWhen, OutputArgs};
use super::render::deliverable;
use super::render::jsonl::JsonLines;
use super::render::paint::Paint;
use super::render::progress::{Mode, Progress, ProgressWriter};
use super::wire::World;
use crate::events::command::{Ack, Command};
use crate::events::data::Outcome;
use crate::events::event::{Envelope, Event};
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;
use crate::stdx::clock::{Clock, SystemClock};

/// How often the live line is drawn anew.
const TICK: Duration = Duration::from_millis(120);

/// Sends a command that runs a session, and stays with it to its end.
///
/// # Errors
/// The command was refused.
pub async fn stay(world: &World, command: Command, output: OutputArgs, color: ColorWhen) -> Result<u8, Problem> {
    let signals = Signals::new()?;
    let known = match &command {
        Command::Resume { session, .. } | Command::Rewind { session, .. } => Known::of(world, session).await?,
        _ => Known::default(),
    };
    match world.supervisor.command(command).await? {
        Ack::Launched { session } => follow(world, session, known, output, color, signals).await,
        Ack::Said { text } => {
            say(&text)?;
            Ok(0)
        }
        Ack::Done | Ack::Wrote { .. } => Ok(0),
    }
}

/// What is known of a session before it goes on, and is not shown again.
#[derive(Debug, Default)]
struct Known {
    /// The newest event.
    newest: u64,
    /// Where its Worker works.
    dir: Option<PathBuf>,
}

impl Known {
    async fn of(world: &World, session: &SessionId) -> Result<Self, Problem> {
        let all = Query::Journal { session: session.clone(), after: 0, limit: usize::MAX };
        let Reply::Events(events) = world.supervisor.query(all).await? else { return Ok(Self::default()) };
        let dir = events.iter().find_map(|envelope| match &envelope.event {
            Event::SessionStart(start) => Some(start.workspace.dir.clone()),
            _ => None,
        });
        Ok(Self { newest: events.iter().filter_map(|e| e.event_id).max().unwrap_or(0), dir })
    }
}

/// Prints a line on standard output; a reader that left is no error.
///
/// # Errors
/// It can't be written.
pub fn say(text: &str) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Problem::internal(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// What asks the program to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self, Problem> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one; returns the exit code that a stop by it has.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = self.hangup.recv() => 143,
        }
    }
}

enum Show {
    Json(JsonLines<std::io::Stdout>),
    People(Box<ProgressWriter<std::io::Stderr>>),
}

impl Show {
    fn new(output: OutputArgs, color: ColorWhen, world: &World, dir: Option<PathBuf>) -> Self {
        if output.json {
            return Self::Json(JsonLines::new(std::io::stdout()));
        }
        let terminal = std::io::stderr().is_terminal();
        let paint = Paint::new(color, terminal, &world.environment);
        let width = crate::tui::terminal_size().map_or(80, |(columns, _)| usize::from(columns));
        let mode = match (output.quiet, terminal) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Live(width),
            (false, false) => Mode::Lines,
        };
        Self::People(Box::new(ProgressWriter::new(Progress::new(paint, dir), std::io::stderr(), mode)))
    }

    /// Shows an event. That nobody reads any more is no error: the work goes on, and can be looked
    /// at later.
    fn event(&mut self, envelope: &Envelope) -> std::io::Result<()> {
        match self {
            Self::Json(lines) => lines.write(envelope).map(|_| ()),
            Self::People(progress) => {
                // Progress is only a courtesy.
                let _ = progress.event(envelope);
                Ok(())
            }
        }
    }

    fn tick(&mut self) {
        if let Self::People(progress) = self {
            let _ = progress.tick(SystemClock.now());
        }
    }

    /// Prints the deliverable.
    fn finish(&mut self) -> Result<(), Problem> {
        let Self::People(progress) = self else { return Ok(()) };
        let _ = progress.clear();
        let Some(ending) = progress.ending() else { return Ok(()) };
        let Some(value) = &ending.deliverable else { return Ok(()) };
        say(deliverable::deliverable(value, ending.dir.as_deref().unwrap_or(Path::new(""))).trim_end())
    }
}

async fn follow(
    world: &World,
    session: SessionId,
    known: Known,
    output: OutputArgs,
    color: ColorWhen,
    mut signals: Signals,
) -> Result<u8, Problem> {
    let mut show = Show::new(output, color, world, known.dir);
    let mut events = world.supervisor.follow(&session, known.newest).await?.events;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let live = matches!(&show, Show::People(_)) && std::io::stderr().is_terminal() && !output.quiet;
    let mut stopped_by = None;
    let mut unwritten = None;
    let outcome = loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => {
                    if let Err(error) = show.event(&event) {
                        unwritten.get_or_insert(error);
                    }
                    if let Some(outcome) = event.event.closes() {
                        break Some(outcome);
                    }
                }
                None => break world.supervisor.wait(&session).await,
            },
            _ = ticks.tick(), if live => show.tick(),
            code = signals.next() => {
                if stopped_by.is_some() {
                    // Asked twice: leave at once; the session can be resumed.
                    return Ok(code);
                }
                stopped_by = Some(code);
                let _ = world.supervisor.command(Command::Stop { session: session.clone() }).await;
            }
        }
    };
    world.supervisor.wait(&session).await;
    show.finish()?;
    if let Some(error) = unwritten {
        return Err(Problem::internal(format!("some events could not be written to standard output: {error}"))
            .hint(format!("the session is whole: look at it with `super-agent show {session}`")));
    }
    Ok(match outcome {
        // Without a signal it was another process, by `stop`, which counts as SIGTERM (cli.md).
        Some(Outcome::Stopped) => stopped_by.unwrap_or(143),
        Some(outcome) => outcome.exit_code(),
        None => Outcome::InternalError.exit_code(),
    })
}
