//! The start screen: every session with what became of it. Empty, it says which model a first
//! session will use and why. Does not follow sessions; it asks for the list again while one runs.

mod rows;
mod welcome;

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEventKind};
use ratatui::layout::Rect;

use crate::events::command::{Ack, Command};
use crate::events::data::SessionStatus;
use crate::events::query::{LaunchDefaults, Query, Reply, SessionSummary};
use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, Screen, View, hints};
use crate::tui::screens::confirm::Confirm;
use crate::tui::screens::launch::Launch;
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::session::Session;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::editor::{Edited, Editor, Kind};
use crate::tui::widgets::fuzzy::{Fuzzy, Hit};
use crate::tui::widgets::list::{List, Step};
use crate::tui::widgets::text::cut;

/// How often the list is asked for while something runs.
const REFRESH: Duration = Duration::from_secs(1);

/// The list of sessions.
pub struct Sessions {
    all: Load<Vec<SessionSummary>>,
    defaults: Load<Box<LaunchDefaults>>,
    /// What is shown of `all`, best match first.
    hits: Vec<Hit>,
    list: List,
    filter: Editor,
    filtering: bool,
    /// A question is on its way; no second one is sent meanwhile.
    asked: bool,
    /// Where rows were drawn last.
    rows: Rect,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

impl Sessions {
    /// The list, to be filled.
    pub fn new() -> Self {
        Self {
            all: Load::Waiting,
            defaults: Load::Waiting,
            hits: Vec::new(),
            list: List::default(),
            filter: Editor::new(Kind::Single, "name, objective, folder or status"),
            filtering: false,
            asked: false,
            rows: Rect::default(),
        }
    }

    fn ask(&mut self, out: &mut Effects) {
        if !self.asked {
            self.asked = true;
            out.ask(Query::Sessions);
        }
    }

    /// The session under the cursor.
    fn selected(&self) -> Option<&SessionSummary> {
        let hit = self.hits.get(self.list.selected()?)?;
        self.all.ready()?.get(hit.index)
    }

    /// Whether a wake-up is worth it: nothing changes by itself when nothing runs.
    fn any_running(&self) -> bool {
        self.all.ready().is_some_and(|all| all.iter().any(|s| s.status == SessionStatus::Running))
    }

    /// Filters again and keeps the cursor on its session.
    fn narrow(&mut self) {
        let kept = self.selected().map(|session| session.id.clone());
        let query = self.filter.text();
        let Some(all) = self.all.ready() else { return };
        let texts: Vec<String> = all.iter().map(rows::searched).collect();
        let mut fuzzy = Fuzzy::new(query.trim());
        self.hits = fuzzy.rank(texts.iter().map(String::as_str));
        if !query.trim().is_empty() {
            // Whoever types a name means the name, not a folder that happens to hold it.
            let named = fuzzy.rank(all.iter().map(|session| session.name.as_str()));
            let score = |hit: &Hit| named.iter().find(|other| other.index == hit.index).map_or(0, |other| other.score);
            self.hits.sort_by_key(|hit| std::cmp::Reverse(score(hit)));
        }
        self.list.set_len(self.hits.len());
        self.put_cursor_on(kept.as_ref());
    }

    fn put_cursor_on(&mut self, id: Option<&SessionId>) {
        let Some(all) = self.all.ready() else { return };
        let row = self.hits.iter().position(|hit| all.get(hit.index).map(|s| &s.id) == id && id.is_some());
        if let Some(row) = row.filter(|row| *row != self.list.cursor) {
            self.list.select(row);
        }
    }

