//! Owns every session that runs in this process: starts, steers and stops them, answers what front
//! ends ask, and takes the same commands from other processes over a socket. Decides nothing about
//! a session's work; `session` does.

mod control;
mod deliver;
mod follow;
mod launch;
mod list;
mod read;
mod socket;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::profiles::Profiles;
use crate::events::bus::Subscription;
use crate::events::command::{Ack, Command};
use crate::events::data::Outcome;
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;
use crate::session::context::{Session, Surroundings};
use crate::session::home::Home;
use crate::session::orchestrator::{self, Begin};
use crate::session::place::Git;

/// How long an orderly shutdown waits for its sessions.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Where things lie that are not in a session's home.
#[derive(Clone, Debug)]
pub struct Places {
    /// Root of new sessions.
    pub root: PathBuf,
    /// All roots whose sessions are listed, the one above among them.
    pub roots: Vec<PathBuf>,
    /// Sockets of running sessions.
    pub runtime: PathBuf,
    /// Locks of folders worked in place.
    pub state: PathBuf,
    /// The folder of the log files.
    pub log: PathBuf,
}

/// The owner of all sessions of this process.
pub struct Supervisor {
    surroundings: Surroundings,
    profiles: Profiles,
    places: Places,
    git: Git,
    running: Mutex<HashMap<SessionId, Running>>,
    /// Fires when a session begins or ends to run here.
    changed: Arc<Notify>,
    me: Weak<Supervisor>,
}

/// A session at work here.
struct Running {
    session: Arc<Session>,
    cancel: CancellationToken,
    ended: watch::Receiver<Option<Outcome>>,
    /// Takes commands of other processes; ends with the session.
    socket: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// A supervisor with nothing running.
    pub fn new(surroundings: Surroundings, profiles: Profiles, places: Places) -> Arc<Self> {
        let git = Git::new(&surroundings.environment);
        Arc::new_cyclic(|me| Self {
            surroundings,
            profiles,
            places,
            git,
            running: Mutex::default(),
            changed: Arc::new(Notify::new()),
            me: me.clone(),
        })
    }

    /// Waits until a session that runs here has ended its stretch. None: it does not run here.
    pub async fn wait(&self, id: &SessionId) -> Option<Outcome> {
        let mut ended = self.lock().get(id)?.ended.clone();
        let outcome = ended.wait_for(Option::is_some).await.ok()?;
        *outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Running>> {
        // A std mutex: held for a look, never across an await.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session when it runs here.
    fn here(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.lock().get(id).map(|r| r.session.clone())
    }

    fn home(&self, id: &SessionId) -> Result<Home, Problem> {
        let homes = self.places.roots.iter().map(|root| Home::of(root, id));
        homes.into_iter().find(|h| h.journal().exists()).ok_or_else(|| {
            Problem::usage(format!("there is no session `{id}`")).hint("`super-agent sessions` lists them")
        })
    }

    /// Runs a session on its own task, which takes it out of the table at its end.
    fn start(&self, session: Arc<Session>, begin: Begin) {
        let id = session.recorder.session().clone();
        let cancel = CancellationToken::new();
        let (tx, ended) = watch::channel(None);
        let socket = self.me.upgrade().and_then(|me| socket::listen(&me, &self.places.runtime, &id));
        let running = Running { session: session.clone(), cancel: cancel.clone(), ended, socket };
        self.lock().insert(id.clone(), running);
        let me = self.me.clone();
        tokio::spawn(async move {
            let outcome = orchestrator::drive(session.clone(), begin, cancel).await;
            if let Some(me) = me.upgrade() {
                me.lock().remove(&id);
                session.release();
                me.changed.notify_waiters();
            }
            drop(session);
            // After the session is out of the table: whoever waited may start it again.
            let _ = tx.send(Some(outcome));
        });
        self.changed.notify_waiters();
    }
}

impl Supervisor {
    async fn carry_out(&self, command: Command) -> Result<Ack, Problem> {
        match command {
            Command::Launch(spec) => self.launch(*spec).await,
            Command::Resume { session, message, overrides } => self.resume(&session, message, *overrides).await,
            Command::Stop { session } => self.stop(&session).await,
            Command::Message { session, text, deliver } => self.message(&session, text, deliver).await,
            Command::EditMessage { session, message_id, text } => self.edit_message(&session, message_id, text).await,
            Command::Rewind { session, trace, to, restore_files, overwrite_changed, message, run, headless } => {
                let wanted = crate::session::rewind::Wanted { trace, to, restore_files, overwrite_changed, message };
                self.rewind(&session, wanted, run, headless).await
            }
            Command::Apply { session, cycle, to, force } => self.apply(&session, cycle, to, force).await,
            Command::Accept { session } => self.accept(&session).await,
            Command::SetContract { session, contract, max_cycles, budget } => {
                self.set_contract(&session, *contract, max_cycles, budget).await
            }
            Command::Permit { session, request_id, answer } => self.permit(&session, &request_id, answer).await,
            Command::Answer { question_id, .. } => {
                Err(Problem::usage(format!("no agent waits for an answer to `{question_id}`")))
            }
            Command::Remove { session } => self.remove(&session).await,
            Command::Export { session, file } => self.export(&session, file).await,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            socket.abort();
        }
    }
}

#[async_trait]
impl Port for Supervisor {
    async fn command(&self, command: Command) -> Result<Ack, Problem> {
        let done = self.carry_out(command).await;
        // Whoever follows a session that nobody runs looks again: its journal may have grown.
        self.changed.notify_waiters();
        done
    }

    async fn query(&self, query: Query) -> Result<Reply, Problem> {
        self.answer(query).await
    }

    async fn follow(&self, session: &SessionId, after: u64) -> Result<Subscription, Problem> {
        self.follow_session(session, after)
    }

    async fn shutdown(&self) {
        let ends: Vec<_> = self
            .lock()
            .values()
            .map(|running| {
                running.cancel.cancel();
                running.ended.clone()
            })
            .collect();
        let all = ends.into_iter().map(|mut ended| async move {
            let _ = ended.wait_for(Option::is_some).await;
        });
        if tokio::time::timeout(SHUTDOWN, futures_util::future::join_all(all)).await.is_err() {
            tracing::warn!("some sessions did not end in time; they can be resumed");
        }
    }
}
