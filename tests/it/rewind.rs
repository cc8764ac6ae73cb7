//! Rewinding a session of the real program: what the preview promises is what happens, and
//! nothing is lost by it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::desk::{Desk, Ended, SessionFolder, assert_order, only};

/// Two cycles. Messages of the first Worker: 1 instruction, 2 task, 3–5 plan and `a.txt`, 6–9 the
/// command, 10–12 hand-over, 13 end. Of the second: 3–5 plan and command, 6–7 hand-over, 8 end.
const SCENARIO: &str = r#"
worker:
  - turns:
      - text: I plan and write.
        tool_calls:
          - {tool: goal, arguments: {add: [Base, More]}}
          - {tool: write_file, arguments: {path: a.txt, content: "one\n"}}
      - text: I go on with a command.
        tool_calls:
          - {tool: goal, arguments: {focus: "1"}}
          - {tool: goal, arguments: {done: Wrote the base, focus: "2", add: Later}}
          - tool: bash_command
            arguments: {command: "echo two > a.txt; echo made > b.txt; mkdir d; echo deep > d/c.txt; chmod +x b.txt"}
      - text: I hand in.
        tool_calls:
          - {tool: goal, arguments: {done: More is there}}
          - tool: write_file
            arguments: {path: __output.json, content: "{\"summary\": \"first\", \"files\": [\"a.txt\", \"b.txt\"]}"}
      - text: Handed in.
  - turns:
      - text: I mend.
        tool_calls:
          - {tool: goal, arguments: {add: Mend}}
          - {tool: bash_command, arguments: {command: "rm -r d; echo mended > a.txt; echo new > e.txt"}}
      - text: I hand in again.
        tool_calls:
          - tool: write_file
            arguments: {path: __output.json, content: "{\"summary\": \"second\", \"files\": [\"a.txt\", \"e.txt\"]}"}
      - text: Handed in again.
checker:
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "needs_improvement", "reason": "more", "feedback": "mend it", "verified": ["a.txt [1]"]}'
  - turns:
      - tool_calls: [{tool: read_file, arguments: {path: a.txt}}]
      - text: '{"verdict": "passed", "reason": "fine", "feedback": "", "verified": ["a.txt is mended [1]"]}'
"#;

struct Rig {
    desk: Desk,
    session: SessionFolder,
    /// The Workers of the two cycles.
    workers: [String; 2],
}

