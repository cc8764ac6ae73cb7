//! The command line.

pub mod args;
pub mod asked;
pub mod completions;

/// Runs the program.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
