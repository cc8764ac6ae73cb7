//! Measures the program as a whole, with a local server playing the model, so that only its own cost
//! is seen: `cargo bench --bench measure`. Prints a table beside the targets of `docs/performance.md`.
//!
//! Linux only: processor time, memory and wake-ups come from `/proc`.

// This is a program that prints and starts others; the rules are for `src/`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

#[cfg(target_os = "linux")]
mod headless;
#[cfg(target_os = "linux")]
mod model;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod screen;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this measures through /proc and needs Linux");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("{}\n", proc::machine());
    let mut rows = Vec::new();
    if options.headless {
        rows.extend(headless::measure(&options));
    }
    if options.screen {
        rows.extend(screen::measure(&options));
    }
    println!("{}", report::table(&rows));
    let lost = rows.iter().filter(|row| row.value.is_err()).count();
    if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(target_os = "linux")]
const USAGE: &str = "cargo bench --bench measure -- [headless] [screen] [--runs N] [--binary FILE]

  headless, screen   only these rows; both when neither is named
  --runs N           runs of which the median is taken (5)
  --binary FILE      the program to measure (the one that cargo has just built)";

/// What is asked for on the command line.
#[cfg(target_os = "linux")]
struct Options {
    binary: std::path::PathBuf,
    runs: usize,
    headless: bool,
    screen: bool,
}

#[cfg(target_os = "linux")]
impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Self { binary: env!("CARGO_BIN_EXE_super-agent").into(), runs: 5, headless: false, screen: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "headless" => options.headless = true,
                "screen" => options.screen = true,
                "--runs" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|runs| *runs > 0);
                    options.runs = number.ok_or(format!("`--runs {text}` is not a number of runs"))?;
                }
                "--binary" => options.binary = value()?.into(),
                // cargo says so to every benchmark.
                "--bench" => {}
                _ => return Err(format!("`{argument}` is not known")),
            }
        }
        if !options.headless && !options.screen {
            (options.headless, options.screen) = (true, true);
        }
        match options.binary.is_file() {
            true => Ok(options),
            false => Err(format!("there is no program {}", options.binary.display())),
        }
    }
}
