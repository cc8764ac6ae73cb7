//! A session's head: name, status, who works, models, totals, limits, what is wrong.

use jiff::Timestamp;

use crate::events::data::{Budget, Contract, Outcome, PermissionMode, Place, Role, SessionStatus, Totals, VerdictBy};
use crate::events::event::{Envelope, Event, PerRole, RewindRecord};
use crate::tui::time;

/// Who is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Who {
    /// Nobody.
    #[default]
    Nobody,
    /// The Worker.
    Worker,
    /// The harness, looking at the gates.
    Gates,
    /// The Checker.
    Checker,
    /// The person is asked.
    Person,
}

/// A call that failed and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Which try failed, from 1.
    pub attempt: u32,
    /// How many there will be at most.
    pub attempts: u32,
    /// When it is tried again.
    pub until: Timestamp,
    /// Why it failed.
    pub cause: String,
}

/// Why the session ended by an exception, or did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What was being done; empty where that does not matter.
    pub stage: String,
    /// What failed and why.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

/// The head of a session.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// Task and acceptance conditions as they hold now.
    pub contract: Contract,
    /// Where it stands; none before its first event.
    pub status: Option<SessionStatus>,
    /// How the last stretch ended; none while it runs.
    pub outcome: Option<Outcome>,
    /// The cycle it is in, 0 before the first.
    pub cycle: u32,
    /// Cycles allowed.
    pub max_cycles: u32,
    /// Who is at work.
    pub who: Who,
    /// `PROVIDER/MODEL` of each role.
    pub models: PerRole<String>,
    /// Why these models.
    pub model_reason: String,
    /// Whether a scripted model is at work.
    pub scripted: bool,
    /// What tools may do unasked.
    pub permission_mode: PermissionMode,
    /// Where it works.
    pub place: Option<Place>,
    /// Level and meaning of the boundary.
    pub boundary: Option<(String, String)>,
    /// Limits.
    pub budget: Budget,
    /// What each role used up.
    pub used: PerRole<Totals>,
    /// Budgets nearly used up, with percent.
    pub budget_warnings: Vec<(String, u32)>,
    /// The call that is tried again.
    pub retry: Option<Retry>,
    /// What ended it, when that needs the person.
    pub trouble: Option<Trouble>,
    /// When it was launched.
    pub started_at: Option<Timestamp>,
    /// The newest event's time.
    pub active_at: Option<Timestamp>,
    /// Since when it runs.
    running_since: Option<Timestamp>,
    /// How long it ran in the stretches before.
    ran_ms: u64,
    before_question: Who,
    /// How the session stood before each rewind; the number of what it put aside counts them.
    ends_before: Vec<(Option<SessionStatus>, Option<Outcome>, Option<Trouble>)>,
}

impl Head {
    /// Whether it is at work or waits for an answer while running.
    pub fn is_running(&self) -> bool {
        self.status == Some(SessionStatus::Running)
    }

    /// How long it has run.
    pub fn elapsed_ms(&self, now: Timestamp) -> u64 {
        self.ran_ms + self.running_since.map_or(0, |since| time::between(since, now))
    }

    /// What everything cost.
    pub fn totals(&self) -> Totals {
        let mut sum = self.used.worker;
        sum.add(&self.used.checker);
        sum
    }

    /// Where it stands, in a word or two.
    pub fn status_words(&self) -> String {
        let Some(status) = self.status else { return "opening".to_owned() };
        match (status, self.outcome) {
            (SessionStatus::Running, _) => "running".to_owned(),
            (SessionStatus::Completed, _) => "passed".to_owned(),
            (SessionStatus::Stopped, Some(Outcome::Accepted)) => "accepted by you".to_owned(),
            (SessionStatus::Stopped, Some(Outcome::Budget)) => "stopped: budget used up".to_owned(),
            (SessionStatus::Stopped, Some(Outcome::NeedsHuman)) => "stopped: needs an answer".to_owned(),
            (SessionStatus::Stopped, Some(Outcome::Interrupted)) => "interrupted".to_owned(),
            (SessionStatus::Failed, _) => "not passed".to_owned(),
            (SessionStatus::Error, Some(Outcome::Unverified)) => "error: unverified".to_owned(),
            (SessionStatus::Error, Some(Outcome::ProviderError)) => "error: provider".to_owned(),
            (status, _) => status.word().to_owned(),
        }
    }

