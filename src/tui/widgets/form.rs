//! Fields one below the other: labels, values, what is wrong with each, and which one has the
//! keys. Does not know what the values mean; the owner reads and checks them.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::editor::{Edited, Editor, EditorLook, Kind};
use super::scroll::{Scroll, draw_bar};
use super::wrap::wrap;
use crate::stdx::text::sanitize_line;
use crate::tui::widgets::text::{cut, width};

/// How a form looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormLook {
    /// Labels.
    pub label: Style,
    /// The label of the field that has the keys.
    pub focused: Style,
    /// Hints and choices not taken.
    pub dim: Style,
    /// The choice taken.
    pub chosen: Style,
    /// What is wrong.
    pub error: Style,
    /// Editors.
    pub editor: EditorLook,
    /// Whether only ASCII is drawn.
    pub ascii: bool,
}

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What can be chosen.
    pub options: Vec<String>,
    /// Which is.
    pub index: usize,
}

/// How many rows of a text are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// At least, where labels stand beside their fields.
    pub least: usize,
    /// At most.
    pub most: usize,
}

/// What a field holds.
#[derive(Debug)]
pub enum Value {
    /// A text, and how many rows of it are shown: at least, where there is room, and at most.
    Text(Box<Editor>, Rows),
    /// One of several.
    Choice(Options),
}

/// One field.
#[derive(Debug)]
pub struct Field {
    /// Names it to its owner.
    pub id: &'static str,
    /// Before it.
    pub label: String,
    /// Below it while it has the keys.
    pub hint: String,
    /// What it holds.
    pub value: Value,
    /// What is wrong with it.
    pub error: Option<String>,
}

impl Field {
    /// A field for one line of text.
    pub fn line(id: &'static str, label: &str, placeholder: &str, hint: &str) -> Self {
        Self::new(
            id,
            label,
            hint,
            Value::Text(Box::new(Editor::new(Kind::Single, placeholder)), Rows { least: 1, most: 1 }),
        )
    }

    /// A field for several lines, of which at most `most` are shown at once.
    pub fn text(id: &'static str, label: &str, placeholder: &str, hint: &str, most: usize) -> Self {
        let rows = Rows { least: 1, most };
        Self::new(id, label, hint, Value::Text(Box::new(Editor::new(Kind::Multi, placeholder)), rows))
    }

    /// A field for one of several values.
    pub fn choice(id: &'static str, label: &str, options: Vec<String>, index: usize, hint: &str) -> Self {
        Self::new(id, label, hint, Value::Choice(Options { options, index }))
    }

    /// The same with at least `least` rows shown where there is room: for what matters most.
    #[must_use]
    pub fn at_least(mut self, least: usize) -> Self {
        if let Value::Text(_, rows) = &mut self.value {
            rows.least = least;
        }
        self
    }

    fn new(id: &'static str, label: &str, hint: &str, value: Value) -> Self {
        Self { id, label: label.to_owned(), hint: hint.to_owned(), value, error: None }
    }
}

/// What came of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormEvent {
    /// A value is another one.
    Changed,
    /// The cursor or the focus moved.
    Moved,
    /// The key means nothing here.
    Ignored,
}

/// Fields and which of them has the keys.
#[derive(Debug, Default)]
pub struct Form {
    /// The fields.
    pub fields: Vec<Field>,
    /// The one that has the keys.
    pub focus: usize,
    scroll: Scroll,
    /// Where each field was drawn last.
    places: Vec<Rect>,
}

impl Form {
    /// A form; the first field has the keys.
    pub fn new(fields: Vec<Field>) -> Self {
        Self { fields, ..Self::default() }
    }

