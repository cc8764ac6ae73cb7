//! The program's own log: one file a day in the state folder, never the terminal. What is logged
//! is set by `SUPER_AGENT_LOG`; keys are masked on the way out.

use std::fs::DirBuilder;
use std::io::{self, Write};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

use crate::config::environment::Environment;
use crate::config::layers::LOG_VARIABLE;
use crate::config::paths::Paths;
use crate::events::problem::Problem;

/// What is logged when the variable is not set.
const USUAL: &str = "warn,super_agent=info";

/// Files kept, one a day.
const FILES_KEPT: usize = 14;

/// Shorter texts are no keys, and masking them would make the log unreadable.
const SHORTEST_SECRET: usize = 6;

/// Keeps the log open. Dropping it writes what is still waiting.
#[derive(Debug)]
pub struct LogGuard {
    _guard: WorkerGuard,
}

/// Starts logging. `secrets` are masked wherever they appear.
///
/// # Errors
/// The variable makes no sense, the folder can't be made, or logging has started already.
pub fn start(paths: &Paths, environment: &Environment, secrets: Vec<String>) -> Result<LogGuard, Problem> {
    let filter = filter(environment)?;
    let folder = paths.log_dir();
    let appender = private_folder(&folder).and_then(|()| {
        RollingFileAppender::builder()
            .rotation(Rotation::DAILY)
            .filename_prefix("super-agent")
            .filename_suffix("log")
            .max_log_files(FILES_KEPT)
            .build(&folder)
            .map_err(io::Error::other)
    });
    let appender = appender.map_err(|error| {
        Problem::internal(format!("can't write the log in `{}`: {error}", folder.display()))
            .hint("make the folder writable, or set `XDG_STATE_HOME` to one that is")
    })?;
    // Its own thread writes, so that a slow disk never holds up the interface.
    let (writer, guard) = NonBlockingBuilder::default().thread_name("log").finish(Masking::new(appender, secrets));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(writer)
        .try_init()
        .map_err(|error| Problem::internal(format!("can't start the log: {error}")))?;
    Ok(LogGuard { _guard: guard })
}

fn filter(environment: &Environment) -> Result<EnvFilter, Problem> {
    let words = environment.get(LOG_VARIABLE).unwrap_or(USUAL);
    EnvFilter::builder().parse(words).map_err(|error| {
        Problem::usage(format!("${LOG_VARIABLE} = `{words}`: {error}"))
            .hint("write a level (`error`, `warn`, `info`, `debug`, `trace`), or as in `super_agent::llm=debug`")
    })
}

/// A log can hold what a person works on; other users of the machine need not read it.
fn private_folder(folder: &std::path::Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Masks secrets in what passes through. Each event arrives in one `write`.
struct Masking<W> {
    inner: W,
    secrets: Vec<String>,
}

impl<W: Write> Masking<W> {
    fn new(inner: W, mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
        // A secret that holds another one is masked whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { inner, secrets }
    }
}

impl<W: Write> Write for Masking<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        if !self.secrets.iter().any(|secret| text.contains(secret)) {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let masked = self.secrets.iter().fold(text.into_owned(), |text, secret| text.replace(secret, "[secret]"));
        self.inner.write_all(masked.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_whole_and_short_ones_are_no_secrets() {
        let secrets = ["sk-12345", "sk-12345-long", "a"].map(str::to_owned).to_vec();
        let mut writer = Masking::new(Vec::new(), secrets);
        for line in ["a plain line\n", "key=sk-12345 and sk-12345-long\n"] {
            assert_eq!(writer.write(line.as_bytes()).unwrap(), line.len());
        }
        assert_eq!(String::from_utf8(writer.inner).unwrap(), "a plain line\nkey=[secret] and [secret]\n");
    }

    #[test]
    fn a_filter_without_sense_is_explained() {
        let environment = |value: &str| Environment {
            variables: [(LOG_VARIABLE.to_owned(), value.to_owned())].into(),
            current_dir: "/".into(),
        };
        assert!(filter(&environment("super_agent::llm=debug")).is_ok());
        let error = filter(&environment("super_agent=loud")).unwrap_err();
        assert!(error.what.starts_with("$SUPER_AGENT_LOG = `super_agent=loud`: "), "{error}");
    }

    #[test]
    fn events_land_in_the_file_of_the_day_without_their_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: [("HOME".to_owned(), dir.path().to_string_lossy().into_owned())].into(),
            current_dir: dir.path().to_owned(),
        };
        let paths = Paths::resolve(&environment).unwrap();
        let guard = start(&paths, &environment, vec!["sk-very-secret".to_owned()]).unwrap();
        tracing::info!(key = "sk-very-secret", "connected");
        drop(guard);
        let text = std::fs::read_to_string(paths.newest_log().unwrap()).unwrap();
        assert!(text.contains("connected") && text.contains("[secret]") && !text.contains("sk-very"), "{text}");
        assert_eq!(
            start(&paths, &environment, Vec::new()).unwrap_err().kind,
            crate::events::problem::ProblemKind::Internal
        );
    }
}
