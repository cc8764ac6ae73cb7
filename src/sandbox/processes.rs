//! Which processes belong to a command, also those that left its group, and ending them all.
//! Does not start commands; `exec` does.
//!
//! On Linux this process is made a child subreaper: a daemon whose parent ends becomes our child
//! instead of init's, so nothing that a command starts leaves our tree. What belongs to a command
//! is known by a variable in its environment, by its session, or by who started it. Elsewhere
//! only the process group is known.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The variable that marks everything a trace's commands start.
pub(super) const RUN_VARIABLE: &str = "SUPER_AGENT_RUN";

/// The variable that marks everything one command starts.
pub(super) const CALL_VARIABLE: &str = "SUPER_AGENT_CALL";

/// Whose processes are meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner<'a> {
    /// One command's.
    Call(&'a str),
    /// All commands of a trace.
    Run(&'a str),
}

/// A process that a command left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its id.
    pub pid: i32,
    /// Its command line.
    pub command: String,
}

/// A command's marks, and its shell, which leads a session of its own.
#[derive(Clone, Debug)]
struct Session {
    run: Arc<str>,
    call: Arc<str>,
    /// Its shell is ours to wait for.
    waited_for: bool,
}

/// The sessions of all commands by their shell's process id. Global because what it describes is:
/// a process has one set of children, whoever asks. A std mutex: held for a spawn or a look at
/// `/proc`, never across an await.
static SESSIONS: Mutex<Option<HashMap<i32, Session>>> = Mutex::new(None);

fn sessions() -> MutexGuard<'static, Option<HashMap<i32, Session>>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child with `spawn` and notes it before anyone can take it for an orphan.
pub(super) fn spawn_noted<T>(
    run: &Arc<str>,
    call: &Arc<str>,
    spawn: impl FnOnce() -> io::Result<(i32, T)>,
) -> io::Result<(i32, T)> {
    let mut sessions = sessions();
    let (pid, child) = spawn()?;
    let session = Session { run: Arc::clone(run), call: Arc::clone(call), waited_for: true };
    sessions.get_or_insert_default().insert(pid, session);
    Ok((pid, child))
}

/// The shell has been waited for. What it leaves running stays known by its session.
pub(super) fn waited(pid: i32, leaves_something: bool) {
    let mut sessions = sessions();
    let Some(sessions) = sessions.as_mut() else { return };
    if leaves_something {
        if let Some(session) = sessions.get_mut(&pid) {
            session.waited_for = false;
        }
    } else {
        sessions.remove(&pid);
    }
}

/// Forgets a trace's commands, once all of its processes are gone.
fn forget(run: &str) {
    if let Some(sessions) = sessions().as_mut() {
        sessions.retain(|_, session| &*session.run != run || session.waited_for);
    }
}

/// Orphans become our children from now on.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!(%error, "can't become a child subreaper; daemons are found by their marks only");
    }
}

/// Sends `signal` to a command's group. Only while its shell has not been waited for: afterwards
/// the number may be another's.
pub(super) fn signal_group(shell: i32, signal: Signal) {
    // It may be gone already, which is what is wanted.
    let _ = killpg(Pid::from_raw(shell), signal);
}

