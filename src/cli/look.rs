//! Commands that look at sessions or change them without running one.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use super::args::{ApplyArgs, Arguments, ColorWhen, ExportArgs, RewindArgs, ShowArgs};
use super::doctor::{self, Facts, ProviderLine, TerminalFacts};
use super::headless::{say, stay};
use super::render::paint::Paint;
use super::render::{diff, tables};
use super::wire::{self, World};
use crate::config::environment::Environment;
use crate::config::layers::{self, Request};
use crate::config::paths::Paths;
use crate::config::profiles::Profiles;
use crate::events::command::{Ack, Command};
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::events::query::{ModelChoice, Query, Reply, SessionDetail};
use crate::ids::SessionId;
use crate::llm::registry::Registry;
use crate::sandbox::exec;
use crate::stdx::clock::{Clock, SystemClock};

fn paint(world: &World, color: ColorWhen) -> Paint {
    Paint::new(color, std::io::stdout().is_terminal(), &world.environment)
}

fn unexpected() -> Problem {
    Problem::internal("an answer of another kind came back")
}

/// The session that an id, a prefix, a name or `last` means.
///
/// # Errors
/// There is none, or several.
pub async fn find(world: &World, wanted: &str) -> Result<SessionId, Problem> {
    match world.supervisor.query(Query::Find(wanted.to_owned())).await? {
        Reply::Found(id) => Ok(id),
        _ => Err(unexpected()),
    }
}

/// `sessions`.
pub async fn sessions(world: &World, json: bool, color: ColorWhen) -> Result<u8, Problem> {
    let Reply::Sessions(all) = world.supervisor.query(Query::Sessions).await? else { return Err(unexpected()) };
    if json {
        say(&to_json(&all)?)?;
        return Ok(0);
    }
    let width = std::io::stdout().is_terminal().then(crate::tui::terminal_size).flatten().map(|(c, _)| usize::from(c));
    say(tables::sessions(&all, SystemClock.now(), width, paint(world, color)).trim_end())?;
    Ok(0)
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string_pretty(value).map_err(|e| Problem::internal(e.to_string()))
}

/// `show`.
pub async fn show(world: &World, args: ShowArgs, color: ColorWhen) -> Result<u8, Problem> {
    let id = find(world, &args.which.session).await?;
    let Reply::Session(detail) = world.supervisor.query(Query::Session(id)).await? else { return Err(unexpected()) };
    let mut detail: SessionDetail = *detail;
    if let Some(cycle) = args.cycle {
        if !detail.cycles.iter().any(|c| c.number == cycle) {
            let known: Vec<String> = detail.cycles.iter().map(|c| c.number.to_string()).collect();
            return Err(Problem::usage(format!("there is no cycle {cycle}"))
                .hint(format!("the session has cycles {}", known.join(", "))));
        }
        if args.json {
            detail.cycles.retain(|c| c.number == cycle);
        }
    }
    if args.json {
        say(&to_json(&detail)?)?;
    } else {
        say(tables::session(&detail, args.cycle, paint(world, color)).trim_end())?;
    }
    Ok(0)
}

/// `rewind`, with `--dry-run` only what it would do.
pub async fn rewind(world: &World, args: RewindArgs, color: ColorWhen) -> Result<u8, Problem> {
    let id = find(world, &args.which.session).await?;
    if args.dry_run {
        let query = Query::RewindPreview { session: id, trace: args.trace(), to: args.to };
        let Reply::Rewind(preview) = world.supervisor.query(query).await? else { return Err(unexpected()) };
        say(diff::rewind_preview(&preview, paint(world, color)).trim_end())?;
        return Ok(0);
    }
    let command = args.command(id);
    stay(world, command, args.output, color).await
}

/// `stop`.
pub async fn stop(world: &World, which: &str) -> Result<u8, Problem> {
    let session = find(world, which).await?;
    world.supervisor.command(Command::Stop { session: session.clone() }).await?;
    say(&format!("stopping {session}"))?;
    Ok(0)
}

