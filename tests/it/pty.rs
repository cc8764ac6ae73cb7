//! The whole interface in a real pseudo-terminal, as a person uses it: launch, watch, stop, resume,
//! rewind there and back, look at an earlier cycle, leave. Every way out gives the terminal back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::screen::{PATIENCE, Terminal};

const WIDE: (u16, u16) = (160, 48);
const ESC: &str = "\x1b";
const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const CTRL_S: &str = "\x13";

/// Within this time of its end, nothing of a stopped session may run.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Two cycles; in the first one a command hangs until it is killed, with a child of its own. It
/// leaves the numbers of both in `{pids}`.
const WALK: &str = r#"
name: walk
objective: Keep notes
worker:
  - turns:
      - text: I plan the notes.
        tool_calls:
          - { tool: goal, arguments: { add: [Begin the notes, Hand them in], reason: Two steps } }
          - { tool: write_file, arguments: { path: notes.md, content: "begun\n" } }
      - text: I begin.
        tool_calls:
          - { tool: goal, arguments: { done: The notes are begun, focus: "2" } }
          - { tool: write_file, arguments: { path: page.md, content: "first version\n" } }
      - text: I wait for something.
        tool_calls:
          - tool: bash_command
            arguments: { command: "sleep 300 & echo $$ $! > '{pids}.new' && mv '{pids}.new' '{pids}'; sleep 300" }
      - text: I go on.
        tool_calls:
          - { tool: goal, arguments: { add: [Polish the notes], reason: They are rough } }
          - { tool: write_file, arguments: { path: extra.md, content: "polished\n" } }
          - tool: write_file
            arguments:
              path: __output.json
              content: '{"summary": "Began the notes", "text_content": "", "files": ["notes.md", "page.md", "extra.md"], "instruction_to_user": ""}'
      - text: The notes are handed in.
  - turns:
      - text: I mend the page.
        tool_calls:
          - { tool: write_file, arguments: { path: page.md, content: "second version\n" } }
          - tool: write_file
            arguments:
              path: __output.json
              content: '{"summary": "Mended the notes", "text_content": "", "files": ["page.md"], "instruction_to_user": ""}'
      - text: The page is mended.
checker:
  - turns:
      - text: I look.
        tool_calls: [{ tool: read_file, arguments: { path: page.md } }]
      - text: '{"verdict": "needs_improvement", "reason": "The page is the first version.", "feedback": "Write the second.", "verified": ["page.md holds the first version [1]"]}'
  - turns:
      - text: I look again.
        tool_calls: [{ tool: read_file, arguments: { path: page.md } }]
      - text: '{"verdict": "passed", "reason": "The page is the second version.", "feedback": "", "verified": ["page.md holds the second version [1]"]}'
"#;

/// A home with a configuration that plays a scenario.
struct Home(TempDir);

impl Home {
    fn new(model: &str) -> Self {
        let home = Self(tempfile::tempdir().expect("a temporary folder"));
        let config = home.0.path().join(".config/super-agent");
        std::fs::create_dir_all(&config).expect("the configuration's folder");
        std::fs::create_dir_all(home.0.path().join(".run")).expect("the runtime folder");
        let text = format!("model = \"{model}\"\nchecker_model = \"{model}\"\nworkspace = \"{}\"\n", home.workspace());
        std::fs::write(config.join("config.toml"), text).expect("the configuration");
        home
    }

