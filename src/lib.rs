//! super-agent: runs an objective through Worker–Checker cycles.
//!
//! The rooms below are listed in reading order; which of them may name which is the table in
//! `ARCHITECTURE.md`, held by a test. There are no re-exports here: they would blind that test.

pub mod ids;
pub mod stdx;

pub mod config;
pub mod events;

pub mod llm;
pub mod prompts;
pub mod sandbox;

pub mod trace;

pub mod tools;

pub mod agent;

pub mod session;

pub mod supervisor;

pub mod tui;

pub mod cli;
