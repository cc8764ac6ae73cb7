//! Starts processes: commands of tools, each in a session of its own with a bounded output and an
//! end that nothing outlives; and programs of our own like git. Nothing else in the program does.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
pub use super::capture::{Captured, Stored};
use super::environment;
pub use super::processes::Leftover;
use super::processes::{self, CALL_VARIABLE, Owner, RUN_VARIABLE};

/// How long a command may tidy up after it was asked to end.
const GRACE: Duration = Duration::from_millis(500);

/// How long killing may take after that; only a process asleep in the kernel needs any of it.
const KILLING: Duration = Duration::from_secs(1);

/// How long output may still come after the shell has ended.
const DRAIN: Duration = Duration::from_millis(100);

/// Most of one command's output that is kept on disk.
const MOST_STORED: u64 = 64 * 1024 * 1024;

/// A command of a tool.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// What the shell runs.
    pub command: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its `TMPDIR`; made when it isn't there.
    pub temp: PathBuf,
    /// Git looks for repositories no higher than this.
    pub git_ceiling: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
    /// Bytes of output kept in memory at each end.
    pub keep: usize,
    /// The file for an output that is longer, or goes on after the command.
    pub output: PathBuf,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that did not come from us.
    Signalled(i32),
    /// It took too long and was killed with all it had started.
    TimedOut,
    /// It was cancelled and killed with all it had started.
    Stopped,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// How it ended.
    pub end: CommandEnd,
    /// Standard output and standard error in the order in which they came.
    pub output: Captured,
    /// What it left running. It lives until [`Shell::end`]; its output goes on in the file.
    pub left: Vec<Leftover>,
}

/// A command that runs on by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its shell.
    pub pid: i32,
    /// Where its output goes while it runs.
    pub output: PathBuf,
}

/// Runs the commands of one trace. What they leave running ends with [`Shell::end`], or when this is
/// dropped (then without grace, and the dropping thread waits for it).
#[derive(Debug)]
pub struct Shell {
    program: PathBuf,
    environment: Vec<(String, String)>,
    run: Arc<str>,
    /// Readers of what was left running. A std mutex: held to add one, never across an await.
    followers: Mutex<JoinSet<()>>,
    has_left: AtomicBool,
}

impl Shell {
    /// A shell for the trace named `run`, a name that no other trace has. `snapshot` is the
    /// person's environment, of which commands get what `environment` allows. A name that is the
    /// same after a restart lets [`end_run`] find what a crashed process left behind.
    pub fn new(snapshot: impl IntoIterator<Item = (String, String)>, run: &str) -> Arc<Self> {
        processes::adopt_orphans();
        let mut environment = environment::for_commands(snapshot);
        let path = environment.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path);
        // POSIX promises `sh`; models write for bash.
        let program = find_program("bash", path).unwrap_or_else(|| PathBuf::from("/bin/sh"));
        if !environment.iter().any(|(name, _)| name == "SHELL") {
            // Otherwise bash looks it up in the user database with every command.
            environment.push(("SHELL".to_owned(), program.to_string_lossy().into_owned()));
        }
        Arc::new(Self {
            program,
            environment,
            run: Arc::from(run),
            followers: Mutex::new(JoinSet::new()),
            has_left: AtomicBool::new(false),
        })
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// When it can't be started.
    ///
    /// # Cancellation
    /// Returns within two seconds after `cancel` fires; nothing that it started is left then. The
    /// same holds, without grace, when the future is dropped.
    pub async fn run(&self, spec: &CommandSpec, cancel: &CancellationToken) -> io::Result<CommandOutput> {
        if cancel.is_cancelled() {
            return Ok(CommandOutput { end: CommandEnd::Stopped, output: Captured::default(), left: Vec::new() });
        }
        let mut running = self.spawn(spec)?;
        let mut capture = Capture::new(spec.keep, &spec.output, MOST_STORED);
        match running.follow(&mut capture, spec.timeout, cancel).await? {
            Followed::Exited(status) => {
                let open = running.drain(&mut capture).await;
                let left = processes::leftovers(running.pid, &running.call);
                let leaves_something = open || !left.is_empty();
                running.settled(leaves_something);
                processes::reap();
                if leaves_something {
                    capture.spill();
                }
                let output = capture.captured();
                if open {
                    self.follow_on(running, capture);
                } else if leaves_something {
                    self.has_left.store(true, Ordering::Relaxed);
                }
                Ok(CommandOutput { end: end_of(status), output, left })
            }
            Followed::TimedOut => Ok(running.cut_short(capture, CommandEnd::TimedOut).await),
            Followed::Stopped => Ok(running.cut_short(capture, CommandEnd::Stopped).await),
        }
    }

