//! One binary for all integration tests. What the modules share lies in `support`.

// Tests start the program, cargo and git themselves; the rule is for `src/`.
#![allow(clippy::disallowed_methods)]

mod agent_cases;
mod architecture;
mod cli;
mod crash;
mod docs;
mod licences;
mod llm;
mod protocols;
mod pty;
mod rewind;
mod session;
mod source;
mod support;
mod tidy;
