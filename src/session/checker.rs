//! One Checker run of a cycle (A12–A21): gates first, then a model that verifies a throw-away copy
//! with tools of its own, and a verdict that evidence must carry.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::archive::OUTPUT;
use super::context::{NoInbox, Session, StepError};
use super::contract;
use super::evidence;
use super::gates::{self, Findings};
use super::models::CycleRecord;
use super::snapshot::{CheckCopy, CopyOptions};
use super::verdict::{self, Answer};
use super::worker::check_end;
use crate::agent::config::{RunConfig, TraceChoice};
use crate::agent::machine::LastTurn;
use crate::agent::ports::{NoHook, Ports};
use crate::agent::{CallRecord, ChatMessage, ChatRole, preset};
use crate::config::OnFailingGates;
use crate::events::data::{CheckerResult, Deliverable, Gate, PermissionMode, Role, Verdict, VerdictBy, WorkerResult};
use crate::events::event::Event;
use crate::ids::{SnapshotId, TraceId};
use crate::prompts::{PromptName, Section};
use crate::sandbox::exec::{CommandEnd, CommandSpec};
use crate::stdx::bounded;
use crate::stdx::random;

/// How often an unusable answer is asked again (A20).
const ASK_AGAIN: u32 = 2;

/// Turns of a run that only asks again.
const TURNS_AGAIN: u32 = 4;

/// Most bytes of ignored folders that are copied in as a build cache.
const CACHE_BYTES: u64 = 2_000_000_000;

/// What is to be checked.
pub struct Case<'a> {
    /// The cycle.
    pub cycle: u32,
    /// What was handed in.
    pub raw: &'a str,
    /// The same, parsed.
    pub deliverable: &'a Result<Deliverable, String>,
    /// The Worker's result.
    pub result: &'a WorkerResult,
    /// The files it left.
    pub snapshot: &'a SnapshotId,
    /// What differs from the start of the session.
    pub since_start: &'a [crate::events::data::FileChange],
}

/// Checks a cycle. A result without a verdict means that it could not be verified.
///
/// # Errors
/// It was stopped, the provider or the storage failed, or a budget is used up.
pub async fn run(session: &Session, case: &Case<'_>, cancel: &CancellationToken) -> Result<CheckerResult, StepError> {
    let (gates, facts, copy) = look(session, case, cancel).await?;
    let by_gates = gates::verdict(&gates, Some(case.snapshot.clone()));
    let result = match by_gates {
        Some(result) if session.surroundings.config.checker.on_failing_gates == OnFailingGates::Verdict => {
            session.emit(Some(case.cycle), None, Event::CheckerStart { model: None, by: VerdictBy::Gates })?;
            let text = gates::report(&gates);
            session.emit(Some(case.cycle), None, Event::CheckerStream { text })?;
            session.emit(Some(case.cycle), None, complete(&result))?;
            return Ok(result);
        }
        capped => {
            let copy = match copy {
                Some(copy) => copy,
                None => prepare_copy(session, case).await?,
            };
            ask_model(session, case, &gates, &facts, copy, capped, cancel).await?
        }
    };
    Ok(result)
}

fn complete(result: &CheckerResult) -> Event {
    Event::CheckerComplete { result: Box::new(result.clone()) }
}

/// Gates and facts. Acceptance commands run last, in the copy, when everything else holds.
async fn look(
    session: &Session,
    case: &Case<'_>,
    cancel: &CancellationToken,
) -> Result<(Vec<Gate>, Vec<String>, Option<PathBuf>), StepError> {
    let (task, previous) = {
        let record = session.record();
        let before = |c: &&CycleRecord| c.detail.number + 1 == case.cycle;
        (record.task.clone(), record.cycles.iter().find(before).and_then(|c| c.detail.worker.clone()))
    };
    let cwd = session.cwd()?;
    let expected = gates::expected(&cwd, &contract::expected_files(&task));
    let findings = Findings {
        deliverable: case.deliverable,
        artifacts: &case.result.artifacts,
        expected: &expected,
        since_start: case.since_start,
        in_cycle: &case.result.changed,
        protected: &task.protected,
        previous: gates::previous_output(previous.as_ref()),
    };
    let mut gates = gates::look(&findings);
    let facts = gates::facts(&findings);
    for gate in &gates {
        session.emit(Some(case.cycle), None, Event::GateResult(gate.clone()))?;
    }
    let mut copy = None;
    if !task.checks.is_empty() && gates.iter().all(|g| g.ok) {
        let dir = prepare_copy(session, case).await?;
        for check in &task.checks {
            let gate = acceptance(session, case, &dir, check, cancel).await?;
            session.emit(Some(case.cycle), None, Event::GateResult(gate.clone()))?;
            gates.push(gate);
        }
        copy = Some(dir);
    }
    Ok((gates, facts, copy))
}

