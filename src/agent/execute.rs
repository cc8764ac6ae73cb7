//! Carries out the tool calls of one answer: asks where consent is needed, keeps repeating calls
//! from running, runs reading calls side by side, records results in call order (B30).

use std::time::Instant;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::config::RunConfig;
use super::doom_loop::{self, DoomLoop, Judgement};
use super::ports::{PermissionQuestion, Ports};
use super::report::{CallRecord, RunError};
use super::scribe::{Extra, Scribe};
use crate::events::data::{Permission, PermissionMode, Role};
use crate::events::event::{Event, PREVIEW_BYTES, ToolCallEvent, ToolResultEvent};
use crate::llm::chat::{ChatMessage, Content, ImageUrl, Part, ToolCall};
use crate::prompts::{Library, PromptName, Section};
use crate::stdx::bounded;
use crate::tools::preview::preview_arguments;
use crate::tools::registry::Toolset;
use crate::tools::{Ended, Need, ToolCx, ToolOutcome};

/// What carrying out needs besides the calls.
pub struct Executor<'a> {
    /// The run.
    pub config: &'a RunConfig,
    /// Those around it.
    pub ports: Ports<'a>,
    /// Its tools.
    pub toolset: &'a Toolset,
    /// What a call works with; its id is filled in per call.
    pub cx: ToolCx,
    /// Texts for calls that don't run.
    pub prompts: &'a Library,
    /// What repeats.
    pub doom: DoomLoop,
    /// Number of the next call.
    pub next_number: u32,
    /// What was called so far.
    pub records: Vec<CallRecord>,
}

/// How a round of calls ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Every call has a result.
    Done,
    /// Every call has a result, and the agent repeats itself beyond hope.
    InALoop,
    /// A person was needed and none is there; the calls from there on have no result.
    NeedsHuman,
    /// The run was stopped; the calls from there on have no result.
    Stopped,
}

struct Planned<'c> {
    call: &'c ToolCall,
    tool: String,
    number: u32,
    key: String,
    need: Option<Need>,
}

