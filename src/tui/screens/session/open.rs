//! What `Enter` opens and `y` copies: anything on the session screen, in full.

use std::fmt::Write;

use super::Session;
use crate::events::data::{CheckerResult, Goal, Verdict};
use crate::events::query::Query;
use crate::tui::panes::Target;
use crate::tui::screen::{Effect, Effects, Screen};
use crate::tui::screens::detail::{Body, Detail, Look, Part, Source};
use crate::tui::state::SessionState;
use crate::tui::state::activity::{Call, Row, RowId, RowKind};
use crate::tui::state::cycle::{Cycle, HandedIn};
use crate::tui::widgets::format;

impl Session {
    pub(super) fn open_target(&mut self, state: &SessionState, out: &mut Effects) {
        let Some(target) = self.target(state) else {
            out.say("nothing to open here");
            return;
        };
        if let Target::Row(id) = target
            && state.activity.get(id).is_some_and(|row| row.off_path)
            && !self.branches
        {
            self.branches = true;
            return;
        }
        match source(state, &target) {
            Some(source) => {
                let session = Some(self.session.clone());
                out.open(Screen::Detail(Box::new(Detail::new(session, source))));
            }
            None => out.say("there is nothing more to it"),
        }
    }

    pub(super) fn copy_target(&mut self, state: &SessionState, out: &mut Effects) {
        let text = self.target(state).and_then(|target| copied(state, &target)).filter(|text| !text.is_empty());
        match text {
            Some(text) => out.push(Effect::Copy(text)),
            None => out.say("nothing to copy here"),
        }
    }
}

/// The whole of what stands behind a target.
fn source(state: &SessionState, target: &Target) -> Option<Source> {
    match target {
        Target::Goal(id) => {
            let plan = state.plans.current()?;
            let number = plan.numbered().into_iter().find(|n| &n.goal.id == id).and_then(|n| n.number);
            let title = format!("goal {}", number.as_deref().unwrap_or("(abandoned)"));
            Some(Source::text(title, Look::Markdown, goal_text(plan.get(id)?)))
        }
        Target::Row(id) => row_source(state, *id),
        Target::Verdict(number) => {
            let cycle = state.cycles.get(*number)?;
            Some(Source::text(format!("verdict of cycle {number}"), Look::Markdown, verdict_text(cycle)))
        }
        Target::Evidence(number, item) => evidence_source(state, *number, *item),
        Target::Output(number) => Some(output_source(state, *number)),
        Target::File(number, path) => {
            let parts = file_parts(state, Some(*number), path);
            Some(Source { title: path.clone(), parts })
        }
    }
}

fn goal_text(goal: &Goal) -> String {
    let mut text = format!("# {}\n\n{}\n", goal.description, goal.status.word().replace('_', " "));
    if !goal.reason.is_empty() {
        let _ = write!(text, "\n**Why:** {}\n", goal.reason);
    }
    if let Some(summary) = &goal.summary {
        let _ = write!(text, "\n**What came of it:** {summary}\n");
    }
    let stats = &goal.cumulative_stats;
    let _ = write!(
        text,
        "\n- {}\n- {} tokens, {}\n- {}\n",
        format::count(stats.message_count as usize, "message"),
        format::tokens(stats.total_tokens),
        format::money(stats.total_cost),
        format::duration(stats.duration_ms),
    );
    if !stats.preview.is_empty() {
        let _ = write!(text, "\n**Calls:** {}\n", stats.preview);
    }
    text
}

fn verdict_text(cycle: &Cycle) -> String {
    let mut text = String::new();
    match &cycle.checker {
        Some(result) => checker_text(result, &mut text),
        None => text.push_str("There is no verdict yet.\n"),
    }
    if !cycle.gates.is_empty() {
        text.push_str("\n## Gates\n\n");
        for gate in &cycle.gates {
            let mark = if gate.ok { "holds" } else { "**fails**" };
            let _ = writeln!(text, "- {} {mark}: {}", gate.name, gate.detail);
        }
    }
    let (worker, checker) = (&cycle.totals.worker, &cycle.totals.checker);
    let _ = write!(
        text,
        "\n## Cost\n\n- worker: {} tokens, {}, {}\n- checker: {} tokens, {}, {}\n",
        format::tokens(worker.tokens()),
        format::money(worker.cost_usd),
        format::duration(worker.duration_ms),
        format::tokens(checker.tokens()),
        format::money(checker.cost_usd),
        format::duration(checker.duration_ms),
    );
    text
}

