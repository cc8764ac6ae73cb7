//! One Worker run of a cycle (A6–A11): its prompts, its run, and what it left.

use std::path::Path;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::archive::{self, Taken};
use super::context::{Session, StepError, agents_file};
use super::contract;
use super::gates;
use super::recording::Recording;
use crate::agent::config::{RunConfig, TraceChoice};
use crate::agent::machine::{Ending, LastTurn};
use crate::agent::ports::Ports;
use crate::agent::{ChatMessage, ChatRole, RunReport, preset};
use crate::events::data::{FileChange, Role, WorkerResult, WorkerStatus};
use crate::events::event::Event;
use crate::ids::{SnapshotId, TraceId};
use crate::prompts::{Library, PromptError, PromptName, Section};
use crate::stdx::bounded;
use crate::stdx::clock::minute;
use crate::trace::store;

/// What the Worker of a cycle left, and the record of its files.
#[derive(Clone, Debug)]
pub struct WorkerEnd {
    /// The hand-over.
    pub taken: Taken,
    /// The result (A22).
    pub result: WorkerResult,
    /// The files it left.
    pub snapshot: SnapshotId,
    /// What differs from the start of the session.
    pub since_start: Vec<FileChange>,
}

/// Runs the Worker of `cycle`, on its existing trace when there is one. `said` is a person's
/// message for it.
///
/// # Errors
/// It was stopped, the provider or the storage failed, or a budget is used up.
pub async fn run(
    session: &Session,
    cycle: u32,
    input: &Value,
    said: Option<&str>,
    cancel: &CancellationToken,
) -> Result<WorkerEnd, StepError> {
    let cwd = session.cwd()?;
    let existing = session.record().current().and_then(|c| c.detail.worker_trace_id.clone());
    let mut messages: Vec<ChatMessage> = said.map(user).into_iter().collect();
    let roles = existing.as_ref().map(|id| store::path_roles(&session.home.traces(), id)).unwrap_or_default();
    if !roles.contains(&ChatRole::User) {
        // It is new, or its process ended before it had its task.
        messages.insert(0, user(&user_prompt(session, &cwd, input)?));
    }
    let trace = match existing.filter(|_| roles.first() == Some(&ChatRole::System)) {
        Some(id) => TraceChoice::Existing { id, after: None },
        None => TraceChoice::New(session.new_trace(Role::Worker, cycle)),
    };
    let trace_id = trace.id().clone();
    let config = run_config(session, cycle, trace, &cwd).await?;
    let shell = config.settings.shell.clone();
    std::fs::create_dir_all(&config.settings.temp)?;
    let event = Event::WorkerStart { model: config.model.reference.clone() };
    session.emit(Some(cycle), Some(&trace_id), event)?;
    let recording = Recording::begin(session.snapshots.clone(), session.recorder.clone(), cycle, trace_id.clone());
    let ports = Ports { hook: &recording, permissions: &session.desk, inbox: session, meter: session };
    let run = session.runner().run_result(messages, config, ports, cancel, &|_| {}).await;
    shell.end().await;
    recording.settle().await;
    let report = run?;
    check_end(&report)?;
    finish(session, cycle, &cwd, &report, &recording, &trace_id).await
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::text(ChatRole::User, text)
}

/// What a run's ending means for the session; a Worker out of turns has still worked (A10).
pub fn check_end(report: &RunReport) -> Result<(), StepError> {
    let why = || report.finish.why.clone().unwrap_or_default();
    match report.finish.ending {
        Ending::Completed | Ending::TurnLimit | Ending::DoomLoop | Ending::EmptyAnswers | Ending::HandedOver => Ok(()),
        Ending::Stopped => Err(StepError::Stopped),
        Ending::Budget => Err(StepError::Budget(why())),
        Ending::NeedsHuman => Err(StepError::NeedsHuman(why())),
        Ending::Provider => {
            let remedy = report.finish.provider.as_ref().and_then(|p| p.hint.clone());
            let remedy = remedy.unwrap_or_else(|| "resume the session when the provider answers again".to_owned());
            Err(StepError::Provider { cause: why(), remedy })
        }
    }
}

async fn run_config(session: &Session, cycle: u32, trace: TraceChoice, cwd: &Path) -> Result<RunConfig, StepError> {
    let (reference, max_turns, permission, objective) = {
        let record = session.record();
        (record.models.worker.clone(), record.max_turns.worker, record.permission_mode, record.task.objective.clone())
    };
    let profile = &session.profiles.worker;
    let model = session.model(Role::Worker, &reference).await?;
    let settings = session.tool_settings(trace.id(), cwd.to_owned());
    Ok(RunConfig {
        model,
        temperature: None,
        max_iterations: Some(max_turns),
        tools: profile.tools_allow.clone(),
        tools_block: profile.tools_block.clone().unwrap_or_default(),
        agent_type: "worker".to_owned(),
        preset: preset::builtin("worker").unwrap_or_default(),
        uid: None,
        system_prompt: system_prompt(&session.surroundings.prompts, profile.prompt.system.as_deref(), cwd)?,
        prompt_name: Some(PromptName::WorkerSystem.stem().to_owned()),
        auto_execute_tools: true,
        name: Some(format!("worker {cycle}")),
        mission: Some(objective),
        trace,
        parent_trace_id: None,
        parent_goal_id: None,
        role: Role::Worker,
        cycle,
        permission,
        last_turn: LastTurn::Ordinary,
        number_results: false,
        first_call: 1,
        settings,
    })
}