/// `apply`: shows the difference, then brings it home.
pub async fn apply(world: &World, args: ApplyArgs, color: ColorWhen) -> Result<u8, Problem> {
    let session = find(world, &args.which.session).await?;
    let query =
        Query::ApplyPreview { session: session.clone(), cycle: args.cycle, to: args.target(&world.environment) };
    let Reply::Apply(preview) = world.supervisor.query(query).await? else { return Err(unexpected()) };
    say(diff::apply_preview(&preview, paint(world, color)).trim_end())?;
    if args.dry_run {
        return Ok(0);
    }
    if let Ack::Said { text } = world.supervisor.command(args.command(session, &world.environment)).await? {
        say(&text)?;
    }
    Ok(0)
}

/// `export`.
pub async fn export(world: &World, args: ExportArgs) -> Result<u8, Problem> {
    let session = find(world, &args.which.session).await?;
    if let Ack::Wrote { path } = world.supervisor.command(args.command(session, &world.environment)).await? {
        say(&path.display().to_string())?;
    }
    Ok(0)
}

/// `rm`.
pub async fn remove(world: &World, which: &str) -> Result<u8, Problem> {
    let session = find(world, which).await?;
    let removed = world.supervisor.command(Command::Remove { session: session.clone() }).await?;
    say(&format!("deleted {session}"))?;
    if let Ack::Said { text } = removed {
        say(&text)?;
    }
    Ok(0)
}

/// `doctor`: works with a broken configuration too, since it is what one asks then.
pub async fn doctor(arguments: &Arguments, json: bool) -> Result<u8, Problem> {
    let environment = wire::environment()?;
    let paths = Paths::resolve(&environment)?;
    let file = arguments.common.config.as_deref().map(|f| environment.absolute(f, &environment.current_dir));
    let flags = arguments.layer();
    let loaded =
        layers::load(&Request { environment: &environment, paths: &paths, file: file.as_deref(), flags: &flags });
    let config = loaded.as_ref().map(|l| l.config.clone()).unwrap_or_default();
    let profiles = loaded.as_ref().ok().map(Profiles::load);
    let registry = Registry::new(&config, environment.variables.clone(), &environment.current_dir);
    let model = registry.choose(config.model.as_deref()).await;
    let model = model.map_err(wire::problem).map(|choice| ModelChoice {
        model: choice.reference,
        reason: choice.reason.unwrap_or_else(|| "it is configured".to_owned()),
    });
    let facts = Facts {
        environment: &environment,
        paths: &paths,
        config: loaded.as_ref(),
        profiles: profiles.as_ref().and_then(|p| p.as_ref().err()),
        providers: providers(&registry),
        model,
        git: git_version(&environment).await,
        terminal: TerminalFacts { is_terminal: std::io::stdout().is_terminal(), size: crate::tui::terminal_size() },
    };
    let report = doctor::report(&facts);
    if json {
        say(&to_json(&report)?)?;
    } else {
        let paint = Paint::new(arguments.common.color, std::io::stdout().is_terminal(), &environment);
        let mut out = std::io::stdout();
        let _ = write!(out, "{}", doctor::render(&report, paint));
    }
    Ok(if report.is_well() { 0 } else { 2 })
}

fn providers(registry: &Registry) -> Vec<ProviderLine> {
    let line = |d: crate::llm::registry::ProviderDescription| ProviderLine {
        name: d.name,
        base_url: d.base_url.unwrap_or_default(),
        key_variable: d.key_variable,
        key_set: d.key_is_set,
        note: d.problem.filter(|_| d.key_is_set),
    };
    registry.describe().into_iter().map(line).collect()
}

async fn git_version(environment: &Environment) -> Option<String> {
    let variables: Vec<_> = environment.variables.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let arguments = [OsStr::new("--version")];
    let output =
        exec::simple("git", &arguments, &environment.current_dir, &variables, Duration::from_secs(5)).await.ok()?;
    output.ok().then(|| output.text())
}