async fn acceptance(
    session: &Session,
    case: &Case<'_>,
    dir: &Path,
    command: &str,
    cancel: &CancellationToken,
) -> Result<Gate, StepError> {
    let id = TraceId::new(format!("gates-{}", case.cycle));
    let settings = session.tool_settings(&id, dir.to_owned());
    let outputs = session.home.path().join("state/checks");
    std::fs::create_dir_all(&outputs)?;
    let spec = CommandSpec {
        command: command.to_owned(),
        cwd: dir.to_owned(),
        temp: settings.temp.clone(),
        git_ceiling: settings.git_ceiling.clone(),
        timeout: session.surroundings.config.checker.check_timeout,
        keep: 4096,
        output: outputs.join(format!("cycle-{:04}.txt", case.cycle)),
    };
    let output = settings.shell.run(&spec, cancel).await;
    settings.shell.end().await;
    let output = output.map_err(|e| StepError::Internal(format!("`{command}` could not be started: {e}")))?;
    let said = output.output.tail.as_deref().unwrap_or(&output.output.head).trim();
    let said = bounded::head_and_tail(said, 2000, |n| format!("[{n} characters left out]")).unwrap_or(said.to_owned());
    let (ok, end) = match output.end {
        CommandEnd::Exited(0) => (true, "succeeded".to_owned()),
        CommandEnd::Exited(code) => (false, format!("ended with exit code {code}")),
        CommandEnd::Signalled(signal) => (false, format!("was ended by signal {signal}")),
        CommandEnd::TimedOut => (false, format!("took longer than {} s and was killed", spec.timeout.as_secs())),
        CommandEnd::Stopped => return Err(StepError::Stopped),
    };
    let detail = if ok { format!("`{command}` {end}") } else { format!("`{command}` {end}:\n{said}") };
    Ok(Gate { name: "check".to_owned(), ok, detail })
}

/// The throw-away copy of what the Worker left, with what it handed in.
async fn prepare_copy(session: &Session, case: &Case<'_>) -> Result<PathBuf, StepError> {
    let (store, snapshot, dir) = (session.snapshots.clone(), case.snapshot.clone(), session.check_dir());
    let clean = session.surroundings.config.checker.clean;
    let options = CopyOptions { clean, cap: CACHE_BYTES };
    let copy = tokio::task::spawn_blocking(move || CheckCopy::prepare(&store, &snapshot, &dir, options, &|_, _| {}));
    let copy = copy.await.map_err(|e| StepError::Internal(e.to_string()))?;
    let copy = copy.map_err(|e| StepError::Internal(format!("the Checker's copy can't be made: {e}")))?;
    let root = copy.root.canonicalize()?;
    if !case.raw.is_empty() {
        std::fs::write(root.join(OUTPUT), case.raw)?;
    }
    if let Ok(deliverable) = case.deliverable
        && !deliverable.text_content.is_empty()
    {
        std::fs::write(root.join("__text_content.md"), &deliverable.text_content)?;
    }
    Ok(root)
}