    /// A home whose model plays `WALK`.
    fn walking() -> Self {
        let home = Self::new("scripted/walk.yaml");
        let pids = home.pids().display().to_string();
        std::fs::write(home.0.path().join("walk.yaml"), WALK.replace("{pids}", &pids)).expect("the scenario");
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn workspace(&self) -> String {
        self.path().join("sessions").display().to_string()
    }

    fn pids(&self) -> PathBuf {
        self.path().join("pids")
    }

    fn start(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(self.path(), arguments, WIDE, &[])
    }

    /// The only session's folder.
    fn session(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.workspace()).expect("the workspace").flatten().map(|e| e.path());
        let is_session = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("session-"));
        let mut sessions: Vec<_> = entries.filter(is_session).collect();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions.remove(0)
    }

    /// Every file of a folder of the session, by path.
    fn files(&self, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.session().join(folder);
        let mut found = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of the session").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&root).expect("below the folder").to_path_buf();
                    found.insert(name, std::fs::read(&path).expect("a file of the session"));
                }
            }
        }
        found
    }

    /// What the cycles handed in, and the plans of their Workers: each goal and where it stands.
    fn delivered(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for (path, content) in self.files("") {
            let name = path.to_string_lossy();
            if name.starts_with("__output") && !name.contains("superseded") {
                found.insert(path, String::from_utf8(content).expect("JSON is text"));
            } else if name.ends_with("goal.json") {
                let plan: serde_json::Value = serde_json::from_slice(&content).expect("a plan");
                let goals = plan["goals"].as_array().expect("its goals").iter();
                let goals: Vec<_> = goals.map(|g| format!("{} {}", g["description"], g["status"])).collect();
                found.insert(path, goals.join("\n"));
            }
        }
        found
    }

    /// The processes of the hanging command, once it runs.
    fn hanging(&self) -> Vec<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(text) = std::fs::read_to_string(self.pids()) {
                let pids = text.split_whitespace().map(|n| n.parse().expect("a process number")).collect();
                std::fs::remove_file(self.pids()).expect("it is ours");
                return pids;
            }
            assert!(Instant::now() < until, "the command never ran");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whether a process still runs; one that nobody has buried yet does not.
fn runs(pid: i32) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().expect("ps runs");
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

