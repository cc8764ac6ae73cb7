//! A window over rows of any height: lays out only what it shows, keeps its place by row and by
//! place within the row, so that neither new rows nor a resize move what a person reads, and
//! follows the end until they scroll. Knows no session.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

/// Rows to be shown.
pub trait Rows {
    /// How many there are.
    fn len(&self) -> usize;

    /// A row as lines of `width` cells; none when it is hidden. While the end is followed only
    /// the end of a very long row need be given.
    fn lay(&self, row: usize, width: usize, follow: bool) -> Laid;
}

/// A row as lines.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// The lines.
    pub lines: Vec<Line<'static>>,
    /// For each line a place within the row that stays the same when the row grows or the width
    /// changes, rising; empty: the line's number.
    pub anchors: Vec<u64>,
}

impl Laid {
    /// Lines whose number is their place.
    pub fn plain(lines: Vec<Line<'static>>) -> Self {
        Self { lines, anchors: Vec::new() }
    }

    fn anchor(&self, line: usize) -> u64 {
        self.anchors.get(line).copied().unwrap_or(line as u64)
    }

    fn line_at(&self, anchor: u64) -> usize {
        if self.anchors.is_empty() {
            return usize::try_from(anchor).unwrap_or(usize::MAX).min(self.lines.len().saturating_sub(1));
        }
        self.anchors.partition_point(|a| *a <= anchor).saturating_sub(1)
    }
}

/// A line on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    row: usize,
    line: usize,
    anchor: u64,
    /// Lines of its row.
    of: usize,
}

/// How it looks.
pub struct Look {
    /// The row under the cursor; none when the pane has no keys.
    pub selected: Option<Style>,
    /// The mark before it.
    pub cursor: &'static str,
    /// The mark's style.
    pub cursor_style: Style,
    /// The part of the frame that shows how far it is scrolled.
    pub thumb: &'static str,
    /// Its style.
    pub thumb_style: Style,
}

/// Where a person is within the rows.
#[derive(Clone, Debug)]
pub struct Viewport {
    /// First line shown: its row, and its place within it.
    top: (usize, u64),
    /// The row under the cursor.
    cursor: usize,
    follow: bool,
    /// Rows there were when the end was last in view.
    seen: usize,
    /// Bring the cursor into view at the next drawing.
    reveal: bool,
    placed: Vec<Placed>,
    area: Rect,
    len: usize,
}

impl Viewport {
    /// A window that starts at the first row.
    pub fn at_start() -> Self {
        Self {
            top: (0, 0),
            cursor: 0,
            follow: false,
            seen: 0,
            reveal: false,
            placed: Vec::new(),
            area: Rect::ZERO,
            len: 0,
        }
    }

    /// A window that follows the end.
    pub fn following() -> Self {
        Self { follow: true, ..Self::at_start() }
    }

    /// The row under the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether it follows the end.
    pub fn follows(&self) -> bool {
        self.follow
    }

    /// Of `len` rows, those that came since the end was last in view.
    pub fn unseen(&self, len: usize) -> usize {
        if self.follow { 0 } else { len.saturating_sub(self.seen) }
    }

    /// Follows the end from now on.
    pub fn follow(&mut self) {
        self.follow = true;
    }

    /// Puts the cursor on a row and shows it.
    pub fn go_to(&mut self, row: usize) {
        self.leave_end();
        self.cursor = row;
        self.reveal = true;
    }

    fn leave_end(&mut self) {
        if self.follow {
            self.follow = false;
            self.seen = self.len;
            if let Some(first) = self.placed.first() {
                self.top = (first.row, first.anchor);
            }
        }
    }

    /// Moves the cursor to the next row, or a line on within one that is taller than the window.
    pub fn down(&mut self, rows: &(impl Rows + ?Sized)) {
        let last = self.placed.last().copied();
        if let Some(last) = last.filter(|last| last.row == self.cursor && last.line + 1 < last.of) {
            let _ = last;
            self.scroll(rows, 1);
            return;
        }
        match self.visible_after(rows, self.cursor) {
            Some(next) => self.go_to(next),
            None => self.follow = true,
        }
    }

    /// The same upwards.
    pub fn up(&mut self, rows: &(impl Rows + ?Sized)) {
        self.leave_end();
        let first = self.placed.first().copied();
        if first.is_some_and(|first| first.row == self.cursor && first.line > 0) {
            self.scroll(rows, -1);
            return;
        }
        if let Some(before) = (0..self.cursor.min(rows.len())).rev().find(|row| !self.is_hidden(rows, *row)) {
            self.go_to(before);
            // From a row above its end is read first.
            self.reveal = true;
        }
    }

