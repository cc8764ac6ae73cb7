//! For tests: events made by hand, a person at the keys, and the screen they see.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::ui::{Setup, Ui, Work};
use super::{Colors, Start};
use crate::config::{Config, Glyphs};
use crate::events::data::{
    Artifact, Budget, ChangeKind, CheckerResult, CitedCall, Evidence, FileChange, Gate, Goal, GoalStats, GoalStatus,
    GoalType, Outcome, PermissionMode, Place, PlaceKind, Role, Totals, Verdict, VerdictBy, WorkerResult, WorkerStatus,
};
use crate::events::event::{
    CycleTotals, Envelope, Event, MessageAdded, PerRole, SessionStart, ToolCallEvent, ToolResultEvent,
};
use crate::ids::{GoalId, Seq, SessionId, TraceId};

/// When all tests begin: 2026-11-21 12:04:00 UTC.
pub const START_MS: i64 = 1_795_262_640_000;

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(START_MS + ms).unwrap()
}

pub fn session_id() -> SessionId {
    "k7m2p9xw".into()
}

/// Builds the events of a session, one after another.
pub struct Script {
    pub events: Vec<Arc<Envelope>>,
    pub now_ms: i64,
    pub cycle: Option<u32>,
    pub trace: Option<TraceId>,
    next_id: u64,
    sequence: Seq,
    calls: u32,
    focus: Option<GoalId>,
}

impl Script {
    pub fn new() -> Self {
        Self { events: Vec::new(), now_ms: 0, cycle: None, trace: None, next_id: 1, sequence: 0, calls: 0, focus: None }
    }

    /// A session that has just been launched.
    pub fn launched(name: &str, objective: &str) -> Self {
        let mut script = Self::new();
        script.event(Event::SessionStart(Box::new(session_start(name, objective))));
        script.event(Event::Boundary { level: "files".into(), detail: "files are held, the network is open".into() });
        script
    }

    pub fn event(&mut self, event: Event) -> &mut Self {
        let event_id = (!event.is_delta()).then_some(self.next_id);
        self.next_id += u64::from(event_id.is_some());
        let (cycle, trace_id) = (self.cycle, self.trace.clone());
        let envelope = Envelope { event_id, at: at(self.now_ms), session_id: session_id(), cycle, trace_id, event };
        self.events.push(Arc::new(envelope));
        self
    }

    pub fn wait(&mut self, ms: i64) -> &mut Self {
        self.now_ms += ms;
        self
    }

    pub fn cycle(&mut self, number: u32) -> &mut Self {
        self.cycle = Some(number);
        self.trace = None;
        self.event(Event::CycleStart { input_payload: json!({}) });
        self.run(&format!("w{number}"));
        self.event(Event::WorkerStart { model: "anthropic/sonnet-4".into() })
    }

    /// A new trace.
    pub fn run(&mut self, trace: &str) -> &mut Self {
        self.trace = Some(trace.into());
        self.sequence = 0;
        self.calls = 0;
        self
    }

    pub fn goal(&mut self, id: &str, parent: Option<&str>, status: GoalStatus, description: &str) -> &mut Self {
        let goal = goal(id, parent, status, description);
        if status == GoalStatus::InProgress {
            self.focus = Some(goal.id.clone());
        }
        let current_id = self.focus.clone();
        self.event(Event::GoalAdded { goal: Box::new(goal), position: usize::MAX, current_id })
    }

    /// A message of the model, with the calls it makes.
    pub fn says(&mut self, text: &str, calls: &[&str]) -> &mut Self {
        self.message("assistant", text, calls)
    }

    pub fn message(&mut self, role: &str, text: &str, calls: &[&str]) -> &mut Self {
        self.sequence += 1;
        let tool_calls =
            calls.iter().map(|id| crate::events::data::CallRef { id: (*id).into(), tool: "bash_command".into() });
        let message = MessageAdded {
            sequence: self.sequence,
            parent_sequence: (self.sequence > 1).then(|| self.sequence - 1),
            role: role.into(),
            goal_id: None,
            description: crate::stdx::bounded::first_line(text, 80),
            preview: crate::stdx::bounded::prefix(text, 4096).into(),
            bytes: text.len() as u64,
            tool_calls: tool_calls.collect(),
            tool_call_id: None,
            finish_reason: None,
            branch_type: None,
            duration_ms: None,
        };
        self.event(Event::MessageAdded(Box::new(message)))
    }