impl Executor<'_> {
    /// Gives every call a result. `cut`: the answer ran into a length limit.
    ///
    /// # Errors
    /// A result could not be written.
    pub async fn run(
        &mut self,
        scribe: &mut Scribe<'_>,
        calls: &[ToolCall],
        cut: bool,
        cancel: &CancellationToken,
    ) -> Result<Round, RunError> {
        let mut in_a_loop = false;
        let mut rest = calls;
        while !rest.is_empty() {
            if cancel.is_cancelled() {
                return Ok(Round::Stopped);
            }
            let batch = self.reading_batch(rest, cut);
            if batch > 1 {
                let (now, later) = rest.split_at(batch);
                rest = later;
                if self.side_by_side(scribe, now, cancel).await? == Round::Stopped {
                    return Ok(Round::Stopped);
                }
                continue;
            }
            let call = &rest[0];
            rest = &rest[1..];
            match self.one(scribe, call, cut, cancel).await? {
                Round::Done => {}
                Round::InALoop => in_a_loop = true,
                end @ (Round::NeedsHuman | Round::Stopped) => return Ok(end),
            }
        }
        Ok(if in_a_loop { Round::InALoop } else { Round::Done })
    }

    /// Gives every call a result that says there are no more tools.
    ///
    /// # Errors
    /// A result could not be written.
    pub fn refuse_all(&mut self, scribe: &mut Scribe<'_>, calls: &[ToolCall]) -> Result<(), RunError> {
        for call in calls {
            let text = self.text(PromptName::NoMoreTools, &[])?;
            scribe.record(ChatMessage::tool_result(&call.id, Content::Text(text)), &Extra::default())?;
        }
        Ok(())
    }

    /// How many calls from the first on only read and are all different.
    fn reading_batch(&self, calls: &[ToolCall], cut: bool) -> usize {
        let mut keys = Vec::new();
        for call in calls {
            let planned = self.plan(call, 0);
            let plain = planned.need == Some(Need::Read)
                && !is_cut(call, cut)
                && self.doom.judge(&planned.key) == Judgement::Run
                && !keys.contains(&planned.key);
            if !plain {
                break;
            }
            keys.push(planned.key);
        }
        keys.len()
    }

    fn plan<'c>(&self, call: &'c ToolCall, number: u32) -> Planned<'c> {
        let name = &call.function.name;
        let tool = self.toolset.canonical_name(name).unwrap_or(name).to_owned();
        let key = doom_loop::key(&tool, &call.function.arguments);
        let need = self.toolset.find(name).map(|t| t.descriptor().need);
        Planned { call, tool, number, key, need }
    }

    fn next<'c>(&mut self, call: &'c ToolCall) -> Planned<'c> {
        let planned = self.plan(call, self.next_number);
        self.next_number += 1;
        planned
    }

    async fn side_by_side(
        &mut self,
        scribe: &mut Scribe<'_>,
        calls: &[ToolCall],
        cancel: &CancellationToken,
    ) -> Result<Round, RunError> {
        let planned: Vec<_> = calls.iter().map(|call| self.next(call)).collect();
        for p in &planned {
            scribe.event(self.call_event(p))?;
        }
        let (toolset, cx) = (self.toolset, &self.cx);
        let runs = planned.iter().map(|p| {
            let cx = ToolCx { call_id: p.call.id.clone(), ..cx.clone() };
            async move {
                let started = Instant::now();
                let outcome = toolset.run(&cx, &p.call.function.name, &p.call.function.arguments).await;
                (outcome, started)
            }
        });
        let outcomes = scribe.keep_up(join_all(runs)).await?;
        if cancel.is_cancelled() && outcomes.iter().any(|(o, _)| o.ended == Ended::Stopped) {
            return Ok(Round::Stopped);
        }
        for (p, (outcome, started)) in planned.iter().zip(outcomes) {
            self.finish(scribe, p, outcome, started, Repeats::Counts).await?;
        }
        Ok(Round::Done)
    }

    async fn one(
        &mut self,
        scribe: &mut Scribe<'_>,
        call: &ToolCall,
        cut: bool,
        cancel: &CancellationToken,
    ) -> Result<Round, RunError> {
        let planned = self.next(call);
        scribe.event(self.call_event(&planned))?;
        let started = Instant::now();
        if is_cut(call, cut) {
            let text = self.text(PromptName::TruncatedCall, &[("tool", &planned.tool)])?;
            self.finish(scribe, &planned, ToolOutcome::failed(text), started, Repeats::Counts).await?;
            return Ok(Round::Done);
        }
        let judgement = self.doom.judge(&planned.key);
        if judgement != Judgement::Run {
            let count = if judgement == Judgement::Refuse { "3" } else { "4" };
            let text = self.text(PromptName::DoomLoop, &[("tool", &planned.tool), ("count", count)])?;
            self.finish(scribe, &planned, ToolOutcome::refused(text), started, Repeats::Refused).await?;
            return Ok(if judgement == Judgement::End { Round::InALoop } else { Round::Done });
        }
        match self.consent(scribe, &planned, cancel).await? {
            Consent::Given => {}
            Consent::Refused(why) => {
                self.finish(scribe, &planned, ToolOutcome::refused(why), started, Repeats::Counts).await?;
                return Ok(Round::Done);
            }
            Consent::Nobody => return Ok(Round::NeedsHuman),
            Consent::Stopped => return Ok(Round::Stopped),
        }
        let changes = matches!(planned.need, Some(Need::Write | Need::Execute));
        if changes {
            self.ports.hook.before_change().await;
        }
        let started = Instant::now();
        let cx = ToolCx { call_id: call.id.clone(), ..self.cx.clone() };
        let run = self.toolset.run(&cx, &call.function.name, &call.function.arguments);
        let outcome = scribe.keep_up(run).await?;
        if outcome.ended == Ended::Stopped {
            // No result is recorded: the call is healed when the trace goes on (B43). What it did
            // to the files until then is.
            if changes {
                self.ports.hook.after_change(scribe.trace.head_sequence, None).await;
            }
            return Ok(Round::Stopped);
        }
        let only = (planned.need == Some(Need::Write)).then(|| outcome.files.iter().map(|f| f.path.clone()).collect());
        let sequence = self.finish(scribe, &planned, outcome, started, Repeats::Counts).await?;
        if changes {
            self.ports.hook.after_change(sequence, only).await;
        }
        Ok(Round::Done)
    }

    async fn consent(
        &mut self,
        scribe: &mut Scribe<'_>,
        planned: &Planned<'_>,
        cancel: &CancellationToken,
    ) -> Result<Consent, RunError> {
        let asks = match (self.config.permission, planned.need) {
            (_, None | Some(Need::Read | Need::Control)) | (PermissionMode::BypassPermissions, _) => false,
            (PermissionMode::AcceptEdits, Some(Need::Write)) => false,
            (PermissionMode::AcceptEdits, Some(Need::Execute | Need::Network)) => true,
            (PermissionMode::Ask, Some(Need::Write | Need::Execute | Need::Network)) => true,
            (PermissionMode::Plan, Some(Need::Write | Need::Execute | Need::Network)) => {
                return Ok(Consent::Refused("this session only reads (permission mode `plan`)".to_owned()));
            }
        };
        if !asks || self.ports.permissions.is_allowed(&planned.tool) {
            return Ok(Consent::Given);
        }
        let question = PermissionQuestion {
            request_id: planned.call.id.clone(),
            role: self.config.role,
            tool: planned.tool.clone(),
            arguments: planned.call.function.arguments.clone(),
        };
        scribe.event(Event::PermissionRequest {
            request_id: question.request_id.clone(),
            role: question.role,
            tool: question.tool.clone(),
            arguments: bounded::preview(&question.arguments, PREVIEW_BYTES),
        })?;
        scribe.catch_up()?;
        let answer = tokio::select! {
            answer = self.ports.permissions.ask(question) => answer,
            () = cancel.cancelled() => return Ok(Consent::Stopped),
        };
        let Some(answer) = answer else { return Ok(Consent::Nobody) };
        scribe.event(Event::PermissionAnswer { request_id: planned.call.id.clone(), answer: answer.clone() })?;
        Ok(match answer {
            Permission::AllowOnce | Permission::AllowSession => Consent::Given,
            Permission::Refuse { reason } if reason.is_empty() => {
                Consent::Refused("the person refused this call; find another way or finish without it".to_owned())
            }
            Permission::Refuse { reason } => Consent::Refused(format!("the person refused this call: {reason}")),
        })
    }

    async fn finish(
        &mut self,
        scribe: &mut Scribe<'_>,
        planned: &Planned<'_>,
        outcome: ToolOutcome,
        started: Instant,
        repeats: Repeats,
    ) -> Result<u64, RunError> {
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let hash = blake3::hash(outcome.output.as_bytes()).to_hex().to_string();
        self.doom.note(planned.key.clone(), (repeats == Repeats::Counts).then(|| hash.clone()));
        let mut text = outcome.output.clone();
        if self.config.number_results {
            text = format!("{}\n(call {})", text.trim_end(), planned.number);
        }
        let content = if outcome.images.is_empty() {
            Content::Text(text)
        } else {
            let images = outcome.images.iter().map(|url| Part::ImageUrl { image_url: ImageUrl { url: url.clone() } });
            Content::Parts(std::iter::once(Part::Text { text }).chain(images).collect())
        };
        let extra = Extra { duration_ms: Some(duration_ms), ..Extra::default() };
        let sequence = scribe.record(ChatMessage::tool_result(&planned.call.id, content), &extra)?;
        scribe.event(self.result_event(planned, &outcome, duration_ms))?;
        self.records.push(CallRecord {
            number: planned.number,
            tool: planned.tool.clone(),
            arguments: planned.call.function.arguments.clone(),
            ended: outcome.ended,
            exit_code: outcome.exit_code,
            output_hash: hash,
        });
        Ok(sequence)
    }

    fn call_event(&self, planned: &Planned<'_>) -> Event {
        let function = &planned.call.function;
        let arguments = serde_json::from_str(&function.arguments)
            .unwrap_or_else(|_| serde_json::Value::String(function.arguments.clone()));
        let event = ToolCallEvent {
            tool_call_id: planned.call.id.clone(),
            number: planned.number,
            tool: planned.tool.clone(),
            title: self.toolset.title(&function.name, &function.arguments),
            arguments: preview_arguments(&arguments, PREVIEW_BYTES),
            arguments_bytes: function.arguments.len() as u64,
        };
        match self.config.role {
            Role::Worker => Event::WorkerToolCall(event),
            Role::Checker => Event::CheckerToolCall(event),
        }
    }

    fn result_event(&self, planned: &Planned<'_>, outcome: &ToolOutcome, duration_ms: u64) -> Event {
        let event = ToolResultEvent {
            tool_call_id: planned.call.id.clone(),
            number: planned.number,
            tool: planned.tool.clone(),
            ok: outcome.ended == Ended::Ran,
            title: outcome.title.clone(),
            output: bounded::preview(&outcome.output, PREVIEW_BYTES),
            output_bytes: outcome.output.len() as u64,
            output_lines: outcome.output.lines().count() as u64,
            exit_code: outcome.exit_code,
            files: outcome.files.clone(),
            duration_ms,
        };
        match self.config.role {
            Role::Worker => Event::WorkerToolResult(event),
            Role::Checker => Event::CheckerToolResult(event),
        }
    }

    fn text(&self, name: PromptName, values: &[(&str, &str)]) -> Result<String, RunError> {
        self.prompts.render(name, Section::Tool, values).map_err(|e| RunError::Invalid(e.to_string()))
    }
}

/// Whether a call counts towards noticing repetition with its result, or was refused for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Counts,
    Refused,
}

enum Consent {
    Given,
    Refused(String),
    Nobody,
    Stopped,
}

/// Whether a call was cut off in the middle: the answer hit a length limit and its arguments are
/// not whole. Such a call never runs.
fn is_cut(call: &ToolCall, cut: bool) -> bool {
    cut && serde_json::from_str::<serde_json::Value>(&call.function.arguments).is_err()
}
