//! Where a long content is scrolled to, and the bar that shows it. Knows heights, not contents.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A scroll position that survives resizing and growing content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    /// The first row shown.
    pub top: usize,
    /// Rows of the content when it was drawn last.
    pub total: usize,
    /// Rows that were visible when it was drawn last.
    pub visible: usize,
}

impl Scroll {
    /// Takes the sizes of this frame and keeps the position within them.
    pub fn fit(&mut self, total: usize, visible: usize) {
        self.total = total;
        self.visible = visible;
        self.top = self.top.min(self.last_top());
    }

    /// The position that shows the end.
    pub fn last_top(&self) -> usize {
        self.total.saturating_sub(self.visible)
    }

    /// Moves by rows, up when negative.
    pub fn by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows).min(self.last_top());
    }

    /// Moves by pages; one row of the old page stays in view.
    pub fn page(&mut self, pages: isize) {
        let rows = isize::try_from(self.visible.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
        self.by(rows.saturating_mul(pages));
    }

    /// To the start.
    pub fn show_start(&mut self) {
        self.top = 0;
    }

    /// To the end.
    pub fn show_end(&mut self) {
        self.top = self.last_top();
    }

    /// Brings rows `first..=last` into view, the first one rather than the last.
    pub fn reveal(&mut self, first: usize, last: usize) {
        if last >= self.top + self.visible {
            self.top = (last + 1).saturating_sub(self.visible);
        }
        self.top = self.top.min(first);
    }

    /// Rows shown: `top..end`.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.top.min(self.total)..(self.top + self.visible).min(self.total)
    }
}

/// Draws a scroll bar on the rightmost column of `area`, nothing when all is visible. The thumb
/// is a full block (`#` in ASCII), so that it shows without colour.
pub fn draw_bar(buffer: &mut Buffer, area: Rect, scroll: &Scroll, style: Style, ascii: bool) {
    if scroll.total <= scroll.visible || area.width == 0 || area.height < 2 {
        return;
    }
    let height = usize::from(area.height);
    let thumb = (height * scroll.visible / scroll.total).clamp(1, height);
    let room = height - thumb;
    let last = scroll.last_top().max(1);
    let start = (room * scroll.top + last / 2) / last;
    let x = area.right() - 1;
    for row in 0..height {
        let on = row >= start && row < start + thumb;
        let symbol = match (on, ascii) {
            (true, false) => "█",
            (true, true) => "#",
            (false, false) => "│",
            (false, true) => "|",
        };
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        if let Some(cell) = buffer.cell_mut((x, y)) {
            cell.set_symbol(symbol).set_style(style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_stays_within_the_content() {
        let mut scroll = Scroll::default();
        scroll.fit(100, 10);
        scroll.by(-3);
        assert_eq!(scroll.top, 0);
        scroll.page(1);
        assert_eq!(scroll.top, 9);
        scroll.show_end();
        assert_eq!(scroll.top, 90);
        scroll.fit(20, 15);
        assert_eq!(scroll.top, 5);
        scroll.fit(3, 15);
        assert_eq!(scroll.range(), 0..3);
        scroll.fit(100, 10);
        scroll.reveal(50, 52);
        assert_eq!(scroll.top, 43);
        scroll.reveal(20, 40);
        assert_eq!(scroll.top, 20);
    }

    #[test]
    fn the_bar_reaches_both_ends() {
        let area = Rect::new(0, 0, 1, 4);
        let bar = |top| {
            let mut buffer = Buffer::empty(area);
            let scroll = Scroll { top, total: 100, visible: 4 };
            draw_bar(&mut buffer, area, &scroll, Style::new(), true);
            buffer.content.iter().map(|c| c.symbol().to_owned()).collect::<String>()
        };
        assert_eq!(bar(0), "#|||");
        assert_eq!(bar(96), "|||#");
    }
}
