//! Following a session: what was journalled, then what happens, without gap or repeat, whoever
//! runs it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Supervisor;
use crate::events::bus::Subscription;
use crate::events::event::Envelope;
use crate::events::log;
use crate::events::problem::Problem;
use crate::ids::SessionId;

/// How often the journal of a session that another process runs is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Supervisor {
    /// Every event after `after`, and all that follow.
    pub(super) fn follow_session(&self, id: &SessionId, after: u64) -> Result<Subscription, Problem> {
        let home = self.home(id)?;
        let me = self.me.upgrade().ok_or_else(|| Problem::internal("the program is ending"))?;
        let (tx, events) = mpsc::unbounded_channel();
        let follower = Follower { id: id.clone(), journal: home.journal(), offset: 0, after, tx };
        tokio::spawn(follower.run(me, home));
        Ok(Subscription { events })
    }
}

struct Follower {
    id: SessionId,
    journal: PathBuf,
    offset: u64,
    after: u64,
    tx: mpsc::UnboundedSender<Arc<Envelope>>,
}

impl Follower {
    async fn run(mut self, supervisor: Arc<Supervisor>, home: crate::session::home::Home) {
        // Held weakly: a screen that follows must not keep the program alive.
        let me = Arc::downgrade(&supervisor);
        let changed = supervisor.changed.clone();
        drop(supervisor);
        loop {
            let woken = changed.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let live = me.upgrade().and_then(|s| s.here(&self.id)).map(|s| s.recorder.subscribe());
            if !self.catch_up(live.as_ref().map(|(newest, _)| *newest)).await {
                return;
            }
            if let Some((_, mut events)) = live {
                while let Some(event) = events.recv().await {
                    if !self.hand_on(event) {
                        return;
                    }
                }
                continue;
            }
            if home.holder().is_some() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = self.tx.closed() => return,
                }
            } else {
                tokio::select! {
                    () = &mut woken => {}
                    () = self.tx.closed() => return,
                }
            }
            if me.strong_count() == 0 {
                return;
            }
        }
    }

    /// Hands on what the journal holds beyond what is known, up to `until`.
    async fn catch_up(&mut self, until: Option<u64>) -> bool {
        let (journal, offset) = (self.journal.clone(), self.offset);
        let read = tokio::task::spawn_blocking(move || log::read(&journal, offset)).await;
        let Ok(Ok(replay)) = read else {
            tracing::warn!(journal = %self.journal.display(), "the journal can't be read");
            return !self.tx.is_closed();
        };
        self.offset = replay.offset;
        for event in replay.events {
            let beyond = until.is_some_and(|until| event.event_id.unwrap_or(0) > until);
            if !beyond && !self.hand_on(Arc::new(event)) {
                return false;
            }
        }
        true
    }

    fn hand_on(&mut self, event: Arc<Envelope>) -> bool {
        if let Some(id) = event.event_id {
            if id <= self.after {
                return !self.tx.is_closed();
            }
            self.after = id;
        }
        self.tx.send(event).is_ok()
    }
}
