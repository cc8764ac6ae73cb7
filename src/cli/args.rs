//! The command line as types: commands, options, help. Parses and checks single values; what they
//! amount to (settings, launch, commands to the Supervisor) is in `asked`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::Value;

use crate::config::check::model_reference;
use crate::config::layers::{CONFIG_VARIABLE, LOG_VARIABLE, VARIABLES};
use crate::config::{PermissionSetting, duration};
use crate::events::command::Inputs;

/// How a headless session ends, for `--help`.
const EXIT_CODES: &str = "\
Exit code, and `outcome` of the last event:
    0  passed           the Checker verified the result
    1  not_passed       the cycles are used up
    2                   wrong usage or configuration
    3  provider_error   the provider refused, can't be reached, or has no key
    4  budget           budget or time is used up
    5  unverified       the Checker could not check; `resume` checks again
    6  needs_human      a question or permission that nobody could answer
    7  internal_error   storage and the like
  130  stopped          by SIGINT; 143 by `super-agent stop` or SIGTERM

A session that did not pass goes on with `super-agent resume`.";

/// Where more is to be found, for `--help`.
const AFTER: &str = "\
SESSION is an id, the beginning of one, a session's name, or `last`.
Start with `super-agent demo`: it needs no key and no network.";

/// The same, with the variables.
fn after_long() -> String {
    let mut text = format!("{AFTER}\n\nVariables, each above the configuration files and below the options:\n");
    for variable in VARIABLES {
        text.push_str(&format!("  {:<29}sets `{}`\n", variable.name, variable.key));
    }
    text.push_str(&format!("  {CONFIG_VARIABLE:<29}names another `config.toml`\n"));
    text.push_str(&format!("  {LOG_VARIABLE:<29}what is logged, as `info` or `super_agent::llm=debug`\n"));
    text.push_str(&format!("  {:<29}no colours", "NO_COLOR"));
    text
}

/// Runs an objective through Worker–Checker cycles: work that is verified rather than claimed.
///
/// Without a command the terminal interface opens.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(
    name = "super-agent",
    version,
    after_help = AFTER,
    after_long_help = after_long(),
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do; nothing: the terminal interface.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// Folder that holds the sessions
    #[arg(long, value_name = "DIR", global = true)]
    pub workspace: Option<PathBuf>,
    /// Read this file instead of the usual `config.toml`
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// When to use colours: auto (on a terminal, unless `NO_COLOR` is set), always, never
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value_t,
        value_enum,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: ColorWhen,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Run one session without the interface
    #[command(after_long_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Open the interface on a rehearsal that needs no key and no network
    Demo,
    /// List sessions
    Sessions(ListArgs),
    /// Show one session: cycles, verdicts, deliverable
    Show(ShowArgs),
    /// Go on with a session that is not running
    #[command(after_long_help = EXIT_CODES)]
    Resume(ResumeArgs),
    /// Go back to an earlier message, files and plan included
    #[command(after_long_help = EXIT_CODES)]
    Rewind(RewindArgs),
    /// Stop a session that another process runs
    Stop(SessionArg),
    /// Bring what a session delivered home
    Apply(ApplyArgs),
    /// Pack everything of a session into one archive
    Export(ExportArgs),
    /// Delete a session that is not running, its files included
    Rm(SessionArg),
    /// Accept a project's own configuration
    Trust(TrustArgs),
    /// Show what was found: configuration, providers, folders, terminal
    Doctor(ListArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Options of `run`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct RunArgs {
    /// What is to be done; `-` reads it from standard input
    #[arg(value_name = "OBJECTIVE")]
    pub objective: Option<String>,
    /// Read the objective from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "objective", help_heading = "Task")]
    pub file: Option<PathBuf>,
    /// Inputs of the task, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = inputs, help_heading = "Task")]
    pub input: Option<Inputs>,
    /// Name of the session
    #[arg(long, value_name = "NAME", help_heading = "Task")]
    pub name: Option<String>,
    /// Where to work.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Profile of the Worker, from `workers.yaml`
    #[arg(long, value_name = "NAME", help_heading = "Models")]
    pub profile: Option<String>,
    /// Profile of the Checker, from `workers.yaml`
    #[arg(long, value_name = "NAME", help_heading = "Models")]
    pub checker_profile: Option<String>,
    /// Which models.
    #[command(flatten)]
    pub models: ModelArgs,
    /// Turns allowed in one run of the Worker
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Limits")]
    pub max_turns: Option<u32>,
    /// How far it may go.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// A file that the result must contain; may be given several times
    #[arg(long, value_name = "PATH", help_heading = "Expected outcome")]
    pub expect_file: Vec<String>,
    /// A sentence that must be true of the result; may be given several times
    #[arg(long, value_name = "TEXT", help_heading = "Expected outcome")]
    pub require: Vec<String>,
    /// A command that must succeed on the result; may be given several times
    #[arg(long, value_name = "COMMAND", help_heading = "Expected outcome")]
    pub check: Vec<String>,
    /// What tools may do unasked: bypassPermissions, acceptEdits, ask, plan
    #[arg(long, value_name = "MODE", value_parser = permission_mode, help_heading = "Limits")]
    pub permission_mode: Option<PermissionSetting>,
    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where to work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Where to work")]
pub struct PlaceArgs {
    /// In the folder itself
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = ".",
          conflicts_with_all = ["worktree", "scratch"])]
    pub in_place: Option<PathBuf>,
    /// In a git worktree, on a branch of its own
    #[arg(long, conflicts_with = "scratch")]
    pub worktree: bool,
    /// In an empty folder of the session
    #[arg(long)]
    pub scratch: bool,
}

