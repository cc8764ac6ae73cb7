//! Names of things: sessions, traces, messages, goals. Each is its own type, so none can be
//! passed for another. Does not make ids; `stdx::random` does, from a source that is passed in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The characters of a session id: digits and letters without `0 1 i l o`, which look alike.
pub const SESSION_ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// Length of a session id in characters.
pub const SESSION_ID_LEN: usize = 8;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub std::sync::Arc<str>);

        impl $name {
            /// Wraps a name as it is.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(name.as_ref().into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }
    };
}

id! {
    /// A session: eight characters of [`SESSION_ALPHABET`].
    SessionId
}
id! {
    /// A trace: the folder name below `.trace/`.
    TraceId
}
id! {
    /// A goal: `"1"`, `"2"`, …; stable, never handed out twice in a trace (B47).
    GoalId
}
id! {
    /// A snapshot of working files.
    SnapshotId
}

impl SessionId {
    /// Whether this could be a session id at all; keeps odd names from becoming paths.
    pub fn is_well_formed(&self) -> bool {
        self.0.len() == SESSION_ID_LEN && self.0.bytes().all(|b| SESSION_ALPHABET.contains(&b))
    }
}

/// A message's number within its trace: rises over all branches, never reused (B22).
pub type Seq = u64;

/// The name of a message: `{trace_id}-{sequence}`, the sequence padded to four digits (B9).
pub fn message_id(trace: &TraceId, sequence: Seq) -> String {
    format!("{trace}-{sequence:04}")
}
