//! A list with a cursor in which only visible rows are made. Knows how many rows there are and
//! how high one is; the caller draws a row when asked for it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::scroll::{Scroll, draw_bar};
use super::wrap::cut_line;

/// A step of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By rows, up when negative.
    By(isize),
    /// By pages, up when negative.
    Page(isize),
    /// To the first row.
    First,
    /// To the last row.
    Last,
}

/// Cursor and scroll position of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The row under the cursor; 0 when there is none.
    pub cursor: usize,
    /// Rows in all.
    len: usize,
    /// What is in view, in rows of the list.
    scroll: Scroll,
    /// Whether the cursor must be brought into view at the next draw.
    reveal: bool,
}

/// How a list looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListLook {
    /// The row under the cursor.
    pub selected: Style,
    /// The scroll bar.
    pub bar: Style,
    /// Whether only ASCII is drawn.
    pub ascii: bool,
    /// Whether a mark shows the cursor without colour.
    pub mark: bool,
}

impl List {
    /// How many rows there are from now on. The cursor stays where it is as long as it can.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
        if self.cursor >= len {
            self.cursor = len.saturating_sub(1);
            self.reveal = true;
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<usize> {
        (self.cursor < self.len).then_some(self.cursor)
    }

    /// Puts the cursor on a row.
    pub fn select(&mut self, row: usize) {
        self.cursor = row.min(self.len.saturating_sub(1));
        self.reveal = true;
    }

    /// Moves the cursor.
    pub fn step(&mut self, step: Step) {
        let page = isize::try_from(self.scroll.visible.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
        let row = match step {
            Step::By(rows) => self.cursor.saturating_add_signed(rows),
            Step::Page(pages) => self.cursor.saturating_add_signed(page.saturating_mul(pages)),
            Step::First => 0,
            Step::Last => usize::MAX,
        };
        self.select(row);
    }

    /// Scrolls without moving the cursor, as the mouse wheel does.
    pub fn wheel(&mut self, rows: isize) {
        self.scroll.by(rows);
        self.reveal = false;
    }

    /// The row drawn at `y` cells below the top of the list.
    pub fn row_at(&self, y: u16, row_height: u16) -> Option<usize> {
        let row = self.scroll.top + usize::from(y / row_height.max(1));
        (row < self.len).then_some(row)
    }

    /// Draws the visible rows, each made by `row(index, selected, width)`; further lines of a row
    /// beyond `row_height` are left out.
    pub fn draw(
        &mut self,
        buffer: &mut Buffer,
        area: Rect,
        row_height: u16,
        look: &ListLook,
        mut row: impl FnMut(usize, bool, usize) -> Vec<Line<'static>>,
    ) {
        let area = area.intersection(buffer.area);
        let row_height = row_height.max(1);
        let visible = usize::from(area.height / row_height);
        self.scroll.fit(self.len, visible);
        if self.reveal && visible > 0 {
            self.scroll.reveal(self.cursor, self.cursor);
            self.reveal = false;
        }
        let bar = u16::from(self.len > visible && area.width > 4);
        let mark = if look.mark && area.width > 4 { 2 } else { 0 };
        let width = area.width.saturating_sub(bar + mark);
        for (shown, index) in self.scroll.range().enumerate() {
            let selected = index == self.cursor;
            let y = area.y + u16::try_from(shown).unwrap_or(u16::MAX).saturating_mul(row_height);
            let whole = Rect { x: area.x, y, width: area.width - bar, height: row_height };
            let lines = row(index, selected, usize::from(width));
            if selected {
                buffer.set_style(whole, look.selected);
                if mark > 0 {
                    buffer.set_string(whole.x, y, if look.ascii { ">" } else { "▌" }, look.selected);
                }
            }
            for (i, line) in lines.into_iter().take(usize::from(row_height)).enumerate() {
                let at = Rect { x: whole.x + mark, y: y + u16::try_from(i).unwrap_or(u16::MAX), width, height: 1 };
                cut_line(line, usize::from(width)).render(at, buffer);
            }
        }
        if bar > 0 {
            draw_bar(buffer, area, &self.scroll, look.bar, look.ascii);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(list: &mut List, height: u16) -> (Vec<usize>, usize) {
        let area = Rect::new(0, 0, 20, height);
        let mut buffer = Buffer::empty(area);
        let mut made = Vec::new();
        list.draw(&mut buffer, area, 1, &ListLook::default(), |i, _, _| {
            made.push(i);
            vec![Line::from(format!("row {i}"))]
        });
        (made, list.cursor)
    }

    #[test]
    fn only_visible_rows_are_made() {
        let mut list = List::default();
        list.set_len(100_000);
        assert_eq!(shown(&mut list, 3), (vec![0, 1, 2], 0));
        list.step(Step::Last);
        assert_eq!(shown(&mut list, 3), (vec![99_997, 99_998, 99_999], 99_999));
        list.step(Step::Page(-1));
        assert_eq!(shown(&mut list, 3), (vec![99_997, 99_998, 99_999], 99_997));
        list.step(Step::By(-1));
        assert_eq!(shown(&mut list, 3), (vec![99_996, 99_997, 99_998], 99_996));
    }

    #[test]
    fn the_wheel_leaves_the_cursor_and_a_shorter_list_takes_it_along() {
        let mut list = List::default();
        list.set_len(50);
        shown(&mut list, 5);
        list.wheel(10);
        assert_eq!(shown(&mut list, 5), (vec![10, 11, 12, 13, 14], 0));
        assert_eq!(list.row_at(2, 1), Some(12));
        list.select(40);
        list.set_len(3);
        assert_eq!(shown(&mut list, 5), (vec![0, 1, 2], 2));
        list.set_len(0);
        assert_eq!(shown(&mut list, 5), (vec![], 0));
        assert_eq!(list.selected(), None);
    }
}
