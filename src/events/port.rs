//! The one way in for every front end.

use async_trait::async_trait;

use super::bus::Subscription;
use super::command::{Ack, Command};
use super::problem::Problem;
use super::query::{Query, Reply};
use crate::ids::SessionId;

/// What the Supervisor offers to front ends, and all they know of it.
#[async_trait]
pub trait Port: Send + Sync {
    /// Carries out a command. Returns when it is accepted, not when its work is done.
    ///
    /// # Errors
    /// What could not be done, why, and what to do.
    async fn command(&self, command: Command) -> Result<Ack, Problem>;

    /// Answers a question.
    ///
    /// # Errors
    /// What could not be read, why, and what to do.
    async fn query(&self, query: Query) -> Result<Reply, Problem>;

    /// Follows a session: every journalled event after `after`, without gap or repeat, first from
    /// the journal, then live, deltas between them. Works for sessions of other processes too.
    ///
    /// # Errors
    /// There is no such session, or its journal can't be read.
    async fn follow(&self, session: &SessionId, after: u64) -> Result<Subscription, Problem>;

    /// Stops every running session and waits for them, at most a few seconds.
    async fn shutdown(&self);
}
