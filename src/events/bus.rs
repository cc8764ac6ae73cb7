//! Spreads what was journalled to those who watch. Unbounded towards each watcher: the work never
//! waits for a screen (E7); a watcher drains all that waits before it draws.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::event::Envelope;

/// What a watcher holds: events in order.
#[derive(Debug)]
pub struct Subscription {
    /// Events in the order of the journal, deltas between them.
    pub events: mpsc::UnboundedReceiver<Arc<Envelope>>,
}

/// One session's watchers.
#[derive(Debug, Default)]
pub struct Bus {
    watchers: Mutex<Vec<mpsc::UnboundedSender<Arc<Envelope>>>>,
}

impl Bus {
    /// A new watcher, from the next event on.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Arc<Envelope>> {
        let (tx, rx) = mpsc::unbounded_channel();
        self.lock().push(tx);
        rx
    }

    /// Whether anyone watches; deltas need not even be made otherwise.
    pub fn is_watched(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Hands an event to everyone. A watcher that left is forgotten.
    pub fn publish(&self, event: &Arc<Envelope>) {
        self.lock().retain(|tx| tx.send(event.clone()).is_ok());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<mpsc::UnboundedSender<Arc<Envelope>>>> {
        // A std mutex: held for a send on an unbounded channel, never across an await.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