    /// Starts a command and lets it run until it ends or [`Shell::end`] ends it. All of its output
    /// goes to `spec.output`; its exit is the last line there. `spec.timeout` doesn't count.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(&self, spec: &CommandSpec) -> io::Result<Started> {
        let mut running = self.spawn(spec)?;
        let mut capture = Capture::new(spec.keep, &spec.output, MOST_STORED);
        capture.spill();
        let started = Started { pid: running.pid, output: spec.output.clone() };
        self.has_left.store(true, Ordering::Relaxed);
        self.add_follower(async move {
            let never = CancellationToken::new();
            if let Ok(Followed::Exited(status)) = running.follow(&mut capture, Duration::MAX, &never).await {
                let open = running.drain(&mut capture).await;
                let leaves_something = open || !processes::leftovers(running.pid, &running.call).is_empty();
                running.settled(leaves_something);
                capture.push(format!("\n[ended: {}]\n", end_of(status)).as_bytes());
                while open && running.read(&mut capture).await {}
            }
        });
        Ok(started)
    }

    /// Ends everything that commands of this shell left running.
    pub async fn end(&self) {
        if !self.has_left.swap(false, Ordering::Relaxed) {
            return;
        }
        let run = Arc::clone(&self.run);
        // Walks the process table and waits; not for an async thread. A panic there is reported by the hook.
        let _ = tokio::task::spawn_blocking(move || processes::end_run(&run, GRACE)).await;
    }

    /// Goes on reading what a command left running writes, so that it neither blocks nor breaks.
    fn follow_on(&self, mut running: Running, mut capture: Capture) {
        self.has_left.store(true, Ordering::Relaxed);
        self.add_follower(async move { while running.read(&mut capture).await {} });
    }

    fn add_follower(&self, follower: impl Future<Output = ()> + Send + 'static) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        while followers.try_join_next().is_some() {}
        followers.spawn(follower);
    }

    // The only place besides `simple` where a process is made.
    #[allow(clippy::disallowed_methods)]
    fn spawn(&self, spec: &CommandSpec) -> io::Result<Running> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        std::fs::create_dir_all(&spec.temp)?;
        let call = format!("{}:{}:{}", self.run, std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let call: Arc<str> = Arc::from(call);
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(&spec.command)
            .current_dir(&spec.cwd)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", &spec.temp)
            .env("PWD", &spec.cwd)
            .env(RUN_VARIABLE, &*self.run)
            .env(CALL_VARIABLE, &*call)
            .envs(spec.git_ceiling.iter().map(|ceiling| ("GIT_CEILING_DIRECTORIES", ceiling)))
            .stdin(Stdio::null())
            // One pipe for both, so that their order is kept.
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .kill_on_drop(true);
        own_session(&mut command);
        let (pid, child) = processes::spawn_noted(&self.run, &call, || {
            let child = command.spawn()?;
            // Known until the child has been waited for.
            let pid =
                child.id().map(u32::cast_signed).ok_or_else(|| io::Error::other("the shell has no process id"))?;
            Ok((pid, child))
        })?;
        // The command holds the pipe's writing end; while it does, the pipe never ends.
        drop(command);
        let pipe = Receiver::from_owned_fd(reader.into())?;
        Ok(Running { child, pid, call, pipe, buffer: vec![0; 64 * 1024], settled: false })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if self.has_left.load(Ordering::Relaxed) {
            processes::kill_until_gone(Owner::Run(&self.run), KILLING);
        }
    }
}

/// Ends all processes of the trace `run`, also those that an earlier, crashed process of ours
/// started for it. Blocks for up to two seconds.
pub fn end_run(run: &str) {
    processes::end_run(run, GRACE);
}

