//! A person's shell: a home of their own, folders to work in, variables, and the program run there
//! as a process, with what it printed. All temporary.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up; generous, since machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scenario that passes in its first cycle: `result.txt` holds `new`.
const QUICK: &str = r#"
name: quick
worker:
  - turns:
      - tool_calls:
          - { tool: write_file, arguments: { path: result.txt, content: "new\n" } }
          - { tool: write_file, arguments: { path: __output.json, content: '{"summary":"wrote it","text_content":"","files":["result.txt"]}' } }
      - text: done
checker:
  - turns:
      - tool_calls: [{ tool: read_file, arguments: { path: result.txt } }]
      - text: '{"verdict":"passed","reason":"it is there","feedback":"","verified":["result.txt holds new [1]"]}'
"#;

/// A scenario whose Worker begins with a command that does not end by itself.
const ENDLESS: &str = r#"
name: endless
worker:
  - turns:
      - tool_calls: [{ tool: bash_command, arguments: { command: "touch began; sleep 600" } }]
      - text: done
"#;

/// The shell.
pub struct Shell {
    dir: TempDir,
    folder: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Shell {
    /// In an empty folder; scripted models speak without pauses.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("shell").tempdir().expect("a temporary folder");
        let root = dir.path().canonicalize().expect("it exists");
        for name in ["home", "work", "scenarios"] {
            fs::create_dir(root.join(name)).expect("a folder");
        }
        fs::write(root.join("scenarios/quick.yaml"), QUICK).expect("a file");
        fs::write(root.join("scenarios/endless.yaml"), ENDLESS).expect("a file");
        let variables = BTreeMap::from([
            ("HOME".to_owned(), root.join("home").display().to_string()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("SUPER_AGENT_SCRIPTED_DELAY".to_owned(), "0".to_owned()),
            // Neither git's settings nor a model server of this machine count.
            ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
            ("OLLAMA_HOST".to_owned(), "127.0.0.1:1".to_owned()),
        ]);
        Self { folder: root.join("work"), dir, variables }
    }

    /// A path beside the home folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("it exists").join(name)
    }

    /// The folder it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Goes to a folder beside the home folder, which is made when it is not there.
    pub fn go(&mut self, name: &str) -> PathBuf {
        self.folder = self.path(name);
        fs::create_dir_all(&self.folder).expect("a folder");
        self.folder.clone()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// Writes a file of the person's configuration folder.
    pub fn configure(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path("home/.config/super-agent").join(name);
        fs::create_dir_all(file.parent().expect("it has one")).expect("a folder");
        fs::write(&file, text).expect("a file");
        file
    }

    /// The model that plays one of the scenarios above.
    pub fn model(&self, scenario: &str) -> String {
        format!("scripted/{}", self.path("scenarios").join(format!("{scenario}.yaml")).display())
    }

    /// The folders of all sessions in the usual root.
    pub fn homes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("home/.local/share/super-agent/sessions"));
        entries.into_iter().flatten().flatten().map(|e| e.path()).filter(|p| p.join("state").is_dir()).collect()
    }

    /// The folder of the only session.
    #[track_caller]
    pub fn home(&self) -> PathBuf {
        let homes = self.homes();
        assert_eq!(homes.len(), 1, "{homes:?}");
        homes[0].clone()
    }

    /// The program, ready to be started here.
    pub fn program(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_super-agent"), arguments)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env_clear().envs(&self.variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program and expects this exit code.
    #[track_caller]
    pub fn run(&self, arguments: &[&str], code: i32) -> Ran {
        self.read(arguments, "", code)
    }

    /// The same with something on standard input.
    #[track_caller]
    pub fn read(&self, arguments: &[&str], input: &str, code: i32) -> Ran {
        let mut child = self.program(arguments).stdin(Stdio::piped()).spawn().expect("the program starts");
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let ran = finish(child);
        assert_eq!(ran.code, Some(code), "{arguments:?}\n{}\n{}", ran.stderr, ran.stdout);
        ran
    }

    /// Runs a session on a scenario and expects this exit code.
    #[track_caller]
    pub fn session(&self, scenario: &str, arguments: &[&str], code: i32) -> Ran {
        let model = if scenario.contains('/') { scenario.to_owned() } else { self.model(scenario) };
        self.run(&[&["run", "--model", &model, "do it"], arguments].concat(), code)
    }

    /// Runs git here and returns what it printed; it must succeed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let ran = finish(self.command("git", arguments).spawn().expect("git starts"));
        assert_eq!(ran.code, Some(0), "git {arguments:?}: {}", ran.stderr);
        ran.stdout
    }
}

/// Waits for a program's end and reads what it printed.
#[track_caller]
pub fn finish(mut child: Child) -> Ran {
    let mut readers = Vec::new();
    let out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>);
    let err = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>);
    for pipe in [out, err] {
        readers.push(thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }));
    }
    let end = wait_until("the program's end", || {
        let ended = child.try_wait().expect("it can be waited for");
        ended.or_else(|| {
            thread::sleep(Duration::from_millis(3));
            None
        })
    });
    let mut texts = readers.into_iter().map(|reader| reader.join().expect("a reader does not panic"));
    let mut next = || texts.next().unwrap_or_default();
    Ran { code: end.code(), stdout: next(), stderr: next() }
}

/// Waits until `done` gives something.
#[track_caller]
pub fn wait_until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a run printed and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// All of it.
    pub stdout: String,
    /// All of it.
    pub stderr: String,
}

impl Ran {
    /// Standard error holds all of these.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in:\n{}", self.stderr);
        }
        self
    }

    /// Standard output holds all of these.
    #[track_caller]
    pub fn shows(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stdout.contains(part), "`{part}` is not in:\n{}", self.stdout);
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}