    /// The field with this id.
    pub fn field(&self, id: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The field with this id, to change.
    pub fn field_mut(&mut self, id: &str) -> Option<&mut Field> {
        self.fields.iter_mut().find(|field| field.id == id)
    }

    /// A text field's text; empty for what is none.
    pub fn text(&self, id: &str) -> String {
        match self.field(id).map(|field| &field.value) {
            Some(Value::Text(editor, _)) => editor.text(),
            Some(Value::Choice(_)) | None => String::new(),
        }
    }

    /// A choice's index; 0 for what is none.
    pub fn chosen(&self, id: &str) -> usize {
        match self.field(id).map(|field| &field.value) {
            Some(Value::Choice(options)) => options.index,
            Some(Value::Text(..)) | None => 0,
        }
    }

    /// Replaces a text field's text.
    pub fn set_text(&mut self, id: &str, text: &str) {
        if let Some(Value::Text(editor, _)) = self.field_mut(id).map(|field| &mut field.value) {
            editor.set_text(text);
        }
    }

    /// The editor that has the keys.
    pub fn editor(&mut self) -> Option<&mut Editor> {
        match self.fields.get_mut(self.focus).map(|field| &mut field.value) {
            Some(Value::Text(editor, _)) => Some(editor),
            Some(Value::Choice(_)) | None => None,
        }
    }

    /// Marks a field as wrong.
    pub fn set_error(&mut self, id: &str, error: impl Into<String>) {
        if let Some(field) = self.field_mut(id) {
            field.error = Some(error.into());
        }
    }

    /// Takes all marks away.
    pub fn clear_errors(&mut self) {
        self.fields.iter_mut().for_each(|field| field.error = None);
    }

    /// Gives the keys to the first field that is marked. Returns whether there is one.
    pub fn focus_first_error(&mut self) -> bool {
        match self.fields.iter().position(|field| field.error.is_some()) {
            Some(index) => {
                self.focus = index;
                true
            }
            None => false,
        }
    }

    /// Takes a paste.
    pub fn paste(&mut self, text: &str) -> FormEvent {
        match self.fields.get_mut(self.focus) {
            Some(Field { value: Value::Text(editor, _), error, .. }) => {
                *error = None;
                editor.paste(text);
                FormEvent::Changed
            }
            Some(_) | None => FormEvent::Ignored,
        }
    }

    /// Takes a key. Tab and Shift+Tab change fields; so do the arrows at a field's edge and Enter
    /// in a field of one line.
    pub fn key(&mut self, key: KeyEvent) -> FormEvent {
        let Some(field) = self.fields.get_mut(self.focus) else { return FormEvent::Ignored };
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let event = match &mut field.value {
            Value::Text(editor, _)
                if editor.is_completing() || !matches!(key.code, KeyCode::Tab | KeyCode::BackTab) =>
            {
                match editor.key(key) {
                    Edited::Changed => FormEvent::Changed,
                    Edited::Moved => FormEvent::Moved,
                    Edited::Ignored => FormEvent::Ignored,
                }
            }
            Value::Text(..) => FormEvent::Ignored,
            Value::Choice(options) if plain => options.key(key.code),
            Value::Choice(_) => FormEvent::Ignored,
        };
        match event {
            FormEvent::Changed => field.error = None,
            FormEvent::Moved => {}
            FormEvent::Ignored if plain => return self.move_focus(key.code),
            FormEvent::Ignored => {}
        }
        event
    }

    fn move_focus(&mut self, code: KeyCode) -> FormEvent {
        let count = self.fields.len();
        self.focus = match code {
            KeyCode::Tab => (self.focus + 1) % count.max(1),
            KeyCode::BackTab => self.focus.checked_sub(1).unwrap_or(count.max(1) - 1),
            KeyCode::Up if self.focus > 0 => self.focus - 1,
            KeyCode::Down | KeyCode::Enter if self.focus + 1 < count => self.focus + 1,
            _ => return FormEvent::Ignored,
        };
        FormEvent::Moved
    }

    /// Gives the keys to the field drawn at a position. Returns whether there is one.
    pub fn click(&mut self, at: Position) -> bool {
        match self.places.iter().position(|place| place.contains(at)) {
            Some(index) => {
                self.focus = index;
                true
            }
            None => false,
        }
    }

    /// Scrolls, as the mouse wheel does.
    pub fn wheel(&mut self, rows: isize) {
        self.scroll.by(rows);
    }

    /// Draws the fields that fit, the one with the keys always. `screen` is where a list of names
    /// may go. Returns where the terminal's cursor belongs.
    pub fn draw(&mut self, buffer: &mut Buffer, area: Rect, screen: Rect, look: &FormLook) -> Option<Position> {
        let area = area.intersection(buffer.area);
        self.places.clear();
        if area.is_empty() {
            return None;
        }
        let wide = Widths::new(area.width, &self.fields);
        let heights: Vec<usize> =
            self.fields.iter().enumerate().map(|(i, field)| field.height(&wide, i == self.focus)).collect();
        let total = heights.iter().sum();
        self.scroll.fit(total, usize::from(area.height));
        let first: usize = heights.iter().take(self.focus).sum();
        if let Some(own) = heights.get(self.focus) {
            self.scroll.reveal(first, first + own.saturating_sub(1));
        }
        // Drawn on a sheet of the form's whole height, of which the visible part is copied: fields
        // need not know that they are cut.
        let sheet_area = Rect { x: 0, y: 0, width: area.width, height: u16::try_from(total).unwrap_or(u16::MAX) };
        let mut sheet = Buffer::empty(sheet_area);
        let mut y = 0;
        let mut cursor = None;
        for (i, (field, height)) in self.fields.iter_mut().zip(&heights).enumerate() {
            let place = Rect { y, height: u16::try_from(*height).unwrap_or(u16::MAX), ..sheet_area };
            let place = place.intersection(sheet_area);
            let at = field.draw(&mut sheet, place, &wide, look, i == self.focus);
            cursor = cursor.or(at);
            self.places.push(on_screen(place, self.scroll.top, area));
            y = y.saturating_add(place.height);
        }
        copy(&sheet, buffer, self.scroll.top, area);
        if self.scroll.total > self.scroll.visible {
            draw_bar(buffer, area, &self.scroll, look.dim, look.ascii);
        }
        let cursor = cursor.and_then(|at| {
            let y = usize::from(at.y).checked_sub(self.scroll.top)?;
            let at = Position { x: area.x + at.x, y: area.y + u16::try_from(y).ok()? };
            area.contains(at).then_some(at)
        });
        if let (Some(at), Some(editor)) = (cursor, self.editor()) {
            editor.draw_popup(buffer, at, screen, &look.editor);
        }
        cursor
    }
}

fn on_screen(place: Rect, top: usize, area: Rect) -> Rect {
    let start = usize::from(place.y).max(top) - top;
    let end = (usize::from(place.bottom()).max(top) - top).min(usize::from(area.height));
    let height = u16::try_from(end.saturating_sub(start)).unwrap_or(0);
    Rect { x: area.x, y: area.y.saturating_add(u16::try_from(start).unwrap_or(u16::MAX)), width: area.width, height }
}

fn copy(sheet: &Buffer, buffer: &mut Buffer, top: usize, area: Rect) {
    for y in 0..area.height {
        let Ok(from) = u16::try_from(top + usize::from(y)) else { return };
        for x in 0..area.width {
            if let (Some(cell), Some(target)) = (sheet.cell((x, from)), buffer.cell_mut((area.x + x, area.y + y))) {
                let ground = target.bg;
                *target = cell.clone();
                if target.bg == Color::Reset {
                    target.bg = ground;
                }
            }
        }
    }
}

/// The columns of a form.
struct Widths {
    /// Cells for labels; 0 when they stand above their fields.
    label: u16,
    /// Cells for values.
    value: u16,
}

impl Widths {
    fn new(whole: u16, fields: &[Field]) -> Self {
        let widest = fields.iter().map(|field| width(&field.label)).max().unwrap_or(0);
        let label = u16::try_from(widest + 3).unwrap_or(u16::MAX).min(24);
        // One column on the right is the scroll bar's.
        if whole >= 56 {
            Self { label, value: (whole - label).saturating_sub(2).max(1) }
        } else {
            Self { label: 0, value: whole.saturating_sub(3).max(1) }
        }
    }
}

impl Options {
    fn key(&mut self, code: KeyCode) -> FormEvent {
        let count = self.options.len();
        let index = match code {
            KeyCode::Left | KeyCode::Char('h') => self.index.checked_sub(1),
            KeyCode::Right | KeyCode::Char('l') => Some(self.index + 1),
            KeyCode::Char(' ') if count > 0 => Some((self.index + 1) % count),
            KeyCode::Home => Some(0),
            KeyCode::End => count.checked_sub(1),
            _ => return FormEvent::Ignored,
        };
        match index.filter(|index| *index < count && *index != self.index) {
            Some(index) => {
                self.index = index;
                FormEvent::Changed
            }
            None => FormEvent::Moved,
        }
    }

