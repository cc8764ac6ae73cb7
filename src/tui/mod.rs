//! The terminal interface: a fold of events drawn as panes, and keys turned into commands. Knows
//! events, commands, queries, configuration and ids; never a model, a tool or the disk.
//!
//! ```text
//! key ─▶ chord ─▶ keymap ─▶ Action ─▶ Screen::update ─▶ Effects ─▶ Port (in a background task)
//! Port::follow ─▶ SessionState::apply ─▶ Screen::draw (only what is visible, only when it changed)
//! ```
//!
//! `app` is the one loop, `ui` everything it decides (no terminal, no clock, no task: a test drives
//! it), `screen` the closed list of screens, `screens/` one file for each, `state/` the fold,
//! `widgets/` what knows no session. A new screen is a file in `screens/`, a variant in `screen.rs`,
//! a layer in `action.rs` and its table in `keys.toml`.

mod action;
mod app;
mod chord;
#[cfg(test)]
mod fixture;
mod keymap;
mod offscreen;
mod panes;
mod screen;
mod screens;
mod state;
mod terminal;
mod theme;
mod time;
mod ui;
mod widgets;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

pub use self::app::run;
pub use self::offscreen::Offscreen;
pub use self::theme::Colors;
use crate::config::Config;
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::ids::SessionId;
use crate::stdx::clock::Clock;

/// Everything the interface needs from outside.
pub struct Options {
    /// The Supervisor.
    pub port: Arc<dyn Port>,
    /// What the person set.
    pub config: Config,
    /// The person's theme files: path and content.
    pub themes: Vec<(String, String)>,
    /// Where the program was started.
    pub launch_dir: PathBuf,
    /// What is shown first.
    pub open: Start,
    /// What only the command line can do.
    pub external: Arc<dyn External>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// What the terminal can do.
    pub terminal: Terminal,
}

/// Columns and rows of the terminal, if there is one.
pub fn terminal_size() -> Option<(u16, u16)> {
    crossterm::terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// What is shown first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The list of sessions.
    Sessions,
    /// One session.
    Session(SessionId),
    /// The launch form, with this objective in it.
    Launch(String),
}

/// What the terminal can do, as its environment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Colours it shows.
    pub colors: Colors,
    /// Whether a multiplexer stands between, through which notifications must be passed.
    pub tmux: bool,
}

impl Terminal {
    /// Reads `NO_COLOR`, `COLORTERM`, `TERM` and `TMUX` by `variable`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let colors = if set("NO_COLOR") || term == "dumb" {
            Colors::None
        } else if variable("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit") || term.ends_with("-direct") {
            Colors::True
        } else {
            Colors::Indexed
        };
        Self { colors, tmux: set("TMUX") }
    }
}

/// What the interface asks of the command line, because only it may start processes or write
/// configuration.
#[async_trait]
pub trait External: Send + Sync {
    /// Opens `text` in the person's editor (`$VISUAL`, `$EDITOR`) and returns it as it was saved.
    /// The terminal belongs to the editor meanwhile. `suffix` is a file ending such as `.md`.
    ///
    /// # Errors
    /// There is no editor, or it failed.
    async fn edit(&self, text: String, suffix: &str) -> Result<String, Problem>;

    /// Puts `text` on the system's clipboard.
    ///
    /// # Errors
    /// There is none, or it refused.
    async fn copy(&self, text: String) -> Result<(), Problem>;

    /// Keeps `theme` for the next start.
    ///
    /// # Errors
    /// The configuration could not be written.
    async fn keep_theme(&self, theme: String) -> Result<(), Problem>;
}

#[cfg(test)]
mod tests;
