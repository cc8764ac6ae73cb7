//! A scrolled run of lines, wrapped to the width it is drawn in; wrapped anew only when the lines
//! or the width change. Used by previews, help and the log.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use crate::tui::action::Action;
use crate::tui::theme::{Slot, Theme};
use crate::tui::widgets::scroll::{Scroll, draw_bar};
use crate::tui::widgets::wrap::wrap_line;

/// Lines and where they are scrolled to.
#[derive(Debug, Default)]
pub struct Reader {
    lines: Vec<Line<'static>>,
    rows: Vec<Line<'static>>,
    /// For each line the first of its rows.
    starts: Vec<usize>,
    /// The width the rows were made for.
    width: Option<usize>,
    /// Cells that the rows of a line after its first are moved right.
    pub indent: usize,
    /// Where it is scrolled to.
    pub scroll: Scroll,
}

impl Reader {
    /// Takes new lines; the position stays as far as it can.
    pub fn set(&mut self, lines: Vec<Line<'static>>) {
        self.lines = lines;
        self.width = None;
    }

    /// Moves, if the action is one of moving.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Up => self.scroll.by(-1),
            Action::Down => self.scroll.by(1),
            Action::PageUp => self.scroll.page(-1),
            Action::PageDown => self.scroll.page(1),
            Action::Top => self.scroll.show_start(),
            Action::Bottom => self.scroll.show_end(),
            _ => return false,
        }
        true
    }

    /// Brings a line into view.
    pub fn reveal(&mut self, line: usize) {
        if let Some(row) = self.starts.get(line) {
            self.scroll.reveal(row.saturating_sub(2), row + 2);
        }
    }

    /// Rows the lines take in an area of this width.
    pub fn height(&mut self, width: u16) -> u16 {
        self.wrap(width);
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX)
    }

    fn wrap(&mut self, width: u16) {
        // The last column is the scroll bar's.
        let width = usize::from(width.saturating_sub(1)).max(1);
        if self.width != Some(width) {
            self.rows.clear();
            self.starts.clear();
            for line in &self.lines {
                self.starts.push(self.rows.len());
                self.rows.extend(wrap_line(line, width, self.indent));
            }
            self.width = Some(width);
        }
    }

    /// Draws what is in view.
    pub fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        self.wrap(area.width);
        self.scroll.fit(self.rows.len(), usize::from(area.height));
        for (i, row) in self.rows[self.scroll.range()].iter().enumerate() {
            let y = area.y + u16::try_from(i).unwrap_or(u16::MAX);
            let place = Rect { y, height: 1, width: area.width.saturating_sub(1).max(1), ..area };
            row.render(place.intersection(frame.area()), frame.buffer_mut());
        }
        draw_bar(frame.buffer_mut(), area, &self.scroll, theme[Slot::Border], theme.is_ascii());
    }
}