    /// The choices as rows of at most `max` cells, the one taken in brackets.
    fn rows(&self, max: usize) -> Vec<Vec<(usize, String)>> {
        let mut rows: Vec<Vec<(usize, String)>> = vec![Vec::new()];
        let mut used = 0;
        for (i, option) in self.options.iter().enumerate() {
            let text = if i == self.index { format!("[{option}]") } else { format!(" {option} ") };
            let text = cut(&text, max).into_owned();
            let cells = width(&text) + 1;
            if used > 0 && used + cells > max + 1 {
                rows.push(Vec::new());
                used = 0;
            }
            used += cells;
            if let Some(row) = rows.last_mut() {
                row.push((i, text));
            }
        }
        rows
    }
}

impl Field {
    fn notes(&self, wide: &Widths, focused: bool) -> (Vec<String>, Vec<String>) {
        let max = usize::from(wide.value);
        let rows = |text: &str| wrap(text, max, 4);
        let errors = self.error.as_ref().map(|error| rows(&sanitize_line(&format!("! {error}"))));
        let hint = if focused && !self.hint.is_empty() { rows(&self.hint) } else { Vec::new() };
        (errors.unwrap_or_default(), hint)
    }

    fn value_rows(&self, wide: &Widths) -> usize {
        match &self.value {
            Value::Text(editor, rows) => {
                let least = if wide.label == 0 { 1 } else { rows.least.max(1) };
                editor.height(wide.value).clamp(least, rows.most.max(least))
            }
            Value::Choice(options) => options.rows(usize::from(wide.value)).len(),
        }
    }

