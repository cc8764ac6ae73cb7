//! Drives a session: carries out the steps that `cycle` decides, and closes every stretch of
//! running with exactly one event (A1–A5).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::archive;
use super::checker::{self, Case};
use super::context::{Session, StepError};
use super::contract;
use super::cycle::{self, After, Resume, Step};
use super::worker;
use crate::events::data::{CheckerResult, Outcome, UserMessageState};
use crate::events::event::Event;
use crate::stdx::bounded;

/// How a stretch of running begins.
#[derive(Clone, Debug)]
pub enum Begin {
    /// The session is new.
    New,
    /// It goes on.
    Resume {
        /// How the stretch before had ended.
        after: Outcome,
        /// What the person says.
        message: Option<String>,
    },
}

/// Runs a session to the end of the stretch and closes it. Returns how it ended; when even the
/// closing event could not be written, `InternalError`.
///
/// # Cancellation
/// `cancel` ends it at the next await with `Stopped`.
pub async fn drive(session: Arc<Session>, begin: Begin, cancel: CancellationToken) -> Outcome {
    let out_of_time = Arc::new(AtomicBool::new(false));
    let stretch = cancel.child_token();
    let clock = tokio::spawn(watch_time(session.clone(), stretch.clone(), out_of_time.clone()));
    let ended = run(&session, begin, &stretch).await;
    clock.abort();
    // Over only when it let go of the session.
    let _ = clock.await;
    let ended = match ended {
        Err(StepError::Stopped) if out_of_time.load(Ordering::Acquire) => {
            Err(StepError::Budget("the session's time is used up".to_owned()))
        }
        ended => ended,
    };
    close(&session, ended).unwrap_or_else(|error| {
        tracing::error!(session = %session.recorder.session(), %error, "the session could not be closed");
        Outcome::InternalError
    })
}

/// Ends the stretch when its time is used up.
async fn watch_time(session: Arc<Session>, stretch: CancellationToken, out_of_time: Arc<AtomicBool>) {
    let Some(limit) = session.record().budget.time_ms else { return };
    let used = session.record().totals_at(session.surroundings.clock.now()).duration_ms;
    tokio::time::sleep(Duration::from_millis(limit.saturating_sub(used))).await;
    out_of_time.store(true, Ordering::Release);
    stretch.cancel();
}

/// How a stretch ends by itself.
enum End {
    Complete,
    Fail(String),
    Unverified(CheckerResult),
}

async fn run(session: &Session, begin: Begin, cancel: &CancellationToken) -> Result<End, StepError> {
    let mut said = None;
    let mut step = match begin {
        Begin::New => {
            open(session)?;
            let input = cycle::first_input(&session.record().task);
            Step::Start { cycle: 1, input }
        }
        Begin::Resume { after, message } => {
            let resume = cycle::resume(&session.record(), message.as_deref());
            if resume.message_to_worker {
                said.clone_from(&message);
            }
            reopen(session, after, message, &resume)?;
            resume.step
        }
    };
    loop {
        step = match step {
            Step::Start { cycle, input } => {
                let input = with_queued(session, cycle, input)?;
                session.emit(Some(cycle), None, Event::CycleStart { input_payload: input })?;
                Step::Work { cycle }
            }
            Step::Work { cycle } => {
                let input = session.record().current().map(|c| c.input.clone()).unwrap_or_default();
                let end = worker::run(session, cycle, &input, said.take().as_deref(), cancel).await?;
                let trace = session.record().current().and_then(|c| c.detail.worker_trace_id.clone());
                let event = Event::WorkerComplete { result: Box::new(end.result.clone()) };
                match &trace {
                    Some(trace) => session.emit_last(cycle, trace, event)?,
                    None => session.emit(Some(cycle), None, event).map(|_| ())?,
                }
                let case = Case {
                    cycle,
                    raw: &end.taken.raw,
                    deliverable: &end.taken.deliverable,
                    result: &end.result,
                    snapshot: &end.snapshot,
                    since_start: &end.since_start,
                };
                match check(session, &case, cancel).await? {
                    Ok(step) => step,
                    Err(end) => return Ok(end),
                }
            }
            Step::Check { cycle } => match check_again(session, cycle, cancel).await? {
                Ok(step) => step,
                Err(end) => return Ok(end),
            },
        };
    }
}

