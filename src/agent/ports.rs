//! What a run needs of those around it: recording files, asking a person, hearing their messages,
//! counting what is spent. The session implements these.

use async_trait::async_trait;

use super::config::Model;
use crate::events::data::{Permission, Role};
use crate::events::problem::Problem;
use crate::events::query::ModelChoice;
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
    /// Whether the person allowed this tool for the rest of the session.
    fn is_allowed(&self, tool: &str) -> bool;

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

/// Knows what was spent, from the `usage` events.
pub trait Meter: Send + Sync {
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

/// Finds models by name, and the one to use when none is named (cli.md, "Models").
#[async_trait]
pub trait Models: Send + Sync {
    /// The model of a `PROVIDER/MODEL` reference; at another address than its provider's when a
    /// profile names an `endpoint` (A27).
    ///
    /// # Errors
    /// There is no such provider, or its key is missing; says what to set.
    async fn resolve(&self, reference: &str, endpoint: Option<&str>) -> Result<Model, Problem>;

    /// The model to use when none is named, and why.
    ///
    /// # Errors
    /// There is none; says how to get one.
    async fn default_choice(&self) -> Result<ModelChoice, Problem>;
}