async fn ask_model(
    session: &Session,
    case: &Case<'_>,
    gates: &[Gate],
    facts: &[String],
    copy: PathBuf,
    capped: Option<CheckerResult>,
    cancel: &CancellationToken,
) -> Result<CheckerResult, StepError> {
    let reference = session.record().models.checker.clone();
    let max_turns = session.record().max_turns.checker;
    let model = session.model(Role::Checker, &reference).await?;
    let trace = session.new_trace(Role::Checker, case.cycle);
    let event = Event::CheckerStart { model: Some(reference), by: VerdictBy::Checker };
    session.emit(Some(case.cycle), Some(&trace), event)?;
    let prompts = &session.surroundings.prompts;
    let system = prompts.render(PromptName::CheckerSystem, Section::System, &[]);
    let system = system.map_err(|e| StepError::Internal(e.to_string()))?;
    let own = session.profiles.checker.prompt.system.as_deref().unwrap_or_default();
    let system = format!("{own}\n\n{system}").trim_start().to_owned();
    let settings = session.tool_settings(&trace, copy);
    std::fs::create_dir_all(&settings.temp)?;
    let profile = &session.profiles.checker;
    let config = RunConfig {
        model,
        temperature: None,
        max_iterations: Some(max_turns),
        tools: profile.tools_allow.clone(),
        tools_block: profile.tools_block.clone().unwrap_or_default(),
        agent_type: "checker".to_owned(),
        preset: preset::builtin("checker").unwrap_or_default(),
        uid: None,
        system_prompt: system,
        prompt_name: Some(PromptName::CheckerSystem.stem().to_owned()),
        auto_execute_tools: true,
        name: Some(format!("checker {}", case.cycle)),
        mission: Some("verify what the Worker handed in".to_owned()),
        trace: TraceChoice::New(trace.clone()),
        parent_trace_id: None,
        parent_goal_id: None,
        role: Role::Checker,
        cycle: case.cycle,
        permission: PermissionMode::BypassPermissions,
        last_turn: LastTurn::AnswerOnly,
        number_results: true,
        first_call: 1,
        settings: settings.clone(),
    };
    let judge = judge_prompt(session, case, gates, facts)?;
    let mut inquiry = Inquiry { session, trace: trace.clone(), config, calls: Vec::new(), cancel };
    let checks = session.record().task.checks.clone();
    let outcome = inquiry.run(judge, &checks).await;
    settings.shell.end().await;
    let mut result = outcome?;
    result.snapshot = Some(case.snapshot.clone());
    cap(&mut result, capped);
    unchanged(session, case, &mut result).await?;
    session.emit_last(case.cycle, &trace, complete(&result))?;
    Ok(result)
}

/// A failing gate caps the verdict at `needs_improvement`.
fn cap(result: &mut CheckerResult, capped: Option<CheckerResult>) {
    let (Some(gates), Some(Verdict::Passed)) = (capped, result.verdict) else { return };
    result.verdict = gates.verdict;
    result.by = VerdictBy::Harness;
    result.reason = format!("{} (the Checker would have passed it)", gates.reason);
    result.feedback = gates.feedback;
}

/// What was verified must be what is delivered: files that differ from the judged snapshot leave
/// the cycle unverified.
async fn unchanged(session: &Session, case: &Case<'_>, result: &mut CheckerResult) -> Result<(), StepError> {
    let (store, snapshot) = (session.snapshots.clone(), case.snapshot.clone());
    let changed = tokio::task::spawn_blocking(move || store.changed_since(&snapshot)).await;
    let changed = changed.map_err(|e| StepError::Internal(e.to_string()))?;
    let changed = changed.map_err(|e| StepError::Internal(e.to_string()))?;
    if changed.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = changed.iter().take(10).map(|p| format!("`{p}`")).collect();
    result.verdict = None;
    result.by = VerdictBy::Harness;
    result.reason = format!("these files changed while they were being checked: {}", names.join(", "));
    result.feedback = "resume the session to check what is there now".to_owned();
    Ok(())
}

fn judge_prompt(session: &Session, case: &Case<'_>, gates: &[Gate], facts: &[String]) -> Result<String, StepError> {
    let prompts = &session.surroundings.prompts;
    let task = session.record().task.clone();
    let mut expected = contract::expected_text(&task);
    if expected.is_empty() {
        let text = prompts.render(PromptName::NotSpecified, Section::User, &[]);
        expected = text.map_err(|e| StepError::Internal(e.to_string()))?;
    }
    let boundary = random::name(session.surroundings.random.as_ref(), crate::ids::SESSION_ALPHABET, 16);
    let output = serde_json::to_string_pretty(&case.result.output).unwrap_or_default();
    let output = bounded::head_and_tail(&output, 20_000, |n| format!("[{n} characters left out; read __output.json]"))
        .unwrap_or(output);
    let facts = if facts.is_empty() { "none".to_owned() } else { format!("- {}", facts.join("\n- ")) };
    let values = [
        ("objective", task.objective.as_str()),
        ("expected", &expected),
        ("boundary", &boundary),
        ("summary", &case.result.summary),
        ("output", &output),
        ("error", case.result.error.as_deref().unwrap_or("None")),
        ("gates", &gates::report(gates)),
        ("facts", &facts),
    ];
    prompts.render(PromptName::Judge, Section::User, &values).map_err(|e| StepError::Internal(e.to_string()))
}

