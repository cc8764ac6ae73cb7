//! Everything the interface decides: which screen gets a key, what is drawn, what is asked for.
//! No terminal, no clock, no task: `app` hands in what happened and carries out [`Work`].

mod actions;
mod book;
mod draw;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyEventKind};

use self::book::Book;
use super::Start;
use super::keymap::Keymap;
use super::screen::{Cx, Effect, Effects, Handled, Input, Level, Screen};
use super::screens::launch::Launch;
use super::screens::request::Request;
use super::screens::session::Session;
use super::theme::{Colors, Theme, Themes};
use crate::config::{Config, Notify};
use crate::events::bus::Subscription;
use crate::events::command::{Ack, Command};
use crate::events::event::Envelope;
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;

/// Names an open screen, so that an answer finds it or is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewId(u64);

/// Something for `app` to carry out.
#[allow(missing_docs, reason = "the fields are what the names say")]
#[derive(Debug, PartialEq)]
pub enum Work {
    /// Ask the port; the answer goes to the screen.
    Query { view: ViewId, query: Query },
    /// Send to the port; the answer goes to the screen.
    Command { view: ViewId, command: Command },
    /// Follow a session's events after one.
    Follow { session: SessionId, after: u64, wait: Duration },
    /// Stop following it.
    Unfollow { session: SessionId },
    /// Open text in the person's editor; the terminal is given away meanwhile.
    Edit { view: ViewId, text: String, suffix: &'static str },
    /// Copy text.
    Copy(String),
    /// Ring.
    Bell,
    /// Show a desktop notification.
    Notify(String),
    /// Keep a theme for the next start.
    KeepTheme(String),
    /// Give the mouse to the terminal or take it.
    Mouse(bool),
    /// Go into the background.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Stop what runs and leave.
    Leave,
}

/// What a background task answered.
#[derive(Debug)]
pub enum Answer {
    /// To a query.
    Reply(Query, Result<Reply, Problem>),
    /// To a command.
    Done(Command, Result<Ack, Problem>),
    /// The edited text.
    Edited(Result<String, Problem>),
}

/// What every screen may look at.
struct Shared {
    now: Timestamp,
    zone: TimeZone,
    themes: Themes,
    theme: Theme,
    keymap: Keymap,
    config: Config,
    launch_dir: PathBuf,
    book: Book,
    drafts: HashMap<String, String>,
}

impl Shared {
    fn cx(&self) -> Cx<'_> {
        Cx {
            now: self.now,
            zone: &self.zone,
            theme: &self.theme,
            themes: &self.themes,
            keymap: &self.keymap,
            config: &self.config,
            launch_dir: &self.launch_dir,
            sessions: &self.book,
            drafts: &self.drafts,
        }
    }
}

struct Open {
    id: ViewId,
    screen: Screen,
}

struct Toast {
    level: Level,
    text: String,
    until: Timestamp,
}

/// The interface without its terminal.
pub struct Ui {
    shared: Shared,
    /// The open screens, the top one last; never empty.
    open: Vec<Open>,
    next_view: u64,
    toasts: Vec<Toast>,
    work: Vec<Work>,
    interrupted: Option<Timestamp>,
    mouse: bool,
    dirty: bool,
    /// When the top screen wants to be drawn again.
    tick_at: Option<Timestamp>,
}

/// What [`Ui::new`] is made from.
pub struct Setup {
    /// What the person set.
    pub config: Config,
    /// The person's theme files: path and content.
    pub themes: Vec<(String, String)>,
    /// Colours the terminal shows.
    pub colors: Colors,
    /// Where the program was started.
    pub launch_dir: PathBuf,
    /// What is shown first.
    pub open: Start,
    /// Now.
    pub now: Timestamp,
    /// The person's time zone.
    pub zone: TimeZone,
}

impl Ui {
    /// The interface as it starts.
    ///
    /// # Errors
    /// Keys or themes of the person's configuration can't be used.
    pub fn new(setup: Setup) -> Result<Self, Problem> {
        let Setup { config, themes, colors, launch_dir, open, now, zone } = setup;
        let keymap = Keymap::new(&config.keys)?;
        let themes = Themes::new(&themes, config.ui.glyphs, colors)?;
        let chosen = match colors {
            Colors::None => themes.chosen("monochrome")?,
            Colors::Indexed | Colors::True => themes.chosen(&config.ui.theme)?,
        };
        let theme = chosen.clone();
        let mouse = config.ui.mouse;
        let book = Book::default();
        let drafts = HashMap::new();
        let shared = Shared { now, zone, themes, theme, keymap, config, launch_dir, book, drafts };
        let mut ui = Self {
            shared,
            open: Vec::new(),
            next_view: 0,
            toasts: Vec::new(),
            work: Vec::new(),
            interrupted: None,
            mouse,
            dirty: true,
            tick_at: None,
        };
        ui.push(Screen::Sessions(Box::default()));
        match open {
            Start::Sessions => {}
            Start::Session(id) => ui.push(Screen::Session(Box::new(Session::new(id)))),
            Start::Launch(objective) => {
                let dir = ui.shared.launch_dir.clone();
                ui.push(Screen::Launch(Box::new(Launch::new(dir, objective))));
            }
        }
        Ok(ui)
    }