/// Sends `signal` to all of the owner's processes; returns how many there were.
pub(super) fn signal_all(owner: Owner<'_>, signal: Signal) -> usize {
    let found = find(owner);
    for pid in &found {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
    found.len()
}

/// Kills until nothing of the owner is left, or `within` has passed. Blocks. Returns how many are
/// left: none, unless one sleeps in the kernel.
pub(super) fn kill_until_gone(owner: Owner<'_>, within: Duration) -> usize {
    let deadline = Instant::now() + within;
    loop {
        let left = signal_all(owner, Signal::SIGKILL);
        reap();
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Asks a trace's processes to end, kills those that don't within `grace`, and forgets them. Blocks.
pub(super) fn end_run(run: &str, grace: Duration) -> usize {
    let deadline = Instant::now() + grace;
    let mut left = signal_all(Owner::Run(run), Signal::SIGTERM);
    while left > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        reap();
        left = find(Owner::Run(run)).len();
    }
    let left = if left > 0 { kill_until_gone(Owner::Run(run), Duration::from_secs(1)) } else { 0 };
    if left == 0 {
        forget(run);
    }
    left
}

#[cfg(target_os = "linux")]
pub(super) use linux::{find, leftovers, reap};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::fs;

    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::{Pid, getsid};

    use super::{CALL_VARIABLE, Leftover, Owner, RUN_VARIABLE, Session, sessions};

    /// One line of the process table.
    #[derive(Clone, Copy, Debug)]
    struct Process {
        pid: i32,
        parent: i32,
        session: i32,
        zombie: bool,
    }

    fn me() -> i32 {
        // Process ids are positive and fit.
        std::process::id().cast_signed()
    }

    fn read(pid: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything, also parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some(Process { pid, parent, session, zombie: matches!(state, "Z" | "X") })
    }

    fn all() -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(read).collect()
    }

    /// Our direct children, without a walk over the whole table where the kernel lists them.
    fn children() -> Vec<Process> {
        let listed: Option<Vec<i32>> = fs::read_dir("/proc/self/task").ok().and_then(|tasks| {
            let mut pids = Vec::new();
            for task in tasks.flatten() {
                match fs::read_to_string(task.path().join("children")) {
                    Ok(line) => pids.extend(line.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
                    // The thread may be gone; a kernel without this file has it for no thread.
                    Err(_) if task.path().exists() => return None,
                    Err(_) => {}
                }
            }
            Some(pids)
        });
        match listed {
            Some(pids) => pids.into_iter().filter_map(read).collect(),
            None => all().into_iter().filter(|process| process.parent == me()).collect(),
        }
    }

    /// Whether a process' environment, as it was started with, holds `name=value`.
    fn is_marked(pid: i32, name: &str, value: Option<&str>) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|line| {
            let line = line.strip_prefix(name.as_bytes()).and_then(|line| line.strip_prefix(b"="));
            line.is_some_and(|line| value.is_none_or(|value| line == value.as_bytes()))
        })
    }

    impl Owner<'_> {
        fn marks(self, pid: i32) -> bool {
            match self {
                Self::Call(call) => is_marked(pid, CALL_VARIABLE, Some(call)),
                Self::Run(run) => is_marked(pid, RUN_VARIABLE, Some(run)),
            }
        }

        fn has(self, session: &Session) -> bool {
            match self {
                Self::Call(call) => &*session.call == call,
                Self::Run(run) => &*session.run == run,
            }
        }
    }

    /// All living processes of the owner.
    pub(in crate::sandbox) fn find(owner: Owner<'_>) -> Vec<i32> {
        let known = sessions().clone().unwrap_or_default();
        let all = all();
        let parents: HashMap<i32, i32> = all.iter().map(|process| (process.pid, process.parent)).collect();
        let alone = known.values().all(|session| owner.has(session)) && !known.is_empty();
        let mine = |process: &Process| {
            let ours = || is_below(process.pid, me(), &parents);
            owner.marks(process.pid)
                || known.get(&process.session).is_some_and(|session| owner.has(session)) && ours()
                || alone && is_stray(process, &known)
        };
        let mut found: HashSet<i32> = all.iter().filter(|p| p.pid != me() && mine(p)).map(|p| p.pid).collect();
        let roots = found.clone();
        found.extend(all.iter().map(|p| p.pid).filter(|pid| roots.iter().any(|root| is_below(*pid, *root, &parents))));
        all.iter()
            .filter(|process| found.contains(&process.pid) && !process.zombie)
            .map(|process| process.pid)
            .collect()
    }

    /// An adopted daemon that dropped its marks and its session: known only by not being ours.
    fn is_stray(process: &Process, known: &HashMap<i32, Session>) -> bool {
        process.parent == me()
            && !known.contains_key(&process.pid)
            && !known.contains_key(&process.session)
            && Some(process.session) != own_session()
            && !is_marked(process.pid, RUN_VARIABLE, None)
    }

    fn own_session() -> Option<i32> {
        getsid(None).ok().map(Pid::as_raw)
    }

    fn is_below(pid: i32, ancestor: i32, parents: &HashMap<i32, i32>) -> bool {
        let mut at = pid;
        // The table is read while it changes; nothing real is deeper than it is long.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some(parent) if *parent == ancestor => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    }

    /// What a command whose shell has ended still has running.
    pub(in crate::sandbox) fn leftovers(shell: i32, call: &str) -> Vec<Leftover> {
        let adopted = children().into_iter().filter(|process| process.pid != shell && !process.zombie);
        let left = adopted.filter(|process| process.session == shell || Owner::Call(call).marks(process.pid));
        left.map(|process| Leftover { pid: process.pid, command: command_line(process.pid) }).collect()
    }

    fn command_line(pid: i32) -> String {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        let line = words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
        crate::stdx::bounded::first_line(&line, 100)
    }

    /// Takes in adopted processes that have ended. Only those: waiting for any child would take
    /// the exit codes of children that others wait for. A child started by us is in the table or
    /// in our own session; an orphan of a command is neither.
    pub(in crate::sandbox) fn reap() {
        // Held throughout, so that no child is started but not yet noted.
        let known = sessions();
        let waited_for = |pid: &i32| known.as_ref().and_then(|known| known.get(pid)).is_some_and(|s| s.waited_for);
        for process in children() {
            if process.zombie && !waited_for(&process.pid) && Some(process.session) != own_session() {
                let _ = waitpid(Pid::from_raw(process.pid), Some(WaitPidFlag::WNOHANG));
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{find, leftovers, reap};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use nix::sys::signal::killpg;
    use nix::unistd::Pid;

    use super::{Leftover, Owner, sessions};

    /// The owner's groups that still have someone in them, as negative numbers: `kill` takes a
    /// negative process id for a group.
    pub(in crate::sandbox) fn find(owner: Owner<'_>) -> Vec<i32> {
        let known = sessions().clone().unwrap_or_default();
        let groups = known.into_iter().filter(|(_, session)| match owner {
            Owner::Call(call) => &*session.call == call,
            Owner::Run(run) => &*session.run == run,
        });
        groups.filter(|(group, _)| killpg(Pid::from_raw(*group), None).is_ok()).map(|(group, _)| -group).collect()
    }

    /// Whether the group of a command whose shell has ended still has someone in it.
    pub(in crate::sandbox) fn leftovers(shell: i32, _call: &str) -> Vec<Leftover> {
        let alive = killpg(Pid::from_raw(shell), None).is_ok();
        let leftover = Leftover { pid: shell, command: "(its process group)".to_owned() };
        alive.then_some(leftover).into_iter().collect()
    }

    /// Orphans belong to init here.
    pub(in crate::sandbox) fn reap() {}
}
