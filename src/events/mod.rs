//! The vocabulary between the work and those who watch it: events that happened, commands that
//! are asked for, queries with their replies; and how events travel (journal first, then bus).
//! Plain data: ids, text, numbers. Does not decide anything and knows no provider, tool or screen.

pub mod bus;
pub mod command;
pub mod data;
pub mod event;
pub mod log;
pub mod port;
pub mod problem;
pub mod query;
pub mod recorder;
