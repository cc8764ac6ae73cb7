//! A session's progress as lines for a person, folded from its events; on a terminal with a live
//! line below them. Does not follow the session; who does hands over each event.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use super::figures;
use super::paint::{Paint, Tone, cut};
use super::tables::place;
use crate::events::data::{
    CheckerResult, GoalStatus, Outcome, Permission, Role, Totals, UserMessageState, WorkerResult, WorkerStatus,
};
use crate::events::event::{Envelope, Event, SessionStart, ToolCallEvent, ToolResultEvent};
use crate::stdx::bounded::first_line;
use crate::stdx::text::{sanitize, sanitize_line};

/// How long a line about a foreign text may get.
const LINE_CHARS: usize = 160;

/// How a stretch of running ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// The normalised `__output.json` of a session that passed.
    pub deliverable: Option<Value>,
    /// The Worker's directory, below which the files of the deliverable lie.
    pub dir: Option<PathBuf>,
}

/// The fold.
#[derive(Debug)]
pub struct Progress {
    paint: Paint,
    dir: Option<PathBuf>,
    max_cycles: u32,
    /// Calls whose result is still to come.
    calls: HashMap<String, Called>,
    doing: Option<Doing>,
    ending: Option<Ending>,
}

/// What goes on, for the live line.
#[derive(Clone, Debug, PartialEq)]
struct Doing {
    what: String,
    since: Timestamp,
}

impl Progress {
    /// Nothing has happened yet. `dir` is the Worker's directory where it is known already, as
    /// when a session goes on and its start is not among the events.
    pub fn new(paint: Paint, dir: Option<PathBuf>) -> Self {
        Self { paint, dir, max_cycles: 0, calls: HashMap::new(), doing: None, ending: None }
    }

