//! Tests with real processes. None of them depends on how fast the machine is: they wait for
//! conditions, and deadlines only end a test that has failed.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use super::exec::{CommandEnd, CommandOutput, CommandSpec, Shell, Stored, simple};

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a shell in it.
struct Fixture {
    dir: tempfile::TempDir,
    shell: Arc<Shell>,
    cancel: CancellationToken,
}

fn fixture() -> Fixture {
    fixture_with(&[])
}

fn fixture_with(more: &[(&str, &str)]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let snapshot = [("PATH", path.as_str()), ("HOME", "/nowhere")].into_iter().chain(more.iter().copied());
    let run = format!("test {}", dir.path().display());
    let shell = Shell::new(snapshot.map(|(name, value)| (name.to_owned(), value.to_owned())), &run);
    Fixture { dir, shell, cancel: CancellationToken::new() }
}

impl Fixture {
    fn spec(&self, command: &str) -> CommandSpec {
        CommandSpec {
            command: command.to_owned(),
            cwd: self.dir.path().to_owned(),
            temp: self.dir.path().join("tmp"),
            git_ceiling: None,
            timeout: PATIENCE,
            keep: 1000,
            output: self.output(),
        }
    }

    fn output(&self) -> PathBuf {
        self.dir.path().join("outputs/call_1")
    }

    async fn run(&self, command: &str) -> CommandOutput {
        self.shell.run(&self.spec(command), &self.cancel).await.unwrap()
    }

    /// The process ids that the commands wrote down.
    fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.dir.path().join("pids")).unwrap_or_default();
        text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

fn is_alive(pid: i32) -> bool {
    let status = simple_status(pid);
    status.is_some_and(|state| state != 'Z' && state != 'X')
}

#[cfg(target_os = "linux")]
fn simple_status(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(not(target_os = "linux"))]
fn simple_status(pid: i32) -> Option<char> {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).ok().map(|()| 'R')
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn output_and_errors_come_in_their_order() {
    let fixture = fixture();
    let output = fixture.run("echo one; echo two >&2; echo 漢字; exit 3").await;
    assert_eq!(output.end, CommandEnd::Exited(3));
    assert_eq!(output.output.head, "one\ntwo\n漢字\n");
    assert_eq!(output.left, []);
    assert!(!fixture.output().exists());
    assert_eq!(fixture.run("kill -9 $$").await.end, CommandEnd::Signalled(9));
    assert_eq!(fixture.run("kill -9 $$").await.end.code(), Some(137));
}

#[tokio::test]
async fn a_command_has_no_keys_no_input_and_no_terminal() {
    let fixture = fixture_with(&[("OPENAI_API_KEY", "sk-1"), ("GH_TOKEN", "t-1"), ("LC_SECRET", "s-1"), ("LANG", "C")]);
    let output = fixture.run("env; cat; if (: < /dev/tty) 2>/dev/null; then echo has-terminal; fi").await.output.head;
    for absent in ["sk-1", "t-1", "s-1", "has-terminal"] {
        assert!(!output.contains(absent), "{absent} in:\n{output}");
    }
    let temp = format!("TMPDIR={}", fixture.dir.path().join("tmp").display());
    for present in [temp.as_str(), "LANG=C", "HOME=/nowhere", "TERM=dumb", "GIT_TERMINAL_PROMPT=0"] {
        assert!(output.lines().any(|line| line == present), "{present} not in:\n{output}");
    }
}

/// Foreground, background, own session, daemon, daemon in its own session, cleared environment.
const TREE: &str = r#"
    note='echo $$ >> pids; exec sleep 1000'
    setsid sh -c "$note" &
    nohup sh -c "$note" >/dev/null 2>&1 &
    (sh -c "$note" &)
    (setsid sh -c "$note" </dev/null >/dev/null 2>&1 &)
    (env -i PATH="$PATH" sh -c "$note" &)
    sh -c 'trap "" TERM; '"$note"
