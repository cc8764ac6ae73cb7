//! Drawing an editor and moving up and down in it as it is drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Clear, Widget};
use unicode_segmentation::UnicodeSegmentation;

use super::completion::MOST_NAMES;
use super::lines::Shown;
use super::{Edited, Editor, Kind};
use crate::tui::widgets::text::{cut, grapheme_width, pad, width};

/// How an editor looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct EditorLook {
    /// What is typed.
    pub text: Style,
    /// What is shown while nothing is typed.
    pub placeholder: Style,
    /// A folded paste.
    pub label: Style,
    /// What is selected.
    pub selection: Style,
    /// The list of names.
    pub popup: Style,
    /// The name under the cursor.
    pub popup_selected: Style,
}

/// What was in view when the editor was drawn last.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Cells a row has.
    width: usize,
    /// The first row shown.
    top: usize,
    /// The first cell shown of a single line.
    left: usize,
    /// The column that moving up and down keeps to, with the cursor it was taken at.
    goal: Option<((usize, usize), usize)>,
}

impl Default for View {
    fn default() -> Self {
        Self { width: 80, top: 0, left: 0, goal: None }
    }
}

impl Editor {
    fn shown(&self, max: usize) -> Vec<Shown> {
        self.area.lines().iter().map(|line| Shown::new(line, &self.folded, self.kind, max)).collect()
    }

    /// Rows the text takes in `width` cells, at least one.
    pub fn height(&self, width: u16) -> usize {
        if self.kind == Kind::Single {
            return 1;
        }
        let max = text_cells(width);
        self.shown(max).iter().map(|line| line.rows.len()).sum::<usize>().max(1)
    }

    pub(super) fn vertical(&mut self, rows: isize, select: bool) -> Edited {
        let shown = self.shown(self.view.width);
        let (line, col) = self.cursor();
        let byte = self.here().1;
        let (row, cells) = shown[line].place(shown[line].shown_at(byte));
        let goal = match self.view.goal {
            Some((at, goal)) if at == (line, col) => goal,
            _ => cells,
        };
        let flat = shown[..line].iter().map(|l| l.rows.len()).sum::<usize>() + row;
        let Some(mut target) = flat.checked_add_signed(rows) else { return Edited::Ignored };
        for (index, line) in shown.iter().enumerate() {
            if target < line.rows.len() {
                let source = line.source_at(line.byte_at(target, goal));
                let text = &self.area.lines()[index];
                let col = text.get(..source).map_or(usize::MAX, |head| head.chars().count());
                self.jump((index, col), select);
                self.view.goal = Some((self.cursor(), goal));
                return Edited::Moved;
            }
            target -= line.rows.len();
        }
        Edited::Ignored
    }

    /// Draws the text and the list of names, the latter within `screen`. Returns where the
    /// terminal's cursor belongs, so that composed input appears there.
    pub fn draw(&mut self, buffer: &mut Buffer, area: Rect, screen: Rect, look: &EditorLook) -> Option<Position> {
        let cursor = self.draw_text(buffer, area, look)?;
        self.draw_popup(buffer, cursor, screen, look);
        Some(cursor)
    }

