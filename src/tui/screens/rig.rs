//! For tests: a port with answers made by hand, a person who works with it, and screens as they
//! are seen at the sizes that matter.

use std::path::PathBuf;

use proptest::prelude::*;
use ratatui::crossterm::event::{
    Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use unicode_segmentation::UnicodeSegmentation;

use crate::config::Config;
use crate::events::command::{Ack, Command, Where};
use crate::events::data::{ChangeKind, MessageHead, Outcome, SessionStatus, Verdict};
use crate::events::event::Event;
use crate::events::problem::Problem;
use crate::events::query::{
    ApplyPreview, FileDiff, LaunchDefaults, ModelChoice, Query, Reply, RewindPreview, SessionSummary, TextReply,
    Timeline, TimelineMessage, TimelineTrace,
};
use crate::ids::SessionId;
use crate::tui::action::Layer;
use crate::tui::fixture::{Person, Script, at, change, session_id, totals};
use crate::tui::keymap::Keymap;
use crate::tui::screen::{Cx, Effect, Effects, Input, Screen, Sight};
use crate::tui::screens::apply::Apply;
use crate::tui::screens::archive::Archive;
use crate::tui::screens::confirm::Confirm;
use crate::tui::screens::contract::Contract;
use crate::tui::screens::help::Help;
use crate::tui::screens::launch::Launch;
use crate::tui::screens::message::Message;
use crate::tui::screens::palette::Palette;
use crate::tui::screens::request::Request;
use crate::tui::screens::rewind::Rewind;
use crate::tui::screens::themes::ThemeChooser;
use crate::tui::state::SessionState;
use crate::tui::theme::Themes;
use crate::tui::ui::{Answer, Work};
use crate::tui::widgets::text;
use crate::tui::{Colors, Start};

/// Sizes at which every screen is looked at.
pub const SIZES: [(u16, u16); 3] = [(160, 48), (100, 30), (60, 20)];

/// Chinese, Japanese, Korean, an emoji family, a flag, a combining accent.
pub const WIDE: &str = "修复解析器 かな 한국어 👩‍👩‍👧 🇩🇪 cafe\u{301}";

/// Answers to whatever is asked.
#[derive(Clone)]
pub struct FakePort {
    pub sessions: Result<Vec<SessionSummary>, Problem>,
    pub defaults: Result<LaunchDefaults, Problem>,
    pub timeline: Result<Timeline, Problem>,
    pub rewind: Result<RewindPreview, Problem>,
    pub apply: Result<ApplyPreview, Problem>,
    pub names: Vec<String>,
    pub log: Result<String, Problem>,
    pub output: String,
    pub files: Vec<FileDiff>,
    pub ack: Result<Ack, Problem>,
}

impl Default for FakePort {
    fn default() -> Self {
        Self {
            sessions: Ok(Vec::new()),
            defaults: Ok(defaults()),
            timeline: Ok(timeline()),
            rewind: Ok(preview()),
            apply: Ok(apply()),
            names: vec!["src/".into(), "src/main.rs".into()],
            log: Ok("2026-11-21T12:04:00Z  INFO started\n2026-11-21T12:04:07Z  WARN slow disk\n2026-11-21T12:04:09Z ERROR no key".into()),
            output: "{\n  \"summary\": \"Fixed quote handling\"\n}\n".into(),
            files: vec![file_diff()],
            ack: Ok(Ack::Done),
        }
    }
}

impl FakePort {
    fn reply(&self, query: &Query) -> Option<Result<Reply, Problem>> {
        let whole = |title: &str, text: &str| {
            Reply::Text(TextReply { title: title.into(), text: text.into(), bytes: text.len() as u64, note: None })
        };
        Some(match query {
            Query::Sessions => self.sessions.clone().map(Reply::Sessions),
            Query::LaunchDefaults { .. } => self.defaults.clone().map(|defaults| Reply::Launch(Box::new(defaults))),
            Query::Timeline { .. } => self.timeline.clone().map(Reply::Timeline),
            Query::RewindPreview { .. } => self.rewind.clone().map(|preview| Reply::Rewind(Box::new(preview))),
            Query::ApplyPreview { .. } => self.apply.clone().map(|preview| Reply::Apply(Box::new(preview))),
            Query::Names { .. } => Ok(Reply::Names(self.names.clone())),
            Query::Log => self.log.clone().map(|log| whole("/home/ada/.local/state/super-agent/log", &log)),
            Query::Output { .. } => Ok(whole("__output.json", &self.output)),
            Query::Diff { .. } => Ok(Reply::Diff(self.files.clone())),
            _ => return None,
        })
    }

    /// Answers everything that is asked until nothing is; returns the commands that were sent.
    pub fn serve(&self, person: &mut Person) -> Vec<Command> {
        let mut commands = Vec::new();
        for _ in 0..20 {
            let work = person.work();
            if work.is_empty() {
                break;
            }
            for work in work {
                match work {
                    Work::Query { view, query } => {
                        if let Some(reply) = self.reply(&query) {
                            person.ui.answered(view, Answer::Reply(query, reply));
                        }
                    }
                    Work::Command { view, command } => {
                        commands.push(command.clone());
                        person.ui.answered(view, Answer::Done(command, self.ack.clone()));
                    }
                    Work::Edit { view, text, .. } => {
                        person.ui.answered(view, Answer::Edited(Ok(format!("{text} edited\n"))));
                    }
                    _ => {}
                }
            }
        }
        commands
    }

    /// A person at the list of sessions, everything answered.
    pub fn at_home(&self, width: u16, height: u16) -> Person {
        let mut person = Person::starting(Start::Sessions, width, height, |_| {});
        self.serve(&mut person);
        person
    }

    /// A person at a session, with these keys pressed and everything answered.
    pub fn at_session(&self, script: &Script, keys: &[&str], (width, height): (u16, u16)) -> Person {
        let mut person = Person::watching(script, width, height);
        self.serve(&mut person);
        for key in keys {
            person.press(&[key]);
            self.serve(&mut person);
            person.screen();
        }
        person.later(script.now_ms + 1_000);
        self.serve(&mut person);
        person
    }
}

pub fn summary(id: &str, name: &str, status: SessionStatus, outcome: Option<Outcome>) -> SessionSummary {
    SessionSummary {
        id: id.into(),
        name: name.into(),
        objective: "Make the parser handle quotes inside quotes".into(),
        status,
        outcome,
        waiting: false,
        elsewhere: false,
        cycle: 2,
        max_cycles: 5,
        verdicts: vec![Some(Verdict::NeedsImprovement), Some(Verdict::Passed)],
        totals: totals(45_000, 3_200, 0.31),
        home: format!("/home/ada/sessions/session-{id}").into(),
        dir: "/home/ada/parser".into(),
        scripted: false,
        created_at: at(-7_200_000),
        active_at: at(-180_000),
        broken: None,
    }
}

/// Sessions in every state there is.
pub fn sessions() -> Vec<SessionSummary> {
    let mut waiting = summary("k7m2p9xa", "ask-first", SessionStatus::Running, None);
    waiting.waiting = true;
    let mut elsewhere = summary("k7m2p9xb", "nightly", SessionStatus::Running, None);
    elsewhere.elsewhere = true;
    let mut demo = summary("k7m2p9xc", "demo", SessionStatus::Completed, Some(Outcome::Passed));
    demo.scripted = true;
    let mut wide = summary("k7m2p9xd", WIDE, SessionStatus::Failed, Some(Outcome::NotPassed));
    wide.objective = WIDE.repeat(4);
    wide.verdicts = vec![Some(Verdict::Failed); 12];
    let mut broken = summary("k7m2p9xe", "old", SessionStatus::Stopped, Some(Outcome::Interrupted));
    broken.broken = Some("state/session.json: not JSON at line 3".into());
    vec![
        waiting,
        summary("k7m2p9xw", "fix-parser", SessionStatus::Running, None),
        elsewhere,
        demo,
        wide,
        summary("k7m2p9xf", "budgeted", SessionStatus::Stopped, Some(Outcome::Budget)),
        summary("k7m2p9xg", "no-key", SessionStatus::Error, Some(Outcome::ProviderError)),
        summary("k7m2p9xh", &"very-long-name-".repeat(20), SessionStatus::Stopped, Some(Outcome::Accepted)),
        broken,
    ]
}

pub fn defaults() -> LaunchDefaults {
    LaunchDefaults {
        model: Ok(ModelChoice {
            model: "anthropic/sonnet-4".into(),
            reason: "ANTHROPIC_API_KEY is set and no model is configured".into(),
        }),
        profiles: vec!["careful".into(), "fast".into()],
        max_cycles: 5,
        auto_place: Ok(Where::Worktree),
        repository: Some(PathBuf::from("/home/ada/parser")),
        uncommitted: Vec::new(),
    }
}

pub fn no_model() -> Problem {
    Problem::provider("no model: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set and no Ollama answers")
        .hint("set one of them, start Ollama, or see a whole session with `super-agent demo`")
}

fn head(sequence: u64, role: &str, description: &str) -> MessageHead {
    MessageHead {
        sequence,
        parent_sequence: sequence.checked_sub(1),
        role: role.into(),
        goal_id: None,
        description: description.into(),
    }
}

fn message(sequence: u64, role: &str, text: &str, files: &[&str], on_path: bool) -> TimelineMessage {
    TimelineMessage {
        head: head(sequence, role, text),
        at: at(i64::try_from(sequence).unwrap_or(0) * 1_000),
        on_path,
        goal: (role == "assistant").then(|| "2.1".into()),
        files: files.iter().map(|path| (*path).to_owned()).collect(),
    }
}

pub fn timeline() -> Timeline {
    let trace = |cycle, superseded, id: &str, messages: Vec<TimelineMessage>| TimelineTrace {
        cycle,
        superseded,
        trace: id.into(),
        head: messages.last().map_or(0, |m| m.head.sequence),
        messages,
    };
    Timeline {
        traces: vec![
            trace(
                1,
                false,
                "w1",
                vec![
                    message(1, "system", "the system prompt", &[], true),
                    message(2, "user", "Make the parser handle quotes inside quotes", &[], true),
                    message(3, "assistant", "I will read the parser first.", &[], true),
                    message(4, "tool", "read_file src/parser.rs", &[], true),
                    message(5, "assistant", WIDE, &["src/parser.rs", "tests/quotes.rs"], true),
                ],
            ),
            trace(
                2,
                true,
                "w2",
                vec![
                    message(2, "user", "cycle 2", &[], true),
                    message(3, "assistant", "a path not taken", &["src/a.rs"], true),
                ],
            ),
            trace(
                2,
                false,
                "w3",
                vec![
                    message(2, "user", "Escapes inside quotes are dropped.", &[], true),
                    message(3, "assistant", "An abandoned try", &["src/lexer.rs"], false),
                    message(4, "assistant", "The scanner drops the backslash", &["src/parser.rs"], true),
                ],
            ),
        ],
    }
}

pub fn file_diff() -> FileDiff {
    FileDiff {
        change: change("src/parser.rs", ChangeKind::Modified, 2, 1),
        unified: "--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -10,3 +10,4 @@ fn scan\n     let c = next();\n-    if c == '\"' {\n+    // 引用符\n+    if c == '\"' && !escaped {\n         quote();\n".into(),
        note: None,
    }
}

pub fn preview() -> RewindPreview {
    RewindPreview {
        trace: "w3".into(),
        cycle: 2,
        to: 4,
        cut: 4,
        to_other_branch: false,
        leaving: vec![head(5, "tool", "edit_file src/parser.rs"), head(6, "assistant", WIDE)],
        returning: Vec::new(),
        plan: crate::events::data::Plan::default(),
        goals_dropped: vec!["Update the README".into()],
        goals_reset: vec!["Fix the scanner".into()],
        cycles_undone: vec![3],
        cycles_restored: Vec::new(),
        files: vec![file_diff()],
        files_total: 3,
        changed_by_person: vec!["notes.md".into()],
        not_rewound: vec!["bash `curl https://example.org` (network)".into()],
        refused: None,
    }
}

pub fn apply() -> ApplyPreview {
    ApplyPreview {
        cycle: 2,
        verdict: Some(Verdict::Passed),
        target: "/home/ada/parser".into(),
        files: vec![file_diff()],
        files_total: 1,
        conflicts: Vec::new(),
        refused: None,
    }
}

pub fn broken() -> Problem {
    Problem::internal("state/events.jsonl can't be read: permission denied").hint("check the owner of the folder")
}

/// Looks at a screen at every size.
pub fn at_sizes(name: &str, at_size: impl FnMut((u16, u16)) -> Person) {
    at_sizes_through(name, at_size, |screen| screen);
}

/// Looks at a box over another screen at every size: what lies around it is not its own.
pub fn boxes_at_sizes(name: &str, at_size: impl FnMut((u16, u16)) -> Person) {
    at_sizes_through(name, at_size, |screen| boxed(&screen));
}

fn at_sizes_through(name: &str, mut at_size: impl FnMut((u16, u16)) -> Person, through: impl Fn(String) -> String) {
    for (width, height) in SIZES {
        let screen = through(at_size((width, height)).screen());
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "snapshots", omit_expression => true }, {
            insta::assert_snapshot!(format!("{name}@{width}x{height}"), screen);
        });
    }
}

