//! Events become rows.

use super::stream::Flow;
use super::{Activity, Call, CallEnd, Notice, NoticeKind, Row, RowId, RowKind, TraceRef};
use crate::events::data::{Permission, Role, Verdict, VerdictBy, WorkerStatus};
use crate::events::event::{Envelope, Event, MessageAdded, ToolCallEvent, ToolResultEvent};
use crate::stdx::bounded;
use crate::tui::state::request;
use crate::tui::widgets::format;

/// Longest title kept of a call or a result.
const TITLE_BYTES: usize = 400;

/// Longest detail kept of a notice.
const DETAIL_BYTES: usize = 2_000;

impl Activity {
    pub(in crate::tui::state) fn apply(&mut self, envelope: &Envelope) {
        let trace = envelope.trace_id.as_ref().map(|id| self.trace_ref(id));
        match &envelope.event {
            Event::TextDelta { text } => self.delta(envelope, Flow::Text, text),
            Event::ThinkingDelta { text } => self.delta(envelope, Flow::Thinking, text),
            Event::ToolCallDelta { index, tool, arguments } => {
                self.call_delta(envelope, *index, tool.as_deref(), arguments);
            }
            Event::WorkerToolCall(call) => self.call(envelope, trace, call, Role::Worker),
            Event::CheckerToolCall(call) => self.call(envelope, trace, call, Role::Checker),
            Event::WorkerToolResult(result) | Event::CheckerToolResult(result) => self.result(trace, result),
            Event::MessageAdded(message) => self.message(envelope, trace, message),
            Event::SubTraceStarted { sub_trace_id, mode, task, .. } => {
                let sub = self.trace_ref(sub_trace_id);
                self.info(sub).parent = trace.filter(|t| *t != sub);
                let (mode, task) = (mode.clone(), bounded::preview(task, TITLE_BYTES));
                let row = self.add(envelope, RowKind::Sub { trace: sub, mode, task, end: None });
                self.subs.insert(sub, row);
            }
            Event::SubTraceCompleted { sub_trace_id, status, summary, .. } => {
                let sub = self.trace_ref(sub_trace_id);
                let row = self.subs.get(&sub).copied();
                if let Some(Row { kind: RowKind::Sub { end, .. }, .. }) = row.and_then(|row| self.row_mut(row)) {
                    *end = Some((status.clone(), summary.as_deref().map(|s| bounded::preview(s, TITLE_BYTES))));
                }
            }
            Event::TraceComplete { .. } => {
                if let Some(trace) = trace {
                    self.discard(trace);
                }
            }
            Event::Retry { attempt, attempts, wait_ms, cause } => {
                if let Some(trace) = trace {
                    self.discard(trace);
                }
                let until = envelope.at + std::time::Duration::from_millis(*wait_ms);
                let (attempt, attempts) = (*attempt, *attempts);
                self.add(envelope, RowKind::Retry { attempt, attempts, until, cause: cause.clone() });
            }
            Event::UserMessage { message_id, text, state } => self.user(envelope, message_id, text, *state),
            Event::Compaction { summary, from, to } => {
                if let Some(trace) = trace {
                    self.info(trace).compacted.push((*summary, *from, *to));
                }
                self.notice(envelope, NoticeKind::Info, format!("messages {from}–{to} were summarised"), "");
            }
            Event::Rewind(record) => {
                self.discard_all();
                self.rewind(trace, record);
                let title = format!("rewound to message {} of cycle {}", record.cut, record.cycle);
                self.notice(envelope, NoticeKind::Rewind, title, record.message.as_deref().unwrap_or(""));
            }
            event => self.session_event(envelope, event),
        }
    }

