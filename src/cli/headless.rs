//! Running a session without the interface: starts it, shows its events, ends with the exit code
//! that its outcome has (cli.md).

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::{ColorWhen, OutputArgs};
use super::render::deliverable;
use super::render::jsonl::{JsonLines, Reader};
use super::render::paint::Paint;
use super::render::progress::{Mode, Progress, ProgressWriter};
use super::wire::World;
use crate::events::command::{Ack, Command};
use crate::events::data::Outcome;
use crate::events::event::{Envelope, Event};
use crate::events::port::Port;
use crate::events::problem::Problem;
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
    let after = match &command {
        Command::Resume { session, .. } | Command::Rewind { session, .. } => newest_event(world, session).await,
        _ => 0,
    };
    match world.supervisor.command(command).await? {
        Ack::Launched { session } => follow(world, session, after, output, color, signals).await,
        Ack::Said { text } => {
            say(&text)?;
            Ok(0)
        }
        Ack::Done | Ack::Wrote { .. } => Ok(0),
    }
}

/// What is known of a session already is not shown again.
async fn newest_event(world: &World, session: &SessionId) -> u64 {
    let query = crate::events::query::Query::Journal { session: session.clone(), after: 0, limit: usize::MAX };
    match world.supervisor.query(query).await {
        Ok(crate::events::query::Reply::Events(events)) => events.iter().filter_map(|e| e.event_id).max().unwrap_or(0),
        _ => 0,
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
    fn new(output: OutputArgs, color: ColorWhen, world: &World) -> Self {
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
        Self::People(Box::new(ProgressWriter::new(Progress::new(paint, None), std::io::stderr(), mode)))
    }

    /// False when nobody reads any more.
    fn event(&mut self, envelope: &Envelope) -> bool {
        match self {
            Self::Json(lines) => matches!(lines.write(envelope), Ok(Reader::Listening)),
            Self::People(progress) => {
                // A closed standard error must not end the work.
                let _ = progress.event(envelope);
                true
            }
        }
    }

    fn tick(&mut self) {
        if let Self::People(progress) = self {
            let _ = progress.tick(SystemClock.now());
        }
    }

    fn finish(&mut self) {
        if let Self::People(progress) = self {
            let _ = progress.clear();
            let ending = progress.ending().cloned();
            if let Some(ending) = ending
                && let Some(value) = &ending.deliverable
            {
                let text = deliverable::deliverable(value, ending.dir.as_deref().unwrap_or(std::path::Path::new("")));
                let _ = say(text.trim_end());
            }
        }
    }
}

async fn follow(
    world: &World,
    session: SessionId,
    after: u64,
    output: OutputArgs,
    color: ColorWhen,
    mut signals: Signals,
) -> Result<u8, Problem> {
    let mut show = Show::new(output, color, world);
    let mut events = world.supervisor.follow(&session, after).await?.events;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let live = matches!(&show, Show::People(_)) && std::io::stderr().is_terminal() && !output.quiet;
    let mut stopped_by = None;
    let mut reading = true;
    let outcome = loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => {
                    if reading && !show.event(&event) {
                        // Nobody reads the events any more; the work they asked for is theirs to stop.
                        reading = false;
                    }
                    if let Some(outcome) = event.event.closes().filter(|_| !matches!(event.event, Event::Unknown)) {
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
    show.finish();
    Ok(match (outcome, stopped_by) {
        (Some(Outcome::Stopped), Some(code)) => code,
        (Some(outcome), _) => outcome.exit_code(),
        (None, _) => Outcome::InternalError.exit_code(),
    })
}
