//! What a person is told when something did not work: what, why, and what to do.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which exit code a problem leads to when it ends a command (cli.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// Wrong usage or configuration: exit 2.
    Usage,
    /// A provider refused, can't be reached, or no key is set: exit 3.
    Provider,
    /// Storage and the like: exit 7.
    Internal,
}

/// A failure as a person reads it. `what` and `why` are lower case without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Which exit code it leads to.
    pub kind: ProblemKind,
    /// What failed, on what, and why.
    pub what: String,
    /// What the person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// Wrong usage or configuration.
    pub fn usage(what: impl Into<String>) -> Self {
        Self { kind: ProblemKind::Usage, what: what.into(), hint: None }
    }

    /// A provider's failure.
    pub fn provider(what: impl Into<String>) -> Self {
        Self { kind: ProblemKind::Provider, what: what.into(), hint: None }
    }

    /// Storage and the like.
    pub fn internal(what: impl Into<String>) -> Self {
        Self { kind: ProblemKind::Internal, what: what.into(), hint: None }
    }

    /// The same with the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error.to_string())
    }
}
