//! What a screen is: the closed list of them, what they are told, what they may ask for. Screens
//! hold view state only (cursor, scroll, what is typed); facts are in `state`.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::action::{Action, Layer};
use super::keymap::Keymap;
use super::screens::apply::Apply;
use super::screens::archive::Archive;
use super::screens::confirm::Confirm;
use super::screens::contract::Contract;
use super::screens::detail::Detail;
use super::screens::help::Help;
use super::screens::launch::Launch;
use super::screens::log::Log;
use super::screens::message::Message;
use super::screens::palette::Palette;
use super::screens::request::Request;
use super::screens::rewind::Rewind;
use super::screens::session::Session;
use super::screens::sessions::Sessions;
use super::screens::themes::ThemeChooser;
use super::state::SessionState;
use super::theme::{Theme, Themes};
use crate::config::Config;
use crate::events::command::{Ack, Command};
use crate::events::problem::Problem;
use crate::events::query::{Query, Reply};
use crate::ids::SessionId;

/// Every screen there is.
#[allow(missing_docs, reason = "each variant is documented by the screen it holds")]
pub enum Screen {
    Sessions(Box<Sessions>),
    Session(Box<Session>),
    Detail(Box<Detail>),
    Launch(Box<Launch>),
    Rewind(Box<Rewind>),
    Archive(Box<Archive>),
    Message(Box<Message>),
    Contract(Box<Contract>),
    Apply(Box<Apply>),
    Request(Box<Request>),
    Confirm(Box<Confirm>),
    Palette(Box<Palette>),
    Help(Box<Help>),
    Themes(Box<ThemeChooser>),
    Log(Box<Log>),
}

impl Screen {
    /// What it can do.
    pub fn view(&self) -> &dyn View {
        match self {
            Self::Sessions(view) => view.as_ref(),
            Self::Session(view) => view.as_ref(),
            Self::Detail(view) => view.as_ref(),
            Self::Launch(view) => view.as_ref(),
            Self::Rewind(view) => view.as_ref(),
            Self::Archive(view) => view.as_ref(),
            Self::Message(view) => view.as_ref(),
            Self::Contract(view) => view.as_ref(),
            Self::Apply(view) => view.as_ref(),
            Self::Request(view) => view.as_ref(),
            Self::Confirm(view) => view.as_ref(),
            Self::Palette(view) => view.as_ref(),
            Self::Help(view) => view.as_ref(),
            Self::Themes(view) => view.as_ref(),
            Self::Log(view) => view.as_ref(),
        }
    }

    /// The same, to change.
    pub fn view_mut(&mut self) -> &mut dyn View {
        match self {
            Self::Sessions(view) => view.as_mut(),
            Self::Session(view) => view.as_mut(),
            Self::Detail(view) => view.as_mut(),
            Self::Launch(view) => view.as_mut(),
            Self::Rewind(view) => view.as_mut(),
            Self::Archive(view) => view.as_mut(),
            Self::Message(view) => view.as_mut(),
            Self::Contract(view) => view.as_mut(),
            Self::Apply(view) => view.as_mut(),
            Self::Request(view) => view.as_mut(),
            Self::Confirm(view) => view.as_mut(),
            Self::Palette(view) => view.as_mut(),
            Self::Help(view) => view.as_mut(),
            Self::Themes(view) => view.as_mut(),
            Self::Log(view) => view.as_mut(),
        }
    }
}

/// What every screen does.
pub trait View {
    /// Its part of the key map.
    fn layer(&self) -> Layer;

    /// A part of the key map that lies over its own for now.
    fn mode(&self) -> Option<Layer> {
        None
    }

    /// Whether it lies over the screen below, which stays visible around it.
    fn is_overlay(&self) -> bool {
        false
    }

    /// Whether keys are text now. Keys that make or edit text then come as [`Input::Key`], unless
    /// its own layer binds them and they are no plain characters.
    fn takes_text(&self) -> bool {
        false
    }

    /// The session it shows; followed as long as the screen is open.
    fn session(&self) -> Option<&SessionId> {
        None
    }

    /// It was opened, or what lay over it was closed: the moment to ask for what it shows.
    fn shown(&mut self, _cx: &Cx<'_>, _out: &mut Effects) {}

    /// Something happened. Says whether it did something with it; [`Action::Back`] that nobody
    /// handles closes the screen, other actions that nobody handles may be everywhere's.
    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled;

    /// Draws it. `area` may be as small as 1×1.
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>);