fn checker_text(result: &CheckerResult, text: &mut String) {
    let word = result.verdict.map_or("unverified", Verdict::word);
    let _ = write!(text, "# {word}\n\n{}\n", result.reason);
    if !result.feedback.is_empty() {
        let _ = write!(text, "\n## What to do\n\n{}\n", result.feedback);
    }
    if !result.evidence.is_empty() {
        text.push_str("\n## Verified\n\n");
    }
    for item in &result.evidence {
        let _ = writeln!(text, "- {}", item.text);
        for call in &item.calls {
            let exit = call.exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
            let _ = writeln!(text, "  - call {}: {} `{}`{exit}", call.number, call.tool, call.arguments);
        }
        if item.calls.is_empty() {
            text.push_str("  - only a claim: no tool call stands behind it\n");
        }
    }
}

fn row_source(state: &SessionState, id: RowId) -> Option<Source> {
    let row = state.activity.get(id)?;
    let message = |title: &str, look: Look| {
        let query = Query::Message {
            session: state.id.clone(),
            trace: state.activity.trace_id(row.trace?).clone(),
            sequence: row.sequence?,
        };
        let part = Part { name: "message".to_owned(), look, body: Body::Ask(query) };
        Some(Source { title: title.to_owned(), parts: vec![part] })
    };
    match &row.kind {
        RowKind::Gone | RowKind::Composing { .. } => None,
        RowKind::Call(call) => Some(call_source(state, row, call)),
        RowKind::Text(piece) => {
            let known = || Some(Source::text("text", Look::Markdown, piece.text.clone()));
            message("text of the model", Look::Markdown).or_else(known)
        }
        RowKind::Thinking(piece) => Some(Source::text("reasoning", Look::Plain, piece.text.clone())),
        RowKind::Prompt { .. } => message("input of the model", Look::Plain),
        RowKind::User { text, .. } => Some(Source::text("your message", Look::Plain, text.clone())),
        RowKind::Sub { mode, task, end, .. } => {
            let result = end
                .as_ref()
                .map(|(status, summary)| format!("\n\n## {status}\n\n{}", summary.as_deref().unwrap_or("no result")));
            let text = format!("# {mode}\n\n{task}{}", result.unwrap_or_default());
            Some(Source::text("sub-agent", Look::Markdown, text))
        }
        RowKind::Notice(notice) if notice.detail.is_empty() => None,
        RowKind::Notice(notice) => Some(Source::text(notice.title.clone(), Look::Plain, notice.detail.clone())),
        RowKind::Retry { cause, .. } => Some(Source::text("why it was tried again", Look::Plain, cause.clone())),
    }
}

/// Arguments and output, then each file the call changed.
fn call_source(state: &SessionState, row: &Row, call: &Call) -> Source {
    let mut parts = Vec::new();
    if let Some(trace) = row.trace {
        let query = Query::Call {
            session: state.id.clone(),
            trace: state.activity.trace_id(trace).clone(),
            tool_call_id: call.id.clone(),
        };
        parts.push(Part { name: "call".to_owned(), look: Look::Plain, body: Body::Ask(query) });
    }
    for file in call.end.iter().flat_map(|end| &end.files).take(8) {
        let mut diff = file_parts(state, row.cycle, &file.path);
        diff.truncate(1);
        parts.extend(diff.into_iter().map(|part| Part { name: file.path.clone(), ..part }));
    }
    let took = call.end.as_ref().map(|end| format!(", {}", format::duration(end.duration_ms))).unwrap_or_default();
    let exit = call.end.as_ref().and_then(|end| end.exit_code).map(|code| format!(", exit {code}")).unwrap_or_default();
    Source { title: format!("call {} · {}{exit}{took}", call.number, call.title), parts }
}