    /// Scrolls by pages.
    pub fn page(&mut self, rows: &(impl Rows + ?Sized), pages: isize) {
        let page = isize::try_from(self.area.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll(rows, page * pages);
        self.cursor_into_view();
    }

    /// To the first row.
    pub fn start(&mut self) {
        self.leave_end();
        self.top = (0, 0);
        self.cursor = 0;
        self.reveal = false;
    }

    /// To the end, and follows it.
    pub fn end(&mut self) {
        self.follow = true;
    }

    /// Scrolls by lines, down when positive.
    pub fn scroll(&mut self, rows: &(impl Rows + ?Sized), lines: isize) {
        self.leave_end();
        let width = usize::from(self.area.width);
        let (mut row, anchor) = self.top;
        if row >= rows.len() {
            return;
        }
        let mut laid = rows.lay(row, width, false);
        let mut line = laid.line_at(anchor);
        for _ in 0..lines.unsigned_abs() {
            if lines > 0 {
                if line + 1 < laid.lines.len() {
                    line += 1;
                } else if let Some((next, its)) = self.next_laid(rows, row + 1) {
                    (row, laid, line) = (next, its, 0);
                } else {
                    break;
                }
            } else if line > 0 {
                line -= 1;
            } else if let Some((before, its)) = self.laid_before(rows, row) {
                line = its.lines.len() - 1;
                (row, laid) = (before, its);
            } else {
                break;
            }
        }
        self.top = (row, laid.anchor(line));
    }

    fn next_laid(&self, rows: &(impl Rows + ?Sized), from: usize) -> Option<(usize, Laid)> {
        let width = usize::from(self.area.width);
        (from..rows.len()).map(|row| (row, rows.lay(row, width, false))).find(|(_, laid)| !laid.lines.is_empty())
    }

    fn laid_before(&self, rows: &(impl Rows + ?Sized), before: usize) -> Option<(usize, Laid)> {
        let width = usize::from(self.area.width);
        (0..before.min(rows.len()))
            .rev()
            .map(|row| (row, rows.lay(row, width, false)))
            .find(|(_, laid)| !laid.lines.is_empty())
    }

    fn is_hidden(&self, rows: &(impl Rows + ?Sized), row: usize) -> bool {
        rows.lay(row, usize::from(self.area.width), true).lines.is_empty()
    }

    fn visible_after(&self, rows: &(impl Rows + ?Sized), row: usize) -> Option<usize> {
        (row + 1..rows.len()).find(|row| !self.is_hidden(rows, *row))
    }

    fn cursor_into_view(&mut self) {
        self.reveal = false;
        self.cursor = self.top.0;
    }

    /// A click: the row there, and the cursor on it.
    pub fn click(&mut self, x: u16, y: u16) -> Option<usize> {
        if !self.area.contains((x, y).into()) {
            return None;
        }
        let placed = *self.placed.get(usize::from(y - self.area.y))?;
        self.leave_end();
        self.cursor = placed.row;
        Some(placed.row)
    }

    /// Draws what is visible. The first column is the cursor's. The last one is the frame's: a thumb
    /// in it shows the place.
    pub fn draw(&mut self, buffer: &mut Buffer, area: Rect, rows: &(impl Rows + ?Sized), look: &Look) {
        self.placed.clear();
        self.len = rows.len();
        if area.width < 5 || area.height == 0 {
            self.area = Rect::ZERO;
            return;
        }
        // One column for the cursor, one of air, one of the frame.
        let inner = Rect { x: area.x + 1, width: area.width - 3, ..area };
        self.area = inner;
        let lines = self.lay_out(rows, usize::from(inner.width), usize::from(inner.height));
        for (y, (placed, line)) in (area.y..).zip(&lines) {
            if let Some(style) = look.selected.filter(|_| placed.row == self.cursor) {
                buffer.set_style(Rect { y, height: 1, width: area.width - 1, ..area }, style);
                if placed.line == 0 {
                    buffer.set_stringn(area.x, y, look.cursor, 1, look.cursor_style);
                }
            }
            buffer.set_line(inner.x, y, line, inner.width);
        }
        self.placed = lines.into_iter().map(|(placed, _)| placed).collect();
        self.draw_bar(buffer, area, look);
    }

    /// The bar counts rows, not lines: their heights are not known.
    fn draw_bar(&self, buffer: &mut Buffer, area: Rect, look: &Look) {
        let (Some(first), Some(last)) = (self.placed.first(), self.placed.last()) else { return };
        let area = Rect { x: area.right() - 1, width: 1, ..area };
        let all = first.row == 0 && first.line == 0 && last.row + 1 >= self.len && last.line + 1 >= last.of;
        if all {
            return;
        }
        // Parts of a tall row count too, so that a single long one can be scrolled visibly.
        let scale = 100;
        let top = first.row * scale + scale * first.line / first.of.max(1);
        let end = last.row * scale + scale * (last.line + 1) / last.of.max(1);
        let total = (self.len * scale).max(end);
        let height = usize::from(area.height);
        let thumb = (height * (end - top) / total).clamp(1, height);
        let start = (height - thumb) * top / total.saturating_sub(end - top).max(1);
        for y in (area.y..area.bottom()).skip(start).take(thumb) {
            buffer.set_stringn(area.x, y, look.thumb, 1, look.thumb_style);
        }
    }

    fn lay_out(&mut self, rows: &(impl Rows + ?Sized), width: usize, height: usize) -> Vec<(Placed, Line<'static>)> {
        if rows.len() == 0 {
            return Vec::new();
        }
        self.cursor = self.cursor.min(rows.len() - 1);
        if self.follow {
            return self.lay_end(rows, width, height);
        }
        self.top.0 = self.top.0.min(rows.len() - 1);
        if std::mem::take(&mut self.reveal) {
            self.reveal_cursor(rows, width, height);
        }
        let lines = lay_from(rows, self.top, width, height);
        if lines.len() == height {
            let at_end = lines.last().is_some_and(|(p, _)| p.row + 1 == rows.len() && p.line + 1 == p.of);
            if at_end {
                self.seen = rows.len();
            }
            return lines;
        }
        // Less than a window is left: show the last window's worth.
        self.seen = rows.len();
        let lines = lay_to_end(rows, width, height, false);
        if let Some((first, _)) = lines.first() {
            self.top = (first.row, first.anchor);
        }
        lines
    }

    fn lay_end(&mut self, rows: &(impl Rows + ?Sized), width: usize, height: usize) -> Vec<(Placed, Line<'static>)> {
        self.seen = rows.len();
        let lines = lay_to_end(rows, width, height, true);
        if let Some((last, _)) = lines.last() {
            self.cursor = last.row;
        }
        lines
    }

    /// Moves the window as little as shows the cursor's row, its beginning rather than its end.
    fn reveal_cursor(&mut self, rows: &(impl Rows + ?Sized), width: usize, height: usize) {
        let cursor = rows.lay(self.cursor, width, false);
        if cursor.lines.is_empty() {
            return;
        }
        let lines = lay_from(rows, self.top, width, height);
        let shown = lines.iter().filter(|(p, _)| p.row == self.cursor).count();
        if shown == cursor.lines.len().min(height) {
            return;
        }
        let is_above = self.cursor <= self.top.0;
        if is_above || cursor.lines.len() >= height {
            self.top = (self.cursor, cursor.anchor(0));
            return;
        }
        // Below: its last line becomes the window's last.
        let mut left = height - cursor.lines.len();
        let mut top = (self.cursor, cursor.anchor(0));
        for row in (0..self.cursor).rev() {
            if left == 0 {
                break;
            }
            let laid = rows.lay(row, width, false);
            if laid.lines.is_empty() {
                continue;
            }
            let take = laid.lines.len().min(left);
            top = (row, laid.anchor(laid.lines.len() - take));
            left -= take;
        }
        self.top = top;
    }
}

/// The area with the frame's column at its right, where the thumb goes.
pub fn onto_frame(inner: Rect) -> Rect {
    if inner.width == 0 { inner } else { Rect { width: inner.width + 1, ..inner } }
}

/// Lines from a place on, at most `height`.
fn lay_from(
    rows: &(impl Rows + ?Sized),
    top: (usize, u64),
    width: usize,
    height: usize,
) -> Vec<(Placed, Line<'static>)> {
    let mut out = Vec::with_capacity(height);
    for row in top.0..rows.len() {
        let laid = rows.lay(row, width, false);
        let from = if row == top.0 { laid.line_at(top.1) } else { 0 };
        let room = height - out.len();
        push(&mut out, row, laid, from, room);
        if out.len() == height {
            break;
        }
    }
    out
}

/// The last `height` lines.
fn lay_to_end(rows: &(impl Rows + ?Sized), width: usize, height: usize, follow: bool) -> Vec<(Placed, Line<'static>)> {
    let mut parts = Vec::new();
    let mut left = height;
    for row in (0..rows.len()).rev() {
        if left == 0 {
            break;
        }
        let laid = rows.lay(row, width, follow);
        let take = laid.lines.len().min(left);
        left -= take;
        parts.push((row, laid, take));
    }
    let mut out = Vec::with_capacity(height);
    for (row, laid, take) in parts.into_iter().rev() {
        let from = laid.lines.len() - take;
        push(&mut out, row, laid, from, take);
    }
    out
}

fn push(out: &mut Vec<(Placed, Line<'static>)>, row: usize, laid: Laid, from: usize, most: usize) {
    let of = laid.lines.len();
    let Laid { lines, anchors } = laid;
    for (line, text) in lines.into_iter().enumerate().skip(from).take(most) {
        let anchor = anchors.get(line).copied().unwrap_or(line as u64);
        out.push((Placed { row, line, anchor, of }, text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of these heights.
    struct Heights(Vec<usize>);

    impl Rows for Heights {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn lay(&self, row: usize, _width: usize, _follow: bool) -> Laid {
            Laid::plain((0..self.0[row]).map(|line| Line::raw(format!("{row}.{line}"))).collect())
        }
    }

    const AREA: Rect = Rect { x: 0, y: 0, width: 10, height: 4 };

    fn look() -> Look {
        let plain = Style::new();
        Look { selected: Some(plain), cursor: ">", cursor_style: plain, thumb: "#", thumb_style: plain }
    }

    fn shown(viewport: &mut Viewport, rows: &Heights) -> Vec<String> {
        let mut buffer = Buffer::empty(AREA);
        viewport.draw(&mut buffer, AREA, rows, &look());
        viewport.placed.iter().map(|p| format!("{}.{}", p.row, p.line)).collect()
    }

    #[test]
    fn it_follows_the_end_until_the_person_scrolls() {
        let mut rows = Heights(vec![1, 2, 1, 2]);
        let mut viewport = Viewport::following();
        assert_eq!(shown(&mut viewport, &rows), ["1.1", "2.0", "3.0", "3.1"]);
        rows.0.push(1);
        assert_eq!(shown(&mut viewport, &rows), ["2.0", "3.0", "3.1", "4.0"]);
        viewport.scroll(&rows, -1);
        rows.0.extend([1, 1]);
        assert_eq!(shown(&mut viewport, &rows), ["1.1", "2.0", "3.0", "3.1"]);
        assert_eq!(viewport.unseen(7), 2);
        viewport.end();
        assert_eq!(shown(&mut viewport, &rows), ["3.1", "4.0", "5.0", "6.0"]);
        assert_eq!(viewport.unseen(7), 0);
    }

    #[test]
    fn hidden_rows_are_stepped_over() {
        let rows = Heights(vec![1, 0, 0, 1, 1]);
        let mut viewport = Viewport::at_start();
        shown(&mut viewport, &rows);
        viewport.down(&rows);
        assert_eq!(viewport.cursor(), 3);
        viewport.up(&rows);
        assert_eq!(viewport.cursor(), 0);
    }

    #[test]
    fn a_row_taller_than_the_window_is_read_line_by_line() {
        let rows = Heights(vec![1, 9, 1]);
        let mut viewport = Viewport::at_start();
        shown(&mut viewport, &rows);
        viewport.down(&rows);
        assert_eq!(shown(&mut viewport, &rows), ["1.0", "1.1", "1.2", "1.3"]);
        viewport.down(&rows);
        assert_eq!(shown(&mut viewport, &rows), ["1.1", "1.2", "1.3", "1.4"]);
    }

    proptest! {
        #[test]
        fn the_window_is_full_whenever_there_is_enough(
            heights in prop::collection::vec(0usize..6, 0..30),
            steps in prop::collection::vec(0u8..8, 0..40),
        ) {
            let rows = Heights(heights);
            let mut viewport = Viewport::following();
            for step in steps {
                let lines = shown(&mut viewport, &rows).len();
                prop_assert_eq!(lines, rows.0.iter().sum::<usize>().min(4));
                match step {
                    0 => viewport.up(&rows),
                    1 => viewport.down(&rows),
                    2 => viewport.page(&rows, 1),
                    3 => viewport.page(&rows, -1),
                    4 => viewport.start(),
                    5 => viewport.end(),
                    6 => viewport.go_to(7),
                    _ => viewport.scroll(&rows, 3),
                }
            }
        }
    }
}