    /// How it ended, once it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Takes an event and gives the lines it deserves.
    pub fn apply(&mut self, envelope: &Envelope) -> Vec<String> {
        let at = envelope.at;
        match &envelope.event {
            Event::SessionStart(start) => self.session_start(envelope, start),
            Event::SessionResumed { max_cycles, from, message, .. } => {
                self.max_cycles = *max_cycles;
                self.ending = None;
                let mut lines = vec![self.strong(format!("session {} goes on with the {from}", envelope.session_id))];
                lines.extend(message.as_ref().map(|text| format!("  you: {}", short(text))));
                lines
            }
            Event::Contract { by, max_cycles, .. } => {
                self.max_cycles = *max_cycles;
                if by == "person" { vec!["  the contract was changed".to_owned()] } else { Vec::new() }
            }
            Event::Boundary { detail, .. } => vec![self.faint(format!("  boundary: {}", short(detail)))],
            Event::CycleStart { .. } => vec![self.cycle_start(envelope.cycle)],
            Event::WorkerStart { model } => self.starts("worker", Some(model), at),
            Event::CheckerStart { model, .. } => self.starts("checker", model.as_deref(), at),
            Event::WorkerToolCall(call) => self.call(Role::Worker, call, at),
            Event::CheckerToolCall(call) => self.call(Role::Checker, call, at),
            Event::WorkerToolResult(result) => self.result(Role::Worker, result, at),
            Event::CheckerToolResult(result) => self.result(Role::Checker, result, at),
            Event::WorkerComplete { result } => self.worker_complete(result),
            Event::OutputTaken { valid: true, .. } => Vec::new(),
            Event::OutputTaken { valid: false, .. } => {
                vec![self.warning("    what was handed in is not a valid `__output.json`".to_owned())]
            }
            Event::GateResult(gate) => {
                let (mark, tone) = if gate.ok { ("✓", Tone::Good) } else { ("✗", Tone::Bad) };
                vec![format!("    {} gate {}: {}", self.paint.tone(tone, mark), gate.name, short(&gate.detail))]
            }
            Event::CheckerComplete { result } => self.checker_complete(result),
            Event::CycleEnd { totals, .. } => {
                self.doing = None;
                let mut both = totals.worker;
                both.add(&totals.checker);
                let shares = format!(
                    "  cost: {} (worker {}, checker {})",
                    figures::totals(&both),
                    figures::count(totals.worker.tokens()),
                    figures::count(totals.checker.tokens())
                );
                vec![self.faint(shares)]
            }
            Event::SessionComplete { outcome, deliverable, totals, .. } => {
                self.ends(*outcome, Some(deliverable.clone()), totals, None)
            }
            Event::SessionFailed { outcome, reason, totals, .. }
            | Event::SessionStopped { outcome, reason, totals } => self.ends(*outcome, None, totals, Some(reason)),
            Event::SessionError { outcome, stage, cause, remedy, totals } => {
                let why = format!("{stage}: {cause}\n{remedy}");
                self.ends(*outcome, None, totals, Some(&why))
            }
            Event::GoalAdded { goal, .. } => vec![self.faint(format!("    ○ goal: {}", short(&goal.description)))],
            Event::GoalUpdated { goal, .. } => self.goal(goal.status, &goal.description),
            Event::SubTraceStarted { task, mode, .. } => vec![format!("    ▶ sub-agent ({mode}): {}", short(task))],
            Event::SubTraceCompleted { status, summary, .. } => {
                let summary = summary.as_deref().map(|text| format!(": {}", short(text))).unwrap_or_default();
                vec![format!("    ■ sub-agent {status}{summary}")]
            }
            Event::Rewind(record) => {
                let undone = record.superseded.len();
                let cycles = if undone == 0 { String::new() } else { format!(", {undone} cycles undone") };
                vec![self.strong(format!("back to message {} of cycle {}{cycles}", record.cut, record.cycle))]
            }
            Event::RewindApplied { kept, failed, .. } => {
                let kept = kept.iter().map(|path| format!("  kept as you changed it: {}", short(path)));
                let failed = failed.iter().map(|path| self.bad(format!("  not brought back: {}", short(path))));
                kept.chain(failed).collect()
            }
            Event::Snapshot { not_captured, .. } => {
                let warn = |what: &String| self.warning(format!("    not recorded: {}", short(what)));
                not_captured.iter().map(warn).collect()
            }
            Event::Retry { attempt, attempts, wait_ms, cause } => {
                let wait = figures::time(*wait_ms);
                let text = format!("    {}; trying again in {wait} ({attempt} of {attempts} failed)", short(cause));
                vec![self.warning(text)]
            }
            Event::Compaction { from, to, .. } => {
                vec![self.faint(format!("    messages {from} to {to} were summarised"))]
            }
            Event::Question { question, options, .. } => {
                let options = if options.is_empty() { String::new() } else { format!(" ({})", options.join(" · ")) };
                vec![self.warning(format!("  ? {}{}", short(question), short(&options)))]
            }
            Event::Answer { answer, .. } => vec![format!("  answer: {}", short(answer))],
            Event::PermissionRequest { role, tool, arguments, .. } => {
                vec![self.warning(format!("  ? the {} asks to use {tool}: {}", role.word(), short(arguments)))]
            }
            Event::PermissionAnswer { answer, .. } => vec![match answer {
                Permission::AllowOnce => "  allowed once".to_owned(),
                Permission::AllowSession => "  allowed for this session".to_owned(),
                Permission::Refuse { reason } => format!("  refused: {}", short(reason)),
            }],
            Event::UserMessage { text, state, .. } => match state {
                UserMessageState::Delivered => vec![format!("  you: {}", short(text))],
                UserMessageState::Queued | UserMessageState::NextCycle | UserMessageState::Edited => Vec::new(),
            },
            Event::BudgetWarning { budget, percent } => {
                vec![self.warning(format!("  {percent} % of the {budget} budget is used"))]
            }
            Event::BudgetSet { budget } => vec![format!("  limits from now on: {}", figures::budget(budget))],
            Event::Fork { session } => vec![format!("  forked as session {session}")],
            Event::Note { text } => vec![format!("  note: {}", short(text))],
            Event::TraceStart { .. } | Event::TextDelta { .. } | Event::ThinkingDelta { .. } => Vec::new(),
            Event::MessageAdded(_) | Event::ToolCallDelta { .. } | Event::CheckerStream { .. } => Vec::new(),
            Event::TraceComplete { .. } | Event::Usage { .. } | Event::Unknown => Vec::new(),
        }
    }

    /// What goes on and for how long, while something does.
    pub fn live(&self, now: Timestamp, frame: usize) -> Option<String> {
        const TURNING: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        let doing = self.doing.as_ref()?;
        let ms = u64::try_from(now.as_millisecond() - doing.since.as_millisecond()).unwrap_or(0);
        Some(format!("{} {} · {}", TURNING[frame % TURNING.len()], doing.what, figures::time(ms / 1000 * 1000)))
    }