/// How a file changed in its cycle, then the file itself.
fn file_parts(state: &SessionState, cycle: Option<u32>, path: &str) -> Vec<Part> {
    let cycle = cycle.and_then(|number| state.cycles.get(number));
    let session = state.id.clone();
    let snapshot = cycle.and_then(|c| c.snapshot.clone());
    let diff = Query::Diff {
        session: session.clone(),
        from: cycle.and_then(|c| c.snapshot_before.clone()),
        to: snapshot.clone(),
        path: Some(path.to_owned()),
    };
    let mut parts = vec![Part { name: "difference".to_owned(), look: Look::Diff, body: Body::Ask(diff) }];
    if let Some(snapshot) = snapshot {
        let file = Query::File { session, snapshot, path: path.to_owned() };
        parts.push(Part { name: "file".to_owned(), look: Look::of_path(path), body: Body::Ask(file) });
    }
    parts
}

fn evidence_source(state: &SessionState, number: u32, item: usize) -> Option<Source> {
    let cycle = state.cycles.get(number)?;
    let result = cycle.checker.as_ref()?;
    let claim = || {
        let text = result.verified.get(item).cloned().unwrap_or_default();
        let note = "No tool call of the Checker stands behind this item: it is only a claim.";
        Source::text("a claim", Look::Plain, format!("{text}\n\n{note}"))
    };
    let Some(evidence) = result.evidence.get(item).filter(|e| !e.calls.is_empty()) else { return Some(claim()) };
    let mut parts = Vec::new();
    for cited in &evidence.calls {
        let row = state.activity.checker_call(number, cited.number).and_then(|id| state.activity.get(id));
        let Some(Row { kind: RowKind::Call(call), .. }) = row else { continue };
        let found = row.map(|row| call_source(state, row, call).parts);
        parts.extend(
            found.into_iter().flatten().take(1).map(|part| Part { name: format!("call {}", cited.number), ..part }),
        );
    }
    if parts.is_empty() {
        return Some(Source::text(evidence.text.clone(), Look::Markdown, verdict_text(cycle)));
    }
    Some(Source { title: evidence.text.clone(), parts })
}

fn output_source(state: &SessionState, number: u32) -> Source {
    let query = Query::Output { session: state.id.clone(), cycle: Some(number) };
    let json = Part { name: "__output.json".to_owned(), look: Look::Code("json".to_owned()), body: Body::Ask(query) };
    let mut parts = Vec::new();
    if let Some(HandedIn::Output(output)) = state.cycles.get(number).map(Cycle::handed_in)
        && !output.text_content.trim().is_empty()
    {
        let body = Body::Text(output.text_content);
        parts.push(Part { name: "text".to_owned(), look: Look::Markdown, body });
    }
    parts.push(json);
    Source { title: format!("deliverable of cycle {number}"), parts }
}

/// What is worth having on the clipboard.
fn copied(state: &SessionState, target: &Target) -> Option<String> {
    match target {
        Target::Goal(id) => Some(state.plans.current()?.get(id)?.description.clone()),
        Target::Verdict(number) => Some(verdict_text(state.cycles.get(*number)?)),
        Target::Evidence(number, item) => state.cycles.get(*number)?.checker.as_ref()?.verified.get(*item).cloned(),
        Target::File(_, path) => {
            let dir = state.head.place.as_ref().map(|place| place.dir.join(path));
            Some(dir.map_or_else(|| path.clone(), |path| path.display().to_string()))
        }
        Target::Output(number) => match state.cycles.get(*number)?.handed_in() {
            HandedIn::Output(output) if output.text_content.is_empty() => Some(output.summary),
            HandedIn::Output(output) => Some(output.text_content),
            HandedIn::Nothing(why) => Some(why),
            HandedIn::NotYet => None,
        },
        Target::Row(id) => match &state.activity.get(*id)?.kind {
            RowKind::Gone | RowKind::Composing { .. } => None,
            RowKind::Call(call) => Some(call.title.clone()),
            RowKind::Text(piece) | RowKind::Thinking(piece) => Some(piece.text.clone()),
            RowKind::Prompt { description, .. } => Some(description.clone()),
            RowKind::User { text, .. } => Some(text.clone()),
            RowKind::Sub { task, .. } => Some(task.clone()),
            RowKind::Notice(notice) => Some(format!("{}\n{}", notice.title, notice.detail).trim_end().to_owned()),
            RowKind::Retry { cause, .. } => Some(cause.clone()),
        },
    }
}