    /// Events about the session as a whole.
    fn session_event(&mut self, envelope: &Envelope, event: &Event) {
        use NoticeKind as Kind;
        if event.closes().is_some() || matches!(event, Event::SessionResumed { .. }) {
            self.stop_running();
        }
        let cycle = envelope.cycle.unwrap_or_default();
        let (kind, title, detail) = match event {
            Event::CycleStart { .. } => (Kind::Cycle, format!("cycle {cycle}"), String::new()),
            Event::WorkerStart { model } => {
                (Kind::Work(Role::Worker), format!("worker starts: {model}"), String::new())
            }
            Event::WorkerComplete { result } => match result.status {
                WorkerStatus::Ok => (Kind::Work(Role::Worker), "worker handed in".to_owned(), result.summary.clone()),
                WorkerStatus::Error => {
                    let why = result.error.clone().unwrap_or_default();
                    (Kind::Warning, "worker ended without a valid result".to_owned(), why)
                }
            },
            Event::GateResult(gate) if gate.ok => (Kind::GateOk, gate.name.clone(), gate.detail.clone()),
            Event::GateResult(gate) => (Kind::GateFailed, gate.name.clone(), gate.detail.clone()),
            Event::CheckerStart { model: Some(model), .. } => {
                (Kind::Work(Role::Checker), format!("checker starts: {model}"), String::new())
            }
            Event::CheckerStart { model: None, .. } => {
                (Kind::Work(Role::Checker), "the gates decide, without a model".to_owned(), String::new())
            }
            // With a trace, its messages are rows already.
            Event::CheckerStream { text } if envelope.trace_id.is_none() => {
                (Kind::Info, "gates".to_owned(), text.clone())
            }
            Event::CheckerComplete { result } => {
                let by = match result.by {
                    VerdictBy::Checker => "checker",
                    VerdictBy::Gates => "gates",
                    VerdictBy::Harness => "harness",
                };
                let word = result.verdict.map_or("unverified", Verdict::word);
                (Kind::Work(Role::Checker), format!("{by}: {word}"), result.reason.clone())
            }
            Event::CycleEnd { verdict, next, .. } => {
                let word = verdict.map_or("unverified", Verdict::word);
                (Kind::Cycle, format!("cycle {cycle} ended: {word}"), next.replace('_', " "))
            }
            Event::SessionComplete { cycles, .. } => {
                let after = format::count(*cycles as usize, "cycle");
                (Kind::Success, format!("passed after {after}"), String::new())
            }
            Event::SessionFailed { reason, .. } => (Kind::Error, "the cycles are used up".to_owned(), reason.clone()),
            Event::SessionStopped { reason, .. } => (Kind::Warning, "stopped".to_owned(), reason.clone()),
            Event::SessionError { stage, cause, remedy, .. } => {
                (Kind::Error, format!("{stage}: {cause}"), format!("→ {remedy}"))
            }
            Event::SessionResumed { from, message, .. } => {
                (Kind::Info, format!("continued from the {from}"), message.clone().unwrap_or_default())
            }
            Event::Contract { by, .. } if by != "start" => {
                (Kind::Info, "contract changed by you".to_owned(), "counts from the next cycle".to_owned())
            }
            Event::Boundary { level, detail } => {
                let kind = if level == "none" { Kind::Warning } else { Kind::Info };
                (kind, format!("boundary: {level}"), detail.clone())
            }
            Event::Question { question, .. } => (Kind::Waiting, "question for you".to_owned(), question.clone()),
            Event::Answer { answer, .. } => (Kind::Info, "you answered".to_owned(), answer.clone()),
            Event::PermissionRequest { tool, arguments, .. } => {
                (Kind::Waiting, format!("permission for {tool}"), request::subject(arguments))
            }
            Event::PermissionAnswer { answer, .. } => match answer {
                Permission::AllowOnce => (Kind::Info, "you allowed it once".to_owned(), String::new()),
                Permission::AllowSession => (Kind::Info, "you allowed it for the session".to_owned(), String::new()),
                Permission::Refuse { reason } => (Kind::Info, "you refused it".to_owned(), reason.clone()),
            },
            Event::BudgetWarning { budget, percent } => {
                (Kind::Warning, format!("{percent} % of the {budget} budget is used"), String::new())
            }
            Event::Snapshot { not_captured, .. } if !not_captured.is_empty() => {
                (Kind::Warning, "not everything can be rewound".to_owned(), not_captured.join("; "))
            }
            Event::RewindApplied { kept, failed, .. } if !failed.is_empty() || !kept.is_empty() => {
                let kind = if failed.is_empty() { Kind::Info } else { Kind::Warning };
                let words = [("kept", kept), ("not restored", failed)];
                let parts = words.iter().filter(|(_, files)| !files.is_empty());
                let detail: Vec<_> = parts.map(|(word, files)| format!("{word}: {}", files.join(", "))).collect();
                (kind, "files after the rewind".to_owned(), detail.join("; "))
            }
            Event::Fork { session } => (Kind::Info, format!("forked as {session}"), String::new()),
            Event::Note { text } => (Kind::Info, bounded::first_line(text, 200), rest_of(text)),
            _ => return,
        };
        self.notice(envelope, kind, title, &detail);
    }