fn prompt_error(error: PromptError) -> StepError {
    StepError::Internal(error.to_string())
}

/// The profile's system prompt or ours, then `AGENTS.md`, then the Output Protocol (A7).
fn system_prompt(prompts: &Library, own: Option<&str>, cwd: &Path) -> Result<String, StepError> {
    let base = match own {
        Some(own) => own.to_owned(),
        None => prompts.render(PromptName::WorkerSystem, Section::System, &[]).map_err(prompt_error)?,
    };
    let protocol = prompts.render(PromptName::OutputProtocol, Section::System, &[]).map_err(prompt_error)?;
    let parts = [Some(base), agents_file(cwd), Some(protocol)];
    Ok(parts.into_iter().flatten().map(|p| p.trim().to_owned()).collect::<Vec<_>>().join("\n\n"))
}

/// Time, place, note, objective, expectation, the profile's words, input: in this order (A9).
fn user_prompt(session: &Session, cwd: &Path, input: &Value) -> Result<String, StepError> {
    let time = minute(session.surroundings.clock.now());
    let task = session.record().task.clone();
    let expected = contract::expected_text(&task);
    let own = session.profiles.worker.prompt.user.clone().unwrap_or_default();
    let input = serde_json::to_string_pretty(input).unwrap_or_else(|_| input.to_string());
    let values = [
        ("time", time.as_str()),
        ("cwd", &cwd.to_string_lossy()),
        ("objective", &task.objective),
        ("expected", &expected),
        ("profile_user", &own),
        ("input", &input),
    ];
    session.surroundings.prompts.render(PromptName::WorkerUser, Section::User, &values).map_err(prompt_error)
}

async fn finish(
    session: &Session,
    cycle: u32,
    cwd: &Path,
    report: &RunReport,
    recording: &Recording,
    trace: &TraceId,
) -> Result<WorkerEnd, StepError> {
    let taken = archive::take(cwd, &session.home, cycle)?;
    if let Some(archive) = &taken.archive {
        session.recorder.will_name(session.home.path().join(archive));
        let event = Event::OutputTaken { archive: archive.clone(), valid: taken.deliverable.is_ok() };
        session.emit(Some(cycle), Some(trace), event)?;
    }
    let snapshot = recording.finish().await.map_err(StepError::Internal)?;
    let (since_start, in_cycle) = changes(session, cycle, &snapshot).await?;
    let claimed = taken.deliverable.as_ref().map(|d| d.files.clone()).unwrap_or_default();
    let artifacts = gates::artifacts(cwd, &claimed, &since_start);
    let error = match (&taken.deliverable, report.finish.ending) {
        (Err(why), Ending::Completed) => Some(why.clone()),
        (Err(why), _) => Some(format!("{}; {why}", report.finish.why.clone().unwrap_or_default())),
        (Ok(_), Ending::Completed) => None,
        (Ok(_), _) => report.finish.why.clone(),
    };
    let summary = match &taken.deliverable {
        Ok(deliverable) => deliverable.summary.clone(),
        Err(_) => bounded::first_line(report.text.as_deref().unwrap_or_default(), 200),
    };
    let output = match &taken.deliverable {
        Ok(deliverable) => serde_json::to_value(deliverable).unwrap_or_default(),
        Err(_) => Value::Object(serde_json::Map::new()),
    };
    let status = if error.is_none() { WorkerStatus::Ok } else { WorkerStatus::Error };
    let result = WorkerResult { status, summary, output, artifacts, error, changed: in_cycle };
    Ok(WorkerEnd { taken, result, snapshot, since_start })
}

/// What differs from the start of the session, and from the start of the cycle.
pub async fn changes(
    session: &Session,
    cycle: u32,
    to: &SnapshotId,
) -> Result<(Vec<FileChange>, Vec<FileChange>), StepError> {
    let (first, before) = {
        let record = session.record();
        let before = record.cycles.iter().find(|c| c.detail.number == cycle);
        (record.first_snapshot.clone(), before.and_then(|c| c.detail.snapshot_before.clone()))
    };
    let (store, to) = (session.snapshots.clone(), to.clone());
    let diffs = tokio::task::spawn_blocking(move || {
        let diff = |from: Option<SnapshotId>| match from {
            Some(from) => store.diff(&from, &to),
            None => Ok(Vec::new()),
        };
        Ok::<_, super::snapshot::SnapshotError>((diff(first)?, diff(before)?))
    });
    let diffs = diffs.await.map_err(|e| StepError::Internal(e.to_string()))?;
    let (since_start, in_cycle) = diffs.map_err(|e| StepError::Internal(e.to_string()))?;
    let without_output = |changes: Vec<FileChange>| changes.into_iter().filter(|c| c.path != archive::OUTPUT).collect();
    Ok((without_output(since_start), without_output(in_cycle)))
}