/// The box on a screen and the footer.
fn boxed(screen: &str) -> String {
    let rows: Vec<&str> = screen.lines().collect();
    let first = rows.iter().position(|row| row.contains('╭')).expect("a box");
    let last = rows.iter().rposition(|row| row.contains('╰')).expect("a box");
    let (before, rest) = rows[first].split_once('╭').expect("a box");
    let left = text::width(before);
    let right = left + text::width(rest.split('╮').next().expect("a box")) + 2;
    let crop = |row: &&str| {
        let mut at = 0;
        let mut out = String::new();
        for grapheme in row.graphemes(true) {
            if (left..right).contains(&at) {
                out.push_str(grapheme);
            }
            at += text::grapheme_width(grapheme);
        }
        out
    };
    let mut out: Vec<String> = rows[first..=last].iter().map(crop).collect();
    out.extend(rows.last().map(|row| (*row).to_owned()));
    out.join("\n")
}

/// Everything a person and their terminal can do.
fn any_input() -> impl Strategy<Value = TerminalEvent> {
    let code = prop_oneof![
        4 => "[a-zA-Z:/?@ \\[\\]]".prop_map(|s| KeyCode::Char(s.chars().next().unwrap_or('a'))),
        1 => any::<char>().prop_map(KeyCode::Char),
        4 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace, KeyCode::Delete,
            KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End,
            KeyCode::PageUp, KeyCode::PageDown, KeyCode::F(1),
        ]),
    ];
    let modifiers =
        prop_oneof![4 => Just(KeyModifiers::NONE), 1 => (0u8..8).prop_map(KeyModifiers::from_bits_truncate)];
    let kind = prop::sample::select(vec![
        MouseEventKind::ScrollUp,
        MouseEventKind::ScrollDown,
        MouseEventKind::Down(MouseButton::Left),
    ]);
    prop_oneof![
        12 => (code, modifiers).prop_map(|(code, modifiers)| TerminalEvent::Key(KeyEvent::new(code, modifiers))),
        1 => crate::tui::widgets::text::tests::odd_text().prop_map(|text| TerminalEvent::Paste(text.repeat(9))),
        2 => (kind, 0u16..200, 0u16..60).prop_map(|(kind, column, row)| {
            TerminalEvent::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
        }),
    ]
}