/// The conversation with the Checker's model until it gives a verdict that can be used.
struct Inquiry<'a> {
    session: &'a Session,
    trace: TraceId,
    config: RunConfig,
    calls: Vec<CallRecord>,
    cancel: &'a CancellationToken,
}

impl Inquiry<'_> {
    async fn run(&mut self, judge: String, checks: &[String]) -> Result<CheckerResult, StepError> {
        let mut say = judge;
        let mut asked_again = 0;
        let mut sent_back = false;
        loop {
            let text = self.ask(say).await?;
            match verdict::parse(&text) {
                Ok(answer) => {
                    let evidence = evidence::resolve(&answer.verified, &self.calls);
                    match evidence::unsupported(&answer, &evidence, &self.calls, checks) {
                        None => return Ok(result(answer, evidence, VerdictBy::Checker)),
                        Some(why) if sent_back => return Ok(overruled(answer, evidence, &why)),
                        Some(why) => {
                            sent_back = true;
                            say = self.text(PromptName::UnsupportedPass, &[("reason", &why)])?;
                        }
                    }
                }
                Err(why) if asked_again == ASK_AGAIN => return Ok(unverified(&why)),
                Err(why) => {
                    asked_again += 1;
                    say = self.text(PromptName::AskAgain, &[("problem", &why)])?;
                }
            }
        }
    }

    async fn ask(&mut self, say: String) -> Result<String, StepError> {
        let (hook, inbox) = (NoHook, NoInbox);
        let ports = Ports { hook: &hook, permissions: &self.session.desk, inbox: &inbox, meter: self.session };
        let messages = vec![ChatMessage::text(ChatRole::User, say)];
        let mut config = self.config.clone();
        config.first_call = u32::try_from(self.calls.len()).unwrap_or(u32::MAX).saturating_add(1);
        let report = self.session.runner().run_result(messages, config, ports, self.cancel, &|_| {}).await?;
        self.config.trace = TraceChoice::Existing { id: self.trace.clone(), after: None };
        self.config.max_iterations = Some(TURNS_AGAIN);
        self.calls.extend(report.calls.iter().cloned());
        check_end(&report)?;
        Ok(report.text.unwrap_or_default())
    }

    fn text(&self, name: PromptName, values: &[(&str, &str)]) -> Result<String, StepError> {
        let prompts: &Arc<_> = &self.session.surroundings.prompts;
        prompts.render(name, Section::User, values).map_err(|e| StepError::Internal(e.to_string()))
    }
}

fn result(answer: Answer, evidence: Vec<crate::events::data::Evidence>, by: VerdictBy) -> CheckerResult {
    CheckerResult {
        verdict: Some(answer.verdict),
        reason: answer.reason,
        feedback: answer.feedback,
        verified: answer.verified,
        evidence,
        by,
        snapshot: None,
    }
}

/// The second pass without evidence (A20).
fn overruled(answer: Answer, evidence: Vec<crate::events::data::Evidence>, why: &str) -> CheckerResult {
    let mut result = result(answer, evidence, VerdictBy::Harness);
    result.verdict = Some(Verdict::NeedsImprovement);
    result.reason = format!("the Checker passed it without evidence: {why}");
    result.feedback =
        "make the result easy to verify: say in `__output.json` how each part of the task can be checked".to_owned();
    result
}

fn unverified(why: &str) -> CheckerResult {
    CheckerResult {
        verdict: None,
        reason: format!("the Checker gave no verdict that could be used: {why}"),
        feedback: String::new(),
        verified: Vec::new(),
        evidence: Vec::new(),
        by: VerdictBy::Checker,
        snapshot: None,
    }
}
