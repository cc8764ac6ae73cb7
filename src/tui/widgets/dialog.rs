//! Boxes over a screen: their place, frame and choices. What they ask is the caller's.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

use super::scroll::{Scroll, draw_bar};
use super::text::{cut, width};
use super::wrap::wrap_line;

/// How a box looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialogLook {
    /// Inside.
    pub text: Style,
    /// The frame.
    pub border: Style,
    /// The title.
    pub title: Style,
    /// A choice.
    pub choice: Style,
    /// The choice under the cursor.
    pub selected: Style,
    /// Whether only ASCII is drawn.
    pub ascii: bool,
}

/// Lines of plain characters.
const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// A rectangle of at most `width` × `height` in the middle of `area`.
pub fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(area.width);
    let height = height.min(area.height);
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// Clears a rectangle, frames it and returns what is inside. Where a frame would leave nothing,
/// there is none.
pub fn framed(buffer: &mut Buffer, area: Rect, title: &str, look: &DialogLook) -> Rect {
    let area = area.intersection(buffer.area);
    Clear.render(area, buffer);
    buffer.set_style(area, look.text);
    if area.width < 4 || area.height < 3 {
        return area;
    }
    let title = if look.ascii { title.replace('·', "|") } else { title.to_owned() };
    let title = cut(&title, usize::from(area.width - 4)).into_owned();
    let block = Block::bordered()
        .border_set(if look.ascii { ASCII_BORDER } else { border::ROUNDED })
        .border_style(look.border)
        .title(Line::styled(format!(" {title} "), look.title));
    let inner = block.inner(area);
    block.render(area, buffer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// One way to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The key that answers so at once.
    pub key: char,
    /// What it does.
    pub label: String,
}

impl Choice {
    /// A choice with its key.
    pub fn new(key: char, label: impl Into<String>) -> Self {
        Self { key, label: label.into() }
    }

    fn text(&self) -> String {
        format!(" {} {} ", self.key, self.label)
    }
}

/// What a key did to a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The choice with this index.
    Chosen(usize),
    /// It only moved.
    Moved,
    /// The key means nothing here.
    Ignored,
}

/// A question with its choices.
#[derive(Clone, Debug)]
pub struct Dialog {
    /// Above it.
    pub title: String,
    /// What is asked.
    pub body: Vec<Line<'static>>,
    /// The ways to answer.
    pub choices: Vec<Choice>,
    /// The choice under the cursor.
    pub selected: usize,
    scroll: Scroll,
}

impl Dialog {
    /// A question; the first choice is under the cursor.
    pub fn new(title: impl Into<String>, body: Vec<Line<'static>>, choices: Vec<Choice>) -> Self {
        Self { title: title.into(), body, choices, selected: 0, scroll: Scroll::default() }
    }

