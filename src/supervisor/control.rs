//! Steering sessions: going on, stopping, talking to the Worker, rewinding, changing the contract.
//! A session of another process gets the same command over its socket.

use std::sync::Arc;

use super::{Supervisor, socket};
use crate::events::command::{Ack, Command, Deliver, Overrides};
use crate::events::data::{Budget, Contract, Outcome, Permission, SessionStatus, UserMessageState};
use crate::events::event::{Event, PerRole};
use crate::events::problem::Problem;
use crate::events::recorder::Recorder;
use crate::ids::SessionId;
use crate::session::context::Session;
use crate::session::orchestrator::Begin;
use crate::session::{contract, rewind};
use crate::stdx::random;

impl Supervisor {
    /// Takes a session over that nobody runs, mended where a crash left it (B42).
    fn open(&self, id: &SessionId, headless: bool) -> Result<Arc<Session>, Problem> {
        let home = self.home(id)?;
        let lock = self.lock_home(&home, id)?;
        let recorder = Recorder::open(id.clone(), home.path(), self.surroundings.clock.clone())?;
        let record = home.load()?;
        self.refuse_shared(&record.place, id)?;
        let profiles = PerRole {
            worker: self.profile(Some(&record.profiles.worker))?,
            checker: self.checker_profile(Some(&record.profiles.checker))?,
        };
        for cycle in &record.cycles {
            crate::session::context::end_checks(&home, cycle.detail.number);
            for trace in [&cycle.detail.worker_trace_id, &cycle.detail.checker_trace_id].into_iter().flatten() {
                if home.traces().join(trace.as_str()).join("meta.json").exists() {
                    crate::session::context::mend_trace(&home, &recorder, trace)?;
                }
            }
        }
        let around = self.surroundings.clone();
        let session = Session::new(home, record, recorder, profiles, around, lock, headless)?;
        rewind::finish_open(&session)?;
        Ok(session)
    }

    /// How the last stretch ended, for `session_resumed`; a stretch without an end was interrupted.
    fn ended(session: &Session) -> Outcome {
        let record = session.record();
        match record.status {
            SessionStatus::Running => Outcome::Interrupted,
            SessionStatus::Completed | SessionStatus::Failed | SessionStatus::Stopped | SessionStatus::Error => {
                record.outcome.unwrap_or(Outcome::Interrupted)
            }
        }
    }

    pub(super) async fn resume(
        &self,
        id: &SessionId,
        message: Option<String>,
        overrides: Overrides,
    ) -> Result<Ack, Problem> {
        if self.here(id).is_some() {
            return match message {
                Some(text) => self.message(id, text, Deliver::NextStep).await,
                None => Err(Problem::usage(format!("session `{id}` is running")).hint("there is nothing to resume")),
            };
        }
        let message = message.map(|m| m.trim().to_owned()).filter(|m| !m.is_empty());
        if let Some(text) = &message
            && matches!(self.home(id)?.holder(), Some(Some(owner)) if owner.pid != std::process::id())
        {
            self.message(id, text.clone(), Deliver::NextStep).await?;
            return Ok(Ack::Said {
                text: format!("session {id} runs in another process; its Worker is told at its next step"),
            });
        }
        let session = self.open(id, overrides.headless)?;
        self.take_overrides(&session, &overrides).await?;
        let after = Self::ended(&session);
        self.start(session, Begin::Resume { after, message });
        Ok(Ack::Launched { session: id.clone() })
    }

    async fn take_overrides(&self, session: &Session, overrides: &Overrides) -> Result<(), Problem> {
        for role in [crate::events::data::Role::Worker, crate::events::data::Role::Checker] {
            if let Some(reference) = overrides.models.of(role) {
                let model = session.model(role, reference).await?;
                session.prepare(|r| *r.models.of_mut(role) = model.reference);
            }
        }
        // The models must answer before the session counts as resumed.
        let models = session.record().models.clone();
        session.model(crate::events::data::Role::Worker, &models.worker).await?;
        session.model(crate::events::data::Role::Checker, &models.checker).await?;
        if let Some(max) = overrides.max_cycles {
            session.prepare(|r| r.max_cycles = max.max(1));
        }
        let new = overrides.budget;
        if new != Budget::default() {
            let old = session.record().budget;
            let budget = Budget {
                tokens: new.tokens.or(old.tokens),
                usd: new.usd.or(old.usd),
                time_ms: new.time_ms.or(old.time_ms),
            };
            session.emit(None, None, Event::BudgetSet { budget })?;
        }
        if !overrides.checks.is_empty() {
            let mut task = session.record().task.clone();
            task.checks.extend(overrides.checks.iter().cloned());
            let max_cycles = session.record().max_cycles;
            emit_contract(session, task, max_cycles)?;
        }
        Ok(())
    }

    pub(super) async fn stop(&self, id: &SessionId) -> Result<Ack, Problem> {
        let cancel = self.lock().get(id).map(|r| r.cancel.clone());
        match cancel {
            Some(cancel) => {
                cancel.cancel();
                Ok(Ack::Done)
            }
            None => self.elsewhere(id, Command::Stop { session: id.clone() }, "there is nothing to stop").await,
        }
    }

    /// Hands a command to the process that runs the session.
    async fn elsewhere(&self, id: &SessionId, command: Command, otherwise: &str) -> Result<Ack, Problem> {
        let home = self.home(id)?;
        match home.holder() {
            Some(Some(owner)) if owner.pid != std::process::id() => socket::send(&owner, command).await,
            Some(_) => Err(Problem::usage(format!("session `{id}` is in use and takes no commands"))
                .hint("wait a moment and try again")),
            None => Err(Problem::usage(format!("session `{id}` is not running")).hint(otherwise.to_owned())),
        }
    }