/// No sequence of inputs and sizes panics. What a person would leave the program with does nothing here.
pub fn check_any_input(start: impl Fn() -> Person, port: &FakePort) {
    let steps = prop::collection::vec((any_input(), prop::option::of((1u16..170, 1u16..50))), 1..25);
    let config = ProptestConfig { cases: 40, ..ProptestConfig::default() };
    proptest!(config, |(steps in steps)| {
        let mut person = start();
        for (i, (input, size)) in steps.into_iter().enumerate() {
            if let Some((width, height)) = size {
                person.resize(width, height);
            }
            person.ui.terminal(input);
            port.serve(&mut person);
            person.later(60_000 + i as i64 * 200);
            person.screen();
        }
    });
}

/// The command of a list that has exactly one.
#[track_caller]
pub fn only(commands: Vec<Command>) -> Command {
    let [command] = <[Command; 1]>::try_from(commands).expect("one command");
    command
}

/// The session all scripts are of.
pub fn id() -> crate::ids::SessionId {
    session_id()
}

/// One session that is followed.
struct One(SessionState);

impl Sight for One {
    fn state(&self, _: &SessionId) -> Option<&SessionState> {
        Some(&self.0)
    }

    fn trouble(&self, _: &SessionId) -> Option<&Problem> {
        None
    }
}