    /// Takes a key: the arrows move, Enter takes the choice under the cursor, its letter any.
    pub fn key(&mut self, key: KeyEvent) -> Answer {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Answer::Ignored;
        }
        let count = self.choices.len();
        match key.code {
            KeyCode::Enter if self.selected < count => return Answer::Chosen(self.selected),
            KeyCode::Left | KeyCode::BackTab => {
                self.selected = self.selected.checked_sub(1).unwrap_or(count.max(1) - 1)
            }
            KeyCode::Right | KeyCode::Tab => {
                self.selected = if self.selected + 1 < count { self.selected + 1 } else { 0 }
            }
            KeyCode::Up => self.scroll.by(-1),
            KeyCode::Down => self.scroll.by(1),
            KeyCode::PageUp => self.scroll.page(-1),
            KeyCode::PageDown => self.scroll.page(1),
            KeyCode::Char(c) => {
                return self.choices.iter().position(|choice| choice.key == c).map_or(Answer::Ignored, Answer::Chosen);
            }
            _ => return Answer::Ignored,
        }
        Answer::Moved
    }

    /// Moves the body, as the mouse wheel does.
    pub fn wheel(&mut self, rows: isize) {
        self.scroll.by(rows);
    }

    /// The choice drawn at a position when it was drawn within `area` last.
    pub fn choice_at(&self, area: Rect, at: Position) -> Option<usize> {
        let inner = self.inner(area);
        self.choice_places(inner).into_iter().position(|place| place.contains(at))
    }

    fn size(&self, area: Rect) -> Rect {
        let widest = self.body.iter().map(Line::width).max().unwrap_or(0);
        let buttons: usize = self.choices.iter().map(|choice| width(&choice.text()) + 1).sum();
        let wide = widest.max(buttons).max(width(&self.title) + 2).max(24) + 4;
        let wide =
            u16::try_from(wide).unwrap_or(u16::MAX).min(area.width.saturating_sub(2).clamp(1, 100)).min(area.width);
        let rows = self.rows(usize::from(wide.saturating_sub(4)));
        let buttons = self.button_rows(wide.saturating_sub(4));
        let high = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(buttons).saturating_add(3);
        centred(area, wide, high)
    }

    fn inner(&self, area: Rect) -> Rect {
        let size = self.size(area);
        if size.width < 4 || size.height < 3 {
            return size;
        }
        Rect { x: size.x + 2, y: size.y + 1, width: size.width - 4, height: size.height - 2 }
    }

    fn rows(&self, width: usize) -> Vec<Line<'static>> {
        self.body.iter().flat_map(|line| wrap_line(line, width.max(1), 0)).collect()
    }

    fn button_rows(&self, width: u16) -> u16 {
        let places = self.choice_places(Rect { x: 0, y: 0, width, height: u16::MAX });
        places.iter().map(|place| place.y).min().map_or(0, |first| u16::MAX - first)
    }

    /// Where the choices are: side by side from the bottom up, one below the other when the box
    /// is too narrow for that.
    fn choice_places(&self, inner: Rect) -> Vec<Rect> {
        let wide = |choice: &Choice| u16::try_from(width(&choice.text())).unwrap_or(u16::MAX);
        let total = self.choices.iter().fold(0u16, |sum, choice| sum.saturating_add(wide(choice)).saturating_add(1));
        let count = u16::try_from(self.choices.len()).unwrap_or(u16::MAX);
        let in_a_row = total <= inner.width.saturating_add(1);
        let mut x = inner.x;
        let mut y = inner.bottom().saturating_sub(if in_a_row { 1 } else { count });
        let mut places = Vec::new();
        for choice in &self.choices {
            places.push(Rect { x, y, width: wide(choice).min(inner.width), height: 1 });
            if in_a_row {
                x = x.saturating_add(wide(choice) + 1);
            } else {
                y = y.saturating_add(1);
            }
        }
        places
    }

    /// Draws the box in the middle of `area`.
    pub fn draw(&mut self, buffer: &mut Buffer, area: Rect, look: &DialogLook) {
        let area = area.intersection(buffer.area);
        let inner = framed(buffer, self.size(area), &self.title, look);
        let rows = self.rows(usize::from(inner.width));
        let buttons = self.button_rows(inner.width);
        let height = inner.height.saturating_sub(buttons + u16::from(inner.height > buttons + 1));
        self.scroll.fit(rows.len(), usize::from(height));
        for (i, line) in rows[self.scroll.range()].iter().enumerate() {
            let y = inner.y + u16::try_from(i).unwrap_or(u16::MAX);
            line.clone().render(Rect { y, height: 1, ..inner }, buffer);
        }
        let bar = Rect { width: (inner.width + 1).min(area.right() - inner.x), height, ..inner };
        draw_bar(buffer, bar, &self.scroll, look.border, look.ascii);
        for (i, (place, choice)) in self.choice_places(inner).into_iter().zip(&self.choices).enumerate() {
            let place = place.intersection(inner);
            if place.is_empty() {
                continue;
            }
            let style = if i == self.selected { look.selected.add_modifier(Modifier::BOLD) } else { look.choice };
            let mut text = choice.text();
            if i == self.selected {
                // A mark besides the colour.
                text.replace_range(..1, if look.ascii { ">" } else { "▸" });
            }
            buffer.set_stringn(place.x, place.y, text, usize::from(place.width), style);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dialog() -> Dialog {
        let body = vec![Line::from("Delete session `fix-parser`? Its messages, snapshots and outputs go with it.")];
        Dialog::new("Delete", body, vec![Choice::new('n', "keep it"), Choice::new('y', "delete")])
    }

    fn drawn(dialog: &mut Dialog, width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        dialog.draw(&mut buffer, area, &DialogLook { ascii: true, ..DialogLook::default() });
        (0..height)
            .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn it_is_drawn_in_the_middle_with_its_choices() {
        let rows = [
            "",
            " + Delete -------------------------------+",
            " | Delete session `fix-parser`? Its      |",
            " | messages, snapshots and outputs go    |",
            " | with it.                              |",
            " |                                       |",
            " | >n keep it   y delete                 |",
            " +---------------------------------------+",
            "",
        ];
        assert_eq!(drawn(&mut dialog(), 43, 9), rows);
    }

    #[test]
    fn letters_answer_at_once_and_enter_takes_the_one_under_the_cursor() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let mut dialog = dialog();
        assert_eq!(dialog.key(key(KeyCode::Char('y'))), Answer::Chosen(1));
        assert_eq!(dialog.key(key(KeyCode::Char('x'))), Answer::Ignored);
        assert_eq!(dialog.key(key(KeyCode::Enter)), Answer::Chosen(0));
        assert_eq!(dialog.key(key(KeyCode::Right)), Answer::Moved);
        assert_eq!(dialog.key(key(KeyCode::Enter)), Answer::Chosen(1));
        assert_eq!(dialog.key(key(KeyCode::Tab)), Answer::Moved);
        assert_eq!(dialog.selected, 0);
    }

    proptest! {
        #[test]
        fn it_draws_at_any_size(width in 0u16..60, height in 0u16..12, x in 0u16..70, y in 0u16..14) {
            let mut dialog = dialog();
            drawn(&mut dialog, width, height);
            let area = Rect::new(0, 0, width, height);
            let choice = dialog.choice_at(area, Position { x, y });
            prop_assert!(choice.is_none_or(|choice| choice < 2));
        }
    }
}