/// Which models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Models")]
pub struct ModelArgs {
    /// The model, as in `anthropic/…`, `openai/…`, `ollama/…`
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = model)]
    pub model: Option<String>,
    /// The Checker's model, if it is another one
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = model)]
    pub checker_model: Option<String>,
}

/// How far a session may go.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Cycles allowed in all
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_cycles: Option<u32>,
    /// Tokens allowed, sent and received, as `200000`, `200k` or `2M`
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub budget_tokens: Option<u64>,
    /// US dollars allowed
    #[arg(long, value_name = "X", value_parser = money, allow_negative_numbers = true)]
    pub budget_usd: Option<f64>,
    /// Time of running allowed, as `90s`, `5m` or `1h30m`
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub timeout: Option<Duration>,
}

/// What a headless session prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print events as JSON lines on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `sessions` and `doctor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SessionArg {
    /// Id, beginning of an id, name, or `last`
    #[arg(value_name = "SESSION")]
    pub session: String,
}

/// Options of `show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// Which session.
    #[command(flatten)]
    pub which: SessionArg,
    /// Only this cycle, with what was handed in
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub cycle: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `resume`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ResumeArgs {
    /// Which session.
    #[command(flatten)]
    pub which: SessionArg,
    /// What you want to say before it goes on
    #[arg(value_name = "MESSAGE")]
    pub message: Option<String>,
    /// How far it may go from now on.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Which models from now on.
    #[command(flatten)]
    pub models: ModelArgs,
    /// A further command that must succeed on the result; may be given several times
    #[arg(long, value_name = "COMMAND", help_heading = "Expected outcome")]
    pub check: Vec<String>,
    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of `rewind`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RewindArgs {
    /// Which session.
    #[command(flatten)]
    pub which: SessionArg,
    /// What to do differently; the session then runs on
    #[arg(value_name = "MESSAGE")]
    pub message: Option<String>,
    /// Number of the message to go back to
    #[arg(long, value_name = "SEQ")]
    pub to: u64,
    /// Trace of the message; without it the newest cycle's Worker
    #[arg(long, value_name = "ID")]
    pub trace: Option<String>,
    /// Leave the working files as they are
    #[arg(long)]
    pub keep_files: bool,
    /// Bring files back too that you changed yourself since
    #[arg(long, conflicts_with = "keep_files")]
    pub overwrite_changed: bool,
    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// What is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of `apply`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApplyArgs {
    /// Which session.
    #[command(flatten)]
    pub which: SessionArg,
    /// The cycle whose result is applied; without it the newest that delivered
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub cycle: Option<u32>,
    /// Where to; without it where the session was launched
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Also when the cycle is not verified
    #[arg(long)]
    pub force: bool,
}

/// Options of `export`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExportArgs {
    /// Which session.
    #[command(flatten)]
    pub which: SessionArg,
    /// The archive; without it `session-ID.tar.gz` in the current folder
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `trust`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct TrustArgs {
    /// Folder of the project; without it the current one
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Take the consent back
    #[arg(long)]
    pub revoke: bool,
}

/// Options of `completions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(n) => Ok(n),
        Err(_) => Err("it must be a whole number, at least 1".to_owned()),
    }
}

fn tokens(text: &str) -> Result<u64, String> {
    let bad = || "it must be a whole number above 0, as `200000`, `200k` or `2M`".to_owned();
    let (digits, factor) = match text.char_indices().last() {
        Some((i, 'k' | 'K')) => (&text[..i], 1_000),
        Some((i, 'm' | 'M')) => (&text[..i], 1_000_000),
        _ => (text, 1),
    };
    let n: u64 = digits.replace('_', "").parse().map_err(|_| bad())?;
    n.checked_mul(factor).filter(|n| *n > 0).ok_or_else(bad)
}

fn money(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|amount| *amount > 0.0 && amount.is_finite())
        .ok_or_else(|| "it must be an amount in US dollars above 0, as `2.50`".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        time => Ok(time),
    }
}

fn model(text: &str) -> Result<String, String> {
    model_reference(text).map(|()| text.to_owned())
}

fn inputs(text: &str) -> Result<Inputs, String> {
    let form = "write an object, as '{\"topic\": \"tides\"}'";
    match serde_json::from_str(text) {
        Ok(Value::Object(inputs)) => Ok(inputs),
        Ok(_) => Err(format!("it is JSON, but no object; {form}")),
        Err(error) => Err(format!("it is not JSON: {error}; {form}")),
    }
}

fn permission_mode(text: &str) -> Result<PermissionSetting, String> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| "it must be `bypassPermissions`, `acceptEdits`, `ask` or `plan`".to_owned())
}

#[cfg(test)]
mod tests;
