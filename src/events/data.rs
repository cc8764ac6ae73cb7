//! The nouns that events, commands and queries are made of.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{GoalId, Seq, SnapshotId, TraceId};
use crate::stdx::clock::serde_rfc3339;

/// What the Checker says of a cycle (A12, A19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Completely done, verified, ready to deliver.
    Passed,
    /// The core is done; quality or completeness can be better.
    NeedsImprovement,
    /// Not completed, major errors, or claims that don't match reality.
    Failed,
}

impl Verdict {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NeedsImprovement => "needs_improvement",
            Self::Failed => "failed",
        }
    }
}

/// Where a session stands (A3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// At work.
    Running,
    /// Passed verification.
    Completed,
    /// The cycles are used up.
    Failed,
    /// Stopped by a person, a limit, or the end of its process.
    Stopped,
    /// Ended by an exception.
    Error,
}

impl SessionStatus {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Error => "error",
        }
    }
}

/// Why a stretch of running ended (the table in cli.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The verdict is passed.
    Passed,
    /// The cycles are used up.
    NotPassed,
    /// The provider refused, can't be reached, or there is no key.
    ProviderError,
    /// A budget or the time is used up.
    Budget,
    /// The Checker could not check.
    Unverified,
    /// A question or permission that nobody could answer.
    NeedsHuman,
    /// Storage and the like.
    InternalError,
    /// A person stopped it.
    Stopped,
    /// A person accepted the result as it is.
    Accepted,
    /// The process is gone.
    Interrupted,
}

impl Outcome {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NotPassed => "not_passed",
            Self::ProviderError => "provider_error",
            Self::Budget => "budget",
            Self::Unverified => "unverified",
            Self::NeedsHuman => "needs_human",
            Self::InternalError => "internal_error",
            Self::Stopped => "stopped",
            Self::Accepted => "accepted",
            Self::Interrupted => "interrupted",
        }
    }

    /// The status that goes with it.
    pub fn status(self) -> SessionStatus {
        match self {
            Self::Passed => SessionStatus::Completed,
            Self::NotPassed => SessionStatus::Failed,
            Self::ProviderError | Self::Unverified | Self::InternalError => SessionStatus::Error,
            Self::Budget | Self::NeedsHuman | Self::Stopped | Self::Accepted | Self::Interrupted => {
                SessionStatus::Stopped
            }
        }
    }

    /// The exit code of a headless command that ends this way. `Stopped` by a signal is 130 for
    /// SIGINT; the caller knows SIGTERM and answers 143 itself.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Passed | Self::Accepted => 0,
            Self::NotPassed => 1,
            Self::ProviderError => 3,
            Self::Budget => 4,
            Self::Unverified => 5,
            Self::NeedsHuman => 6,
            Self::InternalError => 7,
            Self::Stopped | Self::Interrupted => 130,
        }
    }
}

/// What tools may do unasked (A10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PermissionMode {
    /// No questions; the file boundary still holds.
    #[default]
    #[serde(rename = "bypassPermissions")]
    BypassPermissions,
    /// Edits go ahead; commands are asked for.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Everything that changes something is asked for.
    #[serde(rename = "ask")]
    Ask,
    /// Reading only.
    #[serde(rename = "plan")]
    Plan,
}

/// Which kind of agent a trace belongs to within a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Does the task.
    Worker,
    /// Verifies what the Worker handed in.
    Checker,
}

impl Role {
    /// `worker` or `checker`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Checker => "checker",
        }
    }
}

/// The kind of place a session works in (cli.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// `files/` in the session's home.
    Scratch,
    /// A folder that the person named.
    InPlace,
    /// A git worktree on a branch of its own.
    Worktree,
}

/// Where a session works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Its kind.
    pub kind: PlaceKind,
    /// The Worker's working directory, absolute.
    pub dir: PathBuf,
    /// The repository a worktree belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
    /// The worktree's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch the worktree came from, and into which `apply` merges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The commit the worktree started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
}

/// Limits of spending; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Tokens, prompt and completion together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money in US dollars; counts only calls whose price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Time of running in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// What was used up so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Calls of a model.
    pub calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens sent, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens received, reasoning included.
    pub completion_tokens: u64,
    /// Of the tokens sent, those read from the provider's cache.
    pub cached_tokens: u64,
    /// Money in US dollars, of the calls whose price is known.
    pub cost_usd: f64,
    /// Calls whose price is not known.
    pub unpriced_calls: u64,
    /// Time of running in milliseconds.
    pub duration_ms: u64,
}

impl Totals {
    /// Adds another account to this one.
    pub fn add(&mut self, other: &Totals) {
        self.calls += other.calls;
        self.tool_calls += other.tool_calls;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.cached_tokens += other.cached_tokens;
        self.cost_usd += other.cost_usd;
        self.unpriced_calls += other.unpriced_calls;
        self.duration_ms += other.duration_ms;
    }

    /// Tokens sent and received.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

/// Status of a goal (B11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Abandoned,
}

impl GoalStatus {
    /// The word of the wire format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
        }
    }

    /// Whether work on it may still go on.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// Who works on a goal (B11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalType {
    /// The agent itself.
    #[default]
    Normal,
    /// A sub-agent.
    AgentCall,
}