    pub(super) fn interrupted(&mut self) {
        self.pause(self.active_at);
        self.status = Some(SessionStatus::Stopped);
        self.outcome = Some(Outcome::Interrupted);
    }

    pub(super) fn apply(&mut self, envelope: &Envelope) {
        if envelope.event_id.is_some() {
            self.active_at = Some(envelope.at);
        }
        if let Some(cycle) = envelope.cycle {
            self.cycle = self.cycle.max(cycle);
        }
        match &envelope.event {
            Event::SessionStart(start) => {
                self.name.clone_from(&start.name);
                self.contract = Contract {
                    objective: start.objective.clone(),
                    expected_output: start.expected_output.clone(),
                    inputs: start.inputs.clone(),
                    checks: start.checks.clone(),
                    protected: start.protected.clone(),
                };
                self.models = start.models.clone();
                self.model_reason.clone_from(&start.model_reason);
                self.scripted = start.scripted;
                self.permission_mode = start.permission_mode;
                self.place = Some(start.workspace.clone());
                self.budget = start.budget;
                self.max_cycles = start.max_cycles;
                self.started_at = Some(envelope.at);
                self.run(envelope.at);
            }
            Event::SessionResumed { max_cycles, worker_model, checker_model, .. } => {
                self.max_cycles = *max_cycles;
                self.models = PerRole { worker: worker_model.clone(), checker: checker_model.clone() };
                self.run(envelope.at);
            }
            Event::Contract { contract, max_cycles, .. } => {
                self.contract = contract.as_ref().clone();
                self.max_cycles = *max_cycles;
            }
            Event::Boundary { level, detail } => self.boundary = Some((level.clone(), detail.clone())),
            Event::CycleStart { .. } => self.cycle = envelope.cycle.unwrap_or(self.cycle),
            Event::WorkerStart { model } => {
                self.who = Who::Worker;
                self.models.worker.clone_from(model);
            }
            Event::WorkerComplete { .. } | Event::GateResult(_) => self.who = Who::Gates,
            Event::CheckerStart { model, by } => {
                self.who = match by {
                    VerdictBy::Checker => Who::Checker,
                    VerdictBy::Gates | VerdictBy::Harness => Who::Gates,
                };
                if let Some(model) = model {
                    self.models.checker.clone_from(model);
                }
            }
            Event::CycleEnd { .. } => self.who = Who::Nobody,
            Event::Usage { role, totals, .. } => {
                self.used.of_mut(*role).add(totals);
                self.retry = None;
            }
            Event::Retry { attempt, attempts, wait_ms, cause } => {
                let until = envelope.at + std::time::Duration::from_millis(*wait_ms);
                self.retry = Some(Retry { attempt: *attempt, attempts: *attempts, until, cause: cause.clone() });
            }
            Event::MessageAdded(_)
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::ToolCallDelta { .. } => self.retry = None,
            Event::BudgetWarning { budget, percent } => {
                self.budget_warnings.retain(|(name, _)| name != budget);
                self.budget_warnings.push((budget.clone(), *percent));
            }
            Event::Question { .. } | Event::PermissionRequest { .. } => {
                if self.who != Who::Person {
                    self.before_question = self.who;
                }
                self.who = Who::Person;
            }
            Event::Answer { .. } | Event::PermissionAnswer { .. } => self.who = self.before_question,
            Event::Rewind(record) => self.rewind(record),
            Event::SessionComplete { outcome, totals, .. } => self.end(envelope.at, *outcome, totals, None),
            Event::SessionFailed { outcome, reason, totals, .. } => {
                let trouble = trouble("", reason, "continue with a message for one more cycle");
                self.end(envelope.at, *outcome, totals, Some(trouble));
            }
            Event::SessionStopped { outcome, reason, totals } => {
                let trouble = trouble("", reason, "continue it; it goes on where it stopped");
                self.end(envelope.at, *outcome, totals, Some(trouble));
            }
            Event::SessionError { outcome, stage, cause, remedy, totals } => {
                self.end(envelope.at, *outcome, totals, Some(trouble(stage, cause, remedy)));
            }
            Event::WorkerToolCall(_)
            | Event::WorkerToolResult(_)
            | Event::CheckerToolCall(_)
            | Event::CheckerToolResult(_)
            | Event::CheckerStream { .. }
            | Event::CheckerComplete { .. }
            | Event::TraceStart { .. }
            | Event::TraceComplete { .. }
            | Event::GoalAdded { .. }
            | Event::GoalUpdated { .. }
            | Event::SubTraceStarted { .. }
            | Event::SubTraceCompleted { .. }
            | Event::RewindApplied { .. }
            | Event::Snapshot { .. }
            | Event::Compaction { .. }
            | Event::UserMessage { .. }
            | Event::Fork { .. }
            | Event::OutputTaken { .. }
            | Event::BudgetSet { .. }
            | Event::Note { .. }
            | Event::Unknown => {}
        }
    }