#[track_caller]
fn assert_gone(pids: &[i32]) {
    assert!(pids.len() >= 2, "{pids:?}");
    let until = Instant::now() + STOP_WITHIN;
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(Instant::now() < until, "still running: {pids:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Launches the walk from the form and waits until its command hangs.
fn launch(terminal: &mut Terminal) {
    terminal.wait_for("No sessions yet");
    terminal.keys("n");
    terminal.wait_for("New session");
    terminal.wait_for("scripted/");
    terminal.keys("Keep notes");
    terminal.wait_for("Keep notes");
    terminal.keys(CTRL_S);
}

#[test]
fn a_session_is_launched_watched_stopped_resumed_rewound_and_browsed() {
    let home = Home::walking();
    let mut terminal = home.start(&[]);

    launch(&mut terminal);
    terminal.wait_for("▶ worker running");
    terminal.wait_for("Begin the notes");
    terminal.wait_for("sleep 300");
    terminal.wait_for("the worker is at work");
    terminal.wait_for("not handed in yet");
    let hanging = home.hanging();
    assert!(hanging.iter().all(|pid| runs(*pid)), "{hanging:?}");

    terminal.keys("s");
    terminal.wait_for("■ stopped");
    assert_gone(&hanging);

    terminal.keys("c");
    terminal.wait_for("Continue this session");
    terminal.keys(ENTER);
    terminal.wait_for("✓ passed after 2 cycles");
    terminal.wait_for("needs_improvement");
    terminal.wait_for("page.md holds the second version");
    terminal.wait_for("Mended the notes");
    let (files, delivered) = (home.files("files"), home.delivered());
    assert_eq!(files[Path::new("page.md")], b"second version\n");
    assert!(files.contains_key(Path::new("extra.md")));

    // Back to the first cycle, to where nothing hung yet, and on from there another way.
    terminal.keys("r");
    terminal.wait_for("Timeline");
    terminal.wait_for("▌    6");
    terminal.keys("g");
    terminal.wait_for("▌    2");
    terminal.move_to(DOWN, "wrote page.md");
    terminal.wait_for("Cycles undone: 1, 2");
    for said in ["Goals dropped (1)", "Polish the notes", "Files restored (2)", "extra.md", "page.md"] {
        terminal.wait_for(said);
    }
    terminal.keys("i");
    terminal.wait_for("New instruction");
    terminal.keys("Keep it short");
    terminal.wait_for("Then the Worker is told: Keep it short");
    // One Enter ends the instruction, the next one rewinds.
    terminal.keys(ENTER);
    terminal.wait_for("Enter rewind");
    terminal.keys(ENTER);
    let hanging = home.hanging();
    terminal.wait_for("▶ worker running");
    terminal.wait_for("Keep it short");
    terminal.wait_until("the plan of then", |screen| {
        screen.contains("1 Plan 1/2") && screen.contains("Hand them in") && !screen.contains("Polish the notes")
    });
    let now = home.files("files");
    assert_eq!(now[Path::new("page.md")], b"first version\n");
    assert!(!now.contains_key(Path::new("extra.md")), "{:?}", now.keys());
    terminal.keys("s");
    terminal.wait_for("■ stopped");
    assert_gone(&hanging);

    // And back to what was put aside.
    terminal.keys("r");
    terminal.wait_for("Timeline");
    terminal.keys("b");
    terminal.wait_for("put aside by a rewind");
    terminal.keys("G");
    terminal.wait_until("the end of what was put aside under the cursor", |screen| {
        screen.lines().any(|row| row.contains('▌') && row.contains("The page is mended."))
    });
    terminal.wait_for("Cycles brought back: 1, 2");
    terminal.wait_for("Messages that leave the main path (2)");
    terminal.keys(ENTER);
    terminal.wait_without("Timeline");
    terminal.wait_for("Mended the notes");
    assert_eq!(home.files("files"), files);
    assert_eq!(home.delivered(), delivered);

    // What cycle 1 delivered.
    terminal.keys("a");
    terminal.wait_for("Cycles ·");
    terminal.wait_for("2  ✓ passed");
    terminal.move_to(UP, "Began the notes");
    terminal.keys(ENTER);
    terminal.wait_for("cycle 1 as it stood then");
    terminal.wait_for("cycle 1 · __output.json");
    terminal.wait_for("Began the notes");

    terminal.keys("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn leaving_while_a_session_runs_asks_and_stops_it() {
    let home = Home::walking();
    let mut terminal = home.start(&[]);
    launch(&mut terminal);
    let hanging = home.hanging();
    terminal.keys("q");
    terminal.wait_for("A session is running");
    terminal.keys(ESC);
    terminal.wait_without("A session is running");
    assert!(hanging.iter().all(|pid| runs(*pid)), "{hanging:?}");
    terminal.keys("q");
    terminal.wait_for("A session is running");
    terminal.keys("y");
    assert_eq!(terminal.exit_code(), 0);
    assert_gone(&hanging);
    terminal.assert_restored();
}

#[test]
fn a_signal_stops_what_runs_and_gives_the_terminal_back() {
    let home = Home::walking();
    let mut terminal = home.start(&[]);
    launch(&mut terminal);
    let hanging = home.hanging();
    kill(Pid::from_raw(terminal.pid()), Signal::SIGTERM).expect("it can be told");
    terminal.exit_code();
    assert_gone(&hanging);
    terminal.assert_restored();
}

#[test]
fn every_screen_answers_at_every_size() {
    let home = Home::new("scripted/rehearsal");
    let mut terminal = home.start(&["demo"]);
    terminal.wait_for("✓ passed after 2 cycles");
    for (columns, rows) in [(100, 30), (60, 20), (40, 10), (160, 48)] {
        terminal.resize(columns, rows);
        for (keys, words) in [
            ("?", "Keys"),
            (":", "Actions"),
            ("t", "Themes"),
            ("L", "Log"),
            ("r", "Timeline"),
            ("a", "Cycles"),
            ("c", "Continue"),
            ("E", "Contract"),
            ("p", "Apply"),
        ] {
            terminal.keys(keys);
            terminal.wait_for(words);
            terminal.keys(ESC);
            terminal.wait_without(words);
        }
    }
    terminal.keys("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn without_a_terminal_the_way_out_is_named() {
    let home = Home::new("scripted/rehearsal");
    for arguments in [&[][..], &["demo"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_super-agent"))
            .args(arguments)
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("terminal") && said.contains("super-agent run"), "{said}");
        assert!(output.stdout.is_empty());
    }
}