    pub fn delta(&mut self, text: &str) -> &mut Self {
        self.event(Event::TextDelta { text: text.into() })
    }

    pub fn call(&mut self, role: Role, id: &str, tool: &str, title: &str) -> &mut Self {
        self.calls += 1;
        let call = ToolCallEvent {
            tool_call_id: id.into(),
            number: self.calls,
            tool: tool.into(),
            title: title.into(),
            arguments: json!({}),
            arguments_bytes: 2,
        };
        self.event(match role {
            Role::Worker => Event::WorkerToolCall(call),
            Role::Checker => Event::CheckerToolCall(call),
        })
    }

    pub fn result(&mut self, role: Role, id: &str, tool: &str, ok: bool, title: &str, ms: u64) -> &mut Self {
        self.result_with(role, id, tool, ok, title, ms, None, Vec::new())
    }

    #[allow(clippy::too_many_arguments)]
    pub fn result_with(
        &mut self,
        role: Role,
        id: &str,
        tool: &str,
        ok: bool,
        title: &str,
        ms: u64,
        exit_code: Option<i32>,
        files: Vec<FileChange>,
    ) -> &mut Self {
        self.now_ms += ms as i64;
        let result = ToolResultEvent {
            tool_call_id: id.into(),
            number: self.calls,
            tool: tool.into(),
            ok,
            title: title.into(),
            output: String::new(),
            output_bytes: 0,
            output_lines: 3,
            exit_code,
            files,
            duration_ms: ms,
        };
        self.event(match role {
            Role::Worker => Event::WorkerToolResult(result),
            Role::Checker => Event::CheckerToolResult(result),
        })
    }

    pub fn usage(&mut self, role: Role, prompt: u64, completion: u64, usd: f64) -> &mut Self {
        let totals = totals(prompt, completion, usd);
        self.event(Event::Usage { role, model: "anthropic/sonnet-4".into(), totals, reported: true })
    }

    pub fn hand_in(&mut self, output: Value, files: &[FileChange]) -> &mut Self {
        let summary = output["summary"].as_str().unwrap_or("").to_owned();
        let artifacts = files.iter().map(|change| Artifact {
            path: change.path.clone(),
            exists: true,
            size: 120,
            sha256: "ab".repeat(32),
            change: Some(change.clone()),
        });
        let result = WorkerResult {
            status: WorkerStatus::Ok,
            summary,
            output,
            artifacts: artifacts.collect(),
            error: None,
            changed: files.to_vec(),
        };
        self.event(Event::WorkerComplete { result: Box::new(result) })
    }

    pub fn gate(&mut self, name: &str, ok: bool, detail: &str) -> &mut Self {
        self.event(Event::GateResult(Gate { name: name.into(), ok, detail: detail.into() }))
    }

    pub fn checker(&mut self) -> &mut Self {
        let trace = format!("c{}", self.cycle.unwrap_or(1));
        self.run(&trace);
        self.event(Event::CheckerStart { model: Some("anthropic/sonnet-4".into()), by: VerdictBy::Checker })
    }

    pub fn verdict(&mut self, verdict: Verdict, reason: &str, feedback: &str, evidence: Vec<Evidence>) -> &mut Self {
        let result = CheckerResult {
            verdict: Some(verdict),
            reason: reason.into(),
            feedback: feedback.into(),
            verified: evidence.iter().map(|e| e.text.clone()).collect(),
            evidence,
            by: VerdictBy::Checker,
            snapshot: Some("s1".into()),
        };
        self.event(Event::CheckerComplete { result: Box::new(result) });
        let next = match verdict {
            Verdict::Passed => "session_complete",
            Verdict::NeedsImprovement | Verdict::Failed => "next_cycle",
        };
        self.trace = None;
        self.event(Event::CycleEnd {
            verdict: Some(verdict),
            archive: Some(format!("__output_cycle_{:04}.json", self.cycle.unwrap_or(1))),
            snapshot: Some("s1".into()),
            next: next.into(),
            totals: CycleTotals { worker: totals(30_000, 2_000, 0.2), checker: totals(8_000, 500, 0.05) },
        })
    }

    pub fn error(&mut self, stage: &str, cause: &str, remedy: &str) -> &mut Self {
        self.event(Event::SessionError {
            outcome: Outcome::ProviderError,
            stage: stage.into(),
            cause: cause.into(),
            remedy: remedy.into(),
            totals: totals(30_000, 2_000, 0.2),
        })
    }

