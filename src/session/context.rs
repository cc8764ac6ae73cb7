//! One session in memory: its home, its record (folded from its journal as it is written), and
//! what its runs need. Carries nothing out; `orchestrator` does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::home::{Home, SessionLock};
use super::models::SessionRecord;
use super::snapshot::{SnapshotStore, WalkOptions};
use crate::agent::config::{Model, ToolSettings};
use crate::agent::ports::{Inbox, Meter, Models, PermissionQuestion, Permissions, Waiting};
use crate::agent::runner::Runner;
use crate::agent::{RunError, Shell};
use crate::config::Config;
use crate::config::profiles::Profile;
use crate::events::data::{Budget, Permission, PlaceKind, Role, SessionStatus, Totals};
use crate::events::event::{Event, PerRole};
use crate::events::problem::Problem;
use crate::events::recorder::Recorder;
use crate::ids::TraceId;
use crate::stdx::clock::Clock;
use crate::stdx::random::{self, Random};
use crate::trace::store::TraceStore;

/// What all sessions of a process share.
#[derive(Clone)]
pub struct Surroundings {
    /// The configuration.
    pub config: Arc<Config>,
    /// Models by name.
    pub models: Arc<dyn Models>,
    /// All tools.
    pub registry: Arc<crate::agent::ToolRegistry>,
    /// All prompts.
    pub prompts: Arc<crate::prompts::Library>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// The person's environment, of which commands get a part.
    pub environment: Arc<BTreeMap<String, String>>,
    /// Where throw-away copies and private temporary folders are made.
    pub cache: PathBuf,
    /// The person's home folder.
    pub user_home: Option<PathBuf>,
}

/// A session that this process holds.
pub struct Session {
    /// Its folder.
    pub home: Home,
    /// Its journal.
    pub recorder: Arc<Recorder>,
    /// What is shared.
    pub surroundings: Surroundings,
    /// Its profiles.
    pub profiles: PerRole<Profile>,
    /// The record of its files.
    pub snapshots: Arc<SnapshotStore>,
    /// Who answers permission requests.
    pub desk: PermissionDesk,
    record: Arc<Mutex<Arc<SessionRecord>>>,
    warned: Mutex<Vec<String>>,
    lock: Mutex<Option<SessionLock>>,
}

