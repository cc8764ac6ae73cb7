//! The newest lines of the program's log, with search.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::problem::Problem;
use crate::events::query::{Query, Reply, TextReply};
use crate::stdx::text::{sanitize, sanitize_line};
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::reader::Reader;
use crate::tui::theme::{Slot, Theme};
use crate::tui::widgets::editor::{Edited, Editor, Kind};

/// The program's log.
pub struct Log {
    text: Load<TextReply>,
    reader: Reader,
    /// The lines must be styled anew.
    stale: bool,
    /// The end is to be shown at the next draw.
    to_end: bool,
    search: Editor,
    typing: bool,
    /// Lines that match, and which of them the cursor is on.
    matches: Vec<usize>,
    current: usize,
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

impl Log {
    /// The log, to be read.
    pub fn new() -> Self {
        Self {
            text: Load::Waiting,
            reader: Reader::default(),
            stale: true,
            to_end: true,
            search: Editor::new(Kind::Single, "search"),
            typing: false,
            matches: Vec::new(),
            current: 0,
        }
    }

    /// Finds the lines that hold what is searched, small letters matching capitals too.
    fn find(&mut self) {
        let wanted = self.search.text();
        let exact = wanted.chars().any(char::is_uppercase);
        let fold = |text: &str| if exact { text.to_owned() } else { text.to_lowercase() };
        let wanted = fold(wanted.trim());
        self.matches = match (&self.text, wanted.is_empty()) {
            (Load::Ready(text), false) => {
                let text = sanitize(&text.text);
                text.lines().enumerate().filter(|(_, line)| fold(line).contains(&wanted)).map(|(i, _)| i).collect()
            }
            _ => Vec::new(),
        };
        // The newest match is the likeliest.
        self.current = self.matches.len().saturating_sub(1);
        self.stale = true;
        self.show_match();
    }

    fn show_match(&mut self) {
        self.stale = true;
        if let Some(line) = self.matches.get(self.current) {
            self.reader.reveal(*line);
        }
    }

    fn step(&mut self, forward: bool) {
        let count = self.matches.len();
        if count > 0 {
            self.current = if forward { (self.current + 1) % count } else { (self.current + count - 1) % count };
            self.show_match();
        }
    }

    fn act(&mut self, action: Action, out: &mut Effects) -> Handled {
        match action {
            Action::Search => self.typing = true,
            Action::NextMatch => self.step(true),
            Action::PreviousMatch => self.step(false),
            Action::Refresh => {
                self.to_end = true;
                out.ask(Query::Log);
            }
            Action::Copy => {
                if let Load::Ready(text) = &self.text {
                    out.push(Effect::Copy(text.text.clone()));
                }
            }
            Action::Back if !self.search.is_blank() => {
                self.search.set_text("");
                self.find();
            }
            Action::Back => out.close(),
            _ if self.reader.act(action) => {}
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn key(&mut self, key: KeyEvent) -> Handled {
        if key.code == KeyCode::Enter {
            self.typing = false;
            return Handled::Yes;
        }
        match self.search.key(key) {
            Edited::Changed => self.find(),
            Edited::Moved => {}
            Edited::Ignored => return Handled::No,
        }
        Handled::Yes
    }

    fn take(&mut self, result: Result<Reply, Problem>) {
        self.text = match result {
            Ok(Reply::Text(text)) => Load::Ready(text),
            Ok(_) => return,
            Err(problem) => Load::Failed(problem),
        };
        self.find();
    }

    fn fill(&mut self, theme: &Theme) {
        let Load::Ready(text) = &self.text else { return };
        if !std::mem::replace(&mut self.stale, false) {
            return;
        }
        let current = self.matches.get(self.current).copied();
        let text = sanitize(&text.text);
        let lines = text.lines().enumerate().map(|(i, line)| {
            let style = match (current == Some(i), self.matches.binary_search(&i).is_ok()) {
                (true, _) => theme[Slot::MatchCurrent],
                (false, true) => theme[Slot::Match],
                (false, false) => level_style(line, theme),
            };
            Line::styled(line.to_owned(), style)
        });
        self.reader.set(lines.collect());
    }
}

/// Errors and warnings stand out; the word is in the line, so colour only helps.
fn level_style(line: &str, theme: &Theme) -> ratatui::style::Style {
    let head: String = line.chars().take(60).collect();
    if head.contains("ERROR") {
        theme[Slot::Error]
    } else if head.contains("WARN") {
        theme[Slot::Warning]
    } else {
        theme[Slot::Text]
    }
}

impl View for Log {
    fn layer(&self) -> Layer {
        Layer::Log
    }

    fn takes_text(&self) -> bool {
        self.typing
    }

    fn shown(&mut self, _cx: &Cx<'_>, out: &mut Effects) {
        out.ask(Query::Log);
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Back) if self.typing => {
                self.typing = false;
                self.search.set_text("");
                self.find();
            }
            Input::Action(action) => return self.act(action, out),
            Input::Key(key) if self.typing => return self.key(key),
            Input::Paste(text) if self.typing => {
                self.search.paste(&text);
                self.find();
            }
            Input::Mouse(event) if event.kind == MouseEventKind::ScrollUp => self.reader.scroll.by(-3),
            Input::Mouse(event) if event.kind == MouseEventKind::ScrollDown => self.reader.scroll.by(3),
            Input::Reply { query: Query::Log, result } => self.take(result),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        look::ground(frame, area, cx.theme);
        let title = match &self.text {
            Load::Ready(text) if !text.title.is_empty() => format!("Log · {}", sanitize_line(&text.title)),
            Load::Ready(_) | Load::Waiting | Load::Failed(_) => "Log".to_owned(),
        };
        let inner = look::panel(frame, area, &title, true, cx.theme);
        let searching = self.typing || !self.search.is_blank();
        let (body, line) = look::split_bottom(inner, u16::from(searching));
        match &self.text {
            Load::Waiting => look::notice(frame, body, "reading the log …", cx.theme),
            Load::Failed(problem) => look::problem(frame, body, problem, cx.theme),
            Load::Ready(text) if text.text.trim().is_empty() => {
                look::notice(frame, body, "the log is empty: nothing noteworthy has happened", cx.theme);
            }
            Load::Ready(_) => {
                self.fill(cx.theme);
                if std::mem::replace(&mut self.to_end, false) {
                    self.reader.scroll.top = usize::MAX;
                }
                self.reader.draw(frame, body, cx.theme);
            }
        }
        if searching {
            let (label, field) = look::split_left(line, 2);
            look::text(frame, label, &[Line::from(Span::styled("/", cx.theme[Slot::TitleFocus]))]);
            let at = self.search.draw(frame.buffer_mut(), field, area, &look::editor(cx.theme));
            if let (true, Some(at)) = (self.typing, at) {
                frame.set_cursor_position(at);
            }
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        if self.typing {
            return vec![Hint { action: Action::Back, word: Some("end the search") }];
        }
        if self.matches.is_empty() {
            return hints(&[Action::Search, Action::Refresh, Action::Copy, Action::Back]);
        }
        hints(&[Action::NextMatch, Action::PreviousMatch, Action::Search, Action::Back])
    }

    fn status(&self, cx: &Cx<'_>) -> Option<Line<'static>> {
        let searched = !self.search.is_blank();
        let words = match (searched, self.matches.len()) {
            (false, _) => return None,
            (true, 0) => "no match".to_owned(),
            (true, count) => format!("match {} of {count}", self.current + 1),
        };
        Some(Line::styled(words, cx.theme[Slot::TextDim]))
    }
}

#[cfg(test)]
mod tests;
