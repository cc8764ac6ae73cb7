//! What a run needs of those around it: recording files, asking a person, hearing their messages,
//! counting what is spent. The session implements these.

use async_trait::async_trait;

use crate::events::data::{Permission, Role, Totals};
use crate::ids::Seq;

/// Around each step that can change files (architecture.md, "Rewind").
#[async_trait]
pub trait StepHook: Send + Sync {
    /// Before a tool that can change files runs. Returns when the files as they were are safe.
    async fn before_change(&self);

    /// After such a tool's result was stored as message `sequence`. `files` are the only ones it
    /// changed; none means it may have changed anything.
    async fn after_change(&self, sequence: Seq, files: Option<Vec<String>>);
}

/// A hook that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHook;

#[async_trait]
impl StepHook for NoHook {
    async fn before_change(&self) {}
    async fn after_change(&self, _sequence: Seq, _files: Option<Vec<String>>) {}
}

/// A tool call that needs consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionQuestion {
    /// The tool call's id.
    pub request_id: String,
    /// By whom.
    pub role: Role,
    /// The tool.
    pub tool: String,
    /// Its arguments as the model wrote them.
    pub arguments: String,
}

/// Who can be asked for consent.
#[async_trait]
pub trait Permissions: Send + Sync {
    /// Waits for the person's decision; none: nobody is there to decide.
    async fn ask(&self, question: PermissionQuestion) -> Option<Permission>;
}

/// A person's message on its way to the Worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Names it.
    pub message_id: String,
    /// Its text.
    pub text: String,
}

/// Messages that wait to be delivered at the next step.
pub trait Inbox: Send + Sync {
    /// Whether any waits.
    fn is_empty(&self) -> bool;

    /// Takes them all; they count as delivered.
    fn take(&self) -> Vec<Waiting>;
}

/// Counts what is spent.
pub trait Meter: Send + Sync {
    /// Adds the cost of one call or tool.
    fn charge(&self, role: Role, spent: &Totals);

    /// Why nothing more may be spent, if so.
    fn exhausted(&self, role: Role) -> Option<String>;
}

/// All of them for one run.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// Around steps that change files.
    pub hook: &'a dyn StepHook,
    /// Who can be asked.
    pub permissions: &'a dyn Permissions,
    /// Messages that wait.
    pub inbox: &'a dyn Inbox,
    /// What is spent.
    pub meter: &'a dyn Meter,
}