impl Rig {
    fn passed() -> Self {
        let desk = Desk::new();
        let model = desk.scenario("two", SCENARIO);
        desk.events(&["run", "--json", "--model", &model, "write files"], 0);
        let session = desk.session();
        let workers = [session.worker(1), session.worker(2)];
        Self { desk, session, workers }
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Ended {
        let ended = self.desk.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        ended
    }

    /// Everything that a rewind may change and its undoing must bring back.
    fn standing(&self) -> Standing {
        let record = self.session.record();
        let mut traces = BTreeMap::new();
        for cycle in record["cycles"].as_array().unwrap() {
            let trace = cycle["worker_trace_id"].as_str().or_else(|| cycle["detail"]["worker_trace_id"].as_str());
            let Some(trace) = trace else { continue };
            let head = self.session.json(&format!(".trace/{trace}/meta.json"))["head_sequence"].clone();
            let goals = self.session.json(&format!(".trace/{trace}/goal.json"));
            let plan = goals["goals"].as_array().unwrap().iter();
            let plan = plan.map(|g| json!([g["id"], g["description"], g["status"], g["summary"], g["parent_id"]]));
            traces.insert(
                trace.to_owned(),
                json!({"head": head, "plan": plan.collect::<Vec<_>>(),
                "focus": goals["current_id"]}),
            );
        }
        Standing {
            files: self.session.tree("files"),
            traces,
            cycles: record["cycles"].clone(),
            status: record["status"].clone(),
            outcome: record["outcome"].clone(),
            deliverable: fs::read_to_string(self.session.file("__output.json")).unwrap_or_default(),
            archive: archive(&self.session.home, false),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Standing {
    files: BTreeMap<String, Vec<u8>>,
    traces: BTreeMap<String, Value>,
    cycles: Value,
    status: Value,
    outcome: Value,
    deliverable: String,
    archive: BTreeMap<String, String>,
}

/// The archived hand-overs, those put aside or the others.
fn archive(home: &Path, superseded: bool) -> BTreeMap<String, String> {
    let entries = fs::read_dir(home).unwrap().flatten();
    let named = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
    let wanted = named.filter(|(n, _)| n.starts_with("__output_cycle_") && n.contains("superseded") == superseded);
    wanted.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

fn text(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    files.iter().map(|(name, content)| (name.clone(), String::from_utf8_lossy(content).into_owned())).collect()
}

fn named(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

/// The lines below a heading of the preview.
fn below(preview: &str, heading: &str) -> Vec<String> {
    let mut lines = preview.lines().skip_while(|line| *line != heading).skip(1);
    let mut found = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.starts_with("  ")) {
        found.push(line.trim().to_owned());
    }
    found
}

#[test]
fn the_preview_says_what_the_rewind_then_does_and_undoing_brings_everything_back() {
    let rig = Rig::passed();
    let [first, second] = &rig.workers;
    let before = rig.standing();
    let on_disk = rig.session.tree("");

    // Message 4 is a tool result; the cut moves behind all results of its step.
    let preview = rig.run(&["rewind", "last", "--trace", first, "--to", "4", "--dry-run"], 0).stdout;
    assert_eq!(rig.session.tree(""), on_disk, "a preview changes nothing");
    assert!(preview.starts_with("back to message 5 of cycle 1\n"), "{preview}");
    let leaving = below(&preview, "messages that leave:");
    let numbers: Vec<&str> = leaving.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(
        numbers,
        ["6", "7", "8", "9", "10", "11", "12", "13", "1", "2", "3", "4", "5", "6", "7", "8"],
        "{preview}"
    );
    assert_eq!(below(&preview, "goals dropped:"), ["Later"]);
    assert_eq!(below(&preview, "goals open again:"), ["Base", "More"]);
    assert_eq!(below(&preview, "undone:"), ["cycle 1", "cycle 2"]);
    for file in ["~ a.txt (+1 −1)", "- b.txt", "- e.txt", "-mended", "+one"] {
        assert!(preview.contains(file), "`{file}` is not in:\n{preview}");
    }
    assert!(below(&preview, "can't be taken back:").iter().any(|l| l.contains("echo two")), "{preview}");

    let said = rig.run(&["rewind", "last", "--trace", first, "--to", "4"], 0);
    assert!(said.stdout.contains("rewound to message 5 of cycle 1"), "{}", said.stdout);
    let rewound = rig.standing();
    assert_eq!(text(&rewound.files), named(&[("a.txt", "one\n")]), "files changed by commands too");
    assert_eq!(rewound.traces.keys().collect::<Vec<_>>(), [first]);
    let plan = &rewound.traces[first];
    assert_eq!(plan["head"], 5);
    assert_eq!(plan["focus"], Value::Null);
    let goals = json!([["1", "Base", "pending", null, null], ["2", "More", "pending", null, null]]);
    assert_eq!(plan["plan"], goals);
    assert_eq!(rewound.archive, BTreeMap::new());
    assert_eq!(rewound.deliverable, "");
    assert_eq!((&rewound.status, &rewound.outcome), (&json!("stopped"), &json!("stopped")), "it is no longer passed");
    let aside: Vec<String> = archive(&rig.session.home, true).into_keys().collect();
    assert_eq!(aside, ["__output_cycle_0001.superseded-1.json", "__output_cycle_0002.superseded-1.json"]);

    // Rewinding to the abandoned branch's end.
    let preview = rig.run(&["rewind", "last", "--trace", second, "--to", "8", "--dry-run"], 0).stdout;
    assert!(preview.contains("undoes an earlier rewind"), "{preview}");
    assert_eq!(below(&preview, "brought back:"), ["cycle 1", "cycle 2"], "{preview}");
    let returning = below(&preview, "messages that come back:");
    assert_eq!(returning.len(), 16, "6–13 of the first Worker, all of the second: {preview}");
    rig.run(&["rewind", "last", "--trace", second, "--to", "8"], 0);
    assert_eq!(rig.standing(), before);
    assert_order(&rig.session.journal());
}

#[test]
fn a_rewind_with_a_message_runs_on_and_passes_and_either_branch_can_be_had_again() {
    let rig = Rig::passed();
    let [first, second] = &rig.workers;
    let before = rig.standing();
    let arguments = ["rewind", "last", "--trace", first, "--to", "5", "--json", "do it otherwise"];
    let events = rig.desk.events(&arguments, 0);
    assert_order(&events);
    assert_order(&rig.session.journal());
    let record = only(&events, "rewind");
    assert_eq!((&record["cut"], &record["old_head"], &record["to_cycle"]), (&json!(5), &json!(13), &json!(1)));
    assert_eq!(only(&events, "rewind_applied")["rewind_event_id"], record["event_id"]);
    assert_eq!(only(&events, "session_resumed")["message"], "do it otherwise");

    let messages = rig.session.messages(first);
    let path = rig.session.main_path(first);
    assert_eq!(path[..6], [1, 2, 3, 4, 5, 14], "new messages hang on the cut; old ones stay in the tree");
    assert!((6..=13).all(|old| messages.contains_key(&old) && !path.contains(&old)));
    assert!(messages[&14]["content"].to_string().contains("do it otherwise"));
    let goals = rig.session.json(&format!(".trace/{first}/goal.json"));
    let ids: Vec<&Value> = goals["goals"].as_array().unwrap().iter().map(|g| &g["id"]).collect();
    assert_eq!(ids, ["1", "2", "4"], "the id of a dropped goal is not handed out again");
    let again = rig.standing();
    assert_eq!((&again.status, &again.outcome), (&json!("completed"), &json!("passed")));
    assert_eq!(text(&again.files), text(&before.files), "the script does the same again");
    let third = rig.session.worker(2);
    assert!(third != *second, "the second cycle is run anew");

    rig.run(&["rewind", "last", "--trace", second, "--to", "8"], 0);
    assert_eq!(rig.standing(), before, "the first branch is back");
    let end = rig.session.main_path(&third).last().unwrap().to_string();
    rig.run(&["rewind", "last", "--trace", &third, "--to", &end], 0);
    assert_eq!(rig.standing(), again, "and the other again");
    // One more cycle; its script changes nothing any more, so the gates send it back.
    let more = rig.desk.events(&["resume", "last", "--json", "--max-cycles", "3"], 1);
    assert_eq!(only(&more, "cycle_start")["cycle"], 3);
    assert_order(&rig.session.journal());
}

#[test]
fn a_rewind_within_the_newest_cycle_leaves_the_ones_before_it() {
    let rig = Rig::passed();
    let [first, second] = &rig.workers;
    let before = rig.standing();
    rig.run(&["rewind", "last", "--to", "5"], 0);
    let rewound = rig.standing();
    assert_eq!(rewound.traces[first], before.traces[first]);
    assert_eq!(rewound.traces[second]["head"], 5);
    assert_eq!(rewound.cycles[0], before.cycles[0]);
    assert_eq!(rewound.archive.keys().collect::<Vec<_>>(), ["__output_cycle_0001.json"]);
    assert!(rewound.deliverable.contains("first"), "the newest valid hand-over is the one before");
    let aside: Vec<String> = archive(&rig.session.home, true).into_keys().collect();
    assert_eq!(aside, ["__output_cycle_0002.superseded-1.json"]);
    // Resumed without a word, the Worker just answers again.
    let events = rig.desk.events(&["resume", "last", "--json"], 0);
    assert_order(&events);
    assert_eq!(rig.standing().outcome, "passed");
    assert_eq!(rig.standing().archive.len(), 2);
    rig.run(&["rewind", "last", "--trace", second, "--to", "8"], 0);
    assert_eq!(rig.standing(), before, "the abandoned end is back");
}

#[test]
fn files_stay_when_asked_and_what_the_person_changed_is_kept_unless_told_otherwise() {
    let rig = Rig::passed();
    let first = &rig.workers[0];
    let files = rig.session.tree("files");
    rig.run(&["rewind", "last", "--trace", first, "--to", "5", "--keep-files"], 0);
    assert_eq!(rig.session.tree("files"), files);
    assert_eq!(rig.standing().traces[first]["head"], 5);

    let rig = Rig::passed();
    let first = &rig.workers[0];
    fs::write(rig.session.file("files/a.txt"), "mine\n").unwrap();
    fs::write(rig.session.file("files/own.txt"), "mine too\n").unwrap();
    let preview = rig.run(&["rewind", "last", "--trace", first, "--to", "5", "--dry-run"], 0).stdout;
    assert_eq!(below(&preview, "changed by you since, so kept:"), ["a.txt", "own.txt"], "{preview}");
    rig.run(&["rewind", "last", "--trace", first, "--to", "5"], 0);
    assert_eq!(text(&rig.session.tree("files")), named(&[("a.txt", "mine\n"), ("own.txt", "mine too\n")]));
    let applied = rig.session.journal();
    assert_eq!(only(&applied, "rewind_applied")["kept"], json!(["a.txt", "own.txt"]));

    let rig = Rig::passed();
    let first = &rig.workers[0];
    fs::write(rig.session.file("files/a.txt"), "mine\n").unwrap();
    fs::write(rig.session.file("files/own.txt"), "mine too\n").unwrap();
    rig.run(&["rewind", "last", "--trace", first, "--to", "5", "--overwrite-changed"], 0);
    assert_eq!(text(&rig.session.tree("files")), named(&[("a.txt", "one\n")]));
}

#[test]
fn a_rewind_cut_short_by_a_crash_is_finished_at_the_next_start() {
    let rig = Rig::passed();
    let first = &rig.workers[0];
    let before = tempfile::tempdir().unwrap();
    copy(&rig.session.home, before.path());
    rig.run(&["rewind", "last", "--trace", first, "--to", "5"], 0);
    let done = rig.standing();
    let journal = rig.session.text("state/events.jsonl");
    let cut: Vec<&str> = journal.lines().collect();
    assert!(cut.last().unwrap().contains("\"rewind_applied\""), "{}", cut.last().unwrap());
    let cut = cut[..cut.len() - 1].join("\n") + "\n";

    // Everything derived as it was before; the record as the journal or as before; the files half done.
    for (keep_record, half_done) in [(false, false), (true, false), (false, true)] {
        let record = rig.session.text("state/session.json");
        let snapshots = tempfile::tempdir().unwrap();
        copy(&rig.session.file("snapshots"), snapshots.path());
        fs::remove_dir_all(&rig.session.home).unwrap();
        copy(before.path(), &rig.session.home);
        copy(snapshots.path(), &rig.session.file("snapshots"));
        fs::write(rig.session.file("state/events.jsonl"), &cut).unwrap();
        if keep_record {
            fs::write(rig.session.file("state/session.json"), record).unwrap();
        }
        if half_done {
            let (from, to) = ("__output_cycle_0002.json", "__output_cycle_0002.superseded-1.json");
            fs::rename(rig.session.file(from), rig.session.file(to)).unwrap();
            fs::remove_file(rig.session.file("files/e.txt")).unwrap();
        }
        // Whoever takes the session next finishes the rewind first: here one to the same place.
        rig.run(&["rewind", "last", "--trace", first, "--to", "5"], 0);
        let now = rig.standing();
        assert_eq!(text(&now.files), text(&done.files), "record kept: {keep_record}, half done: {half_done}");
        assert_eq!((&now.traces, &now.archive), (&done.traces, &done.archive));
        let applied = rig.session.journal();
        let kinds: Vec<&str> = applied.iter().rev().take(4).map(|e| e["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["rewind_applied", "rewind", "rewind_applied", "rewind"]);
        assert_order(&applied);
    }
    let events = rig.desk.events(&["resume", "last", "--json"], 0);
    assert_order(&events);
    assert_eq!(rig.standing().outcome, "passed");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_wrong_place_to_rewind_to_is_an_error_that_names_the_right_ones() {
    let rig = Rig::passed();
    let [first, second] = &rig.workers;
    let before = rig.session.tree("");
    let check = |arguments: &[&str], says: &[&str]| {
        for dry in [true, false] {
            let mut all = vec!["rewind", "last"];
            all.extend(arguments);
            all.extend(dry.then_some("--dry-run"));
            let ended = rig.run(&all, 2);
            for text in says {
                assert!(ended.stderr.contains(text), "{all:?}: `{text}` is not in: {}", ended.stderr);
            }
        }
    };
    check(&["--to", "77"], &["there is no message 77", "from 2 to 8"]);
    check(&["--to", "14", "--trace", first], &["there is no message 14", "from 2 to 13"]);
    check(&["--to", "1"], &["standing instruction"]);
    check(&["--to", "3", "--trace", "w9-none"], &["w9-none", first, second]);
    assert_eq!(rig.session.tree(""), before, "nothing has changed");
}