    fn height(&self, wide: &Widths, focused: bool) -> usize {
        let (errors, hint) = self.notes(wide, focused);
        self.value_rows(wide) + errors.len() + hint.len() + usize::from(wide.label == 0)
    }

    fn draw(
        &mut self,
        sheet: &mut Buffer,
        place: Rect,
        wide: &Widths,
        look: &FormLook,
        focused: bool,
    ) -> Option<Position> {
        if place.is_empty() {
            return None;
        }
        let style = if focused { look.focused.add_modifier(Modifier::BOLD) } else { look.label };
        let mark = match (focused, look.ascii) {
            (true, false) => "▸ ",
            (true, true) => "> ",
            (false, _) => "  ",
        };
        let label_cells = usize::from(if wide.label == 0 { place.width } else { wide.label });
        sheet.set_stringn(place.x, place.y, cut(&format!("{mark}{}", self.label), label_cells), label_cells, style);
        let (x, mut y) = if wide.label == 0 { (place.x + 2, place.y + 1) } else { (place.x + wide.label, place.y) };
        let rows = u16::try_from(self.value_rows(wide)).unwrap_or(u16::MAX);
        let value = Rect { x, y, width: wide.value, height: rows }.intersection(place);
        let (errors, hint) = self.notes(wide, focused);
        let cursor = match &mut self.value {
            Value::Text(editor, _) => editor.draw_text(sheet, value, &look.editor).filter(|_| focused),
            Value::Choice(options) => {
                options.draw(sheet, value, look);
                None
            }
        };
        y = y.saturating_add(rows);
        for (line, style) in errors.iter().map(|l| (l, look.error)).chain(hint.iter().map(|l| (l, look.dim))) {
            if y < place.bottom() {
                sheet.set_stringn(x, y, line, usize::from(wide.value), style);
            }
            y = y.saturating_add(1);
        }
        cursor
    }
}

impl Options {
    fn draw(&self, sheet: &mut Buffer, area: Rect, look: &FormLook) {
        for (i, row) in self.rows(usize::from(area.width)).iter().enumerate() {
            let y = area.y.saturating_add(u16::try_from(i).unwrap_or(u16::MAX));
            let mut x = area.x;
            for (index, text) in row {
                if y < area.bottom() && x < area.right() {
                    let style = if *index == self.index { look.chosen } else { look.dim };
                    let (next, _) = sheet.set_stringn(x, y, text, usize::from(area.right() - x), style);
                    x = next.saturating_add(1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
