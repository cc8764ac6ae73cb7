//! A session: an objective and its cycles of Worker and Checker (A). Decides verdicts, gates,
//! archive and rewind; owns no task and no front end. Models and tools it reaches only through
//! the agent.

pub mod archive;
pub mod checker;
pub mod context;
pub mod contract;
pub mod cycle;
pub mod evidence;
pub mod gates;
pub mod home;
pub mod models;
pub mod orchestrator;
pub mod place;
pub mod recording;
pub mod rewind;
pub mod snapshot;
pub mod verdict;
pub mod worker;