    pub fn complete(&mut self) -> &mut Self {
        self.event(Event::SessionComplete {
            outcome: Outcome::Passed,
            cycles: self.cycle.unwrap_or(1),
            deliverable: json!({}),
            totals: totals(60_000, 4_000, 0.4),
        })
    }
}

pub fn totals(prompt: u64, completion: u64, usd: f64) -> Totals {
    Totals {
        calls: 1,
        prompt_tokens: prompt,
        completion_tokens: completion,
        cost_usd: usd,
        duration_ms: 4_000,
        ..Totals::default()
    }
}

pub fn change(path: &str, kind: ChangeKind, added: u64, removed: u64) -> FileChange {
    FileChange { path: path.into(), kind, added: Some(added), removed: Some(removed) }
}

pub fn evidence(text: &str, number: u32, tool: &str, arguments: &str, exit_code: Option<i32>) -> Evidence {
    let call = CitedCall {
        number,
        tool: tool.into(),
        arguments: arguments.into(),
        exit_code,
        ok: true,
        output_hash: "00".repeat(32),
    };
    Evidence { text: text.into(), calls: vec![call] }
}

pub fn goal(id: &str, parent: Option<&str>, status: GoalStatus, description: &str) -> Goal {
    Goal {
        id: id.into(),
        description: description.into(),
        reason: "the objective asks for it".into(),
        parent_id: parent.map(Into::into),
        kind: GoalType::Normal,
        status,
        summary: None,
        sub_trace_ids: None,
        agent_call_mode: None,
        sub_trace_metadata: None,
        self_stats: GoalStats::default(),
        cumulative_stats: GoalStats::default(),
        created_at: at(0),
    }
}

pub fn session_start(name: &str, objective: &str) -> SessionStart {
    let model = "anthropic/sonnet-4".to_owned();
    SessionStart {
        format: 1,
        version: "0.1.0".into(),
        name: name.into(),
        objective: objective.into(),
        expected_output: None,
        inputs: serde_json::Map::new(),
        workspace: Place {
            kind: PlaceKind::Scratch,
            dir: "/home/ada/sessions/session-k7m2p9xw/files".into(),
            repository: None,
            branch: None,
            base_branch: None,
            base_commit: None,
        },
        launched_from: "/home/ada/parser".into(),
        profiles: PerRole { worker: "default".into(), checker: "default".into() },
        models: PerRole { worker: model.clone(), checker: model },
        model_reason: "ANTHROPIC_API_KEY is set".into(),
        scripted: false,
        max_cycles: 5,
        max_turns: PerRole { worker: 50, checker: 10 },
        budget: Budget { tokens: Some(200_000), usd: None, time_ms: None },
        role_budgets: PerRole::default(),
        permission_mode: PermissionMode::BypassPermissions,
        checks: vec!["cargo test".into()],
        protected: Vec::new(),
    }
}

