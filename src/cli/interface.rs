//! Opening the terminal interface, and the rehearsal in it.

use std::io::IsTerminal;
use std::sync::Arc;

use super::wire::{Outside, World};
use crate::events::command::{Ack, Command, LaunchSpec, Where};
use crate::events::data::Contract;
use crate::events::event::PerRole;
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::llm::scripted::scenario::Scenario;
use crate::stdx::clock::SystemClock;
use crate::tui::{self, Options, Start, Terminal};

/// The rehearsal's model.
const REHEARSAL: &str = "scripted/rehearsal";

/// The interface needs a terminal on both sides.
///
/// # Errors
/// There is none; names the headless command.
pub fn need_terminal(demo: bool) -> Result<(), Problem> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let hint = if demo {
        "without one, `super-agent run --model scripted/rehearsal \"…\"` plays the rehearsal"
    } else {
        "without one, `super-agent run \"OBJECTIVE\"` runs a session; `super-agent --help` lists all commands"
    };
    Err(Problem::usage("the interface needs a terminal").hint(hint))
}

/// Opens the interface and stays until it is left.
///
/// # Errors
/// The terminal can't be used.
pub async fn open(world: World, start: Start) -> Result<u8, Problem> {
    let themes = world.loaded.folders("themes").iter().flat_map(|folder| theme_files(folder)).collect();
    let options = Options {
        port: world.supervisor.clone(),
        config: world.loaded.config.clone(),
        themes,
        launch_dir: world.environment.current_dir.clone(),
        open: start,
        external: Arc::new(Outside {
            environment: world.environment.clone(),
            config_file: world.loaded.file.path.clone(),
            cache: world.paths.cache.clone(),
        }),
        clock: Arc::new(SystemClock),
        terminal: Terminal::from_environment(|name| world.environment.get(name).map(str::to_owned)),
    };
    let ended = tui::run(options).await;
    world.supervisor.shutdown().await;
    ended.map(|()| 0)
}

fn theme_files(folder: &std::path::Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml"));
    files.filter_map(|p| std::fs::read_to_string(&p).ok().map(|text| (p.display().to_string(), text))).collect()
}

/// Launches the embedded rehearsal in a scratch folder and opens it.
///
/// # Errors
/// As for [`open`], and when it can't be launched.
pub async fn demo(world: World) -> Result<u8, Problem> {
    let scenario = Scenario::embedded("rehearsal")
        .and_then(Result::ok)
        .ok_or_else(|| Problem::internal("the embedded rehearsal can't be read"))?;
    let model = Some(REHEARSAL.to_owned());
    let spec = LaunchSpec {
        contract: Contract {
            objective: scenario.objective,
            expected_output: scenario.expected_output,
            ..Contract::default()
        },
        name: Some("rehearsal".to_owned()),
        dir: world.environment.current_dir.clone(),
        place: Some(Where::Scratch),
        models: PerRole { worker: model.clone(), checker: model },
        ..LaunchSpec::default()
    };
    match world.supervisor.command(Command::Launch(Box::new(spec))).await? {
        Ack::Launched { session } => open(world, Start::Session(session)).await,
        Ack::Done | Ack::Said { .. } | Ack::Wrote { .. } => open(world, Start::Sessions).await,
    }
}
