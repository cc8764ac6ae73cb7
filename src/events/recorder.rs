//! Journal, then publish: the only place through which a fact of a session becomes visible.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::bus::Bus;
use super::event::{Envelope, Event};
use super::log::Journal;
use crate::ids::{SessionId, TraceId};
use crate::stdx::clock::Clock;

/// How far behind the journal's stable storage may be (architecture.md, "Two promises").
const SYNC_LAG: Duration = Duration::from_millis(100);

/// Writes one session's events and publishes them.
#[derive(Debug)]
pub struct Recorder {
    session: SessionId,
    home: PathBuf,
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
    bus: Bus,
    syncer: Arc<Syncer>,
    observer: OnceLock<Observer>,
}

/// Sees every journalled event, in order, before it is published.
struct Observer(Box<dyn Fn(&Envelope) + Send + Sync>);

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

#[derive(Debug)]
struct Inner {
    journal: Journal,
    /// Open copies `.trace/<id>/events.jsonl`; one or two at a time are in use.
    traces: HashMap<TraceId, File>,
    /// Why the journal can't be written any more, once that happened.
    broken: Option<String>,
}

impl Recorder {
    /// Opens the journal of the session at `home`.
    ///
    /// # Errors
    /// The journal can't be opened.
    pub fn open(session: SessionId, home: &Path, clock: Arc<dyn Clock>) -> io::Result<Arc<Self>> {
        let journal = Journal::open(&home.join("state/events.jsonl"))?;
        let syncer = Syncer::start(journal.sync_handle()?);
        let inner = Inner { journal, traces: HashMap::new(), broken: None };
        Ok(Arc::new(Self {
            session,
            home: home.to_owned(),
            clock,
            inner: Mutex::new(inner),
            bus: Bus::default(),
            syncer,
            observer: OnceLock::new(),
        }))
    }

    /// Names the one who sees every event right after it was journalled. Only the first counts.
    pub fn observe(&self, observer: impl Fn(&Envelope) + Send + Sync + 'static) {
        let _ = self.observer.set(Observer(Box::new(observer)));
    }

    /// The session whose journal this is.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Writes an event down and then publishes it. Returns its envelope.
    ///
    /// # Errors
    /// It could not be written. It was not published then, and later ones are refused too.
    pub fn record(&self, cycle: Option<u32>, trace: Option<&TraceId>, event: Event) -> io::Result<Arc<Envelope>> {
        let sync = event.needs_sync();
        let envelope = {
            let mut inner = self.lock();
            if let Some(why) = &inner.broken {
                return Err(io::Error::other(why.clone()));
            }
            let event_id = inner.journal.last_event_id() + 1;
            let envelope = Arc::new(self.envelope(Some(event_id), cycle, trace, event));
            let mut line = serde_json::to_vec(envelope.as_ref())?;
            line.push(b'\n');
            if let Err(error) = inner.journal.append(event_id, &line) {
                inner.broken = Some(format!("the journal {} can't be written: {error}", self.path().display()));
                return Err(error);
            }
            if let Some(trace) = trace {
                inner.copy_to_trace(&self.home, trace, &line);
            }
            if let Some(Observer(observe)) = self.observer.get() {
                observe(&envelope);
            }
            // Published under the lock, so that watchers see the journal's order.
            self.bus.publish(&envelope);
            envelope
        };
        if sync {
            self.syncer.sync_now()?;
        } else {
            self.syncer.mark();
        }
        Ok(envelope)
    }

    /// Publishes a delta: seen, never written.
    pub fn publish_delta(&self, cycle: Option<u32>, trace: Option<&TraceId>, event: Event) {
        debug_assert!(event.is_delta());
        if self.bus.is_watched() {
            self.bus.publish(&Arc::new(self.envelope(None, cycle, trace, event)));
        }
    }