/// How a sub-agent is called for a goal (B11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentCallMode {
    /// Several read-only branches at once.
    Explore,
    /// One branch that does the work.
    Delegate,
    /// One branch that judges.
    Evaluate,
}

/// What was spent on a goal (B11).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GoalStats {
    /// Messages of the goal.
    pub message_count: u64,
    /// Tokens of its calls, prompt and completion.
    pub total_tokens: u64,
    /// Money of its calls in US dollars.
    pub total_cost: f64,
    /// Time of its calls and tools in milliseconds.
    pub duration_ms: u64,
    /// The tool calls in short.
    pub preview: String,
}

/// One goal of a plan (B11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Internal id, stable and never reused.
    pub id: GoalId,
    /// What is to be reached.
    pub description: String,
    /// Why it was created.
    #[serde(default)]
    pub reason: String,
    /// The goal it is part of.
    #[serde(default)]
    pub parent_id: Option<GoalId>,
    /// Who works on it.
    #[serde(default, rename = "type")]
    pub kind: GoalType,
    /// Where it stands.
    #[serde(default)]
    pub status: GoalStatus,
    /// Set on completion or abandonment.
    #[serde(default)]
    pub summary: Option<String>,
    /// Sub-traces, for `agent_call`.
    #[serde(default)]
    pub sub_trace_ids: Option<Vec<TraceId>>,
    /// How the sub-agent was called.
    #[serde(default)]
    pub agent_call_mode: Option<AgentCallMode>,
    /// Per sub-trace its last message, summary and statistics.
    #[serde(default)]
    pub sub_trace_metadata: Option<Value>,
    /// Own messages.
    #[serde(default)]
    pub self_stats: GoalStats,
    /// Own messages and those of its descendants.
    #[serde(default)]
    pub cumulative_stats: GoalStats,
    /// When it was created.
    #[serde(with = "serde_rfc3339")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

/// The plan as it is stored and shown: goals in sibling order, and the focus (B12).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Plan {
    /// What the whole trace is for.
    pub mission: String,
    /// All goals; order among siblings is their order here.
    pub goals: Vec<Goal>,
    /// The goal in focus.
    pub current_id: Option<GoalId>,
    /// The highest id ever handed out (B12).
    pub last_goal_id: u64,
}

impl Plan {
    /// The goal with this id.
    pub fn get(&self, id: &GoalId) -> Option<&Goal> {
        self.goals.iter().find(|g| &g.id == id)
    }

    /// Goals in the order a person reads them, each with its display number (B47): siblings in
    /// stored order, counted from 1 without abandoned ones. An abandoned goal and what is below
    /// it have no number.
    pub fn numbered(&self) -> Vec<NumberedGoal<'_>> {
        let mut out = Vec::with_capacity(self.goals.len());
        self.walk(None, Some(""), 0, &mut out);
        out
    }

    fn walk<'a>(
        &'a self,
        parent: Option<&GoalId>,
        prefix: Option<&str>,
        depth: usize,
        out: &mut Vec<NumberedGoal<'a>>,
    ) {
        // A hand-edited file may hold a cycle; nothing deeper than there are goals can be real.
        if depth > self.goals.len() {
            return;
        }
        let mut count = 0;
        for goal in self.goals.iter().filter(|g| g.parent_id.as_ref() == parent) {
            let number = prefix.filter(|_| goal.status != GoalStatus::Abandoned).map(|prefix| {
                count += 1;
                if prefix.is_empty() { count.to_string() } else { format!("{prefix}.{count}") }
            });
            out.push(NumberedGoal { number: number.clone(), depth, goal });
            self.walk(Some(&goal.id), number.as_deref(), depth + 1, out);
        }
    }
}

/// A goal with the number a person and the model see.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedGoal<'a> {
    /// `1`, `1.1`, …; none for abandoned goals and what is below them.
    pub number: Option<String>,
    /// 0 for top-level goals.
    pub depth: usize,
    /// The goal.
    pub goal: &'a Goal,
}

/// How a file differs from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Its content or mode differs.
    Modified,
    /// It is gone.
    Deleted,
    /// It is as it was.
    Unchanged,
}

/// A file that a step, a cycle or a rewind changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Path below the working directory, with `/`.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// Lines added; absent where they are not counted (binary or large files).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines removed; absent where they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

/// A file the Worker claims to have delivered, as the harness found it (A22).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// As claimed, below the working directory.
    pub path: String,
    /// Whether it is there.
    pub exists: bool,
    /// Bytes; 0 when it is not there.
    pub size: u64,
    /// SHA-256 in hexadecimal; empty when it is not there or is a folder.
    pub sha256: String,
    /// How it differs from the start of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
}

/// The Worker's structured hand-over, the content of `__output.json` (A8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deliverable {
    /// One short line: what was achieved.
    pub summary: String,
    /// Detailed text answer, findings or explanation.
    #[serde(default)]
    pub text_content: String,
    /// Paths of the files created.
    #[serde(default)]
    pub files: Vec<String>,
    /// How to start or use the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_to_user: Option<String>,
    /// Keys the schema does not name, kept (A8).
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