"#;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stop_leaves_nothing_of_a_tree() {
    let fixture = fixture();
    let spec = fixture.spec(TREE);
    let stop = async {
        until("six processes", || fixture.pids().len() == 6).await;
        fixture.cancel.cancel();
        Instant::now()
    };
    let (output, stopped_at) = tokio::join!(fixture.shell.run(&spec, &fixture.cancel), stop);
    assert_eq!(output.unwrap().end, CommandEnd::Stopped);
    assert!(stopped_at.elapsed() < PATIENCE);
    let alive: Vec<i32> = fixture.pids().into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(alive, Vec::<i32>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_timeout_leaves_nothing_of_a_tree() {
    let fixture = fixture();
    let spec = CommandSpec { timeout: Duration::from_millis(700), ..fixture.spec(&format!("echo before; {TREE}")) };
    let output = fixture.shell.run(&spec, &fixture.cancel).await.unwrap();
    assert_eq!(output.end, CommandEnd::TimedOut);
    assert_eq!(output.left, []);
    // However many there were, nothing is left that could start another.
    let alive: Vec<i32> = fixture.pids().into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(alive, Vec::<i32>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_run_leaves_nothing_of_a_tree() {
    let fixture = fixture();
    let spec = fixture.spec(TREE);
    tokio::select! {
        _ = fixture.shell.run(&spec, &fixture.cancel) => panic!("it should still run"),
        () = until("six processes", || fixture.pids().len() == 6) => {}
    }
    let alive: Vec<i32> = fixture.pids().into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(alive, Vec::<i32>::new());
}

#[tokio::test]
async fn who_tidies_up_on_a_stop_gets_the_time_and_is_heard() {
    let fixture = fixture();
    let command = "trap 'echo tidy; exit 0' TERM; touch ready; while :; do sleep 0.05; done";
    let spec = fixture.spec(command);
    let stop = async {
        until("the trap", || fixture.dir.path().join("ready").exists()).await;
        fixture.cancel.cancel();
    };
    let (output, ()) = tokio::join!(fixture.shell.run(&spec, &fixture.cancel), stop);
    let output = output.unwrap();
    assert_eq!(output.end, CommandEnd::Stopped);
    // The shell itself may say before that its `sleep` was terminated.
    assert!(output.output.head.ends_with("tidy\n"), "{}", output.output.head);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_left_running_is_named_lives_on_and_ends_with_the_trace() {
    let fixture = fixture();
    let output = fixture.run("sleep 1000 & setsid sleep 1001 & echo started").await;
    assert_eq!((output.end, output.output.head.as_str()), (CommandEnd::Exited(0), "started\n"));
    assert_eq!(output.output.stored, Stored::Whole);
    let mut commands: Vec<&str> = output.left.iter().map(|left| left.command.as_str()).collect();
    commands.sort_unstable();
    assert_eq!(commands, ["sleep 1000", "sleep 1001"]);
    assert_eq!(fixture.run("true").await.left, []);
    assert!(output.left.iter().all(|left| is_alive(left.pid)));
    fixture.shell.end().await;
    assert!(output.left.iter().all(|left| !is_alive(left.pid)));
}

#[tokio::test]
async fn what_a_leftover_writes_later_is_kept() {
    let fixture = fixture();
    let output = fixture.run("(until test -e go; do sleep 0.02; done; echo later) & echo now").await;
    assert_eq!(output.output.head, "now\n");
    assert_eq!(fs::read_to_string(fixture.output()).unwrap(), "now\n");
    fs::write(fixture.dir.path().join("go"), "").unwrap();
    until("the later line", || fs::read_to_string(fixture.output()).unwrap() == "now\nlater\n").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_orphan_that_ends_is_not_left_as_a_zombie() {
    let fixture = fixture();
    let output = fixture.run("sh -c 'until test -e go; do sleep 0.02; done' &").await;
    let pid = output.left[0].pid;
    fs::write(fixture.dir.path().join("go"), "").unwrap();
    until("its end", || !is_alive(pid)).await;
    fixture.run("true").await;
    assert_eq!(simple_status(pid), None);
}

#[tokio::test]
async fn a_hundred_megabytes_are_bounded_in_memory_and_on_disk() {
    let fixture = fixture();
    let output = fixture.run("echo first; yes 0123456789abcde | head -c 100000000; echo last").await;
    assert_eq!(output.end, CommandEnd::Exited(0));
    let captured = output.output;
    assert_eq!((captured.bytes, captured.newlines), (100_000_011, 6_250_002));
    assert_eq!((captured.head.len(), captured.tail.as_deref().map(str::len)), (1000, Some(1000)));
    assert!(captured.head.starts_with("first\n0123"));
    assert!(captured.tail.unwrap().ends_with("abcde\nlast\n"));
    assert_eq!(captured.stored, Stored::Part);
    let on_disk = fs::metadata(fixture.output()).unwrap().len();
    assert!((64 << 20..(64 << 20) + 200).contains(&on_disk), "{on_disk}");
}

#[tokio::test]
async fn commands_beside_each_other_do_not_touch_each_other() {
    let fixture = fixture();
    let short = CommandSpec { timeout: Duration::from_millis(300), ..fixture.spec("sleep 1000") };
    let long = fixture.spec("until test -e go; do sleep 0.02; done; echo long");
    let timed_out = async {
        let output = fixture.shell.run(&short, &fixture.cancel).await.unwrap();
        fs::write(fixture.dir.path().join("go"), "").unwrap();
        output
    };
    let (timed_out, long) = tokio::join!(timed_out, fixture.shell.run(&long, &fixture.cancel));
    assert_eq!(timed_out.end, CommandEnd::TimedOut);
    let long = long.unwrap();
    assert_eq!((long.end, long.output.head.as_str()), (CommandEnd::Exited(0), "long\n"));
}

#[tokio::test]
async fn a_background_command_tells_its_end_in_its_output() {
    let fixture = fixture();
    let started = fixture.shell.start(&fixture.spec("echo up; until test -e go; do sleep 0.02; done; exit 4")).unwrap();
    until("its first line", || fs::read_to_string(&started.output).unwrap() == "up\n").await;
    fs::write(fixture.dir.path().join("go"), "").unwrap();
    let whole = "up\n\n[ended: exit code 4]\n";
    until("its end", || fs::read_to_string(&started.output).unwrap() == whole).await;
}

#[tokio::test]
async fn a_background_command_ends_with_the_trace() {
    let fixture = fixture();
    let started = fixture.shell.start(&fixture.spec("echo $$ > pids; sleep 1000")).unwrap();
    until("its start", || fixture.pids() == [started.pid]).await;
    fixture.shell.end().await;
    until("its end", || !is_alive(started.pid)).await;
}

#[tokio::test]
async fn a_command_that_can_not_start_says_why() {
    let fixture = fixture();
    let spec = CommandSpec { cwd: fixture.dir.path().join("missing"), ..fixture.spec("true") };
    let error = fixture.shell.run(&spec, &fixture.cancel).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn our_own_programs_end_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let echo = ["-c", "echo out; echo err >&2; exit 2"].map(std::ffi::OsStr::new);
    let output = simple("sh", &echo, dir.path(), &environment, PATIENCE).await.unwrap();
    assert_eq!((output.end, output.text().as_str()), (CommandEnd::Exited(2), "out"));
    assert_eq!(output.stderr, b"err\n");
    let sleep = ["1000"].map(std::ffi::OsStr::new);
    let error = simple("sleep", &sleep, dir.path(), &environment, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}
