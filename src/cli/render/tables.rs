//! Sessions as a table, and one session in full.

use jiff::Timestamp;

use super::deliverable::deliverable;
use super::figures;
use super::paint::{Paint, Tone, columns, cut, pad};
use crate::events::data::{CheckerResult, Evidence, Place, PlaceKind, SessionStatus, WorkerResult};
use crate::events::query::{CycleDetail, SessionDetail, SessionSummary};
use crate::stdx::clock::minute;
use crate::stdx::text::{sanitize, sanitize_line};

/// Widest a name is shown.
const NAME_COLUMNS: usize = 24;

/// The list of sessions. `width` is the terminal's, absent when there is none.
pub fn sessions(sessions: &[SessionSummary], now: Timestamp, width: Option<usize>, paint: Paint) -> String {
    if sessions.is_empty() {
        return "no sessions yet; start one with `super-agent run OBJECTIVE`, or look at `super-agent demo`\n"
            .to_owned();
    }
    let heading = ["ID", "NAME", "STATUS", "CYCLES", "VERDICTS", "COST", "ACTIVE", "OBJECTIVE"].map(str::to_owned);
    let rows: Vec<[String; 8]> = sessions.iter().map(|session| row(session, now)).collect();
    let mut widths = heading.each_ref().map(|cell| columns(cell));
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let line = |row: &[String; 8]| {
        let (last, cells) = row.split_last().unwrap_or((&row[7], &row[..7]));
        let cells: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| pad(cell, width)).collect();
        let whole = format!("{}  {last}", cells.join("  "));
        match width {
            Some(width) => cut(whole.trim_end(), width).into_owned(),
            None => whole.trim_end().to_owned(),
        }
    };
    let mut out = format!("{}\n", paint.tone(Tone::Strong, line(&heading)));
    for (row, session) in rows.iter().zip(sessions) {
        let text = line(row);
        // The tone belongs to the status only, so the line is cut before it is coloured.
        let status = &row[2];
        let (_, _, tone) = status_words(session);
        let coloured = text.replacen(status.as_str(), &paint.tone(tone, status.as_str()), 1);
        out.push_str(&coloured);
        out.push('\n');
    }
    out
}

fn row(session: &SessionSummary, now: Timestamp) -> [String; 8] {
    let (mark, words, _) = status_words(session);
    let objective = match &session.broken {
        Some(why) => format!("can't be read: {why}"),
        None if session.scripted => format!("[scripted] {}", session.objective),
        None => session.objective.clone(),
    };
    [
        session.id.to_string(),
        cut(&sanitize_line(&session.name), NAME_COLUMNS).into_owned(),
        format!("{mark} {words}"),
        format!("{}/{}", session.cycle, session.max_cycles),
        session.verdicts.iter().map(|verdict| figures::verdict(*verdict).0).collect(),
        figures::cost(&session.totals),
        figures::ago(session.active_at, now),
        sanitize_line(&objective),
    ]
}

/// Mark, words and tone of where a session stands.
fn status_words(session: &SessionSummary) -> (&'static str, String, Tone) {
    if session.broken.is_some() {
        return ("✗", "broken".to_owned(), Tone::Bad);
    }
    if session.waiting {
        return ("?", "waiting for you".to_owned(), Tone::Warning);
    }
    match (session.status, session.outcome) {
        (SessionStatus::Running, _) if session.elsewhere => ("▶", "running elsewhere".to_owned(), Tone::Strong),
        (SessionStatus::Running, _) | (_, None) => ("▶", session.status.word().to_owned(), Tone::Strong),
        (_, Some(outcome)) => {
            let (mark, tone) = figures::outcome(outcome);
            (mark, outcome.word().to_owned(), tone)
        }
    }
}

/// One session in full, or only one of its cycles.
pub fn session(detail: &SessionDetail, cycle: Option<u32>, paint: Paint) -> String {
    let mut page = Page { out: String::new(), paint };
    if cycle.is_none() {
        page.head(detail);
    }
    for part in detail.cycles.iter().filter(|part| cycle.is_none_or(|cycle| cycle == part.number)) {
        page.cycle(part);
    }
    if let Some(output) = detail.deliverable.as_ref()
        && cycle.is_none_or(|cycle| detail.deliverable_cycle == Some(cycle))
    {
        let of = detail.deliverable_cycle.map_or(String::new(), |cycle| format!(" of cycle {cycle}"));
        page.heading(&format!("deliverable{of}"));
        page.block(&deliverable(output, &detail.place.dir));
    }
    page.out
}

struct Page {
    out: String,
    paint: Paint,
}