    /// Goes back to a cycle; an undone rewind brings the end that the session had then.
    fn rewind(&mut self, record: &RewindRecord) {
        let ends = (self.status, self.outcome, self.trouble.clone());
        let undone = record.restored.first().filter(|_| record.undo);
        let before = undone.and_then(|s| self.ends_before.get(usize::try_from(s.number).ok()?.checked_sub(1)?));
        let stopped = (Some(SessionStatus::Stopped), Some(Outcome::Stopped), None);
        match before.cloned() {
            Some(end) => (self.status, self.outcome, self.trouble) = end,
            // What it had ended as is undone with its cycles.
            None if !record.undo => (self.status, self.outcome, self.trouble) = stopped,
            None => {}
        }
        self.ends_before.push(ends);
        self.cycle = record.restored.iter().map(|s| s.cycle).max().unwrap_or(0).max(record.cycle);
    }

    fn run(&mut self, at: Timestamp) {
        self.pause(Some(at));
        self.running_since = Some(at);
        self.status = Some(SessionStatus::Running);
        self.outcome = None;
        self.trouble = None;
        self.retry = None;
        self.budget_warnings.clear();
    }

    fn pause(&mut self, at: Option<Timestamp>) {
        if let (Some(since), Some(at)) = (self.running_since.take(), at) {
            self.ran_ms += time::between(since, at);
        }
        self.who = Who::Nobody;
        self.retry = None;
    }

    fn end(&mut self, at: Timestamp, outcome: Outcome, totals: &Totals, trouble: Option<Trouble>) {
        self.pause(Some(at));
        self.status = Some(outcome.status());
        self.outcome = Some(outcome);
        self.trouble = trouble;
        // The closing event's account is the owner's own; what it holds beyond the calls seen here
        // (a journal that lost its tail, say) belongs to the Worker, who does most of the work.
        let checker = self.used.of(Role::Checker);
        if totals.tokens() >= self.totals().tokens() {
            let worker = self.used.worker;
            self.used.worker = Totals {
                prompt_tokens: totals.prompt_tokens.saturating_sub(checker.prompt_tokens),
                completion_tokens: totals.completion_tokens.saturating_sub(checker.completion_tokens),
                cost_usd: (totals.cost_usd - checker.cost_usd).max(worker.cost_usd),
                ..worker
            };
        }
    }
}

fn trouble(stage: &str, cause: &str, remedy: &str) -> Trouble {
    Trouble { stage: stage.to_owned(), cause: cause.to_owned(), remedy: remedy.to_owned() }
}
