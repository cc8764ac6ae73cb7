//! What an agent can do to the outside: each tool a type with a descriptor and `call`. A tool's
//! failure is an outcome the model can act on, never an error of the run (B77). Tools never name
//! the agent; what they need of it they get through the ports in [`ToolCx`].

pub mod bound;
pub mod builtin;
pub mod paths;
pub mod preview;
pub mod registry;
pub mod schema;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::events::data::FileChange;
use crate::llm::chat::ToolSpec;
pub use crate::sandbox::exec::Shell;

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// Reads files.
    Read,
    /// Changes files.
    Write,
    /// Runs commands.
    Execute,
    /// Uses the network.
    Network,
    /// Changes only the agent's own state (plan, skills).
    Control,
}

/// What is known of a tool without running it.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// Canonical name and description and argument schema, as sent to the model.
    pub spec: ToolSpec,
    /// Other names it answers to (B1), compared without case.
    pub aliases: &'static [&'static str],
    /// What it does to the world.
    pub need: Need,
}

/// What a tool works with. Made by the runner for each call.
#[derive(Clone)]
pub struct ToolCx {
    /// The working directory, canonical. Every path of the tool stays below it (A11).
    pub cwd: PathBuf,
    /// A private temporary folder for commands (`TMPDIR`).
    pub temp: PathBuf,
    /// Where full outputs lie: `<trace>/outputs/<tool_call_id>`.
    pub outputs: PathBuf,
    /// This call's id.
    pub call_id: String,
    /// Fires when the run is stopped.
    pub cancel: CancellationToken,
    /// Longest result the model gets, in characters (B78).
    pub output_chars: usize,
    /// How long a command may take when it does not say so itself.
    pub command_timeout: Duration,
    /// Git looks for repositories no higher than this (`GIT_CEILING_DIRECTORIES`).
    pub git_ceiling: Option<PathBuf>,
    /// What runs commands; one per trace, so that what they leave running ends with it.
    pub shell: Arc<Shell>,
    /// The plan, for the `goal` tool.
    pub goals: Arc<dyn Goals>,
}

/// The port through which the `goal` tool changes the plan; the runner implements it.
pub trait Goals: Send + Sync {
    /// Carries out one call of the `goal` tool. Returns the refreshed plan as text.
    ///
    /// # Errors
    /// What was wrong, for the model, naming the numbers that exist.
    fn apply(&self, change: GoalChange) -> Result<String, String>;
}

/// Arguments of the `goal` tool (B46).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoalChange {
    /// Goals to add: one description or several.
    pub add: Option<OneOrMany>,
    /// Why they are added.
    pub reason: Option<String>,
    /// Display number of the goal they become children of (only with `add`).
    pub under: Option<String>,
    /// Display number of the goal they come after, on its level (only with `add`).
    pub after: Option<String>,
    /// Display number of the goal to work on next.
    pub focus: Option<String>,
    /// Completes the current goal; the text is its summary.
    pub done: Option<String>,
    /// Gives up the current goal; the text is the reason.
    pub abandon: Option<String>,
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// How a call ended, apart from what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran to its end; for a command, with any exit code.
    Ran,
    /// It could not run: wrong arguments, no such file, no such tool.
    Failed,
    /// It was not allowed.
    Refused,
    /// It took too long and was killed.
    TimedOut,
    /// The run was stopped while it ran.
    Stopped,
}

/// What came out of a call (B18).
#[derive(Clone, Debug)]
pub struct ToolOutcome {
    /// How it ended.
    pub ended: Ended,
    /// One line for a person.
    pub title: String,
    /// What the model is told; already within the limit when the tool says so.
    pub output: String,
    /// Images for the model, as `data:` URLs.
    pub images: Vec<String>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Files the tool itself changed.
    pub files: Vec<FileChange>,
    /// What remains of a large output after it was seen once (B73).
    pub long_term_memory: Option<String>,
    /// Whether the output is sent to the model only once (B73).
    pub include_output_only_once: bool,
}

impl ToolOutcome {
    /// It ran.
    pub fn ran(title: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            ended: Ended::Ran,
            title: title.into(),
            output: output.into(),
            images: Vec::new(),
            exit_code: None,
            files: Vec::new(),
            long_term_memory: None,
            include_output_only_once: false,
        }
    }

    /// It could not run; `why` tells the model what to do instead.
    pub fn failed(why: impl Into<String>) -> Self {
        let why = why.into();
        Self { ended: Ended::Failed, ..Self::ran(crate::stdx::bounded::first_line(&why, 80), why) }
    }

    /// It was not allowed; `why` tells the model what is.
    pub fn refused(why: impl Into<String>) -> Self {
        Self { ended: Ended::Refused, ..Self::failed(why) }
    }

    /// The run was stopped before or while it ran.
    pub fn stopped(title: impl Into<String>) -> Self {
        Self { ended: Ended::Stopped, ..Self::ran(title, "stopped: the run was stopped before this ended") }
    }
}

/// Something an agent can do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What is known of it without running it.
    fn descriptor(&self) -> &Descriptor;

    /// One line that says what this call is about to do (`edit src/parser.rs`), for any arguments.
    fn title(&self, arguments: &Value) -> String;

    /// Runs it. Wrong arguments are a [`ToolOutcome::failed`] that names the field.
    ///
    /// # Cancellation
    /// Returns soon after `cx.cancel` fires, with everything it started gone.
    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome;
}
