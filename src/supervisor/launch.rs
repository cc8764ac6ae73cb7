//! Making a new session out of what a person asked for: models, place, profiles, limits.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use super::Supervisor;
use crate::config::profiles::{DEFAULT, Profile};
use crate::config::{BudgetConfig, Limits, PermissionSetting, PlaceSetting};
use crate::events::command::{Ack, LaunchSpec, Where};
use crate::events::data::{Budget, PermissionMode, Place, PlaceKind};
use crate::events::event::{Event, PerRole, SessionStart};
use crate::events::problem::Problem;
use crate::events::query::ModelChoice;
use crate::events::recorder::Recorder;
use crate::ids::{SESSION_ALPHABET, SESSION_ID_LEN, SessionId};
use crate::session::context::Session;
use crate::session::home::{Home, LockError, Owner, SessionLock};
use crate::session::models::{FORMAT, SessionRecord};
use crate::session::orchestrator::Begin;
use crate::session::place;
use crate::stdx::{bounded, random};

/// The Checker's profile when none is named.
const CHECKER: &str = "checker";

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
        let (models, reason, scripted) = self.choose_models(&spec, &profiles).await?;
        let name = spec.name.clone().unwrap_or_else(|| bounded::first_line(&spec.contract.objective, 60));
        let (id, home) = self.new_home()?;
        let made = self.make(&spec, profiles, models, reason, scripted, name, &id, &home).await;
        match made {
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

    #[expect(clippy::too_many_arguments, reason = "one call, each argument named at its place")]
    async fn make(
        &self,
        spec: &LaunchSpec,
        profiles: PerRole<Profile>,
        models: PerRole<String>,
        model_reason: String,
        scripted: bool,
        name: String,
        id: &SessionId,
        home: &Home,
    ) -> Result<Arc<Session>, Problem> {
        let lock = self.lock_home(home, id)?;
        let wanted = spec.place.unwrap_or_else(|| where_of(self.surroundings.config.place));
        let workspace = place::prepare(&self.git, wanted, &spec.dir, home, &name).await?;
        if let Err(problem) = self.refuse_shared(&workspace, id) {
            let _ = place::remove_worktree(&self.git, &workspace).await;
            return Err(problem);
        }
        let start = self.session_start(spec, &profiles, models, model_reason, scripted, name, workspace);
        let recorder = Recorder::open(id.clone(), home.path(), self.surroundings.clock.clone())?;
        let envelope = recorder.record(None, None, Event::SessionStart(Box::new(start.clone())))?;
        let record = SessionRecord::start(&envelope, &start);
        home.save(&record)?;
        Session::new(home.clone(), record, recorder, profiles, self.surroundings.clone(), lock, spec.headless)
    }

    #[expect(clippy::too_many_arguments, reason = "one call, each argument named at its place")]
    fn session_start(
        &self,
        spec: &LaunchSpec,
        profiles: &PerRole<Profile>,
        models: PerRole<String>,
        model_reason: String,
        scripted: bool,
        name: String,
        workspace: Place,
    ) -> SessionStart {
        let config = &self.surroundings.config;
        let permission = spec
            .permission_mode
            .unwrap_or_else(|| permission_of(profiles.worker.permission_mode.unwrap_or(config.permission_mode)));
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
            models,
            model_reason,
            scripted,
            max_cycles: spec.max_cycles.unwrap_or(config.max_cycles.0),
            max_turns: PerRole {
                worker: spec.max_turns.or(profiles.worker.max_turns).unwrap_or(config.worker.max_turns),
                checker: profiles.checker.max_turns.unwrap_or(config.checker.max_turns),
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

    async fn choose_models(
        &self,
        spec: &LaunchSpec,
        profiles: &PerRole<Profile>,
    ) -> Result<(PerRole<String>, String, bool), Problem> {
        let config = &self.surroundings.config;
        let models = &self.surroundings.models;
        let named = |asked: &Option<String>, profile: &Profile, why: &str| {
            let asked = asked.clone().map(|m| (m, "named at the launch".to_owned()));
            asked
                .or_else(|| profile.model_reference().map(|m| (m, "named in the profile".to_owned())))
                .or_else(|| {
                    (why == "worker").then(|| config.model.clone()).flatten().map(|m| (m, "configured".to_owned()))
                })
                .or_else(|| {
                    (why == "checker")
                        .then(|| config.checker_model.clone())
                        .flatten()
                        .map(|m| (m, "configured".to_owned()))
                })
        };
        let (worker, reason) = match named(&spec.models.worker, &profiles.worker, "worker") {
            Some(found) => found,
            None => {
                let ModelChoice { model, reason } = models.default_choice().await?;
                (model, reason)
            }
        };
        let endpoint = |profile: &Profile| profile.endpoint_url();
        let first = models.resolve(&worker, endpoint(&profiles.worker).as_deref()).await?;
        let checker = named(&spec.models.checker, &profiles.checker, "checker").map_or(worker, |(model, _)| model);
        let second = models.resolve(&checker, endpoint(&profiles.checker).as_deref()).await?;
        let scripted = first.provider.is_scripted() || second.provider.is_scripted();
        Ok((PerRole { worker: first.reference, checker: second.reference }, reason, scripted))
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

    /// Two sessions must not work on one folder at once (architecture.md).
    pub(super) fn refuse_shared(&self, place: &Place, id: &SessionId) -> Result<(), Problem> {
        if place.kind != PlaceKind::InPlace {
            return Ok(());
        }
        let file = self.lock_folder(&place.dir)?;
        // Held as long as this process lives; the same session may take it again.
        self.folders.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(id.clone(), file);
        Ok(())
    }

    fn lock_folder(&self, dir: &Path) -> Result<File, Problem> {
        let folder = self.places.state.join("locks");
        std::fs::create_dir_all(&folder)?;
        let name = blake3::hash(dir.as_os_str().as_encoded_bytes()).to_hex();
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name.as_str()))?;
        file.try_lock().map_err(|_| {
            Problem::usage(format!("another session works in {}", dir.display()))
                .hint("wait until it has ended, or use --worktree or --scratch")
        })?;
        Ok(file)
    }
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
