//! The one agent loop: drives a Trace by calling a model and its tools until it is done, stopped
//! or out of turns. What differs between agents is their [`config::RunConfig`]. Knows no session,
//! no verdict and no screen; what it needs of them comes through [`ports`].

pub mod config;
pub mod doom_loop;
mod execute;
mod heal;
pub mod machine;
mod plan_keeper;
pub mod ports;
pub mod preset;
mod report;
pub mod runner;
mod scribe;
mod streaming;
pub mod structured;

pub use report::{CallRecord, Finish, RunError, RunItem, RunReport};

pub use crate::llm::chat::{ChatMessage, ChatRole};
pub use crate::tools::registry::Registry as ToolRegistry;
pub use crate::tools::{Ended, Shell};