/// Shows a screen, answers what it asks and draws it in every small area.
fn check_small(mut screen: Screen, state: &One, port: &FakePort) {
    let config = Config::default();
    let themes = Themes::new(&[], config.ui.glyphs, Colors::True).unwrap();
    let keymap = Keymap::new(&config.keys).unwrap();
    let drafts = std::collections::HashMap::new();
    let cx = Cx {
        now: at(60_000),
        zone: &jiff::tz::TimeZone::UTC,
        theme: themes.get("dark").unwrap(),
        themes: &themes,
        keymap: &keymap,
        config: &config,
        launch_dir: std::path::Path::new("/home/ada/parser"),
        sessions: state,
        drafts: &drafts,
    };
    let view = screen.view_mut();
    let mut out = Effects::default();
    view.shown(&cx, &mut out);
    for _ in 0..3 {
        for effect in std::mem::take(&mut out).into_list() {
            if let Effect::Ask(query) = effect
                && let Some(result) = port.reply(&query)
            {
                view.update(Input::Reply { query, result }, &cx, &mut out);
            }
        }
    }
    for (width, height) in (1..64).flat_map(|width| (1..14).map(move |height| (width, height))) {
        let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame, frame.area(), &cx)).unwrap();
        assert!(!view.hints(&cx).is_empty());
    }
}

