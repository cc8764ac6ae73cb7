//! Tests of the built-in tools through the registry, as an agent calls them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::events::data::{ChangeKind, FileChange};
use crate::sandbox::exec::Shell;
use crate::tools::registry::{Registry, Selection, Toolset};
use crate::tools::{Descriptor, Ended, GoalChange, Goals, Need, OneOrMany, Tool, ToolCx, ToolOutcome};

/// A plan that only remembers what it was asked for.
#[derive(Default)]
struct Plan(Mutex<Vec<GoalChange>>);

impl Goals for Plan {
    fn apply(&self, change: GoalChange) -> Result<String, String> {
        if change.focus.as_deref() == Some("9") {
            return Err("there is no goal 9; there is 1".to_owned());
        }
        self.0.lock().unwrap().push(change);
        Ok("1. [pending] a".to_owned())
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    cx: ToolCx,
    plan: Arc<Plan>,
    tools: Toolset,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let cwd = base.join("work");
    fs::create_dir(&cwd).unwrap();
    let plan = Arc::new(Plan::default());
    let snapshot = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let cx = ToolCx {
        cwd,
        temp: base.join("tmp"),
        outputs: base.join("outputs"),
        call_id: "call_1".to_owned(),
        cancel: CancellationToken::new(),
        output_chars: 30_000,
        command_timeout: Duration::from_secs(60),
        git_ceiling: Some(base.clone()),
        shell: Shell::new(snapshot, &format!("tools {}", base.display())),
        goals: plan.clone(),
    };
    let tools = Registry::builtin().select(&Selection::default()).unwrap();
    Fixture { dir, cx, plan, tools }
}

impl Fixture {
    async fn run(&self, name: &str, arguments: Value) -> ToolOutcome {
        self.tools.run(&self.cx, name, &arguments.to_string()).await
    }

    /// Runs what must succeed and returns its output.
    async fn ran(&self, name: &str, arguments: Value) -> String {
        let outcome = self.run(name, arguments).await;
        assert_eq!(outcome.ended, Ended::Ran, "{}", outcome.output);
        outcome.output
    }

    /// Runs what must fail and returns why.
    async fn failed(&self, name: &str, arguments: Value) -> String {
        let outcome = self.run(name, arguments).await;
        assert_eq!(outcome.ended, Ended::Failed, "{}", outcome.output);
        outcome.output
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.cx.cwd.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.cx.cwd.join(path)).unwrap()
    }
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "`{part}` is not in:\n{text}");
}

#[test]
fn all_tools_together_cost_few_tokens() {
    let specs = Registry::builtin().select(&Selection::default()).unwrap().specs();
    let bytes = serde_json::to_string(&*specs).unwrap().len();
    assert!(bytes <= 4_500, "{bytes} bytes");
}

#[tokio::test]
async fn lines_are_numbered_and_ranges_say_what_there_is() {
    let fixture = fixture();
    fixture.file("a.txt", "\u{feff}one\r\ntwo\n漢字\nlast");
    let read = async |arguments| fixture.ran("Read", arguments).await;
    assert_eq!(read(json!({"path": "a.txt"})).await, "1\tone\n2\ttwo\n3\t漢字\n4\tlast\n");
    assert_eq!(read(json!({"path": "a.txt", "start": 2, "end": 3})).await, "2\ttwo\n3\t漢字\n[of 4 lines]\n");
    assert_eq!(read(json!({"path": "a.txt", "start": 9})).await, "`a.txt` has no line 9; it has 4 lines");
    fixture.file("empty", "");
    assert_eq!(read(json!({"path": "empty"})).await, "`empty` is empty");
    fixture.file("latin", b"caf\xe9\n");
    assert_eq!(read(json!({"path": "latin"})).await, "1\tcaf\u{fffd}\n");
    has(&fixture.failed("read", json!({"path": "a.txt", "start": 3, "end": 2})).await, "`end` 2 comes before");
    has(&fixture.failed("read", json!({"path": "b.txt"})).await, "its folder holds `a.txt`");
    has(&fixture.failed("read", json!({"path": "."})).await, "list_files");
}