/// Whether a Worker run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStatus {
    /// It handed in a valid `__output.json` and ended by itself.
    Ok,
    /// Something is missing or it ran out of turns.
    Error,
}

/// What a Worker run left (A22).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Whether it came to its end.
    pub status: WorkerStatus,
    /// From `__output.json`, else the last assistant text shortened.
    pub summary: String,
    /// The parsed `__output.json`; an empty object when there is none.
    pub output: Value,
    /// The claimed files as found.
    pub artifacts: Vec<Artifact>,
    /// What went wrong.
    pub error: Option<String>,
    /// All files that differ from the start of the cycle, mentioned or not.
    #[serde(default)]
    pub changed: Vec<FileChange>,
}

/// One thing a verdict says was verified, tied to the tool calls behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The item without its citation marks.
    pub text: String,
    /// The calls it cites, as the harness resolved them; empty: a claim.
    pub calls: Vec<CitedCall>,
}

/// A tool call that an item of `verified` cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CitedCall {
    /// Its number in the Checker's run.
    pub number: u32,
    /// The tool.
    pub tool: String,
    /// The arguments in short.
    pub arguments: String,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Whether the call ran to its end (any exit code).
    pub ok: bool,
    /// BLAKE3 of the output, in hexadecimal.
    pub output_hash: String,
}

/// Who rendered a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictBy {
    /// The Checker's model.
    Checker,
    /// The gates alone, at no model cost.
    Gates,
    /// The harness, overruling an unsupported pass.
    Harness,
}

/// The Checker's result (A18), with what the harness adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckerResult {
    /// The verdict; null when the cycle could not be verified.
    pub verdict: Option<Verdict>,
    /// Brief explanation.
    pub reason: String,
    /// What to fix or improve; empty when passed.
    pub feedback: String,
    /// What was really verified with tools, as the Checker says it.
    pub verified: Vec<String>,
    /// The same items, tied to tool calls.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Who rendered it.
    pub by: VerdictBy,
    /// The snapshot that was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotId>,
}

/// A gate's outcome: something the harness decides by itself (architecture.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// What was looked at: `output`, `claimed_files`, `expected_files`, `protected`, `check`, `change`.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// What was found, in a sentence.
    pub detail: String,
}

/// A tool call in short, inside a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRef {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's canonical name.
    pub tool: String,
}

/// A person's message to a running session and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserMessageState {
    /// Waits for the Worker's next step.
    Queued,
    /// Waits for the next cycle.
    NextCycle,
    /// Its text was changed while it waited.
    Edited,
    /// The Worker has it.
    Delivered,
}

/// What a person answers to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum Permission {
    /// This once.
    AllowOnce,
    /// This tool, for the rest of the session.
    AllowSession,
    /// No, and why.
    Refuse {
        /// What the model is told.
        reason: String,
    },
}

/// The task and its acceptance conditions, fixed when the session starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Contract {
    /// What is to be done.
    pub objective: String,
    /// What the result must be (A28); null when not given.
    pub expected_output: Option<Value>,
    /// Inputs of the task (A28).
    pub inputs: serde_json::Map<String, Value>,
    /// Acceptance commands, run by the harness on the copy.
    pub checks: Vec<String>,
    /// Paths that must stay as they are.
    pub protected: Vec<String>,
}

/// One message of a trace in short, as the rewind timeline shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageHead {
    /// Its number.
    pub sequence: Seq,
    /// The message before it in the tree.
    pub parent_sequence: Option<Seq>,
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The goal in focus then.
    pub goal_id: Option<GoalId>,
    /// The extracted summary (B34).
    pub description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(id: &str, parent: Option<&str>, status: GoalStatus) -> Goal {
        Goal {
            id: id.into(),
            description: format!("goal {id}"),
            reason: String::new(),
            parent_id: parent.map(GoalId::from),
            kind: GoalType::Normal,
            status,
            summary: None,
            sub_trace_ids: None,
            agent_call_mode: None,
            sub_trace_metadata: None,
            self_stats: GoalStats::default(),
            cumulative_stats: GoalStats::default(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn display_numbers_leave_out_abandoned_goals_and_what_is_below_them() {
        use GoalStatus::{Abandoned, Completed, Pending};
        let plan = Plan {
            goals: vec![
                goal("1", None, Completed),
                goal("2", None, Abandoned),
                goal("3", Some("2"), Pending),
                goal("4", None, Pending),
                goal("6", Some("4"), Pending),
                goal("5", Some("4"), Pending),
            ],
            ..Plan::default()
        };
        let numbers: Vec<_> = plan.numbered().into_iter().map(|n| (n.goal.id.to_string(), n.number, n.depth)).collect();
        let expected = [
            ("1", Some("1"), 0),
            ("2", None, 0),
            ("3", None, 1),
            ("4", Some("2"), 0),
            ("6", Some("2.1"), 1),
            ("5", Some("2.2"), 1),
        ];
        assert_eq!(numbers, expected.map(|(id, n, d)| (id.to_owned(), n.map(str::to_owned), d)));
    }
}
