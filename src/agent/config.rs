//! What one run is made from (B16, B17).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::machine::LastTurn;
use super::preset::AgentPreset;
use crate::events::data::{PermissionMode, Role};
use crate::ids::{GoalId, Seq, TraceId};
use crate::llm::Provider;
use crate::llm::chat::Usage;
use crate::tools::Shell;

/// What a call costs in US dollars; none when the price is not known.
pub type Price = Arc<dyn Fn(&Usage) -> Option<f64> + Send + Sync>;

/// A model to call, with everything known of it.
#[derive(Clone)]
pub struct Model {
    /// Who is asked.
    pub provider: Arc<dyn Provider>,
    /// The model's name without the provider.
    pub name: String,
    /// `PROVIDER/MODEL`.
    pub reference: String,
    /// What a call costs in US dollars; none when the price is not known.
    pub price: Price,
    /// Tries of one call in all (B106).
    pub attempts: u32,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("reference", &self.reference).finish_non_exhaustive()
    }
}

/// Limits and places of tools.
#[derive(Clone)]
pub struct ToolSettings {
    /// The working directory, canonical.
    pub cwd: PathBuf,
    /// A private temporary folder.
    pub temp: PathBuf,
    /// Git looks for repositories no higher.
    pub git_ceiling: Option<PathBuf>,
    /// What runs commands; one per run, so that what they leave running ends with it.
    pub shell: Arc<Shell>,
    /// Longest result the model gets, in characters.
    pub output_chars: usize,
    /// How long a command may take by default.
    pub command_timeout: Duration,
}

/// One run (B16), with what this product adds.
#[derive(Clone)]
pub struct RunConfig {
    /// The model.
    pub model: Model,
    /// Sampling temperature; absent: the preset's, else the provider's.
    pub temperature: Option<f64>,
    /// Turns; absent: the preset's, else 200.
    pub max_iterations: Option<u32>,
    /// Tools on offer; absent: all registered.
    pub tools: Option<Vec<String>>,
    /// Tools taken away whatever else allows them.
    pub tools_block: Vec<String>,
    /// Name of the preset.
    pub agent_type: String,
    /// The preset.
    pub preset: AgentPreset,
    /// The person it runs for.
    pub uid: Option<String>,
    /// The standing instruction of a new trace.
    pub system_prompt: String,
    /// The prompt file's name.
    pub prompt_name: Option<String>,
    /// Whether tool calls are carried out here.
    pub auto_execute_tools: bool,
    /// The trace's name; absent: the first line of its task.
    pub name: Option<String>,
    /// What the plan is for; absent: the first message.
    pub mission: Option<String>,
    /// The trace to go on with, or the id of a new one.
    pub trace: TraceChoice,
    /// The trace that called this one.
    pub parent_trace_id: Option<TraceId>,
    /// The goal that called this one.
    pub parent_goal_id: Option<GoalId>,
    /// Whose run it is.
    pub role: Role,
    /// The session's cycle.
    pub cycle: u32,
    /// What tools may do unasked.
    pub permission: PermissionMode,
    /// What the last turn is for.
    pub last_turn: LastTurn,
    /// Whether each tool result ends in its number, for citations.
    pub number_results: bool,
    /// Number of the first call of this run.
    pub first_call: u32,
    /// Limits and places of tools.
    pub settings: ToolSettings,
}

/// Which trace a run belongs to (B24).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceChoice {
    /// A new one of this id.
    New(TraceId),
    /// An existing one; `after` below its head rewinds, with no messages regenerates.
    Existing {
        /// Its id.
        id: TraceId,
        /// The message to go on after; absent: the head.
        after: Option<Seq>,
    },
}

impl TraceChoice {
    /// The trace's id.
    pub fn id(&self) -> &TraceId {
        match self {
            Self::New(id) | Self::Existing { id, .. } => id,
        }
    }
}
