//! Making a new session out of what a person asked for: models, place, profiles, limits.

use std::fs::{File, OpenOptions, TryLockError};
use std::sync::Arc;

use super::Supervisor;
use crate::config::profiles::{DEFAULT, Profile};
use crate::config::{BudgetConfig, Limits, PermissionSetting, PlaceSetting};
use crate::events::command::{Ack, LaunchSpec, Where};
use crate::events::data::{Budget, PermissionMode, Place, PlaceKind, Role};
use crate::events::event::{Event, PerRole, SessionStart};
use crate::events::problem::Problem;
use crate::events::query::ModelChoice;
use crate::events::recorder::Recorder;
use crate::ids::{SESSION_ALPHABET, SESSION_ID_LEN, SessionId};
use crate::session::context::{Session, endpoint};
use crate::session::home::{Home, LockError, Owner, SessionLock};
use crate::session::models::{FORMAT, SessionRecord};
use crate::session::orchestrator::Begin;
use crate::session::place::{self, Prepared};
use crate::stdx::{bounded, random};

/// The Checker's profile when none is named.
const CHECKER: &str = "checker";

/// Who works on a new session.
struct Chosen {
    profiles: PerRole<Profile>,
    models: PerRole<String>,
    /// Why the Worker's model was chosen.
    reason: String,
    scripted: bool,
}

impl Supervisor {
    /// Starts a session.
    pub(super) async fn launch(&self, spec: LaunchSpec) -> Result<Ack, Problem> {
        if spec.contract.objective.trim().is_empty() {
            return Err(Problem::usage("the objective is empty").hint("say what is to be done"));
        }
        if spec.max_cycles == Some(0) {
            return Err(Problem::usage("`max_cycles` is 0").hint("give at least 1"));
        }
        let profiles = PerRole {
            worker: self.profile(spec.profiles.worker.as_deref())?,
            checker: self.checker_profile(spec.profiles.checker.as_deref())?,
        };
        let chosen = self.choose_models(&spec, profiles).await?;
        let (id, home) = self.new_home()?;
        match self.make(&spec, chosen, &id, &home).await {
            Ok(session) => {
                self.start(session, Begin::New);
                Ok(Ack::Launched { session: id })
            }
            Err(problem) => {
                // Nothing has been done in it yet.
                let _ = std::fs::remove_dir_all(home.path());
                Err(problem)
            }
        }
    }

    async fn make(
        &self,
        spec: &LaunchSpec,
        chosen: Chosen,
        id: &SessionId,
        home: &Home,
    ) -> Result<Arc<Session>, Problem> {
        let lock = self.lock_home(home, id)?;
        let wanted = spec.place.unwrap_or_else(|| where_of(self.surroundings.config.place));
        let name = name_of(spec);
        let prepared = place::prepare(&self.git, wanted, &spec.dir, home, &name).await?;
        let workspace = prepared.place.clone();
        let made = self.begin(spec, chosen, name, prepared, lock, id, home);
        if made.is_err() {
            let _ = place::remove_worktree(&self.git, &workspace).await;
        }
        made
    }

    #[expect(clippy::too_many_arguments, reason = "one call, each argument named at its place")]
    fn begin(
        &self,
        spec: &LaunchSpec,
        chosen: Chosen,
        name: String,
        prepared: Prepared,
        lock: SessionLock,
        id: &SessionId,
        home: &Home,
    ) -> Result<Arc<Session>, Problem> {
        let lock = lock.with_folder(self.lock_folder(&prepared.place)?);
        let start = self.session_start(spec, &chosen, name, prepared.place);
        let recorder = Recorder::open(id.clone(), home.path(), self.surroundings.clock.clone())?;
        let envelope = recorder.record(None, None, Event::SessionStart(Box::new(start.clone())))?;
        let record = SessionRecord::start(&envelope, &start);
        home.save(&record)?;
        let around = self.surroundings.clone();
        let session = Session::new(home.clone(), record, recorder, chosen.profiles, around, lock, spec.headless)?;
        if let Some(text) = prepared.note {
            session.emit(None, None, Event::Note { text })?;
        }
        Ok(session)
    }

    fn session_start(&self, spec: &LaunchSpec, chosen: &Chosen, name: String, workspace: Place) -> SessionStart {
        let config = &self.surroundings.config;
        let worker = &chosen.profiles.worker;
        let permission = spec
            .permission_mode
            .unwrap_or_else(|| permission_of(worker.permission_mode.unwrap_or(config.permission_mode)));
        let profile_name = |n: &Option<String>, otherwise: &str| n.clone().unwrap_or_else(|| otherwise.to_owned());
        SessionStart {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name,
            objective: spec.contract.objective.clone(),
            expected_output: spec.contract.expected_output.clone(),
            inputs: spec.contract.inputs.clone(),
            workspace,
            launched_from: spec.dir.clone(),
            profiles: PerRole {
                worker: profile_name(&spec.profiles.worker, DEFAULT),
                checker: profile_name(&spec.profiles.checker, CHECKER),
            },
            models: chosen.models.clone(),
            model_reason: chosen.reason.clone(),
            scripted: chosen.scripted,
            max_cycles: spec.max_cycles.unwrap_or(config.max_cycles.0),
            max_turns: PerRole {
                worker: spec.max_turns.or(worker.max_turns).unwrap_or(config.worker.max_turns),
                checker: chosen.profiles.checker.max_turns.unwrap_or(config.checker.max_turns),
            },
            budget: budget_over(spec.budget, &config.budget),
            role_budgets: PerRole { worker: limits(&config.budget.worker), checker: limits(&config.budget.checker) },
            permission_mode: permission,
            checks: spec.contract.checks.clone(),
            protected: spec.contract.protected.clone(),
        }
    }

