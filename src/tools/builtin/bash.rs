//! `bash_command`: runs a shell command through `sandbox::exec` and says how it went.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::describe;
use crate::sandbox::exec::{Captured, CommandEnd, CommandOutput, CommandSpec, Started, Stored};
use crate::stdx::bounded;
use crate::tools::bound::{self, MARGIN, Rest, Totals};
use crate::tools::paths::{self, Access, Declined};
use crate::tools::{Descriptor, Ended, Need, Tool, ToolCx, ToolOutcome, schema};

/// The longest a command may take, in seconds.
const MOST_SECONDS: u64 = 600;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    /// Seconds until it is killed, at most 600
    timeout_s: Option<u64>,
    /// Folder to run in
    cwd: Option<String>,
    /// Return at once and let it run, as for servers
    background: Option<bool>,
}

/// The `bash_command` tool.
pub(super) struct BashCommand {
    descriptor: Descriptor,
}

impl BashCommand {
    pub(super) fn new() -> Self {
        let description = "Run a shell command in the working directory; returns exit code and output. It has no terminal and no input. \
            What it leaves running ends with the task.";
        let aliases = &["bash", "run_command"];
        Self { descriptor: describe::<Arguments>("bash_command", description, aliases, Need::Execute) }
    }
}

#[async_trait]
impl Tool for BashCommand {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        let command = arguments.get("command").and_then(Value::as_str).unwrap_or("");
        bounded::first_line(&format!("run {}", command.trim()), 120)
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let title = self.title(&arguments);
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let spec = match spec(cx, &arguments) {
            Ok(spec) => spec,
            Err(declined) => return declined.into(),
        };
        let result = if arguments.background.unwrap_or(false) {
            cx.shell.start(&spec).map(|started| in_background(cx, &started))
        } else {
            cx.shell.run(&spec, &cx.cancel).await.map(|output| finished(cx, &spec, output))
        };
        match result {
            Ok(outcome) => ToolOutcome { title, ..outcome },
            Err(error) => ToolOutcome::failed(not_started(&error)),
        }
    }
}

fn not_started(error: &io::Error) -> String {
    match error.raw_os_error() {
        // E2BIG: the kernel takes 128 KB in one argument.
        Some(7) => "the command is too long to start; write it to a script with write_file and run that".to_owned(),
        _ => format!("the command could not be started: {error}"),
    }
}

fn spec(cx: &ToolCx, arguments: &Arguments) -> Result<CommandSpec, Declined> {
    if arguments.command.trim().is_empty() {
        return Err(Declined::Failed("`command` is empty; give a command".to_owned()));
    }
    if arguments.command.contains('\0') {
        return Err(Declined::Failed("`command` holds a NUL character, which no command can".to_owned()));
    }
    let timeout = match arguments.timeout_s {
        None => cx.command_timeout.min(Duration::from_secs(MOST_SECONDS)),
        Some(seconds @ 1..=MOST_SECONDS) => Duration::from_secs(seconds),
        Some(seconds) => {
            return Err(Declined::Failed(format!(
                "`timeout_s` is {seconds}; 1 to {MOST_SECONDS} seconds are possible, and `background` for what runs longer"
            )));
        }
    };
    let inside = paths::resolve(&cx.cwd, arguments.cwd.as_deref().unwrap_or("."), Access::Read)?;
    if !inside.path.is_dir() {
        return Err(Declined::Failed(format!("`cwd` names no folder: `{}`", inside.shown)));
    }
    Ok(CommandSpec {
        command: arguments.command.clone(),
        cwd: inside.path,
        temp: cx.temp.clone(),
        git_ceiling: cx.git_ceiling.clone(),
        timeout,
        // A character has four bytes at most.
        keep: cx.output_chars.saturating_mul(4),
        output: bound::output_path(&cx.outputs, &cx.call_id),
    })
}

fn in_background(cx: &ToolCx, started: &Started) -> ToolOutcome {
    let (id, pid) = (&cx.call_id, started.pid);
    let said = format!(
        "started as pid {pid}; read_file with path \"output:{id}\" shows its output and, at the end, its exit code. \
         It runs until this task ends or `kill -- -{pid}`."
    );
    ToolOutcome::ran(String::new(), said)
}

fn finished(cx: &ToolCx, spec: &CommandSpec, output: CommandOutput) -> ToolOutcome {
    let CommandOutput { end, output, left } = output;
    let seconds = spec.timeout.as_secs_f64();
    let (ended, first) = match end {
        CommandEnd::Exited(_) | CommandEnd::Signalled(_) => (Ended::Ran, end.to_string()),
        CommandEnd::TimedOut => (
            Ended::TimedOut,
            format!(
                "timed out after {seconds} s and was killed with all it had started; \
                 give more `timeout_s` (at most {MOST_SECONDS}) or set `background`"
            ),
        ),
        CommandEnd::Stopped => (Ended::Stopped, "stopped with the run, with all it had started".to_owned()),
    };
    let mut last = String::new();
    for leftover in left.iter().take(10) {
        last.push_str(&format!("still running: pid {} `{}`\n", leftover.pid, leftover.command));
    }
    if !left.is_empty() {
        last.push_str(&format!("(until this task ends; what they write goes on in output:{})\n", cx.call_id));
    }
    let limit = cx.output_chars.saturating_sub(MARGIN + first.len() + last.len());
    let text = shown(cx, &output, limit);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let said = match (text.is_empty(), last.is_empty()) {
        (true, true) => format!("{first}, no output"),
        (true, false) => format!("{first}, no output\n{last}"),
        (false, _) => format!("{first}\n{text}{gap}{last}"),
    };
    ToolOutcome { ended, exit_code: end.code(), ..ToolOutcome::ran(String::new(), said) }
}

fn shown(cx: &ToolCx, captured: &Captured, limit: usize) -> String {
    let Captured { head, tail, bytes, newlines, stored } = captured;
    let rest = match stored {
        Stored::InMemory => return bound::fit(cx, head, limit).unwrap_or_else(|| head.clone()),
        Stored::Whole | Stored::Part => Rest::Stored(&cx.call_id),
        Stored::Failed(why) => Rest::Lost(why.clone()),
    };
    match tail {
        None if head.chars().count() <= limit => head.clone(),
        None => bound::shorten(head, head, Totals::of(head), limit, &rest),
        Some(tail) => bound::shorten(head, tail, Totals { bytes: *bytes, newlines: *newlines }, limit, &rest),
    }
}
