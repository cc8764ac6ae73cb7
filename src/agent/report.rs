//! What comes out of a run.

use std::io;

use super::machine::Ending;
use crate::events::data::Totals;
use crate::ids::{Seq, TraceId};
use crate::llm::error::ProviderError;
use crate::tools::Ended;
use crate::trace::message::Message;
use crate::trace::{Trace, TraceStatus};

/// An item of the stream that a run is (B23).
#[derive(Clone, Debug)]
pub enum RunItem {
    /// The trace, at the start and at the end.
    Trace(Box<Trace>),
    /// A message as it was recorded.
    Message(Box<Message>),
}

/// How a run ended, with what is known of the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// How.
    pub ending: Ending,
    /// Why, in a sentence; none when it completed.
    pub why: Option<String>,
    /// The provider's failure, when that was it.
    pub provider: Option<ProviderError>,
}

impl Finish {
    /// The status of the trace that goes with it (B28).
    pub fn status(&self) -> TraceStatus {
        match self.ending {
            Ending::Completed => TraceStatus::Completed,
            Ending::TurnLimit | Ending::DoomLoop | Ending::EmptyAnswers | Ending::Provider => TraceStatus::Failed,
            Ending::HandedOver | Ending::Stopped | Ending::Budget | Ending::NeedsHuman => TraceStatus::Stopped,
        }
    }
}

/// A tool call and what came out of it, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Its number in the run.
    pub number: u32,
    /// The tool's canonical name.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// How it ended.
    pub ended: Ended,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// BLAKE3 of the output the model saw, in hexadecimal.
    pub output_hash: String,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Its trace.
    pub trace_id: TraceId,
    /// How it ended.
    pub finish: Finish,
    /// The last text the model said.
    pub text: Option<String>,
    /// Head of the main path.
    pub head: Seq,
    /// The tool calls of this run.
    pub calls: Vec<CallRecord>,
    /// What this run cost.
    pub totals: Totals,
}

/// Why a run could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something could not be read or written.
    #[error("{0}")]
    Storage(#[from] io::Error),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
}