    /// What can be done next, most important first; the footer shows as many as fit.
    fn hints(&self, cx: &Cx<'_>) -> Vec<Hint>;

    /// What stands at the left of the footer.
    fn status(&self, _cx: &Cx<'_>) -> Option<Line<'static>> {
        None
    }

    /// After how long it wants to be drawn again although nothing happened; none: not at all.
    fn tick(&self, _cx: &Cx<'_>) -> Option<Duration> {
        None
    }
}

/// Whether an input was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It was.
    Yes,
    /// It was not.
    No,
}

/// What a screen is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key that means something here.
    Action(Action),
    /// A key for a text field.
    Key(KeyEvent),
    /// Pasted text, its newlines as `\n`.
    Paste(String),
    /// The mouse, in the coordinates of the whole terminal.
    Mouse(MouseEvent),
    /// The answer to a query it asked.
    Reply {
        /// What it asked.
        query: Query,
        /// The answer.
        result: Result<Reply, Problem>,
    },
    /// The answer to a command it sent. Unhandled problems and words are shown as toasts.
    Done {
        /// What it sent.
        command: Command,
        /// The answer.
        result: Result<Ack, Problem>,
    },
    /// The text that came back from the person's editor.
    Edited(Result<String, Problem>),
    /// A tick it asked for.
    Tick,
}

/// A hint of the footer: an action and, where the table's word does not fit, another word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The action.
    pub action: Action,
    /// The word; absent: the table's.
    pub word: Option<&'static str>,
}

impl From<Action> for Hint {
    fn from(action: Action) -> Self {
        Self { action, word: None }
    }
}

/// Hints from a list of actions.
pub fn hints(actions: &[Action]) -> Vec<Hint> {
    actions.iter().copied().map(Hint::from).collect()
}

/// How a toast looks and how long it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Done, or worth knowing.
    Info,
    /// Worth attention.
    Warning,
    /// It failed.
    Error,
}

/// Something a screen asks for.
pub enum Effect {
    /// Sends a command; its answer comes as [`Input::Done`].
    Command(Command),
    /// Asks a query; its answer comes as [`Input::Reply`].
    Ask(Query),
    /// Opens a screen over this one.
    Open(Screen),
    /// Closes this screen and opens another in its place.
    Replace(Screen),
    /// Closes this screen.
    Close,
    /// Closes everything and shows the list of sessions.
    Home,
    /// Says something at the edge of the screen for some seconds.
    Toast(Level, String),
    /// Opens text in the person's editor; comes back as [`Input::Edited`].
    Edit {
        /// The text.
        text: String,
        /// A file ending such as `.md`.
        suffix: &'static str,
    },
    /// Copies text.
    Copy(String),
    /// Keeps what was typed under a name, for when the field is opened again; empty forgets it.
    Draft(String, String),
    /// Shows this theme from now on.
    Theme(String),
    /// Keeps this theme for the next start.
    KeepTheme(String),
    /// Does an action on the screen that is on top afterwards.
    Act(Action),
    /// Leaves the program, stopping what runs.
    Leave,
}

/// What a screen asks for, in order.
#[derive(Default)]
pub struct Effects {
    list: Vec<Effect>,
}

impl Effects {
    /// Asks for one more.
    pub fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Sends a command.
    pub fn command(&mut self, command: Command) {
        self.push(Effect::Command(command));
    }

    /// Asks a query.
    pub fn ask(&mut self, query: Query) {
        self.push(Effect::Ask(query));
    }

    /// Opens a screen over this one.
    pub fn open(&mut self, screen: Screen) {
        self.push(Effect::Open(screen));
    }

    /// Closes this screen.
    pub fn close(&mut self) {
        self.push(Effect::Close);
    }

    /// Says something worth knowing.
    pub fn say(&mut self, text: impl Into<String>) {
        self.push(Effect::Toast(Level::Info, text.into()));
    }

    /// Says something worth attention.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.push(Effect::Toast(Level::Warning, text.into()));
    }

    /// Says what failed and what to do.
    pub fn problem(&mut self, problem: &Problem) {
        self.push(Effect::Toast(Level::Error, problem.to_string()));
    }

    /// All of them, to be carried out.
    pub fn into_list(self) -> Vec<Effect> {
        self.list
    }
}

/// What a screen may look at.
pub struct Cx<'a> {
    /// Now.
    pub now: Timestamp,
    /// The person's time zone.
    pub zone: &'a TimeZone,
    /// How everything looks.
    pub theme: &'a Theme,
    /// All themes.
    pub themes: &'a Themes,
    /// Which key does what.
    pub keymap: &'a Keymap,
    /// What the person set.
    pub config: &'a Config,
    /// Where the program was started.
    pub launch_dir: &'a Path,
    /// The followed sessions.
    pub sessions: &'a dyn Sight,
    /// What was typed and not sent, by name.
    pub drafts: &'a HashMap<String, String>,
}

/// A look at the followed sessions.
pub trait Sight {
    /// The state of one, once its first events are there.
    fn state(&self, id: &SessionId) -> Option<&SessionState>;

    /// Why one can't be followed.
    fn trouble(&self, id: &SessionId) -> Option<&Problem>;
}

impl Cx<'_> {
    /// The state of a session, once its first events are there.
    pub fn session(&self, id: &SessionId) -> Option<&SessionState> {
        self.sessions.state(id)
    }

    /// What was typed under this name and not sent.
    pub fn draft(&self, name: &str) -> Option<&str> {
        self.drafts.get(name).map(String::as_str)
    }

    /// The key that a person is told for `action` on the screen of `layer`; empty when it has none.
    pub fn key(&self, layer: Layer, action: Action) -> String {
        self.keymap.key(layer, action).unwrap_or_default()
    }
}