    pub(super) fn profile(&self, name: Option<&str>) -> Result<Profile, Problem> {
        self.profiles.get(name.unwrap_or(DEFAULT)).cloned().map_err(|e| {
            let problem = Problem::usage(e.what.clone());
            match &e.hint {
                Some(hint) => problem.hint(hint.clone()),
                None => problem,
            }
        })
    }

    /// The Checker's profile: the one named, else the one called `checker`, else nothing but the
    /// configuration. The Worker's profile is not the Checker's (A20).
    pub(super) fn checker_profile(&self, name: Option<&str>) -> Result<Profile, Problem> {
        match name {
            Some(name) if name != CHECKER => self.profile(Some(name)),
            _ => Ok(self.profiles.get(CHECKER).cloned().unwrap_or_default()),
        }
    }

    async fn choose_models(&self, spec: &LaunchSpec, profiles: PerRole<Profile>) -> Result<Chosen, Problem> {
        let config = &self.surroundings.config;
        let models = &self.surroundings.models;
        let asked = spec.models.worker.clone().map(|model| (model, "named at the launch"));
        let chosen = asked
            .or_else(|| profiles.worker.model_reference().map(|model| (model, "named in the profile")))
            .or_else(|| config.model.clone().map(|model| (model, "configured")));
        let (worker, reason) = match chosen {
            Some((model, reason)) => (model, reason.to_owned()),
            None => {
                let ModelChoice { model, reason } = models.default_choice().await?;
                (model, reason)
            }
        };
        let endpoint = |role, model: &str| endpoint(&profiles, role, model);
        let first = models.resolve(&worker, endpoint(Role::Worker, &worker).as_deref()).await?;
        // The Checker's is the Worker's unless somebody says otherwise (A20).
        let of_profile = || profiles.checker.model_reference();
        let checker = spec.models.checker.clone().or_else(of_profile).or_else(|| config.checker_model.clone());
        let checker = checker.unwrap_or(worker);
        let second = models.resolve(&checker, endpoint(Role::Checker, &checker).as_deref()).await?;
        let scripted = first.provider.is_scripted() || second.provider.is_scripted();
        let models = PerRole { worker: first.reference, checker: second.reference };
        Ok(Chosen { profiles, models, reason, scripted })
    }

    fn new_home(&self) -> Result<(SessionId, Home), Problem> {
        for _ in 0..100 {
            let id = SessionId::new(random::name(self.surroundings.random.as_ref(), SESSION_ALPHABET, SESSION_ID_LEN));
            let home = Home::of(&self.places.root, &id);
            if !home.path().exists() {
                home.create()?;
                return Ok((id, home));
            }
        }
        Err(Problem::internal("no free session id was found").hint("choose another root with --workspace"))
    }

    pub(super) fn lock_home(&self, home: &Home, id: &SessionId) -> Result<SessionLock, Problem> {
        let owner = Owner { pid: std::process::id(), socket: Some(super::socket::path(&self.places.runtime, id)) };
        home.lock(&owner).map_err(|e| match e {
            LockError::Held(owner) => {
                let who = owner.map(|o| format!("process {}", o.pid)).unwrap_or_else(|| "another process".to_owned());
                Problem::usage(format!("session `{id}` is in use by {who}"))
                    .hint(format!("stop it there, or with `super-agent stop {id}`"))
            }
            LockError::Io(error) => Problem::internal(format!("the lock of session `{id}` can't be used: {error}"))
                .hint("check that its folder may be written"),
        })
    }

    /// Two sessions must not work on one folder at once (architecture.md). None: the place is the
    /// session's own.
    pub(super) fn lock_folder(&self, place: &Place) -> Result<Option<File>, Problem> {
        if place.kind != PlaceKind::InPlace {
            return Ok(None);
        }
        let folder = self.places.state.join("locks");
        let name = blake3::hash(place.dir.as_os_str().as_encoded_bytes()).to_hex();
        let file = folder.join(name.as_str());
        let unusable = |e: std::io::Error| {
            Problem::internal(format!("the lock {} can't be used: {e}", file.display()))
                .hint("check that its folder may be written")
        };
        std::fs::create_dir_all(&folder).map_err(unusable)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&file).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => {
                Err(Problem::usage(format!("another session works in {}", place.dir.display()))
                    .hint("wait until it has ended, or use --worktree or --scratch"))
            }
            Err(TryLockError::Error(e)) => Err(unusable(e)),
        }
    }
}

fn name_of(spec: &LaunchSpec) -> String {
    let given = spec.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    given.map_or_else(|| bounded::first_line(&spec.contract.objective, 60), str::to_owned)
}

/// The place a configuration asks for.
pub(super) fn where_of(setting: PlaceSetting) -> Where {
    match setting {
        PlaceSetting::Auto => Where::Auto,
        PlaceSetting::Scratch => Where::Scratch,
        PlaceSetting::InPlace => Where::InPlace,
        PlaceSetting::Worktree => Where::Worktree,
    }
}

fn permission_of(setting: PermissionSetting) -> PermissionMode {
    match setting {
        PermissionSetting::BypassPermissions => PermissionMode::BypassPermissions,
        PermissionSetting::AcceptEdits => PermissionMode::AcceptEdits,
        PermissionSetting::Ask => PermissionMode::Ask,
        PermissionSetting::Plan => PermissionMode::Plan,
    }
}

fn limits(limits: &Limits) -> Budget {
    Budget { tokens: limits.tokens, usd: limits.usd, time_ms: limits.time.map(millis) }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn budget_over(asked: Budget, config: &BudgetConfig) -> Budget {
    Budget {
        tokens: asked.tokens.or(config.tokens),
        usd: asked.usd.or(config.usd),
        time_ms: asked.time_ms.or(config.time.map(millis)),
    }
}