    fn session_start(&mut self, envelope: &Envelope, start: &SessionStart) -> Vec<String> {
        self.dir = Some(start.workspace.dir.clone());
        self.max_cycles = start.max_cycles;
        let name = sanitize_line(&start.name);
        let mut lines = vec![
            self.strong(format!("session {} · {name}", envelope.session_id)),
            format!("  where: {}", place(&start.workspace)),
            format!(
                "  models: worker {} · checker {} ({})",
                short(&start.models.worker),
                short(&start.models.checker),
                short(&start.model_reason)
            ),
        ];
        if start.scripted {
            lines.push(self.warning("  scripted: no model is asked, the tools are real".to_owned()));
        }
        lines
    }

    fn cycle_start(&mut self, cycle: Option<u32>) -> String {
        let cycle = cycle.unwrap_or(1);
        let of = if self.max_cycles > 0 { format!(" of {}", self.max_cycles) } else { String::new() };
        self.strong(format!("cycle {cycle}{of}"))
    }

    fn starts(&mut self, role: &str, model: Option<&str>, at: Timestamp) -> Vec<String> {
        self.doing = Some(Doing { what: format!("{role} thinks"), since: at });
        let by = model.map_or_else(|| "by the gates alone, no model is asked".to_owned(), short);
        vec![format!("  {} {by}", self.paint.tone(Tone::Strong, role.to_owned()))]
    }

    fn call(&mut self, role: Role, call: &ToolCallEvent, at: Timestamp) -> Vec<String> {
        let title = title(&call.tool, &call.title);
        self.doing = Some(Doing { what: format!("{} · {title}", role.word()), since: at });
        self.calls.insert(call.tool_call_id.clone(), Called { own: short(&call.title), title });
        Vec::new()
    }

    fn result(&mut self, role: Role, result: &ToolResultEvent, at: Timestamp) -> Vec<String> {
        let called = self.calls.remove(&result.tool_call_id);
        let called = called.unwrap_or_else(|| Called { own: String::new(), title: sanitize_line(&result.tool) });
        if self.calls.is_empty() {
            self.doing = Some(Doing { what: format!("{} thinks", role.word()), since: at });
        }
        let exit = result.exit_code.filter(|code| *code != 0);
        let (mark, tone) = match (result.ok, exit) {
            (false, _) => ("✗", Tone::Bad),
            (true, Some(_)) => ("!", Tone::Warning),
            (true, None) => ("✓", Tone::Good),
        };
        let took = self.faint(format!("({})", figures::time(result.duration_ms)));
        let outcome = short(&result.title);
        let said = match outcome.strip_prefix(&called.own) {
            // The result says the call's words and what became of it.
            Some(more) if !called.own.is_empty() => format!("{}{more}", called.title),
            _ if outcome.is_empty() || outcome == called.title => called.title,
            _ => format!("{} → {outcome}", called.title),
        };
        vec![format!("    {} {said} {took}", self.paint.tone(tone, mark))]
    }

    fn worker_complete(&mut self, result: &WorkerResult) -> Vec<String> {
        self.doing = None;
        let tone = match result.status {
            WorkerStatus::Ok => Tone::Good,
            WorkerStatus::Error => Tone::Bad,
        };
        let mut lines = vec![format!("  {} {}", self.paint.tone(tone, "handed in:"), short(&result.summary))];
        lines.extend(result.error.as_ref().map(|error| self.bad(format!("    {}", short(error)))));
        lines.extend(result.changed.iter().map(|change| {
            let (mark, counts, tone) = figures::change(change);
            format!("    {} {}{counts}", self.paint.tone(tone, mark), short(&change.path))
        }));
        lines
    }

    fn checker_complete(&mut self, result: &CheckerResult) -> Vec<String> {
        self.doing = None;
        let (mark, word, tone) = figures::verdict(result.verdict);
        let verdict = self.paint.tone(tone, format!("{mark} {word}"));
        let mut lines = vec![format!("  verdict: {verdict} · {}", short(&result.reason))];
        lines.extend(sanitize(&result.feedback).trim().lines().map(|line| format!("    {}", cut(line, LINE_CHARS))));
        lines
    }