/// Gives the command a session of its own: no terminal to write to or ask on, and a group of its own.
#[allow(unsafe_code)]
fn own_session(command: &mut Command) {
    let enter = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: the closure runs in the child between fork and exec and may do only what is
    // async-signal-safe: it makes the one system call setsid(2), which is, and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

enum Followed {
    Exited(ExitStatus),
    TimedOut,
    Stopped,
}

/// A started command. Dropped before it is settled, it is killed with all it started.
struct Running {
    child: Child,
    pid: i32,
    call: Arc<str>,
    pipe: Receiver,
    buffer: Vec<u8>,
    settled: bool,
}

impl Running {
    async fn follow(
        &mut self,
        capture: &mut Capture,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> io::Result<Followed> {
        let deadline = Instant::now().checked_add(timeout);
        let time_is_up = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_is_up);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Followed::Stopped),
                () = &mut time_is_up => return Ok(Followed::TimedOut),
                status = self.child.wait() => return Ok(Followed::Exited(status?)),
                read = self.pipe.read(&mut self.buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => capture.push(&self.buffer[..count]),
                },
            }
        }
    }

    /// Reads one piece; whether more may come.
    async fn read(&mut self, capture: &mut Capture) -> bool {
        match self.pipe.read(&mut self.buffer).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                capture.push(&self.buffer[..count]);
                true
            }
        }
    }

    /// Reads what is there after the shell has ended; whether someone still holds the pipe.
    async fn drain(&mut self, capture: &mut Capture) -> bool {
        let deadline = Instant::now() + DRAIN;
        loop {
            match tokio::time::timeout_at(deadline, self.read(capture)).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => break,
            }
        }
        // On a busy machine the time may be up before what lies in the pipe was noticed.
        for _ in 0..64 {
            match nix::unistd::read(&self.pipe, &mut self.buffer) {
                Ok(0) => return false,
                Ok(count) => capture.push(&self.buffer[..count]),
                Err(_) => break,
            }
        }
        true
    }

    /// Asks the whole tree to end, then kills what is left of it.
    async fn cut_short(mut self, mut capture: Capture, end: CommandEnd) -> CommandOutput {
        processes::signal_group(self.pid, Signal::SIGTERM);
        let mut left = processes::signal_all(Owner::Call(&self.call), Signal::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while left > 0 && Instant::now() < deadline {
            // Who tidies up may write about it; a full pipe must not keep it from ending.
            let _ = tokio::time::timeout(Duration::from_millis(20), self.drain_while_open(&mut capture)).await;
            processes::reap();
            left = processes::find(Owner::Call(&self.call)).len();
        }
        // The shell has not been waited for yet, so its number is still its own.
        processes::signal_group(self.pid, Signal::SIGKILL);
        let call = Arc::clone(&self.call);
        let killing = move || processes::kill_until_gone(Owner::Call(&call), KILLING);
        let _ = tokio::task::spawn_blocking(killing).await;
        let _ = tokio::time::timeout(KILLING, self.child.wait()).await;
        self.drain(&mut capture).await;
        self.settled(false);
        processes::reap();
        CommandOutput { end, output: capture.captured(), left: processes::leftovers(self.pid, &self.call) }
    }

    async fn drain_while_open(&mut self, capture: &mut Capture) {
        while self.read(capture).await {}
        // Nobody writes any more; the caller's time limit ends this.
        std::future::pending().await
    }

    fn settled(&mut self, leaves_something: bool) {
        self.settled = true;
        processes::waited(self.pid, leaves_something);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        if self.child.id().is_some() {
            processes::signal_group(self.pid, Signal::SIGKILL);
        }
        processes::kill_until_gone(Owner::Call(&self.call), KILLING);
        // The runtime waits for the shell itself.
        processes::waited(self.pid, false);
    }
}

fn end_of(status: ExitStatus) -> CommandEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandEnd::Exited(code),
        (None, Some(signal)) => CommandEnd::Signalled(signal),
        (None, None) => CommandEnd::Exited(-1),
    }
}

impl CommandEnd {
    /// The exit code; as shells say it, 128 and more for a signal. None when we ended it.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signalled(signal) => Some(128 + signal),
            Self::TimedOut | Self::Stopped => None,
        }
    }
}

impl std::fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {number}"),
            },
            Self::TimedOut => f.write_str("timed out"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The first `name` on `path` that is a file someone may run.
pub fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runnable = |file: &Path| {
        let metadata = file.metadata();
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| runnable(file))
}

/// What a program of our own said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleOutput {
    /// How it ended.
    pub end: CommandEnd,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl SimpleOutput {
    /// Whether it ended with exit code 0.
    pub fn ok(&self) -> bool {
        self.end == CommandEnd::Exited(0)
    }

    /// Its standard output as text, without the line end.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

/// Runs a program of our own (git, say) with exactly this environment and no input.
///
/// # Errors
/// When it can't be started, or with [`io::ErrorKind::TimedOut`] when it takes longer than `timeout`.
///
/// # Cancellation
/// Dropping the future kills the program.
#[allow(clippy::disallowed_methods)]
pub async fn simple(
    program: impl AsRef<OsStr>,
    arguments: &[&OsStr],
    cwd: &Path,
    environment: &[(String, String)],
    timeout: Duration,
) -> io::Result<SimpleOutput> {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(cwd)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        // What it leaves behind on purpose (a cache daemon, say) is not taken for a tool's.
        .env(RUN_VARIABLE, "")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    match tokio::time::timeout(timeout, command.output()).await {
        Ok(output) => output.map(|output| SimpleOutput {
            end: end_of(output.status),
            stdout: output.stdout,
            stderr: output.stderr,
        }),
        Err(_) => {
            let why =
                format!("`{}` took longer than {} s and was killed", program.to_string_lossy(), timeout.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}