    pub(super) async fn message(&self, id: &SessionId, text: String, deliver: Deliver) -> Result<Ack, Problem> {
        if text.trim().is_empty() {
            return Err(Problem::usage("the message is empty").hint("type what the Worker is to know"));
        }
        let Some(session) = self.here(id) else {
            let command = Command::Message { session: id.clone(), text, deliver };
            return self.elsewhere(id, command, "resume it with the message instead").await;
        };
        let state = match deliver {
            Deliver::NextStep => UserMessageState::Queued,
            Deliver::NextCycle => UserMessageState::NextCycle,
        };
        let message_id = random::name(self.surroundings.random.as_ref(), crate::ids::SESSION_ALPHABET, 6);
        let cycle = session.record().current().map(|c| c.detail.number);
        session.emit(cycle, None, Event::UserMessage { message_id, text, state })?;
        Ok(Ack::Done)
    }

    pub(super) async fn edit_message(&self, id: &SessionId, message_id: String, text: String) -> Result<Ack, Problem> {
        let Some(session) = self.here(id) else {
            let command = Command::EditMessage { session: id.clone(), message_id, text };
            return self.elsewhere(id, command, "its messages were not delivered; resume it with a new one").await;
        };
        let known = session.record().queued.iter().any(|m| m.message_id == message_id);
        if !known {
            return Err(Problem::usage("the message was delivered already").hint("send another one"));
        }
        let cycle = session.record().current().map(|c| c.detail.number);
        session.emit(cycle, None, Event::UserMessage { message_id, text, state: UserMessageState::Edited })?;
        Ok(Ack::Done)
    }

    pub(super) async fn permit(&self, id: &SessionId, request_id: &str, answer: Permission) -> Result<Ack, Problem> {
        match self.here(id) {
            Some(session) if session.desk.answer(request_id, answer.clone()) => Ok(Ack::Done),
            Some(_) => Err(Problem::usage("nothing waits for this answer any more")),
            None => {
                let command = Command::Permit { session: id.clone(), request_id: request_id.to_owned(), answer };
                self.elsewhere(id, command, "resume it to be asked again").await
            }
        }
    }

    /// Stops a session that runs here and waits for it.
    async fn stop_and_wait(&self, id: &SessionId) {
        let cancel = self.lock().get(id).map(|r| r.cancel.clone());
        if let Some(cancel) = cancel {
            cancel.cancel();
            self.wait(id).await;
        }
    }

    pub(super) async fn rewind(
        &self,
        id: &SessionId,
        wanted: rewind::Wanted,
        run: bool,
        headless: bool,
    ) -> Result<Ack, Problem> {
        // Worked out before anything is stopped, so that a wrong number changes nothing.
        let home = self.home(id)?;
        let record = self.here(id).map_or_else(|| home.load(), |s| Ok(s.record().as_ref().clone()))?;
        rewind::plan(&home, &record, wanted.trace.as_ref(), wanted.to, wanted.message.as_deref())?;
        self.stop_and_wait(id).await;
        let session = self.open(id, headless)?;
        let after = Self::ended(&session);
        let work = session.clone();
        let asked = wanted.clone();
        let done = tokio::task::spawn_blocking(move || rewind::execute(&work, &asked)).await;
        let done = done.map_err(|e| Problem::internal(e.to_string()))??;
        if done.undo {
            return Ok(Ack::Said { text: "everything is back as it was there".to_owned() });
        }
        if !run {
            return Ok(Ack::Said { text: format!("rewound to message {} of cycle {}", done.cut, done.cycle) });
        }
        self.start(session, Begin::Resume { after, message: wanted.message });
        Ok(Ack::Launched { session: id.clone() })
    }

    pub(super) async fn accept(&self, id: &SessionId) -> Result<Ack, Problem> {
        self.stop_and_wait(id).await;
        let session = self.open(id, false)?;
        let (cycle, totals) = {
            let record = session.record();
            (record.current().map(|c| c.detail.number), record.totals_at(self.surroundings.clock.now()))
        };
        let models = session.record().models.clone();
        let resumed = Event::SessionResumed {
            after: Self::ended(&session),
            from: "accept".to_owned(),
            max_cycles: session.record().max_cycles,
            message: None,
            worker_model: models.worker,
            checker_model: models.checker,
        };
        // Each stretch ends with one closing event (A5); accepting is a stretch of its own.
        session.emit(cycle, None, resumed)?;
        let reason = "a person accepted the result as it is".to_owned();
        session.emit(cycle, None, Event::SessionStopped { outcome: Outcome::Accepted, reason, totals })?;
        self.changed.notify_waiters();
        Ok(Ack::Done)
    }

    pub(super) async fn set_contract(
        &self,
        id: &SessionId,
        task: Contract,
        max_cycles: u32,
        budget: Budget,
    ) -> Result<Ack, Problem> {
        if task.objective.trim().is_empty() {
            return Err(Problem::usage("the objective is empty").hint("say what is to be done"));
        }
        if max_cycles == 0 {
            return Err(Problem::usage("`max_cycles` is 0").hint("give at least 1"));
        }
        let session = match self.here(id) {
            Some(session) => session,
            None => self.open(id, false)?,
        };
        emit_contract(&session, task, max_cycles)?;
        if session.record().budget != budget {
            session.emit(None, None, Event::BudgetSet { budget })?;
        }
        Ok(Ack::Done)
    }
}

fn emit_contract(session: &Session, task: Contract, max_cycles: u32) -> Result<(), Problem> {
    let hash = contract::hash(&task);
    let event = Event::Contract { hash, by: "person".to_owned(), contract: Box::new(task), max_cycles };
    session.emit(None, None, event)?;
    Ok(())
}