    /// Says that the next event names this file, which must then be on stable storage with it.
    pub fn will_name(&self, path: PathBuf) {
        self.syncer.named.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// A watcher from now on, and the newest event id it does not get: what is up to there must
    /// be read from the journal.
    pub fn subscribe(&self) -> (u64, tokio::sync::mpsc::UnboundedReceiver<Arc<Envelope>>) {
        let inner = self.lock();
        (inner.journal.last_event_id(), self.bus.subscribe())
    }

    /// Whether anyone watches.
    pub fn is_watched(&self) -> bool {
        self.bus.is_watched()
    }

    /// The newest event id.
    pub fn last_event_id(&self) -> u64 {
        self.lock().journal.last_event_id()
    }

    /// The journal's file.
    pub fn path(&self) -> PathBuf {
        self.home.join("state/events.jsonl")
    }

    fn envelope(&self, event_id: Option<u64>, cycle: Option<u32>, trace: Option<&TraceId>, event: Event) -> Envelope {
        Envelope {
            event_id,
            at: self.clock.now(),
            session_id: self.session.clone(),
            cycle,
            trace_id: trace.cloned(),
            event,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A std mutex: held for one write of one line, never across an await.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.syncer.stop();
    }
}

impl Inner {
    /// The trace's copy is derived: a failure to write it costs nothing but the copy, which is
    /// completed at the next start.
    fn copy_to_trace(&mut self, home: &Path, trace: &TraceId, line: &[u8]) {
        if !self.traces.contains_key(trace) {
            // A trace's first event may come before anything else of it is stored.
            let folder = home.join(".trace").join(trace.as_str());
            let path = folder.join("events.jsonl");
            let _ = std::fs::create_dir_all(folder);
            match OpenOptions::new().create(true).append(true).open(path) {
                Ok(file) => {
                    if self.traces.len() > 8 {
                        self.traces.clear();
                    }
                    self.traces.insert(trace.clone(), file);
                }
                Err(_) => return,
            }
        }
        if let Some(file) = self.traces.get_mut(trace) {
            let _ = file.write_all(line);
        }
    }
}

/// Brings the journal to stable storage off the turn's path.
#[derive(Debug)]
struct Syncer {
    file: File,
    /// Files that the journal names and that are not on stable storage yet.
    named: Mutex<Vec<PathBuf>>,
    dirty: AtomicBool,
    state: Mutex<SyncState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct SyncState {
    wanted: bool,
    stopped: bool,
}

impl Syncer {
    fn start(file: File) -> Arc<Self> {
        let syncer = Arc::new(Self {
            file,
            named: Mutex::default(),
            dirty: AtomicBool::new(false),
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let thread = syncer.clone();
        // A plain thread that sleeps until something is written: no wake-up while idle. Without
        // it the closing events are still synced, so failing to start it is survivable.
        let _ = std::thread::Builder::new().name("journal-sync".into()).spawn(move || thread.run());
        syncer
    }

    fn run(&self) {
        loop {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                while !state.wanted && !state.stopped {
                    state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                if state.stopped {
                    break;
                }
                state.wanted = false;
                // Writes of the next moments share one sync.
                let (state, _) = self
                    .wake
                    .wait_timeout_while(state, SYNC_LAG / 2, |s| !s.stopped)
                    .unwrap_or_else(PoisonError::into_inner);
                if state.stopped {
                    break;
                }
            }
            self.sync_if_dirty();
        }
        self.sync_if_dirty();
    }

    fn sync_if_dirty(&self) {
        if self.dirty.swap(false, Ordering::AcqRel) && self.sync_all().is_err() {
            self.dirty.store(true, Ordering::Release);
        }
    }

    fn mark(&self) {
        if !self.dirty.swap(true, Ordering::AcqRel) {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).wanted = true;
            self.wake.notify_one();
        }
    }

    fn sync_now(&self) -> io::Result<()> {
        self.dirty.store(false, Ordering::Release);
        self.sync_all()
    }

    /// The files that the journal names, then the journal: after a power cut it never names one
    /// that is not there.
    fn sync_all(&self) -> io::Result<()> {
        let named = std::mem::take(&mut *self.named.lock().unwrap_or_else(PoisonError::into_inner));
        let mut folders: Vec<&Path> = Vec::new();
        for path in &named {
            match File::open(path) {
                Ok(file) => file.sync_data()?,
                // A session that is deleted takes its files along.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            folders.extend(path.parent().filter(|folder| !folders.contains(folder)));
        }
        for folder in folders {
            File::open(folder)?.sync_all()?;
        }
        self.file.sync_data()
    }

    fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.wake.notify_one();
    }
}
