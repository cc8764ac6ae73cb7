//! The commands as a person uses them: the real program, in a home of its own.

mod bad_input;
mod formats;
mod git;
mod profiles;
mod sessions;
mod trust;