/// A session in its second cycle, as in the drawing of the session screen.
pub fn running() -> Script {
    use GoalStatus::{Completed, InProgress, Pending};
    let mut s = Script::launched("fix-parser", "Make the parser handle quotes inside quotes");
    s.cycle(1).goal("1", None, Completed, "Read the parser");
    s.message("user", "Current time: 2026-11-21 12:04 UTC", &[]);
    s.says("I will read the parser first.", &["a1"]).wait(800);
    s.call(Role::Worker, "a1", "read_file", "src/parser.rs");
    s.result(Role::Worker, "a1", "read_file", true, "212 lines", 3);
    s.usage(Role::Worker, 30_000, 2_000, 0.2);
    let parser = change("src/parser.rs", ChangeKind::Modified, 6, 2);
    let quotes = change("tests/quotes.rs", ChangeKind::Added, 14, 0);
    let output = json!({
        "summary": "Fixed quote handling in the scanner",
        "text_content": "The scanner now keeps a **stack** of open quotes.\n\n- nested quotes\n- escapes",
        "files": ["src/parser.rs", "tests/quotes.rs"],
        "instruction_to_user": "cargo test",
    });
    s.wait(2_000).hand_in(output, &[parser.clone(), quotes]);
    s.gate("output", true, "__output.json is valid").gate("check", true, "cargo test succeeded");
    s.checker().call(Role::Checker, "k1", "read_file", "src/parser.rs");
    s.result(Role::Checker, "k1", "read_file", true, "216 lines", 2);
    s.call(Role::Checker, "k2", "bash_command", "cargo test");
    s.result_with(Role::Checker, "k2", "bash_command", true, "1 of 14 failed", 4_100, Some(101), Vec::new());
    s.usage(Role::Checker, 8_000, 500, 0.05);
    let items = vec![
        evidence("src/parser.rs read", 1, "read_file", "src/parser.rs", None),
        evidence("cargo test fails: 1 of 14", 2, "bash_command", "cargo test", Some(101)),
        Evidence { text: "the documentation is complete".into(), calls: Vec::new() },
    ];
    s.verdict(
        Verdict::NeedsImprovement,
        "Escapes inside quotes are dropped.",
        "Keep the backslash when the next character is a quote.",
        items,
    );
    s.cycle(2);
    s.goal("1", None, Completed, "Read the parser").goal("2", None, InProgress, "Handle nested quotes");
    s.goal("3", Some("2"), Completed, "Write a failing test").goal("4", Some("2"), InProgress, "Fix the scanner");
    s.goal("5", None, GoalStatus::Abandoned, "Rewrite the lexer").goal("6", None, Pending, "Update the README");
    s.wait(1_000).says("The scanner drops the backslash before it looks at the quote.", &["b1"]);
    s.call(Role::Worker, "b1", "edit_file", "src/parser.rs").wait(3);
    s.result_with(Role::Worker, "b1", "edit_file", true, "edited", 3, None, vec![parser]);
    s.usage(Role::Worker, 7_000, 700, 0.06);
    s.wait(400).says("", &["b2"]).call(Role::Worker, "b2", "bash_command", "cargo test").wait(4_100);
    s
}

/// A person in front of the interface.
pub struct Person {
    pub ui: Ui,
    terminal: Terminal<TestBackend>,
}

impl Person {
    /// Sits down in front of a session that these events made.
    pub fn watching(script: &Script, width: u16, height: u16) -> Self {
        let mut person = Self::starting(Start::Session(session_id()), width, height, |_| {});
        person.ui.followed(&session_id(), Ok(()));
        person.later(script.now_ms);
        person.ui.events(&session_id(), &script.events);
        person
    }

    pub fn starting(open: Start, width: u16, height: u16, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.ui.theme = "monochrome".into();
        config.ui.glyphs = Glyphs::Unicode;
        change(&mut config);
        let setup = Setup {
            config,
            themes: Vec::new(),
            colors: Colors::True,
            launch_dir: "/home/ada/parser".into(),
            open,
            now: at(0),
            zone: TimeZone::UTC,
        };
        let ui = Ui::new(setup).unwrap();
        Self { ui, terminal: Terminal::new(TestBackend::new(width, height)).unwrap() }
    }

    /// Time passes, counted from the beginning.
    pub fn later(&mut self, ms: i64) {
        self.ui.time(at(ms));
    }

    /// Presses keys: `s`, `ctrl+s`, `enter`, …
    pub fn press(&mut self, keys: &[&str]) -> &mut Self {
        for key in keys {
            self.ui.terminal(TerminalEvent::Key(key_event(key)));
        }
        self
    }

    /// Types text.
    pub fn types(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.ui.terminal(TerminalEvent::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
        self
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.ui.terminal(TerminalEvent::Resize(width, height));
    }

    /// What they see.
    pub fn screen(&mut self) -> String {
        self.terminal.draw(|frame| self.ui.draw(frame)).unwrap();
        self.terminal.backend().to_string()
    }

    /// What they see, with its styles.
    pub fn styled(&mut self) -> String {
        self.terminal.draw(|frame| self.ui.draw(frame)).unwrap();
        format!("{:?}", self.terminal.backend().buffer())
    }

    /// What the interface wants done.
    pub fn work(&mut self) -> Vec<Work> {
        self.ui.take_work()
    }
}

/// A key as it is written in `keys.toml`.
pub fn key_event(key: &str) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = key;
    for (word, modifier) in
        [("ctrl+", KeyModifiers::CONTROL), ("alt+", KeyModifiers::ALT), ("shift+", KeyModifiers::SHIFT)]
    {
        if let Some(behind) = rest.strip_prefix(word) {
            modifiers |= modifier;
            rest = behind;
        }
    }
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "space" => KeyCode::Char(' '),
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        one => KeyCode::Char(one.chars().next().expect("a key")),
    };
    KeyEvent::new(code, modifiers)
}