impl Page {
    fn head(&mut self, detail: &SessionDetail) {
        let summary = &detail.summary;
        self.heading(&format!("{} · {}", summary.id, sanitize_line(&summary.name)));
        let (mark, words, tone) = status_words(summary);
        let status = format!("{} after {} of {} cycles", words, summary.cycle, summary.max_cycles);
        self.field("status", &self.paint.tone(tone, format!("{mark} {status}")));
        if let Some(why) = &summary.broken {
            self.field("broken", &sanitize_line(why));
        }
        self.field("objective", "");
        self.block(&sanitize(&detail.contract.objective));
        for check in &detail.contract.checks {
            self.field("check", &sanitize_line(check));
        }
        self.field("where", &place(&detail.place));
        let models = format!("worker {} · checker {}", detail.models.worker, detail.models.checker);
        let scripted = if summary.scripted { " · scripted: no model is asked" } else { "" };
        self.field("models", &format!("{}{scripted}", sanitize_line(&models)));
        self.field("cost", &figures::totals(&summary.totals));
        self.field("created", &minute(summary.created_at));
        self.field("home", &sanitize_line(&summary.home.to_string_lossy()));
    }

    fn cycle(&mut self, cycle: &CycleDetail) {
        self.out.push('\n');
        let verdict = cycle.checker.as_ref().and_then(|checker| checker.verdict);
        let (mark, word, tone) = figures::verdict(verdict);
        let word = if cycle.ended { format!("{mark} {word}") } else { "▶ not ended".to_owned() };
        let tone = if cycle.ended { tone } else { Tone::Strong };
        let heading = format!(
            "{} {}",
            self.paint.tone(Tone::Strong, format!("cycle {}", cycle.number)),
            self.paint.tone(tone, word)
        );
        self.line(&heading);
        if let Some(worker) = &cycle.worker {
            self.worker(worker);
        }
        if let Some(checker) = &cycle.checker {
            self.checker(checker);
        }
        for (name, totals) in [("worker cost", &cycle.totals.worker), ("checker cost", &cycle.totals.checker)] {
            if totals.calls > 0 {
                self.field(name, &figures::totals(totals));
            }
        }
    }

    fn worker(&mut self, worker: &WorkerResult) {
        self.field("worker", &sanitize_line(&worker.summary));
        if let Some(error) = &worker.error {
            self.field("error", &self.paint.tone(Tone::Bad, sanitize_line(error)));
        }
        for change in &worker.changed {
            let (mark, lines, tone) = figures::change(change);
            let text = format!("{mark} {}{lines}", sanitize_line(&change.path));
            self.field("", &self.paint.tone(tone, text));
        }
    }

    fn checker(&mut self, checker: &CheckerResult) {
        self.field("checker", &sanitize_line(&checker.reason));
        if !checker.feedback.trim().is_empty() {
            self.field("feedback", "");
            self.block(&sanitize(&checker.feedback));
        }
        if checker.evidence.is_empty() {
            for item in &checker.verified {
                self.field("", &format!("– {}", sanitize_line(item)));
            }
        }
        for item in &checker.evidence {
            self.field("", &evidence(item));
        }
    }

    fn heading(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let text = self.paint.tone(Tone::Strong, text).into_owned();
        self.line(&text);
    }

    fn field(&mut self, name: &str, value: &str) {
        let name = self.paint.tone(Tone::Faint, pad(name, 14));
        let line = format!("  {name}{value}");
        self.line(line.trim_end());
    }

    fn block(&mut self, text: &str) {
        for line in text.trim_end().lines() {
            self.line(format!("    {line}").trim_end());
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// An item of a verdict, with the calls behind it.
fn evidence(item: &Evidence) -> String {
    if item.calls.is_empty() {
        return format!("– {} (claimed)", sanitize_line(&item.text));
    }
    let call = |call: &crate::events::data::CitedCall| match call.exit_code {
        Some(code) => format!("[{} {} exit {code}]", call.number, call.tool),
        None if call.ok => format!("[{} {}]", call.number, call.tool),
        None => format!("[{} {} failed]", call.number, call.tool),
    };
    let calls: Vec<String> = item.calls.iter().map(call).collect();
    format!("✓ {} {}", sanitize_line(&item.text), sanitize_line(&calls.join(" ")))
}

/// Where a session works, in words.
pub(super) fn place(place: &Place) -> String {
    let dir = sanitize_line(&place.dir.to_string_lossy());
    match (place.kind, &place.branch) {
        (PlaceKind::Scratch, _) => format!("scratch folder {dir}"),
        (PlaceKind::InPlace, _) => format!("in place, {dir}"),
        (PlaceKind::Worktree, Some(branch)) => format!("worktree {dir}, branch {}", sanitize_line(branch)),
        (PlaceKind::Worktree, None) => format!("worktree {dir}"),
    }
}

#[cfg(test)]
mod tests;