fn open(session: &Session) -> Result<(), StepError> {
    let (task, max_cycles) = (session.record().task.clone(), session.record().max_cycles);
    let hash = contract::hash(&task);
    let event = Event::Contract { hash, by: "start".to_owned(), contract: Box::new(task), max_cycles };
    session.emit(None, None, event)?;
    boundary(session)?;
    if archive::put_aside(&session.cwd()?, &session.home)? {
        let text = "an `__output.json` that was in the folder is put aside until the session ends".to_owned();
        session.emit(None, None, Event::Note { text })?;
    }
    Ok(())
}

/// Says what really holds the Worker.
fn boundary(session: &Session) -> Result<(), StepError> {
    let detail = "file tools stay below the working directory; commands run in it with a cleaned environment, \
                  but are not confined to it"
        .to_owned();
    session.emit(None, None, Event::Boundary { level: "files".to_owned(), detail })?;
    Ok(())
}

fn reopen(session: &Session, after: Outcome, message: Option<String>, resume: &Resume) -> Result<(), StepError> {
    let (models, max_cycles) = {
        let record = session.record();
        (record.models.clone(), record.max_cycles.max(resume.needs_cycles))
    };
    let from = match &resume.step {
        Step::Start { .. } => "cycle",
        Step::Work { .. } => "worker",
        Step::Check { .. } => "checker",
    };
    let event = Event::SessionResumed {
        after,
        from: from.to_owned(),
        max_cycles,
        message,
        worker_model: models.worker,
        checker_model: models.checker,
    };
    session.emit(None, None, event)?;
    boundary(session)?;
    archive::put_aside_for_resume(&session.cwd()?, &session.home, &resume.step)?;
    Ok(())
}

/// Puts messages that waited for this cycle into its input.
fn with_queued(session: &Session, cycle: u32, mut input: Value) -> Result<Value, StepError> {
    let queued = session.record().queued.clone();
    if queued.is_empty() {
        return Ok(input);
    }
    let mut words: Vec<String> = input["user_message"].as_str().map(str::to_owned).into_iter().collect();
    for message in queued {
        words.push(message.text.clone());
        let state = UserMessageState::Delivered;
        let event = Event::UserMessage { message_id: message.message_id, text: message.text, state };
        session.emit(Some(cycle), None, event)?;
    }
    if let Some(map) = input.as_object_mut() {
        map.insert("user_message".to_owned(), json!(words.join("\n\n")));
    }
    Ok(input)
}

/// Checks what a Worker left in an earlier stretch: the files as they are now.
async fn check_again(
    session: &Session,
    cycle: u32,
    cancel: &CancellationToken,
) -> Result<Result<Step, End>, StepError> {
    let result = session.record().current().and_then(|c| c.detail.worker.clone());
    let Some(mut result) = result else { return Ok(Ok(Step::Work { cycle })) };
    let raw = std::fs::read_to_string(session.home.path().join(archive::archive_name(cycle))).unwrap_or_default();
    let missing = || Err(result.error.clone().unwrap_or_else(|| "no `__output.json` was handed in".to_owned()));
    let deliverable = if raw.is_empty() { missing() } else { archive::parse(raw.as_bytes()) };
    let store = session.snapshots.clone();
    let taken = tokio::task::spawn_blocking(move || store.take()).await;
    let taken = taken.map_err(|e| StepError::Internal(e.to_string()))?;
    let taken = taken.map_err(|e| StepError::Internal(e.to_string()))?;
    let (since_start, in_cycle) = worker::changes(session, cycle, &taken.id).await?;
    let claimed = deliverable.as_ref().map(|d| d.files.clone()).unwrap_or_default();
    result.artifacts = super::gates::artifacts(&session.cwd()?, &claimed, &since_start);
    result.changed = in_cycle;
    let case = Case {
        cycle,
        raw: &raw,
        deliverable: &deliverable,
        result: &result,
        snapshot: &taken.id,
        since_start: &since_start,
    };
    check(session, &case, cancel).await
}