    pub(super) fn add(&mut self, envelope: &Envelope, kind: RowKind) -> RowId {
        let trace = envelope.trace_id.as_ref().map(|id| self.trace_ref(id));
        let id = RowId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        self.rows.push(Row { at: envelope.at, cycle: envelope.cycle, trace, sequence: None, off_path: false, kind });
        id
    }

    fn notice(&mut self, envelope: &Envelope, kind: NoticeKind, title: String, detail: &str) {
        let detail = bounded::preview(detail, DETAIL_BYTES);
        self.add(envelope, RowKind::Notice(Notice { kind, title, detail }));
    }

    fn call(&mut self, envelope: &Envelope, trace: Option<TraceRef>, call: &ToolCallEvent, role: Role) {
        let kind = RowKind::Call(Box::new(Call {
            id: call.tool_call_id.clone(),
            number: call.number,
            role,
            tool: call.tool.clone(),
            title: bounded::preview(&call.title, TITLE_BYTES),
            end: None,
        }));
        let composed = trace.and_then(|trace| self.take_composed(trace));
        let row = match composed.and_then(|id| Some((id, self.row_mut(id)?))) {
            Some((id, row)) => {
                row.kind = kind;
                row.at = envelope.at;
                id
            }
            None => self.add(envelope, kind),
        };
        let Some(trace) = trace else { return };
        let key = (trace, call.tool_call_id.clone());
        let sequence = self.announced.remove(&key);
        if let Some(row) = self.row_mut(row) {
            row.sequence = sequence;
        }
        self.running.insert(key, row);
    }

    fn result(&mut self, trace: Option<TraceRef>, result: &ToolResultEvent) {
        let Some(trace) = trace else { return };
        let Some(row) = self.running.remove(&(trace, result.tool_call_id.clone())) else { return };
        if let Some(Row { kind: RowKind::Call(call), .. }) = self.row_mut(row) {
            call.end = Some(CallEnd {
                ok: result.ok,
                stopped: false,
                title: bounded::preview(&result.title, TITLE_BYTES),
                exit_code: result.exit_code,
                lines: result.output_lines,
                files: result.files.clone(),
                duration_ms: result.duration_ms,
            });
        }
    }

    /// Calls whose result will never come: the session ended while they ran.
    fn stop_running(&mut self) {
        self.discard_all();
        let rows: Vec<_> = self.running.drain().map(|(_, row)| row).collect();
        for row in rows {
            if let Some(Row { kind: RowKind::Call(call), .. }) = self.row_mut(row) {
                let (title, files) = (String::new(), Vec::new());
                let end = CallEnd { ok: false, stopped: true, title, exit_code: None, lines: 0, files, duration_ms: 0 };
                call.end = Some(end);
            }
        }
    }

    fn message(&mut self, envelope: &Envelope, trace: Option<TraceRef>, message: &MessageAdded) {
        let Some(trace) = trace else { return };
        self.info(trace).parents.insert(message.sequence, message.parent_sequence);
        match message.role.as_str() {
            "assistant" => {
                self.complete(envelope, trace, message);
                for call in &message.tool_calls {
                    let key = (trace, call.id.clone());
                    match self.running.get(&key).copied().and_then(|row| self.row_mut(row)) {
                        Some(row) => row.sequence = Some(message.sequence),
                        None => drop(self.announced.insert(key, message.sequence)),
                    }
                }
            }
            "user" => {
                let description = bounded::first_line(&message.description, 200);
                let row = self.add(envelope, RowKind::Prompt { description, bytes: message.bytes });
                if let Some(row) = self.row_mut(row) {
                    row.sequence = Some(message.sequence);
                }
            }
            // The row of its call shows it.
            "tool" => {
                if let Some(id) = &message.tool_call_id {
                    self.announced.remove(&(trace, id.clone()));
                }
            }
            _ => {}
        }
    }

    fn user(&mut self, envelope: &Envelope, id: &str, text: &str, state: crate::events::data::UserMessageState) {
        let known = self.users.get(id).copied();
        if let Some(Row { kind: RowKind::User { text: shown, state: now, .. }, .. }) =
            known.and_then(|row| self.row_mut(row))
        {
            *now = state;
            if !text.is_empty() || state == crate::events::data::UserMessageState::Edited {
                *shown = text.to_owned();
            }
            return;
        }
        let row = self.add(envelope, RowKind::User { id: id.to_owned(), text: text.to_owned(), state });
        self.users.insert(id.to_owned(), row);
    }
}

fn rest_of(text: &str) -> String {
    text.trim_start().split_once('\n').map(|(_, rest)| rest.trim().to_owned()).unwrap_or_default()
}
