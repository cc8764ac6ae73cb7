//! What front ends ask for. Each command gets one [`Ack`] or a [`super::problem::Problem`].

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::data::{Budget, Contract, Permission, PermissionMode};
use super::event::PerRole;
use crate::ids::{Seq, SessionId, TraceId};

/// Where a session is to work, as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    /// A worktree in a clean repository, a scratch folder outside any; in a repository with
    /// uncommitted changes the person must choose.
    #[default]
    Auto,
    /// `files/` in the session's home.
    Scratch,
    /// The folder itself.
    InPlace,
    /// A git worktree of the repository.
    Worktree,
}

/// Everything a new session is made from. Absent values come from the profile, then from the
/// configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LaunchSpec {
    /// Task and acceptance conditions.
    pub contract: Contract,
    /// The session's name; absent: from the objective's first line.
    pub name: Option<String>,
    /// The folder it is launched from, and the one worked on in place or by worktree.
    pub dir: PathBuf,
    /// Where to work.
    pub place: Option<Where>,
    /// Profiles of `workers.yaml`.
    pub profiles: PerRole<Option<String>>,
    /// `PROVIDER/MODEL`.
    pub models: PerRole<Option<String>>,
    /// Cycles allowed, at least 1.
    pub max_cycles: Option<u32>,
    /// Turns allowed in one Worker run.
    pub max_turns: Option<u32>,
    /// Limits.
    pub budget: Budget,
    /// What tools may do unasked.
    pub permission_mode: Option<PermissionMode>,
    /// Nobody can be asked: a question ends the stretch with `needs_human`.
    pub headless: bool,
}

/// What a continued session may change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overrides {
    /// Cycles allowed.
    pub max_cycles: Option<u32>,
    /// Limits; only those given change.
    pub budget: Budget,
    /// `PROVIDER/MODEL`.
    pub models: PerRole<Option<String>>,
    /// Acceptance commands added.
    pub checks: Vec<String>,
    /// Nobody can be asked.
    pub headless: bool,
}

/// When a message reaches a running Worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// At its next step.
    NextStep,
    /// As part of the next cycle's input.
    NextCycle,
}

/// What a front end asks the Supervisor to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Starts a session.
    Launch(Box<LaunchSpec>),
    /// Goes on with one that is not running.
    Resume {
        /// Which.
        session: SessionId,
        /// What the person says.
        message: Option<String>,
        /// What changes.
        overrides: Box<Overrides>,
    },
    /// Stops a running one (B40).
    Stop {
        /// Which.
        session: SessionId,
    },
    /// Says something to a running Worker.
    Message {
        /// Which.
        session: SessionId,
        /// What.
        text: String,
        /// When it arrives.
        deliver: Deliver,
    },
    /// Changes a message that waits.
    EditMessage {
        /// Which session.
        session: SessionId,
        /// Which message.
        message_id: String,
        /// The new text; empty withdraws it.
        text: String,
    },
    /// Goes back to a message (E11).
    Rewind {
        /// Which session.
        session: SessionId,
        /// Which trace; absent: the newest cycle's Worker.
        trace: Option<TraceId>,
        /// The message to go back to.
        to: Seq,
        /// Whether files go back too.
        restore_files: bool,
        /// Whether files that the person changed since go back too.
        overwrite_changed: bool,
        /// What to do differently.
        message: Option<String>,
        /// Whether the session runs on at once; with `false` it is left stopped.
        run: bool,
        /// Nobody can be asked.
        headless: bool,
    },
    /// Brings a deliverable home.
    Apply {
        /// Which session.
        session: SessionId,
        /// Which cycle; absent: the newest with a deliverable.
        cycle: Option<u32>,
        /// Where to; absent: where the session was launched.
        to: Option<PathBuf>,
        /// Also when the cycle is not verified.
        force: bool,
    },
    /// Ends a session as accepted by the person.
    Accept {
        /// Which.
        session: SessionId,
    },
    /// Changes contract and limits, from the next cycle on.
    SetContract {
        /// Which session.
        session: SessionId,
        /// The new contract.
        contract: Box<Contract>,
        /// Cycles allowed.
        max_cycles: u32,
        /// Limits.
        budget: Budget,
    },
    /// Answers a permission request.
    Permit {
        /// Which session.
        session: SessionId,
        /// Which request.
        request_id: String,
        /// The decision.
        answer: Permission,
    },
    /// Answers a question of an agent.
    Answer {
        /// Which session.
        session: SessionId,
        /// Which question.
        question_id: String,
        /// The answer.
        answer: String,
    },
    /// Deletes a session that is not running.
    Remove {
        /// Which.
        session: SessionId,
    },
    /// Writes everything of a session into one archive.
    Export {
        /// Which.
        session: SessionId,
        /// The file; absent: `session-ID.tar.gz` in the current folder.
        file: Option<PathBuf>,
    },
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ack", rename_all = "snake_case")]
pub enum Ack {
    /// It is done, or on its way.
    Done,
    /// The session that was started.
    Launched {
        /// Its id.
        session: SessionId,
    },
    /// It is done; this is worth saying.
    Said {
        /// What.
        text: String,
    },
    /// Something was written.
    Wrote {
        /// Where.
        path: PathBuf,
    },
}

/// Anything sent to the owner of a session by another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// The command.
    pub command: Command,
}

/// What the owner answers.
pub type WireAnswer = Result<Ack, super::problem::Problem>;

/// JSON as it is typed for `--input`.
pub type Inputs = serde_json::Map<String, Value>;