#[test]
fn every_screen_draws_in_the_smallest_areas() {
    let mut script = crate::tui::fixture::running();
    script.event(Event::Question { question_id: "q".into(), question: WIDE.into(), options: vec![WIDE.into(); 3] });
    let (id, request) = (session_id(), "q".to_owned());
    let mut state = SessionState::new(id.clone());
    script.events.iter().for_each(|event| state.apply(event));
    let state = One(state);
    let port = FakePort { sessions: Ok(sessions()), ..FakePort::default() };
    for screen in [
        Screen::Sessions(Box::default()),
        Screen::Launch(Box::new(Launch::new("/home/ada".into(), WIDE.repeat(9)))),
        Screen::Rewind(Box::new(Rewind::new(id.clone()))),
        Screen::Archive(Box::new(Archive::new(id.clone()))),
        Screen::Message(Box::new(Message::new(id.clone()))),
        Screen::Contract(Box::new(Contract::new(id.clone()))),
        Screen::Apply(Box::new(Apply::new(id.clone(), None))),
        Screen::Request(Box::new(Request::new(id, request))),
        Screen::Confirm(Box::new(Confirm::delete(&sessions()[4]))),
        Screen::Palette(Box::new(Palette::new(Layer::Session))),
        Screen::Help(Box::new(Help::new(Layer::Session))),
        Screen::Themes(Box::new(ThemeChooser::new("dark".into()))),
        Screen::Log(Box::default()),
    ] {
        check_small(screen, &state, &port);
    }
}
