//! The command line: reads the arguments, builds everything once, hands each command to its file,
//! and turns what comes back into an exit code.

pub mod args;
pub mod asked;
pub mod completions;
pub mod doctor;
pub mod headless;
mod interface;
pub mod log;
mod look;
pub mod render;
pub mod trust;
pub mod wire;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use self::args::{Arguments, Command};
use self::render::paint::Paint;
use crate::config::environment::Environment;
use crate::config::paths::Paths;
use crate::events::problem::Problem;
use crate::tui::Start;

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let color = arguments.common.color;
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            let environment = Environment::of_process().unwrap_or_default();
            let paint = Paint::new(color, std::io::stderr().is_terminal(), &environment);
            let _ = write!(std::io::stderr(), "{}", render::problem::problem(&problem, paint));
            ExitCode::from(render::problem::exit_code(problem.kind))
        }
    }
}

fn run(arguments: Arguments) -> Result<u8, Problem> {
    match &arguments.command {
        // These need nothing but themselves; a broken configuration must not keep them from working.
        Some(Command::Completions(args)) => {
            return written(completions::completions(args.shell, &mut std::io::stdout()));
        }
        Some(Command::Man) => return written(completions::man(&mut std::io::stdout())),
        Some(Command::Trust(args)) => {
            let environment = wire::environment()?;
            let paths = Paths::resolve(&environment)?;
            trust::run(args, &environment, &paths, &mut std::io::stdout())?;
            return Ok(0);
        }
        None | Some(Command::Demo) => interface::need_terminal(arguments.command.is_some())?,
        Some(_) => {}
    }
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let code = runtime.block_on(dispatch(arguments));
    // A blocking read that still runs must not keep the program from ending.
    runtime.shutdown_background();
    code
}

fn written(result: std::io::Result<()>) -> Result<u8, Problem> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(0),
    }
}

async fn dispatch(arguments: Arguments) -> Result<u8, Problem> {
    if let Some(Command::Doctor(args)) = &arguments.command {
        return look::doctor(&arguments, args.json).await;
    }
    let world = wire::build(&arguments)?;
    let color = arguments.common.color;
    let json = matches!(&arguments.command, Some(Command::Run(run)) if run.output.json);
    if !json && !matches!(arguments.command, None | Some(Command::Demo)) {
        let paint = Paint::new(color, std::io::stderr().is_terminal(), &world.environment);
        let _ = write!(std::io::stderr(), "{}", render::problem::notes(&world.notes, paint));
    }
    let environment = &world.environment;
    match arguments.command {
        None => interface::open(world, Start::Sessions).await,
        Some(Command::Demo) => interface::demo(world).await,
        Some(Command::Run(run)) => {
            let objective = run.read_objective(environment, std::io::stdin())?;
            let mut spec = run.launch_spec(objective, environment);
            spec.headless = true;
            let command = crate::events::command::Command::Launch(Box::new(spec));
            headless::stay(&world, command, run.output, color).await
        }
        Some(Command::Resume(resume)) => {
            let session = look::find(&world, &resume.which.session).await?;
            headless::stay(&world, headless_resume(resume.command(session)), resume.output, color).await
        }
        Some(Command::Rewind(rewind)) => look::rewind(&world, rewind, color).await,
        Some(Command::Sessions(args)) => look::sessions(&world, args.json, color).await,
        Some(Command::Show(args)) => look::show(&world, args, color).await,
        Some(Command::Stop(which)) => look::stop(&world, &which.session).await,
        Some(Command::Apply(args)) => look::apply(&world, args, color).await,
        Some(Command::Export(args)) => look::export(&world, args).await,
        Some(Command::Rm(which)) => look::remove(&world, &which.session).await,
        Some(Command::Trust(_) | Command::Doctor(_) | Command::Completions(_) | Command::Man) => Ok(0),
    }
}

/// Nobody can be asked without the interface.
fn headless_resume(mut command: crate::events::command::Command) -> crate::events::command::Command {
    if let crate::events::command::Command::Resume { overrides, .. } = &mut command {
        overrides.headless = true;
    }
    command
}