    fn goal(&self, status: GoalStatus, description: &str) -> Vec<String> {
        let mark = match status {
            GoalStatus::Completed => "✓",
            GoalStatus::Abandoned => "✗",
            // The focus moves often; the tools say what is going on.
            GoalStatus::Pending | GoalStatus::InProgress => return Vec::new(),
        };
        vec![self.faint(format!("    {mark} goal: {}", short(description)))]
    }

    fn ends(
        &mut self,
        outcome: Outcome,
        deliverable: Option<Value>,
        totals: &Totals,
        why: Option<&str>,
    ) -> Vec<String> {
        self.doing = None;
        self.calls.clear();
        self.ending = Some(Ending { outcome, deliverable, dir: self.dir.clone() });
        let (mark, tone) = figures::outcome(outcome);
        let ended = self.paint.tone(tone, format!("{mark} {}", outcome.word()));
        let mut lines = vec![format!("{ended} · {}", figures::totals(totals))];
        let why = why.map(sanitize).unwrap_or_default();
        lines.extend(why.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("  {line}")));
        lines
    }

    fn strong(&self, text: String) -> String {
        self.paint.tone(Tone::Strong, text).into_owned()
    }

    fn faint(&self, text: String) -> String {
        self.paint.tone(Tone::Faint, text).into_owned()
    }

    fn warning(&self, text: String) -> String {
        self.paint.tone(Tone::Warning, text).into_owned()
    }

    fn bad(&self, text: String) -> String {
        self.paint.tone(Tone::Bad, text).into_owned()
    }
}

/// A call as it was announced.
#[derive(Clone, Debug)]
struct Called {
    /// Its own title.
    own: String,
    /// The title with the tool's name.
    title: String,
}

/// A foreign text on one line, safe and not too long.
fn short(text: &str) -> String {
    first_line(&sanitize(text), LINE_CHARS)
}

/// A call's title, with the tool's name where the title does not begin with it.
fn title(tool: &str, title: &str) -> String {
    let (tool, title) = (sanitize_line(tool), short(title));
    match title.is_empty() || title == tool {
        true => tool,
        false if title.starts_with(&tool) => title,
        false => format!("{tool} {title}"),
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing but how it ends badly.
    Quiet,
    /// Lines only.
    Lines,
    /// Lines, and a live line below them on a terminal so wide.
    Live(usize),
}

/// Writes progress to a stream, usually standard error.
#[derive(Debug)]
pub struct ProgressWriter<W> {
    progress: Progress,
    out: W,
    mode: Mode,
    frame: usize,
    /// Whether a live line stands there now.
    live: bool,
}

impl<W: Write> ProgressWriter<W> {
    /// Writes to `out`.
    pub fn new(progress: Progress, out: W, mode: Mode) -> Self {
        Self { progress, out, mode, frame: 0, live: false }
    }

    /// How it ended, once it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.progress.ending()
    }

    /// Takes an event.
    ///
    /// # Errors
    /// The stream can't be written; a caller may well go on without progress.
    pub fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        let lines = self.progress.apply(envelope);
        let shown = match self.mode {
            Mode::Lines | Mode::Live(_) => !lines.is_empty(),
            Mode::Quiet => envelope.event.closes().is_some_and(|outcome| outcome != Outcome::Passed),
        };
        if !shown {
            return Ok(());
        }
        self.clear()?;
        for line in lines {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    /// Draws the live line anew. A few times a second is enough.
    ///
    /// # Errors
    /// As [`ProgressWriter::event`].
    pub fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let Mode::Live(width) = self.mode else { return Ok(()) };
        self.frame = self.frame.wrapping_add(1);
        match self.progress.live(now, self.frame) {
            // One column stays free, since some terminals wrap when the last one is written.
            Some(line) => write!(self.out, "\r\u{1b}[2K{}", cut(&line, width.saturating_sub(1)))?,
            None => return self.clear(),
        }
        self.live = true;
        self.out.flush()
    }

    /// Takes the live line away. To be called before anything else writes to the terminal.
    ///
    /// # Errors
    /// As [`ProgressWriter::event`].
    pub fn clear(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.live) {
            return Ok(());
        }
        write!(self.out, "\r\u{1b}[2K")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