#[tokio::test]
async fn a_long_file_is_paged_to_its_end() {
    let mut fixture = fixture();
    fixture.cx.output_chars = 2_000;
    let lines: String = (1..=1_000).map(|n| format!("line {n}\n")).collect();
    fixture.file("long.txt", lines);
    let (mut start, mut seen) = (1, Vec::new());
    loop {
        let page = fixture.ran("read_file", json!({"path": "long.txt", "start": start})).await;
        assert!(page.chars().count() <= 2_000);
        seen.extend(
            page.lines().filter(|line| !line.starts_with('[')).map(|line| line.split_once('\t').unwrap().1.to_owned()),
        );
        match page.rsplit_once("read on with start ") {
            Some((_, rest)) => start = rest.trim_end().trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    let expected: Vec<String> = (1..=1_000).map(|n| format!("line {n}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn an_endless_line_is_cut() {
    let fixture = fixture();
    fixture.file("min.js", format!("{}\nnext\n", "漢".repeat(100_000)));
    let output = fixture.ran("read_file", json!({"path": "min.js"})).await;
    has(&output, "漢… [294.0 KB more on this line]\n2\tnext\n");
    assert!(output.chars().count() < 2_100);
}

#[tokio::test]
async fn binary_files_are_named_and_images_are_shown() {
    let fixture = fixture();
    fixture.file("prog", b"\x7fELF\0\0\0");
    has(&fixture.failed("read_file", json!({"path": "prog"})).await, "binary (a program, 7 bytes)");
    fixture.file("dot.png", b"\x89PNG\r\n\x1a\nrest");
    let outcome = fixture.run("read_file", json!({"path": "dot.png"})).await;
    assert_eq!(outcome.images, ["data:image/png;base64,iVBORw0KGgpyZXN0"]);
    let mut large = b"\xff\xd8\xff".to_vec();
    large.resize(5 * 1024 * 1024 + 1, 1);
    fixture.file("large.jpg", large);
    has(&fixture.failed("read_file", json!({"path": "large.jpg"})).await, "image of 5.2 MB");
}

#[tokio::test]
async fn a_pipe_does_not_hang_a_reader() {
    let fixture = fixture();
    nix::unistd::mkfifo(&fixture.cx.cwd.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    has(&fixture.failed("read_file", json!({"path": "pipe"})).await, "no ordinary file");
    has(&fixture.failed("write_file", json!({"path": "pipe", "content": ""})).await, "no ordinary file");
    assert_eq!(fixture.ran("grep_content", json!({"pattern": "x"})).await, "no line matches\n");
}

#[tokio::test]
async fn a_written_file_is_whole_keeps_its_mode_and_is_reported() {
    let fixture = fixture();
    let write =
        async |path: &str, content: &str| fixture.run("write_file", json!({"path": path, "content": content})).await;
    let change = |kind, added, removed| {
        vec![FileChange { path: "a/b/run.sh".to_owned(), kind, added: Some(added), removed: Some(removed) }]
    };
    let outcome = write("a/b/run.sh", "one\ntwo\n").await;
    assert_eq!(
        (outcome.output.as_str(), outcome.files),
        ("wrote a/b/run.sh (new, 2 lines)", change(ChangeKind::Added, 2, 0))
    );
    let file = fixture.cx.cwd.join("a/b/run.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = write("a/b/run.sh", "one\n2\n3\n").await;
    assert_eq!(
        (outcome.title.as_str(), outcome.files),
        ("write a/b/run.sh (+2 −1)", change(ChangeKind::Modified, 2, 1))
    );
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(write("a/b/run.sh", "one\n2\n3\n").await.files, change(ChangeKind::Unchanged, 0, 0));
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    has(&write("a/b", "x").await.output, "is a folder");
    has(&write("new/", "x").await.output, "names a folder");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    has(&write("a/b/run.sh", "x").await.output, "read-only");
}

#[tokio::test]
async fn nothing_outside_the_working_directory_is_touched() {
    let fixture = fixture();
    let outside = fixture.dir.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "hidden").unwrap();
    symlink(&outside, fixture.cx.cwd.join("out")).unwrap();
    symlink(outside.join("new"), fixture.cx.cwd.join("dangling")).unwrap();
    let secret = outside.join("secret").display().to_string();
    let calls = [
        ("read_file", json!({"path": secret})),
        ("read_file", json!({"path": "out/secret"})),
        ("read_file", json!({"path": "../outside/secret"})),
        ("write_file", json!({"path": "dangling", "content": "x"})),
        ("write_file", json!({"path": "out/new", "content": "x"})),
        ("edit_file", json!({"path": "out/secret", "old": "hidden", "new": "x"})),
        ("list_files", json!({"path": "out"})),
        ("glob_files", json!({"path": "..", "pattern": "*"})),
        ("glob_files", json!({"pattern": "../**"})),
        ("grep_content", json!({"path": "/etc", "pattern": "root"})),
        ("bash_command", json!({"command": "true", "cwd": "out"})),
    ];
    for (name, arguments) in calls {
        let outcome = fixture.run(name, arguments.clone()).await;
        assert_eq!(outcome.ended, Ended::Refused, "{name} {arguments}: {}", outcome.output);
        has(&outcome.output, fixture.cx.cwd.to_str().unwrap());
    }
    // Walks do not follow links either.
    assert_eq!(fixture.ran("grep_content", json!({"pattern": "hidden"})).await, "no line matches\n");
    assert!(!outside.join("new").exists());
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "hidden");
}

#[tokio::test]
async fn an_edit_needs_exactly_one_place() {
    let fixture = fixture();
    fixture.file("a.rs", "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n");
    let edit = |old: &str, new: &str| json!({"path": "a.rs", "old": old, "new": new});
    let why = fixture.failed("edit_file", edit("one()", "two()")).await;
    assert_eq!(
        why,
        "`old` occurs 2 times in `a.rs`, at lines 2, 5; add lines around the one you mean, or set replace_all"
    );
    let why = fixture.failed("edit_file", edit("fn a() {\n  one();", "x")).await;
    has(&why, "lines 1–2 differ from it only in white space:\nfn a() {\n    one();\n");
    has(
        &fixture.failed("edit_file", edit("fn aa() {\n  three();", "x")).await,
        "line 1 is nearest to its first line: fn a() {",
    );
    has(&fixture.failed("edit_file", edit("", "x")).await, "`old` is empty");
    has(&fixture.failed("edit_file", edit("x", "x")).await, "the same");
    assert_eq!(fixture.content("a.rs"), "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n");

    let outcome = fixture.run("edit_file", edit("fn b() {\n    one();", "fn b() {\n    two();\n    three();")).await;
    assert_eq!(outcome.output, "edited a.rs (+2 −1) at line 4");
    let arguments = json!({"path": "a.rs", "old": "();", "new": "()?;", "replace_all": "true"});
    assert_eq!(fixture.ran("edit_file", arguments).await, "edited a.rs (+3 −3) at lines 2, 5, 6");
    assert_eq!(fixture.content("a.rs"), "fn a() {\n    one()?;\n}\nfn b() {\n    two()?;\n    three()?;\n}\n");
}

#[tokio::test]
async fn line_ends_and_byte_order_marks_stay() {
    let fixture = fixture();
    let check = async |before: &str, old: &str, new: &str, after: &str| {
        fixture.file("a.txt", before);
        fixture.ran("edit_file", json!({"path": "a.txt", "old": old, "new": new})).await;
        assert_eq!(fixture.content("a.txt"), after);
    };
    check("\u{feff}one\r\ntwo\r\n", "one\ntwo", "1\n2\n3", "\u{feff}1\r\n2\r\n3\r\n").await;
    check("one\r\ntwo\r\n", "two", "2\n3", "one\r\n2\r\n3\r\n").await;
    check("one\r\ntwo\nthree\n", "one\ntwo", "1\n2", "1\r\n2\nthree\n").await;
    check("one\ntwo", "two", "二", "one\n二").await;
}

#[tokio::test]
async fn trees_leave_out_what_is_ignored_unless_it_is_named() {
    let fixture = fixture();
    fixture.file("src/deep/er/a.rs", "a");
    fixture.file("src/main.rs", "main");
    fixture.file("target/debug/out", "x");
    fixture.file(".git/config", "x");
    fixture.file(".gitignore", "target\n*.log\n");
    fixture.file("src/x.log", "x");
    // Above the working directory ignore files don't count for a folder of our own.
    fs::write(fixture.dir.path().join(".gitignore"), "*\n").unwrap();
    let list = async |arguments| fixture.ran("list_files", arguments).await;
    let expected = ".gitignore (13 bytes)\nsrc/\n  deep/\n  main.rs (4 bytes)\n";
    assert_eq!(list(json!({})).await, expected);
    assert_eq!(list(json!({"path": "src", "depth": 1})).await, "deep/\nmain.rs (4 bytes)\n");
    assert_eq!(list(json!({"path": "target"})).await, "debug/\n  out (1 byte)\n");
    fs::create_dir(fixture.cx.cwd.join("void")).unwrap();
    has(&list(json!({"path": "void"})).await, "is empty");
    has(&fixture.failed("list_files", json!({"path": "src/main.rs"})).await, "is a file");
    has(&fixture.failed("list_files", json!({"path": "none"})).await, "there is no folder");
}

#[tokio::test]
async fn the_newest_file_comes_first() {
    let fixture = fixture();
    let now = SystemTime::now();
    for (path, age) in [("a.rs", 30), ("src/b.rs", 10), ("src/deep/漢字.rs", 20), ("c.txt", 0)] {
        let file = fs::File::open(fixture.file(path, "x")).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    let glob = async |arguments| fixture.ran("glob", arguments).await;
    assert_eq!(glob(json!({"pattern": "*.rs"})).await, "src/b.rs\nsrc/deep/漢字.rs\na.rs\n");
    assert_eq!(glob(json!({"pattern": "src/*.rs"})).await, "src/b.rs\n");
    assert_eq!(glob(json!({"pattern": "**/*.{txt,md}"})).await, "c.txt\n");
    assert_eq!(glob(json!({"pattern": "b*", "path": "src"})).await, "src/b.rs\n");
    let whole = format!("{}/src/**/*.rs", fixture.cx.cwd.display());
    assert_eq!(glob(json!({"pattern": whole})).await, "src/b.rs\nsrc/deep/漢字.rs\n");
    assert_eq!(glob(json!({"pattern": "*.py"})).await, "no file matches");
    has(&fixture.failed("glob_files", json!({"pattern": "a[", "path": "."})).await, "is not a glob pattern");
}

#[tokio::test]
async fn matching_lines_come_with_their_numbers_and_neighbours() {
    let fixture = fixture();
    fixture.file("a.rs", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\n");
    fixture.file("src/b.txt", "TWO 漢字\nlast two");
    fixture.file("bin", b"two\0");
    let grep = async |arguments| fixture.ran("grep", arguments).await;
    assert_eq!(grep(json!({"pattern": "two$"})).await, "a.rs\n2: two\nsrc/b.txt\n2: last two\n");
    assert_eq!(grep(json!({"pattern": "(?i)two", "glob": "*.txt"})).await, "src/b.txt\n1: TWO 漢字\n2: last two\n");
    let context = grep(json!({"pattern": "^(one|two|six)", "path": "a.rs", "context": 1})).await;
    assert_eq!(context, "a.rs\n1: one\n2: two\n3- three\n--\n5- five\n6: six\n");
    // Nothing matches across lines, and an empty match is in each line.
    assert_eq!(grep(json!({"pattern": "one\\s+two"})).await, "no line matches\n");
    assert_eq!(grep(json!({"pattern": "^", "path": "src"})).await, "src/b.txt\n1: TWO 漢字\n2: last two\n");
    has(&fixture.failed("grep", json!({"pattern": "a("})).await, "not a regular expression");
    has(&fixture.failed("grep", json!({"pattern": "a", "path": "none"})).await, "there is no file or folder");
}

#[tokio::test]
async fn many_matches_are_bounded() {
    let mut fixture = fixture();
    fixture.cx.output_chars = 1_000;
    for n in 0..600 {
        fixture.file(&format!("f{n:03}"), format!("{} needle {}\n", "x".repeat(5_000), "y".repeat(5_000)));
    }
    let output = fixture.ran("grep_content", json!({"pattern": "needle"})).await;
    assert!(output.chars().count() <= 1_000, "{output}");
    has(&output, "f000\n1: …x");
    has(&output, "more left out");
    let output = fixture.ran("glob_files", json!({"pattern": "f*"})).await;
    assert!(output.chars().count() <= 1_000);
    has(&output, "older ones left out");
    let output = fixture.ran("list_files", json!({})).await;
    assert!(output.chars().count() <= 1_000);
    has(&output, "more left out");
}

#[tokio::test]
async fn a_command_says_how_it_went() {
    let fixture = fixture();
    fixture.file("sub/x", "");
    let outcome = fixture.run("bash", json!({"command": "ls; echo bad >&2; exit 3", "cwd": "sub"})).await;
    assert_eq!((outcome.ended, outcome.exit_code), (Ended::Ran, Some(3)));
    assert_eq!(outcome.output, "exit code 3\nx\nbad\n");
    assert_eq!(outcome.title, "run ls; echo bad >&2; exit 3");
    assert_eq!(fixture.ran("bash_command", json!({"command": "true"})).await, "exit code 0, no output");
    has(&fixture.failed("bash", json!({"command": " "})).await, "`command` is empty");
    has(&fixture.failed("bash", json!({"command": "true", "timeout_s": 120000})).await, "1 to 600 seconds");
    has(&fixture.failed("bash", json!({"command": "true", "cwd": "sub/x"})).await, "names no folder");
    let outcome = fixture.run("bash", json!({"command": "echo before; sleep 1000", "timeout_s": 1})).await;
    assert_eq!((outcome.ended, outcome.exit_code), (Ended::TimedOut, None));
    has(&outcome.output, "timed out after 1 s");
    let outcome = fixture.run("bash", json!({"command": "x".repeat(300_000)})).await;
    assert_eq!(outcome.ended, Ended::Failed);
    has(&outcome.output, "too long to start");
}

#[tokio::test]
async fn a_long_output_can_be_read_in_full() {
    let mut fixture = fixture();
    fixture.cx.output_chars = 2_000;
    // Once within what is kept in memory, once beyond it.
    for (call, count) in [("a", 1_000_u64), ("b", 100_000)] {
        fixture.cx.call_id = call.to_owned();
        let output = fixture.ran("bash_command", json!({"command": format!("seq {count}")})).await;
        assert!(output.chars().count() <= 2_000, "{}", output.chars().count());
        assert!(output.starts_with("exit code 0\n1\n2\n") && output.ends_with(&format!("\n{count}\n")));
        let (before, after) = output.split_once("\n[lines ").unwrap();
        let last_before: u64 = before.lines().last().unwrap().parse().unwrap();
        let first_after: u64 = after.split_once("]\n").unwrap().1.lines().next().unwrap().parse().unwrap();
        has(after, &format!("{}–{} left out", last_before + 1, first_after - 1));
        let rest = json!({"path": format!("output:{call}"), "start": last_before + 1, "end": last_before + 2});
        let expected = format!("{0}\t{0}\n{1}\t{1}\n[of {count} lines]\n", last_before + 1, last_before + 2);
        assert_eq!(fixture.ran("read_file", rest).await, expected);
    }
    has(&fixture.failed("read_file", json!({"path": "output:nothing"})).await, "no stored output");
    has(&fixture.failed("read_file", json!({"path": "output:../work/x"})).await, "no stored output");
}

#[tokio::test]
async fn a_background_command_is_followed_by_its_output() {
    let fixture = fixture();
    let said = fixture.ran("bash", json!({"command": "echo up; sleep 1000", "background": true})).await;
    has(&said, "output:call_1");
    let pid: i32 = said.split_once("pid ").unwrap().1.split_once(';').unwrap().0.parse().unwrap();
    loop {
        let output = fixture.ran("read_file", json!({"path": "output:call_1"})).await;
        if output == "1\tup\n" {
            break;
        }
        assert_eq!(output, "`output:call_1` is empty");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.cx.shell.end().await;
    assert!(
        !PathBuf::from(format!("/proc/{pid}/environ")).exists()
            || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default().is_empty()
    );
}

#[tokio::test]
async fn a_stop_ends_a_command_and_everything_after_it() {
    let fixture = fixture();
    let call = fixture.run("bash", json!({"command": "touch ready; sleep 1000"}));
    let stop = async {
        while !fixture.cx.cwd.join("ready").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fixture.cx.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert_eq!(outcome.ended, Ended::Stopped);
    assert_eq!(fixture.run("write_file", json!({"path": "a", "content": ""})).await.ended, Ended::Stopped);
    assert!(!fixture.cx.cwd.join("a").exists());
}

#[tokio::test]
async fn goals_go_through_the_port() {
    let fixture = fixture();
    let outcome = fixture.run("goal", json!({"add": ["a", "b"], "done": "it works"})).await;
    assert_eq!(
        (outcome.title.as_str(), outcome.output.as_str()),
        ("goal: done it works; add 2 goals", "1. [pending] a")
    );
    let add = OneOrMany::Many(vec!["a".to_owned(), "b".to_owned()]);
    let expected = GoalChange { add: Some(add), done: Some("it works".to_owned()), ..GoalChange::default() };
    assert_eq!(*fixture.plan.0.lock().unwrap(), [expected]);
    assert_eq!(fixture.failed("goal", json!({"focus": "9"})).await, "there is no goal 9; there is 1");
    has(&fixture.failed("goal", json!({})).await, "nothing to change");
    has(&fixture.failed("goal", json!({"under": "1"})).await, "give `add` too");
    has(&fixture.failed("goal", json!({"add": 5})).await, "`add` must be string | [string]");
}

#[tokio::test]
async fn only_selected_tools_run() {
    let fixture = fixture();
    let registry = Registry::builtin();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let select = |allow: Option<&[&str]>, block: &[&str], read_only| {
        registry.select(&Selection { allow: allow.map(words), block: words(block), read_only })
    };
    let reading = select(None, &["goal"], true).unwrap();
    assert_eq!(reading.names(), ["read_file", "list_files", "glob_files", "grep_content"]);
    let outcome = reading.run(&fixture.cx, "Write", r#"{"path":"a","content":""}"#).await;
    assert_eq!(outcome.ended, Ended::Refused);
    assert_eq!(
        outcome.output,
        "write_file is not allowed here; allowed here: read_file, list_files, glob_files, grep_content"
    );
    assert_eq!(reading.canonical_name("BASH"), Some("bash_command"));
    let few = select(Some(&["Bash", "read", "edit"]), &["EDIT_FILE"], false).unwrap();
    assert_eq!(few.names(), ["read_file", "bash_command"]);
    assert_eq!(few.specs().iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), few.names());
    let error = select(None, &["browser"], false).err().unwrap();
    assert!(error.starts_with("unknown tool `browser` among the blocked tools; there are read_file, "), "{error}");
    let outcome = fixture.tools.run(&fixture.cx, "read_fil", "{}").await;
    assert_eq!(outcome.ended, Ended::Failed);
    has(&outcome.output, "there is no tool `read_fil`; did you mean read_file? allowed here: read_file, write_file");
}

/// A tool that breaks.
struct Broken(Descriptor);

#[async_trait]
impl Tool for Broken {
    fn descriptor(&self) -> &Descriptor {
        &self.0
    }

    fn title(&self, _: &Value) -> String {
        "break".to_owned()
    }

    async fn call(&self, _: &ToolCx, _: Value) -> ToolOutcome {
        super::blocking(|| panic!("index 3 of 2")).await
    }
}

#[tokio::test]
async fn a_tool_that_breaks_is_an_outcome() {
    let fixture = fixture();
    let mut registry = Registry::builtin();
    let broken = |name, aliases| Arc::new(Broken(super::describe::<GoalChange>(name, "", aliases, Need::Read)));
    registry.add(broken("broken", &[])).unwrap();
    assert_eq!(registry.add(broken("other", &["Read"])).unwrap_err(), "tool name `Read` is taken by `read_file`");
    let tools = registry.select(&Selection::default()).unwrap();
    let outcome = tools.run(&fixture.cx, "broken", "").await;
    assert_eq!((outcome.ended, outcome.title.as_str()), (Ended::Failed, "break"));
    has(&outcome.output, "index 3 of 2");
    assert_eq!(tools.title("broken", "{"), "broken");
    assert_eq!(tools.title("edit", r#"{"path":"src/a.rs"}"#), "edit src/a.rs");
}

#[tokio::test]
async fn calls_run_beside_each_other() {
    let fixture = fixture();
    let calls = (0..16).map(|n| {
        let mut cx = fixture.cx.clone();
        cx.call_id = format!("call_{n}");
        let tools = fixture.tools.clone();
        async move {
            let written = json!({"path": format!("d/{n}"), "content": format!("{n}\n")}).to_string();
            tools.run(&cx, "write_file", &written).await;
            tools.run(&cx, "bash", &json!({"command": format!("cat d/{n}")}).to_string()).await.output
        }
    });
    let outputs = futures_util::future::join_all(calls).await;
    let expected: Vec<String> = (0..16).map(|n| format!("exit code 0\n{n}\n")).collect();
    assert_eq!(outputs, expected);
}