    /// Draws the text alone. Returns where the cursor is.
    pub fn draw_text(&mut self, buffer: &mut Buffer, area: Rect, look: &EditorLook) -> Option<Position> {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return None;
        }
        self.view.width = text_cells(area.width);
        let shown = self.shown(self.view.width);
        let (line, _) = self.cursor();
        let (row, cells) = shown[line].place(shown[line].shown_at(self.here().1));
        let flat = shown[..line].iter().map(|l| l.rows.len()).sum::<usize>() + row;
        let total: usize = shown.iter().map(|l| l.rows.len()).sum();
        self.scroll_to(flat, cells, total, usize::from(area.height));
        buffer.set_style(area, look.text);
        if self.area.is_empty() {
            let text = cut(&self.placeholder, usize::from(area.width)).into_owned();
            buffer.set_string(area.x, area.y, text, look.text.patch(look.placeholder));
        } else {
            self.draw_rows(buffer, area, &shown, look);
        }
        let x = area.x + clamp(cells.saturating_sub(self.view.left)).min(area.width - 1);
        let y = area.y + clamp(flat - self.view.top).min(area.height - 1);
        Some(Position { x, y })
    }

    /// Draws the list of names, if it is open, at the cursor and within `screen`.
    pub fn draw_popup(&self, buffer: &mut Buffer, cursor: Position, screen: Rect, look: &EditorLook) {
        if self.completion.is_open() {
            self.draw_names(buffer, cursor, screen, look);
        }
    }

    /// Keeps the cursor's row, and in a single line its column, in view.
    fn scroll_to(&mut self, flat: usize, cells: usize, total: usize, height: usize) {
        let view = &mut self.view;
        view.top = view.top.min(total.saturating_sub(height)).min(flat).max((flat + 1).saturating_sub(height));
        view.left = match self.kind {
            Kind::Single => view.left.min(cells).max((cells + 1).saturating_sub(view.width + 1)),
            Kind::Multi | Kind::Message => 0,
        };
    }

    fn draw_rows(&self, buffer: &mut Buffer, area: Rect, shown: &[Shown], look: &EditorLook) {
        let selection = self.area.selection_range();
        let mut y = 0;
        let end = self.view.top + usize::from(area.height);
        for (index, line) in shown.iter().enumerate() {
            let selected = selection.and_then(|(from, to)| self.selected_bytes(index, line, from, to));
            for row in &line.rows {
                if y >= self.view.top && y < end {
                    let at = area.y + clamp(y - self.view.top);
                    let style = |byte: usize| {
                        let mut style = look.text;
                        if line.labels.iter().any(|(label, _)| label.contains(&byte)) {
                            style = style.patch(look.label);
                        }
                        if selected.as_ref().is_some_and(|range| range.contains(&byte)) {
                            style = style.patch(look.selection).add_modifier(Modifier::REVERSED);
                        }
                        style
                    };
                    self.draw_row(buffer, area, at, (&line.text[row.clone()], row.start), style);
                }
                y += 1;
            }
        }
    }

    fn draw_row(&self, buffer: &mut Buffer, area: Rect, y: u16, row: (&str, usize), style: impl Fn(usize) -> Style) {
        let mut cells = 0;
        for (at, grapheme) in row.0.grapheme_indices(true) {
            let wide = grapheme_width(grapheme);
            let next = cells + wide;
            if cells >= self.view.left && wide > 0 {
                let x = cells - self.view.left;
                if x + wide > usize::from(area.width) {
                    break;
                }
                buffer.set_stringn(area.x + clamp(x), y, grapheme, wide, style(row.1 + at));
            }
            cells = next;
        }
    }

    /// The shown bytes of a line that are selected.
    fn selected_bytes(
        &self,
        index: usize,
        line: &Shown,
        from: (usize, usize),
        to: (usize, usize),
    ) -> Option<std::ops::Range<usize>> {
        if index < from.0 || index > to.0 {
            return None;
        }
        let source = &self.area.lines()[index];
        let byte = |col: usize| source.char_indices().nth(col).map_or(source.len(), |(byte, _)| byte);
        let start = if index == from.0 { byte(from.1) } else { 0 };
        let end = if index == to.0 { byte(to.1) } else { source.len() };
        Some(line.shown_at(start)..line.shown_at(end))
    }

    fn draw_names(&self, buffer: &mut Buffer, cursor: Position, screen: Rect, look: &EditorLook) {
        let screen = screen.intersection(buffer.area);
        let names = &self.completion.names;
        let below = screen.bottom().saturating_sub(cursor.y + 1);
        let above = cursor.y.saturating_sub(screen.y);
        let height = clamp(names.len().min(MOST_NAMES)).min(below.max(above));
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let wide = clamp(widest + 2).min(screen.width);
        if height == 0 || wide < 4 {
            return;
        }
        let y = if below >= height { cursor.y + 1 } else { cursor.y - height };
        let x = cursor.x.min(screen.right().saturating_sub(wide)).max(screen.x);
        let area = Rect { x, y, width: wide, height };
        Clear.render(area, buffer);
        buffer.set_style(area, look.popup);
        let first = (self.completion.selected + 1).saturating_sub(usize::from(height));
        for (i, name) in names.iter().enumerate().skip(first).take(usize::from(height)) {
            let selected = i == self.completion.selected;
            let style = if selected { look.popup_selected } else { look.popup };
            let text = pad(&format!("{}{name}", if selected { ">" } else { " " }), usize::from(wide));
            buffer.set_string(x, y + clamp(i - first), text, style);
        }
    }
}

/// Cells for text: the last column is the cursor's, so that it is seen behind a full row.
fn text_cells(width: u16) -> usize {
    usize::from(width.saturating_sub(1).max(1))
}

fn clamp(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}