impl Session {
    /// Takes a session over: its record follows its journal from now on.
    ///
    /// # Errors
    /// Its files can't be recorded where it works.
    pub fn new(
        home: Home,
        record: SessionRecord,
        recorder: Arc<Recorder>,
        profiles: PerRole<Profile>,
        surroundings: Surroundings,
        lock: SessionLock,
        headless: bool,
    ) -> Result<Arc<Self>, Problem> {
        let snapshots = open_snapshots(&home, &record, &surroundings)?;
        let record = Arc::new(Mutex::new(Arc::new(record)));
        let fold = record.clone();
        recorder.observe(move |envelope| {
            let mut record = fold.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut record).apply(envelope);
        });
        Ok(Arc::new(Self {
            home,
            recorder,
            surroundings,
            profiles,
            snapshots: Arc::new(snapshots),
            desk: PermissionDesk::new(headless),
            record,
            warned: Mutex::default(),
            lock: Mutex::new(Some(lock)),
        }))
    }

    /// Lets go of the session at the end of its stretch, although some still look at it: whoever
    /// waited for the end may take it over at once.
    pub fn release(&self) {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The session as it stands now; later events don't change what was returned.
    pub fn record(&self) -> Arc<SessionRecord> {
        // A std mutex: held for a look, never across an await.
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what the next `session_resumed` will record: models and cycles of a session that
    /// is about to go on.
    pub fn prepare(&self, change: impl FnOnce(&mut SessionRecord)) {
        change(Arc::make_mut(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    /// The Worker's working directory, canonical.
    ///
    /// # Errors
    /// It is gone.
    pub fn cwd(&self) -> Result<PathBuf, Problem> {
        let dir = self.record().place.dir.clone();
        dir.canonicalize().map_err(|e| {
            Problem::internal(format!("the working directory {} can't be used: {e}", dir.display()))
                .hint("bring it back, then resume the session")
        })
    }

    /// Journals an event, and brings `session.json` along where the session comes to a rest: it is
    /// a cache, whose reader takes what is newer from the journal.
    ///
    /// # Errors
    /// It could not be written.
    pub fn emit(&self, cycle: Option<u32>, trace: Option<&TraceId>, event: Event) -> std::io::Result<u64> {
        let rests = match &event {
            Event::CycleStart { .. } => cycle > Some(1),
            Event::Rewind(_) | Event::RewindApplied { .. } => true,
            _ => false,
        };
        let envelope = self.recorder.record(cycle, trace, event)?;
        let record = self.record();
        if rests || record.status != SessionStatus::Running {
            self.home.save(&record)?;
        }
        Ok(envelope.event_id.unwrap_or(0))
    }

    /// As [`Session::emit`], for the event that ends a trace's part of a cycle: `meta.json` then
    /// names it as the trace's newest.
    ///
    /// # Errors
    /// It could not be written.
    pub fn emit_last(&self, cycle: u32, trace: &TraceId, event: Event) -> std::io::Result<()> {
        let id = self.emit(Some(cycle), Some(trace), event)?;
        let store = self.runner().store;
        let mut meta = store.get_trace(trace)?;
        meta.last_event_id = id;
        store.update_trace(&meta)
    }

    /// The agent's runner for this session.
    pub fn runner(&self) -> Runner {
        let around = &self.surroundings;
        let store = crate::trace::store::FileSystemTraceStore::new(self.home.path(), self.recorder.clone());
        Runner {
            store: Arc::new(store),
            registry: around.registry.clone(),
            prompts: around.prompts.clone(),
            clock: around.clock.clone(),
            random: around.random.clone(),
        }
    }

    /// The model of a role, at its profile's address when the profile names one.
    ///
    /// # Errors
    /// There is no such provider, or its key is missing.
    pub async fn model(&self, role: Role, reference: &str) -> Result<Model, Problem> {
        let endpoint = endpoint(&self.profiles, role, reference);
        self.surroundings.models.resolve(reference, endpoint.as_deref()).await
    }

    /// A new trace's id: `w2-4f7k2m` for the Worker of cycle 2.
    pub fn new_trace(&self, role: Role, cycle: u32) -> TraceId {
        let letter = &role.word()[..1];
        loop {
            let tail = random::name(self.surroundings.random.as_ref(), crate::ids::SESSION_ALPHABET, 6);
            let id = TraceId::new(format!("{letter}{cycle}-{tail}"));
            if !self.home.traces().join(id.as_str()).exists() {
                return id;
            }
        }
    }

    /// Limits and places of tools for a run in `cwd`.
    pub fn tool_settings(&self, trace: &TraceId, cwd: PathBuf) -> ToolSettings {
        let around = &self.surroundings;
        let id = self.recorder.session();
        let environment = around.environment.iter().map(|(k, v)| (k.clone(), v.clone()));
        let ceiling = match self.record().place.kind {
            PlaceKind::Scratch => Some(self.home.path().to_owned()),
            PlaceKind::InPlace | PlaceKind::Worktree => None,
        };
        ToolSettings {
            cwd,
            temp: around.cache.join("tmp").join(id.as_str()),
            git_ceiling: ceiling,
            shell: Shell::new(environment, &format!("{id}-{trace}")),
            output_chars: around.config.tools.output_chars,
            command_timeout: around.config.tools.command_timeout,
        }
    }

    /// Where the Checker's throw-away copy lies, outside the session's home.
    pub fn check_dir(&self) -> PathBuf {
        self.surroundings.cache.join("check").join(self.recorder.session().as_str())
    }

    fn spent(&self, role: Role) -> (Totals, Totals, u64) {
        let record = self.record();
        let ran_ms = record.totals_at(self.surroundings.clock.now()).duration_ms;
        (record.totals, *record.role_totals.of(role), ran_ms)
    }

    fn warn_once(&self, budget: &str, percent: u32) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.iter().any(|w| w == budget) {
            return;
        }
        warned.push(budget.to_owned());
        let event = Event::BudgetWarning { budget: budget.to_owned(), percent };
        // When the journal can't be written the run ends at its next message.
        let _ = self.recorder.record(None, None, event);
    }
}

/// The address that a role's model is asked at, when a profile names one. A Checker on the Worker's
/// model asks where the Worker asks.
pub fn endpoint(profiles: &PerRole<Profile>, role: Role, reference: &str) -> Option<String> {
    profiles.of(role).endpoint_for(reference).or_else(|| profiles.worker.endpoint_for(reference))
}

fn open_snapshots(home: &Home, record: &SessionRecord, around: &Surroundings) -> Result<SnapshotStore, Problem> {
    let in_place = record.place.kind != PlaceKind::Scratch;
    let options = WalkOptions {
        beneath_git: in_place,
        exclude: vec![home.path().to_owned()],
        tracked: Vec::new(),
        home: around.user_home.clone(),
    };
    SnapshotStore::open(&home.snapshots(), &record.place.dir, &around.config.snapshots, options).map_err(|e| {
        Problem::usage(format!("the files in {} can't be recorded: {e}", record.place.dir.display()))
            .hint("work in a folder of its own (--scratch), or in a smaller one")
    })
}

impl Inbox for Session {
    fn is_empty(&self) -> bool {
        !self.record().queued.iter().any(|m| !m.next_cycle)
    }

    fn take(&self) -> Vec<Waiting> {
        let record = self.record();
        let waiting = record.queued.iter().filter(|m| !m.next_cycle);
        waiting.map(|m| Waiting { message_id: m.message_id.clone(), text: m.text.clone() }).collect()
    }
}

/// An inbox that is always empty: nobody talks to a Checker.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInbox;

impl Inbox for NoInbox {
    fn is_empty(&self) -> bool {
        true
    }

    fn take(&self) -> Vec<Waiting> {
        Vec::new()
    }
}

/// Share of a budget at which a person is warned, in percent.
const WARN_AT: u32 = 80;

impl Meter for Session {
    fn exhausted(&self, role: Role) -> Option<String> {
        let (total, own, ran_ms) = self.spent(role);
        let (budget, role_budget) = {
            let record = self.record();
            (record.budget, *record.role_budgets.of(role))
        };
        let whose = [("session", budget, total), (role.word(), role_budget, own)];
        for (name, budget, spent) in whose {
            let uses = [
                ("tokens", budget.tokens.map(|b| (spent.tokens() as f64, b as f64))),
                ("usd", budget.usd.map(|b| (spent.cost_usd, b))),
                ("time", time_use(budget, ran_ms, own.duration_ms, name)),
            ];
            for (kind, usage) in uses {
                let Some((used, limit)) = usage else { continue };
                if used >= limit {
                    return Some(format!("the {name}'s budget of {kind} is used up ({used:.2} of {limit:.2})"));
                }
                let percent = (used / limit * 100.0) as u32;
                if percent >= WARN_AT {
                    self.warn_once(&format!("{name} {kind}"), percent);
                }
            }
        }
        None
    }
}

/// Time counts over all stretches of running; a role's own time is that of its calls.
fn time_use(budget: Budget, ran_ms: u64, own_ms: u64, name: &str) -> Option<(f64, f64)> {
    let used = if name == "session" { ran_ms } else { own_ms };
    Some((used as f64 / 1000.0, budget.time_ms? as f64 / 1000.0))
}

/// Where permission requests wait for a person.
#[derive(Debug)]
pub struct PermissionDesk {
    headless: bool,
    waiting: Mutex<HashMap<String, Asked>>,
    allowed: Mutex<BTreeSet<String>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct Asked {
    tool: String,
    answer: oneshot::Sender<Permission>,
}

impl PermissionDesk {
    fn new(headless: bool) -> Self {
        Self { headless, waiting: Mutex::default(), allowed: Mutex::default() }
    }

    /// Hands a decision to the call that waits for it. False when none does.
    pub fn answer(&self, request_id: &str, answer: Permission) -> bool {
        let asked = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(request_id);
        let Some(asked) = asked else { return false };
        if answer == Permission::AllowSession {
            self.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(asked.tool);
        }
        asked.answer.send(answer).is_ok()
    }
}

#[async_trait]
impl Permissions for PermissionDesk {
    fn is_allowed(&self, tool: &str) -> bool {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    async fn ask(&self, question: PermissionQuestion) -> Option<Permission> {
        if self.headless {
            return None;
        }
        let (tx, rx) = oneshot::channel();
        let asked = Asked { tool: question.tool, answer: tx };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(question.request_id, asked);
        rx.await.ok()
    }
}

/// Why a step did not come to its end.
#[derive(Debug)]
pub enum StepError {
    /// A person stopped it.
    Stopped,
    /// A budget or the time is used up.
    Budget(String),
    /// Nobody was there to answer.
    NeedsHuman(String),
    /// The provider failed for good.
    Provider {
        /// What happened.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// Storage and the like.
    Internal(String),
}

impl From<std::io::Error> for StepError {
    fn from(error: std::io::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<RunError> for StepError {
    fn from(error: RunError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<Problem> for StepError {
    fn from(problem: Problem) -> Self {
        match problem.kind {
            crate::events::problem::ProblemKind::Provider => {
                Self::Provider { cause: problem.what, remedy: problem.hint.unwrap_or_default() }
            }
            crate::events::problem::ProblemKind::Usage | crate::events::problem::ProblemKind::Internal => {
                Self::Internal(problem.to_string())
            }
        }
    }
}

/// Reads `AGENTS.md`, or `CLAUDE.md` when there is none, at most 32 KB (A7).
pub fn agents_file(cwd: &Path) -> Option<String> {
    const MAX: usize = 32 * 1024;
    ["AGENTS.md", "CLAUDE.md"].iter().find_map(|name| {
        let path = cwd.join(name).canonicalize().ok().filter(|p| p.starts_with(cwd))?;
        let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
        let shown = crate::stdx::bounded::prefix(&text, MAX);
        let cut = if shown.len() < text.len() { "\n(the rest is left out)" } else { "" };
        Some(format!("## {name} of the working directory\n\n{shown}{cut}"))
    })
}

/// Ends what an acceptance command of a crashed process left running.
pub fn end_checks(home: &Home, cycle: u32) {
    if let Some(id) = home.id() {
        crate::sandbox::exec::end_run(&format!("{id}-gates-{cycle}"));
    }
}

/// Brings what is derived of a trace in line with the journal after a crash (B42). Only who holds
/// the session may do it.
///
/// # Errors
/// A file can't be read or written; names it.
pub fn mend_trace(home: &Home, recorder: &Arc<Recorder>, trace: &TraceId) -> Result<(), Problem> {
    let store = crate::trace::store::FileSystemTraceStore::new(home.path(), recorder.clone());
    crate::trace::store::mend(&store, trace, &home.journal()).map_err(|e| {
        Problem::internal(format!("trace `{trace}` can't be continued: {e}"))
            .hint("put the file back as it was; the rest of the session can still be shown, applied and exported")
    })?;
    // What a crashed process left running belongs to nobody any more.
    if let Some(id) = home.id() {
        crate::sandbox::exec::end_run(&format!("{id}-{trace}"));
    }
    Ok(())
}