async fn check(session: &Session, case: &Case<'_>, cancel: &CancellationToken) -> Result<Result<Step, End>, StepError> {
    // Begun now, so that little is left to bring to stable storage at the end of the cycle.
    let early = sync_files(session);
    let verdict = checker::run(session, case, cancel).await?;
    let cycle = case.cycle;
    let (after, archive, totals, task, max) = {
        let record = session.record();
        let current = record.cycles.iter().find(|c| c.detail.number == cycle);
        (
            cycle::after_verdict(verdict.verdict, cycle, record.max_cycles),
            current.and_then(|c| c.detail.archive.clone()),
            current.map(|c| c.detail.totals.clone()).unwrap_or_default(),
            record.task.clone(),
            record.max_cycles,
        )
    };
    for synced in [early.await, sync_files(session).await] {
        synced.map_err(|e| StepError::Internal(e.to_string()))?.map_err(|e| StepError::Internal(e.to_string()))?;
    }
    let event = Event::CycleEnd {
        verdict: verdict.verdict,
        archive,
        snapshot: Some(case.snapshot.clone()),
        next: after.word().to_owned(),
        totals,
    };
    session.emit(Some(cycle), None, event)?;
    Ok(match after {
        After::Complete => Err(End::Complete),
        After::Fail => Err(End::Fail(format!(
            "the {max} allowed cycles are used up; the last verdict was: {}",
            bounded::first_line(&verdict.reason, 200)
        ))),
        After::Unverified => Err(End::Unverified(verdict)),
        After::NextCycle => {
            let input = cycle::next_input(&task, Some(case.result), &verdict, None);
            Ok(Step::Start { cycle: cycle + 1, input })
        }
    })
}

/// Brings what was recorded of the files to stable storage, in the background.
fn sync_files(session: &Session) -> JoinHandle<super::snapshot::Result<()>> {
    let store = session.snapshots.clone();
    tokio::task::spawn_blocking(move || store.sync())
}

/// Writes the closing event.
fn close(session: &Session, ended: Result<End, StepError>) -> std::io::Result<Outcome> {
    let (cycle, totals) = {
        let record = session.record();
        (record.current().map(|c| c.detail.number), record.totals_at(session.surroundings.clock.now()))
    };
    let stage = match session.record().current() {
        Some(c) if c.detail.worker.is_some() => "checker",
        Some(_) | None => "worker",
    };
    let stopped = |outcome, reason: String| Event::SessionStopped { outcome, reason, totals };
    let failed = |outcome, stage: &str, cause, remedy: &str| Event::SessionError {
        outcome,
        stage: stage.to_owned(),
        cause,
        remedy: remedy.to_owned(),
        totals,
    };
    let event = match ended {
        Ok(End::Complete) => {
            let deliverable = std::fs::read(session.home.output()).ok().and_then(|c| serde_json::from_slice(&c).ok());
            Event::SessionComplete {
                outcome: Outcome::Passed,
                cycles: cycle.unwrap_or(0),
                deliverable: deliverable.unwrap_or_default(),
                totals,
            }
        }
        Ok(End::Fail(reason)) => {
            Event::SessionFailed { outcome: Outcome::NotPassed, cycles: cycle.unwrap_or(0), reason, totals }
        }
        Ok(End::Unverified(result)) => {
            failed(Outcome::Unverified, "checker", result.reason, "resume the session to check again")
        }
        Err(StepError::Stopped) => stopped(Outcome::Stopped, "stopped by a person".to_owned()),
        Err(StepError::Budget(why)) => stopped(Outcome::Budget, format!("{why}; raise it and resume")),
        Err(StepError::NeedsHuman(why)) => {
            stopped(Outcome::NeedsHuman, format!("{why}; resume it in the terminal interface to be asked"))
        }
        Err(StepError::Provider { cause, remedy }) => failed(Outcome::ProviderError, stage, cause, &remedy),
        Err(StepError::Internal(cause)) => failed(
            Outcome::InternalError,
            stage,
            cause,
            "mend the cause, then resume the session; nothing recorded is lost",
        ),
    };
    if let Ok(cwd) = session.cwd() {
        archive::put_back(&cwd, &session.home)?;
    }
    let outcome = event.closes().unwrap_or(Outcome::InternalError);
    session.emit(cycle, None, event)?;
    Ok(outcome)
}