    /// What waits to be carried out.
    pub fn take_work(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.work)
    }

    /// Whether something changed since the last frame.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// When it wants to hear the time again although nothing happens; none: not at all.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.toasts.iter().map(|t| t.until).chain(self.tick_at).min()
    }

    /// The time passed. Everything else that happens is told after this.
    pub fn time(&mut self, now: Timestamp) {
        self.shared.now = now;
        let before = self.toasts.len();
        self.toasts.retain(|t| t.until > now);
        self.dirty |= self.toasts.len() != before;
        if self.tick_at.is_some_and(|at| at <= now) {
            self.tick_at = None;
            self.dirty = true;
            self.deliver(self.top(), Input::Tick);
        }
    }

    /// Something came from the terminal.
    pub fn terminal(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            TerminalEvent::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                self.deliver(self.top(), Input::Paste(text));
            }
            TerminalEvent::Mouse(mouse) => {
                self.deliver(self.top(), Input::Mouse(mouse));
            }
            TerminalEvent::Resize(..) => {}
            TerminalEvent::Key(_) | TerminalEvent::FocusGained | TerminalEvent::FocusLost => return,
        }
        self.dirty = true;
    }

    /// Events of a followed session, in order.
    pub fn events(&mut self, session: &SessionId, events: &[std::sync::Arc<Envelope>]) {
        let news = self.shared.book.apply(session, events, self.shared.now);
        self.dirty |= self.open.iter().any(|o| o.screen.view().session() == Some(session)) || !news.is_empty();
        for word in news {
            self.call_person(&word);
        }
        self.open_request();
        self.forget_unneeded();
    }

    /// Whether a session can be followed.
    pub fn followed(&mut self, session: &SessionId, result: Result<(), Problem>) {
        self.shared.book.followed(session, result);
        self.dirty = true;
    }

    /// A session's events ended: its owner let go of it.
    pub fn closed(&mut self, session: &SessionId) {
        if let Some(after) = self.shared.book.closed(session) {
            // It still runs as far as we know, so somebody else has it now.
            let wait = Duration::from_millis(500);
            self.work.push(Work::Follow { session: session.clone(), after, wait });
        }
        self.dirty = true;
    }

    /// A background task answered.
    pub fn answered(&mut self, view: ViewId, answer: Answer) {
        self.dirty = true;
        let refollow = match &answer {
            Answer::Done(command, Ok(_)) => session_of(command).cloned(),
            Answer::Done(..) | Answer::Reply(..) | Answer::Edited(_) => None,
        };
        if let Some(session) = refollow {
            self.follow(&session);
        }
        if let Answer::Reply(_, Ok(Reply::Session(detail))) = &answer {
            self.shared.book.facts(&detail.summary);
        }
        let place = self.open.iter().position(|o| o.id == view);
        // Unhandled answers to commands are still told to the person.
        let said = match &answer {
            Answer::Done(_, Err(problem)) => Some((Level::Error, problem.to_string())),
            Answer::Done(_, Ok(Ack::Said { text })) => Some((Level::Info, text.clone())),
            Answer::Done(_, Ok(Ack::Wrote { path })) => Some((Level::Info, format!("written to {}", path.display()))),
            Answer::Done(_, Ok(Ack::Done | Ack::Launched { .. })) | Answer::Reply(..) | Answer::Edited(_) => None,
        };
        let input = match answer {
            Answer::Reply(query, result) => Input::Reply { query, result },
            Answer::Done(command, result) => Input::Done { command, result },
            Answer::Edited(result) => Input::Edited(result),
        };
        let handled = place.map_or(Handled::No, |place| self.deliver(place, input));
        if let (Handled::No, Some((level, text))) = (handled, said) {
            self.toast(level, text);
        }
    }

    /// Says something at the edge of the screen.
    pub fn toast(&mut self, level: Level, text: impl Into<String>) {
        let seconds = match level {
            Level::Info => 4,
            Level::Warning => 7,
            Level::Error => 12,
        };
        let text = text.into();
        let until = self.shared.now + Duration::from_secs(seconds);
        self.toasts.retain(|t| t.text != text);
        self.toasts.push(Toast { level, text, until });
        if self.toasts.len() > 3 {
            self.toasts.remove(0);
        }
        self.dirty = true;
    }

    fn top(&self) -> usize {
        self.open.len() - 1
    }

    fn push(&mut self, screen: Screen) {
        self.next_view += 1;
        let id = ViewId(self.next_view);
        if let Some(session) = screen.view().session().cloned() {
            self.follow(&session);
        }
        self.open.push(Open { id, screen });
        self.show_top();
    }

    /// Closes a screen and, when it was on top, tells the one below.
    fn close(&mut self, id: ViewId) {
        let Some(place) = self.open.iter().position(|o| o.id == id) else { return };
        if self.open.len() == 1 {
            return;
        }
        let was_top = place == self.top();
        self.open.remove(place);
        self.forget_unneeded();
        if was_top {
            self.show_top();
        }
        self.dirty = true;
    }

    fn show_top(&mut self) {
        self.dirty = true;
        let place = self.top();
        let mut out = Effects::default();
        self.open[place].screen.view_mut().shown(&self.shared.cx(), &mut out);
        self.carry_out(self.open[place].id, out);
    }

    fn follow(&mut self, session: &SessionId) {
        if let Some(after) = self.shared.book.follow(session) {
            self.work.push(Work::Follow { session: session.clone(), after, wait: Duration::ZERO });
        }
    }

    /// Lets go of sessions that are neither shown nor running.
    fn forget_unneeded(&mut self) {
        let shown: Vec<_> = self.open.iter().filter_map(|o| o.screen.view().session().cloned()).collect();
        for session in self.shared.book.forget(|id| shown.contains(id)) {
            self.work.push(Work::Unfollow { session });
        }
    }

    fn deliver(&mut self, place: usize, input: Input) -> Handled {
        let mut out = Effects::default();
        let handled = self.open[place].screen.view_mut().update(input, &self.shared.cx(), &mut out);
        self.carry_out(self.open[place].id, out);
        self.dirty = true;
        handled
    }

    fn carry_out(&mut self, view: ViewId, out: Effects) {
        for effect in out.into_list() {
            match effect {
                Effect::Command(command) => self.work.push(Work::Command { view, command }),
                Effect::Ask(query) => self.work.push(Work::Query { view, query }),
                Effect::Open(screen) => self.push(screen),
                Effect::Replace(screen) => {
                    self.push(screen);
                    self.close(view);
                }
                Effect::Close => self.close(view),
                Effect::Home => {
                    self.open.truncate(1);
                    self.forget_unneeded();
                    self.show_top();
                }
                Effect::Toast(level, text) => self.toast(level, text),
                Effect::Edit { text, suffix } => self.work.push(Work::Edit { view, text, suffix }),
                Effect::Draft(name, text) => {
                    if text.trim().is_empty() {
                        self.shared.drafts.remove(&name);
                    } else {
                        self.shared.drafts.insert(name, text);
                    }
                }
                Effect::Copy(text) => self.work.push(Work::Copy(text)),
                Effect::Theme(name) => {
                    if let Some(theme) = self.shared.themes.get(&name) {
                        self.shared.theme = theme.clone();
                    }
                }
                Effect::KeepTheme(name) => self.work.push(Work::KeepTheme(name)),
                Effect::Act(action) => self.act(action),
                Effect::Leave => self.work.push(Work::Leave),
            }
        }
    }

    /// Rings or notifies, as the person wants it.
    fn call_person(&mut self, word: &str) {
        match self.shared.config.ui.notify {
            Notify::Off => {}
            Notify::Bell => self.work.push(Work::Bell),
            Notify::Desktop => self.work.push(Work::Notify(word.to_owned())),
        }
    }

    /// Opens the dialog of what waits for the person, when they look at that session.
    fn open_request(&mut self) {
        let Screen::Session(session) = &self.open[self.top()].screen else { return };
        let Some(id) = session.request_to_open(&self.shared.cx()) else { return };
        let session = session.id().clone();
        if let Screen::Session(screen) = &mut self.open.last_mut().expect("never empty").screen {
            screen.request_opened(&id);
        }
        self.push(Screen::Request(Box::new(Request::new(session, id))));
    }
}

/// The session a command is for.
fn session_of(command: &Command) -> Option<&SessionId> {
    match command {
        Command::Launch(_) => None,
        Command::Resume { session, .. }
        | Command::Stop { session }
        | Command::Message { session, .. }
        | Command::EditMessage { session, .. }
        | Command::Rewind { session, .. }
        | Command::Apply { session, .. }
        | Command::Accept { session }
        | Command::SetContract { session, .. }
        | Command::Permit { session, .. }
        | Command::Answer { session, .. }
        | Command::Remove { session }
        | Command::Export { session, .. } => Some(session),
    }
}

/// The type of a followed session's channel, named here for `app`.
pub type Follow = Result<Subscription, Problem>;
