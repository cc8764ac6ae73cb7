//! The interface drawn into memory: what it shows of a session without a terminal, a key or a
//! clock. `cargo bench` takes its time with it.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Terminal as Drawing;
use ratatui::backend::TestBackend;

use super::ui::{Setup, Ui};
use super::{Start, Terminal};
use crate::config::Config;
use crate::events::event::Envelope;
use crate::events::problem::Problem;
use crate::ids::SessionId;

/// One session's screen in memory.
pub struct Offscreen {
    ui: Ui,
    session: SessionId,
    drawing: Drawing<TestBackend>,
}

impl Offscreen {
    /// The screen of a session of which nothing is known yet, in the colours of `terminal`.
    ///
    /// # Errors
    /// The keys or themes of `config` can't be used.
    pub fn new(
        session: SessionId,
        config: Config,
        terminal: Terminal,
        (width, height): (u16, u16),
    ) -> Result<Self, Problem> {
        let setup = Setup {
            config,
            themes: Vec::new(),
            colors: terminal.colors,
            launch_dir: "/".into(),
            open: Start::Session(session.clone()),
            now: Timestamp::UNIX_EPOCH,
            zone: TimeZone::UTC,
        };
        let mut ui = Ui::new(setup)?;
        ui.followed(&session, Ok(()));
        let Ok(drawing) = Drawing::new(TestBackend::new(width, height));
        Ok(Self { ui, session, drawing })
    }

    /// Takes events, in order, as of the time of the last one.
    pub fn events(&mut self, events: &[Arc<Envelope>]) {
        if let Some(last) = events.last() {
            self.ui.time(last.at);
        }
        self.ui.events(&self.session, events);
    }

    /// Draws a frame.
    pub fn draw(&mut self) {
        let Ok(_) = self.drawing.draw(|frame| self.ui.draw(frame));
    }

    /// What is on the newest frame, a line of text each row.
    pub fn text(&self) -> String {
        let buffer = self.drawing.backend().buffer();
        let width = usize::from(buffer.area.width).max(1);
        let rows = buffer.content.chunks(width).map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect());
        rows.collect::<Vec<String>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::Colors;
    use crate::tui::fixture::{running, session_id};

    #[test]
    fn it_shows_what_a_person_would_see() {
        let terminal = Terminal { colors: Colors::True, tmux: false };
        let mut screen = Offscreen::new(session_id(), Config::default(), terminal, (120, 36)).unwrap();
        screen.events(&running().events);
        screen.draw();
        let text = screen.text();
        assert_eq!(text.lines().count(), 36);
        assert!(text.contains("fix-parser"), "{text}");
    }
}
