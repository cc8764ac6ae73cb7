//! What an agent's run leaves: a Trace, its tree of Messages and its plan of Goals, and how they
//! lie on disk. Holds all execution state; runs nothing and calls no model.

pub mod goal_tree;
pub mod message;
pub mod rewind;
pub mod store;
pub mod tree;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{GoalId, Seq, TraceId};
use crate::llm::chat::ToolSpec;
use crate::stdx::clock::serde_rfc3339;

/// Format version that every file of a trace carries.
pub const FORMAT: u32 = 1;

/// Whether a trace is one call or a loop (B8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One call of a model.
    Call,
    /// The agent loop.
    #[default]
    Agent,
}

/// Where a trace stands (B8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStatus {
    /// At work.
    #[default]
    Running,
    /// Ended with a text.
    Completed,
    /// Out of turns, in a loop, or the provider failed.
    Failed,
    /// Stopped by a person or by the end of its process.
    Stopped,
}

impl TraceStatus {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// A run of an agent, the content of `meta.json` (B8, B117).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Format version.
    #[serde(default)]
    pub format: u32,
    /// Its id and folder name.
    pub trace_id: TraceId,
    /// One call or a loop.
    pub mode: Mode,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// The prompt file it was made from.
    #[serde(default)]
    pub prompt_name: Option<String>,
    /// What it is to do.
    #[serde(default)]
    pub task: Option<String>,
    /// The preset it runs with.
    #[serde(default)]
    pub agent_type: Option<String>,
    /// The trace that called it.
    #[serde(default)]
    pub parent_trace_id: Option<TraceId>,
    /// Which goal of the parent called it.
    #[serde(default)]
    pub parent_goal_id: Option<GoalId>,
    /// The tool that called it: `agent`, `evaluate`, `ask_human`.
    #[serde(default)]
    pub spawn_tool: Option<String>,
    /// The message that called it.
    #[serde(default)]
    pub spawned_by_tool: Option<String>,
    /// Where it stands.
    #[serde(default)]
    pub status: TraceStatus,
    /// Messages stored, on all branches.
    #[serde(default)]
    pub total_messages: u64,
    /// Tokens sent and received.
    #[serde(default)]
    pub total_tokens: u64,
    /// Tokens sent.
    #[serde(default)]
    pub total_prompt_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub total_completion_tokens: u64,
    /// Money in US dollars, of the calls whose price is known.
    #[serde(default)]
    pub total_cost: f64,
    /// Time of calls and tools in milliseconds.
    #[serde(default)]
    pub total_duration_ms: u64,
    /// Newest sequence handed out; rises over all branches (B22).
    #[serde(default)]
    pub last_sequence: Seq,
    /// Head of the main path (B20).
    #[serde(default)]
    pub head_sequence: Seq,
    /// Newest event of this trace.
    #[serde(default)]
    pub last_event_id: u64,
    /// The person it runs for.
    #[serde(default)]
    pub uid: Option<String>,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The tools on offer.
    #[serde(default)]
    pub tools: Option<Vec<ToolSpec>>,
    /// Parameters of its calls.
    #[serde(default)]
    pub llm_params: serde_json::Map<String, Value>,
    /// Metadata, `collaborators` among it.
    #[serde(default)]
    pub context: serde_json::Map<String, Value>,
    /// The goal in focus.
    #[serde(default)]
    pub current_goal_id: Option<GoalId>,
    /// What came out.
    #[serde(default)]
    pub result_summary: Option<String>,
    /// What went wrong.
    #[serde(default)]
    pub error_message: Option<String>,
    /// When it was created.
    #[serde(with = "serde_rfc3339")]
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, with = "serde_rfc3339::option")]
    pub completed_at: Option<Timestamp>,
}

impl Trace {
    /// A new trace in agent mode.
    pub fn new(trace_id: TraceId, created_at: Timestamp) -> Self {
        Self {
            format: FORMAT,
            trace_id,
            mode: Mode::Agent,
            name: None,
            prompt_name: None,
            task: None,
            agent_type: None,
            parent_trace_id: None,
            parent_goal_id: None,
            spawn_tool: None,
            spawned_by_tool: None,
            status: TraceStatus::Running,
            total_messages: 0,
            total_tokens: 0,
            total_prompt_tokens: 0,
            total_completion_tokens: 0,
            total_cost: 0.0,
            total_duration_ms: 0,
            last_sequence: 0,
            head_sequence: 0,
            last_event_id: 0,
            uid: None,
            model: None,
            tools: None,
            llm_params: serde_json::Map::new(),
            context: serde_json::Map::new(),
            current_goal_id: None,
            result_summary: None,
            error_message: None,
            created_at,
            completed_at: None,
        }
    }
}