    fn take_list(&mut self, all: Vec<SessionSummary>) {
        let kept = self.selected().map(|session| session.id.clone());
        self.all = Load::Ready(all);
        self.narrow();
        self.put_cursor_on(kept.as_ref());
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match action {
            Action::Up => self.list.step(Step::By(-1)),
            Action::Down => self.list.step(Step::By(1)),
            Action::PageUp => self.list.step(Step::Page(-1)),
            Action::PageDown => self.list.step(Step::Page(1)),
            Action::Top => self.list.step(Step::First),
            Action::Bottom => self.list.step(Step::Last),
            Action::Filter => self.filtering = true,
            Action::Launch => {
                out.open(Screen::Launch(Box::new(Launch::new(cx.launch_dir.to_path_buf(), String::new()))));
            }
            Action::Refresh => self.ask(out),
            Action::Back if !self.filter.is_blank() => {
                self.filter.set_text("");
                self.narrow();
            }
            // The start screen has nothing behind it.
            Action::Back => {}
            Action::Open | Action::Delete | Action::Export | Action::Stop => self.act_on_selected(action, out),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn act_on_selected(&mut self, action: Action, out: &mut Effects) {
        let Some(session) = self.selected() else { return };
        let id = session.id.clone();
        let running = session.status == SessionStatus::Running;
        match action {
            Action::Open => match &session.broken {
                Some(why) => out.warn(format!("`{}` can't be opened: {why}", session.name)),
                None => out.open(Screen::Session(Box::new(Session::new(id)))),
            },
            Action::Delete if running => out.warn(format!("`{}` runs; stop it before you delete it", session.name)),
            Action::Delete => out.open(Screen::Confirm(Box::new(Confirm::delete(session)))),
            Action::Export => out.command(Command::Export { session: id, file: None }),
            Action::Stop if running => out.command(Command::Stop { session: id }),
            _ => out.say(format!("`{}` does not run", session.name)),
        }
    }

    fn key(&mut self, key: KeyEvent) -> Handled {
        match key.code {
            KeyCode::Enter => self.filtering = false,
            KeyCode::Up => self.list.step(Step::By(-1)),
            KeyCode::Down => self.list.step(Step::By(1)),
            KeyCode::PageUp => self.list.step(Step::Page(-1)),
            KeyCode::PageDown => self.list.step(Step::Page(1)),
            _ => match self.filter.key(key) {
                Edited::Changed => {
                    self.narrow();
                    self.list.step(Step::First);
                }
                Edited::Moved => {}
                Edited::Ignored => return Handled::No,
            },
        }
        Handled::Yes
    }

    fn reply(&mut self, query: &Query, result: Result<Reply, crate::events::problem::Problem>) -> Handled {
        match (query, result) {
            (Query::Sessions, result) => {
                self.asked = false;
                match result {
                    Ok(Reply::Sessions(all)) => self.take_list(all),
                    Ok(_) => {}
                    // A list that was there stays; it is only older than it should be.
                    Err(_) if self.all.ready().is_some() => return Handled::No,
                    Err(problem) => self.all = Load::Failed(problem),
                }
                Handled::Yes
            }
            (Query::LaunchDefaults { .. }, Ok(Reply::Launch(defaults))) => {
                self.defaults = Load::Ready(defaults);
                Handled::Yes
            }
            (Query::LaunchDefaults { .. }, Err(problem)) => {
                self.defaults = Load::Failed(problem);
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    fn mouse(&mut self, event: ratatui::crossterm::event::MouseEvent, out: &mut Effects) -> Handled {
        match event.kind {
            MouseEventKind::ScrollUp => self.list.wheel(-3),
            MouseEventKind::ScrollDown => self.list.wheel(3),
            MouseEventKind::Down(MouseButton::Left) => {
                if !self.rows.contains((event.column, event.row).into()) {
                    return Handled::No;
                }
                let Some(row) = self.list.row_at(event.row - self.rows.y, 1) else { return Handled::No };
                if self.list.selected() == Some(row) {
                    self.act_on_selected(Action::Open, out);
                } else {
                    self.list.select(row);
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw_list(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let Some(all) = self.all.ready() else { return };
        let shows_more = area.height >= 14 && self.list.selected().is_some();
        let (table, more) = look::split_bottom(area, if shows_more { 3 } else { 0 });
        let columns = rows::Columns::new(table.width.saturating_sub(3));
        let (head, body) = look::split_top(table, u16::from(table.height > 4));
        frame.buffer_mut().set_stringn(
            head.x + 2,
            head.y,
            columns.head(),
            usize::from(head.width.saturating_sub(2)),
            cx.theme[Slot::TextDim],
        );
        self.rows = body;
        let hits = &self.hits;
        self.list.draw(frame.buffer_mut(), body, 1, &look::list(cx.theme, !self.filtering), |row, _, _| {
            let session = hits.get(row).and_then(|hit| all.get(hit.index));
            session.map(|session| vec![columns.row(session, cx)]).unwrap_or_default()
        });
        if self.hits.is_empty() {
            look::notice(
                frame,
                body,
                &format!("nothing matches `{}`; Esc clears the filter", self.filter.text()),
                cx.theme,
            );
        }
        if let (true, Some(session)) = (shows_more, self.selected()) {
            look::text(frame, look::inset(more), &rows::more(session, cx.theme));
        }
    }

    fn draw_filter(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) -> Rect {
        if !self.filtering && self.filter.is_blank() {
            return area;
        }
        let (line, rest) = look::split_top(area, 1);
        let label = "Filter ";
        frame.buffer_mut().set_stringn(
            line.x + 2,
            line.y,
            label,
            usize::from(line.width.saturating_sub(2)),
            cx.theme[Slot::TitleFocus],
        );
        let (_, field) = look::split_left(line, 9);
        let screen = frame.area();
        let at = self.filter.draw(frame.buffer_mut(), field, screen, &look::editor(cx.theme));
        if let (true, Some(at)) = (self.filtering, at) {
            frame.set_cursor_position(at);
        }
        rest
    }
}

impl View for Sessions {
    fn layer(&self) -> Layer {
        Layer::Sessions
    }

    fn takes_text(&self) -> bool {
        self.filtering
    }

    fn shown(&mut self, cx: &Cx<'_>, out: &mut Effects) {
        self.ask(out);
        out.ask(Query::LaunchDefaults { dir: cx.launch_dir.to_path_buf() });
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Back) if self.filtering => {
                self.filtering = false;
                self.filter.set_text("");
                self.narrow();
                Handled::Yes
            }
            Input::Action(action) => self.act(action, cx, out),
            Input::Key(key) if self.filtering => self.key(key),
            Input::Paste(text) if self.filtering => {
                self.filter.paste(&text);
                self.narrow();
                Handled::Yes
            }
            Input::Mouse(event) => self.mouse(event, out),
            Input::Reply { query, result } => self.reply(&query, result),
            Input::Done {
                command: Command::Remove { .. } | Command::Stop { .. },
                result: Ok(Ack::Done | Ack::Said { .. }),
            } => {
                self.ask(out);
                Handled::Yes
            }
            Input::Tick => {
                self.ask(out);
                Handled::Yes
            }
            Input::Key(_) | Input::Paste(_) | Input::Done { .. } | Input::Edited(_) => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        look::ground(frame, area, cx.theme);
        let title = match self.all.ready() {
            Some(all) if !all.is_empty() => {
                let dot = cx.theme.glyph(Glyph::Dot);
                format!("super-agent {dot} sessions {dot} {} of {}", self.hits.len(), all.len())
            }
            Some(_) | None => "super-agent".to_owned(),
        };
        let (top, rest) = look::split_top(area, u16::from(area.height > 6));
        let title = cut(&title, usize::from(top.width.saturating_sub(1))).into_owned();
        frame.buffer_mut().set_stringn(
            top.x + 1,
            top.y,
            title,
            usize::from(top.width.saturating_sub(1)),
            cx.theme[Slot::TitleProgram],
        );
        match &self.all {
            Load::Waiting => look::notice(frame, rest, "reading the sessions …", cx.theme),
            Load::Failed(problem) => look::problem(frame, rest, problem, cx.theme),
            Load::Ready(all) if all.is_empty() => {
                let lines = welcome::lines(&self.defaults, cx);
                look::text(frame, look::inset(rest), &lines);
            }
            Load::Ready(_) => {
                let rest = self.draw_filter(frame, rest, cx);
                self.draw_list(frame, rest, cx);
            }
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        let empty = self.all.ready().is_none_or(Vec::is_empty);
        match (empty, self.selected()) {
            (true, _) => hints(&[Action::Launch, Action::Refresh, Action::Palette, Action::Help, Action::Quit]),
            (false, None) => hints(&[Action::Back, Action::Launch, Action::Help, Action::Quit]),
            (false, Some(session)) => {
                let mut list = vec![Action::Open, Action::Launch, Action::Filter];
                list.push(if session.status == SessionStatus::Running { Action::Stop } else { Action::Delete });
                list.extend([Action::Export, Action::Palette, Action::Help, Action::Quit]);
                hints(&list)
            }
        }
    }

    fn tick(&self, _cx: &Cx<'_>) -> Option<Duration> {
        self.any_running().then_some(REFRESH)
    }
}

#[cfg(test)]
mod tests;
