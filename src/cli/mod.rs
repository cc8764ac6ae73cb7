//! The command line.

pub mod args;
pub mod asked;
pub mod completions;
pub mod doctor;
pub mod log;
pub mod render;
pub mod trust;

/// Runs the program.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
