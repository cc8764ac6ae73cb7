//! Starting a program of the person's own with the terminal in its hands: their editor.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::processes::RUN_VARIABLE;

/// Runs a command line of the person's (`$EDITOR`) on a file, with their whole environment and
/// the terminal, and waits for it. The command line may have arguments of its own.
///
/// # Errors
/// It can't be started, or ended with another exit code than 0.
#[allow(clippy::disallowed_methods)]
pub async fn edit(command_line: &str, file: &Path, environment: &BTreeMap<String, String>) -> io::Result<()> {
    // Through a shell, as every program that honours `$EDITOR` does: it may hold arguments.
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("exec {command_line} \"$1\""))
        .arg("editor")
        .arg(file)
        .env_clear()
        .envs(environment)
        // Not to be taken for a process of a tool.
        .env(RUN_VARIABLE, "")
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit());
    let status = command.status().await?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{command_line}` ended with {status}"))) }
}
