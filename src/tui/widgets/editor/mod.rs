//! The text editor of forms and dialogs, over a text area that keeps lines, cursor and undo. Moves
//! and deletes by grapheme, draws itself with our own wrapping, folds large pastes into one mark
//! and completes file names after `@`. Does not read files: names come from outside.

mod completion;
mod draw;
mod lines;

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;

pub use draw::EditorLook;

use self::completion::Completion;
use crate::stdx::text::{sanitize, sanitize_line};

/// Pastes of more lines than this are folded.
const FOLD_LINES: usize = 12;
/// Pastes of more characters than this are folded.
const FOLD_CHARS: usize = 2000;
/// The first of the private characters that each stand for a folded paste.
const FOLD_MARK: u32 = 0xF_0000;
/// The last of them.
const FOLD_MARK_LAST: u32 = 0xF_0FFF;

/// What came of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The text is another one.
    Changed,
    /// The cursor or a popup moved.
    Moved,
    /// The key means nothing here; whoever holds the editor decides.
    Ignored,
}

/// How many lines may be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One; the text scrolls sideways and Enter is left to the owner.
    Single,
    /// Many; Enter makes a new line.
    Multi,
    /// Many; Enter is left to the owner, `Ctrl+J` and `Shift+Enter` make a new line.
    Message,
}

/// A text being edited.
pub struct Editor {
    kind: Kind,
    area: TextArea<'static>,
    placeholder: String,
    /// Folded pastes; the n-th is shown for the private character `FOLD_MARK + n`. Only ever
    /// grows, so that undo finds what it brings back.
    folded: Vec<String>,
    completion: Completion,
    view: draw::View,
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor").field("kind", &self.kind).field("lines", &self.area.lines()).finish_non_exhaustive()
    }
}

impl Editor {
    /// An empty editor; `placeholder` is shown while it is empty.
    pub fn new(kind: Kind, placeholder: impl Into<String>) -> Self {
        Self {
            kind,
            area: TextArea::default(),
            placeholder: placeholder.into(),
            folded: Vec::new(),
            completion: Completion::default(),
            view: draw::View::default(),
        }
    }

    /// The whole text, folded pastes in full.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (i, line) in self.area.lines().iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            for c in line.chars() {
                match fold_index(c).and_then(|n| self.folded.get(n)) {
                    Some(paste) => out.push_str(paste),
                    None => out.push(c),
                }
            }
        }
        out
    }

    /// Whether there is nothing but space.
    pub fn is_blank(&self) -> bool {
        self.area.lines().iter().all(|line| line.trim().is_empty())
    }

    /// Replaces the whole text, as an external editor does; can be undone.
    pub fn set_text(&mut self, text: &str) {
        let text = self.clean(text);
        self.area.select_all();
        if !self.area.insert_str(&text) {
            self.area.delete_char();
        }
        self.completion.close();
    }

    /// Changes what is shown while the editor is empty.
    pub fn set_placeholder(&mut self, placeholder: impl Into<String>) {
        self.placeholder = placeholder.into();
    }

    /// Takes a bracketed paste. A large one is folded into a mark.
    pub fn paste(&mut self, text: &str) {
        let text = self.clean(text);
        let lines = text.lines().count();
        let index = u32::try_from(self.folded.len()).unwrap_or(u32::MAX);
        let mark = FOLD_MARK.checked_add(index).filter(|c| *c <= FOLD_MARK_LAST).and_then(char::from_u32);
        let large = lines > FOLD_LINES || text.chars().count() > FOLD_CHARS;
        match mark.filter(|_| large && self.kind != Kind::Single) {
            Some(mark) => {
                self.folded.push(text);
                self.area.insert_char(mark);
            }
            None => {
                self.area.insert_str(&text);
            }
        }
        self.completion.close();
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Edited {
        if key.kind == KeyEventKind::Release {
            return Edited::Ignored;
        }
        if let Some(edited) = self.completion_key(key) {
            return edited;
        }
        let edited = self.edit_key(key);
        self.follow_completion(edited);
        edited
    }

    fn edit_key(&mut self, key: KeyEvent) -> Edited {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match (key.code, ctrl, alt) {
            (KeyCode::Enter, _, _) => self.enter(ctrl, alt, shift),
            (KeyCode::Char('j'), true, false) => self.new_line(),
            (KeyCode::Char('h'), true, false) | (KeyCode::Backspace, false, false) => self.delete_before(),
            (KeyCode::Char('d'), true, false) | (KeyCode::Delete, false, false) => self.delete_after(),
            (KeyCode::Char('w'), true, false) | (KeyCode::Backspace, _, _) => changed(self.area.delete_word()),
            (KeyCode::Char('d'), false, true) | (KeyCode::Delete, _, _) => changed(self.area.delete_next_word()),
            (KeyCode::Char('k'), true, false) => changed(self.area.delete_line_by_end()),
            (KeyCode::Char('u'), true, false) => changed(self.area.delete_line_by_head()),
            (KeyCode::Char('y'), true, false) => changed(self.area.paste()),
            (KeyCode::Char('_' | '/' | '7'), true, false) => changed(self.area.undo()),
            (KeyCode::Char('_' | '/'), false, true) => changed(self.area.redo()),
            (KeyCode::Left, true, _) | (KeyCode::Left, _, true) | (KeyCode::Char('b'), false, true) => {
                self.word(CursorMove::WordBack, shift)
            }
            (KeyCode::Right, true, _) | (KeyCode::Right, _, true) | (KeyCode::Char('f'), false, true) => {
                self.word(CursorMove::WordForward, shift)
            }
            (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, false) => self.left(shift),
            (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, false) => self.right(shift),
            (KeyCode::Up, false, false) => self.vertical(-1, shift),
            (KeyCode::Down, false, false) => self.vertical(1, shift),
            (KeyCode::Home, true, _) => self.jump((0, 0), shift),
            (KeyCode::End, true, _) => self.jump((usize::MAX, usize::MAX), shift),
            (KeyCode::Home, _, _) | (KeyCode::Char('a'), true, false) => self.jump((self.cursor().0, 0), shift),
            (KeyCode::End, _, _) | (KeyCode::Char('e'), true, false) => self.jump((self.cursor().0, usize::MAX), shift),
            (KeyCode::Char(c), false, false) => self.insert(c),
            // Windows and some layouts report AltGr as Ctrl+Alt.
            (KeyCode::Char(c), true, true) if !c.is_ascii_alphanumeric() => self.insert(c),
            _ => Edited::Ignored,
        }
    }

    fn enter(&mut self, ctrl: bool, alt: bool, shift: bool) -> Edited {
        match self.kind {
            _ if ctrl || alt => Edited::Ignored,
            Kind::Multi => self.new_line(),
            Kind::Message if shift => self.new_line(),
            Kind::Single | Kind::Message => Edited::Ignored,
        }
    }

    fn new_line(&mut self) -> Edited {
        if self.kind == Kind::Single {
            return Edited::Ignored;
        }
        self.area.insert_newline();
        Edited::Changed
    }

    fn insert(&mut self, c: char) -> Edited {
        let text = self.clean(c.encode_utf8(&mut [0; 4]));
        changed(!text.is_empty() && self.area.insert_str(text))
    }

    /// Text that may stand in the editor: nothing that acts on a terminal, no mark of ours.
    fn clean(&self, text: &str) -> String {
        let mut text = if self.kind == Kind::Single { sanitize_line(text) } else { sanitize(text) };
        text.retain(|c| fold_index(c).is_none());
        text
    }

    /// Row and character of the cursor.
    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// The line of the cursor and the cursor's byte in it.
    fn here(&self) -> (&str, usize) {
        let (row, col) = self.cursor();
        let line = self.area.lines().get(row).map_or("", String::as_str);
        let byte = line.char_indices().nth(col).map_or(line.len(), |(byte, _)| byte);
        (line, byte)
    }

    fn jump(&mut self, (row, col): (usize, usize), select: bool) -> Edited {
        if select && !self.area.is_selecting() {
            self.area.start_selection();
        } else if !select {
            self.area.cancel_selection();
        }
        let before = self.cursor();
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(short(row), short(col)));
        if self.cursor() == before && !select { Edited::Ignored } else { Edited::Moved }
    }

    fn word(&mut self, step: CursorMove, select: bool) -> Edited {
        if select && !self.area.is_selecting() {
            self.area.start_selection();
        } else if !select {
            self.area.cancel_selection();
        }
        self.area.move_cursor(step);
        Edited::Moved
    }

    fn left(&mut self, select: bool) -> Edited {
        let (row, col) = self.cursor();
        let (line, byte) = self.here();
        match line[..byte].graphemes(true).next_back() {
            Some(grapheme) => self.jump((row, col - grapheme.chars().count()), select),
            None if row > 0 => self.jump((row - 1, usize::MAX), select),
            None => Edited::Ignored,
        }
    }

    fn right(&mut self, select: bool) -> Edited {
        let (row, col) = self.cursor();
        let (line, byte) = self.here();
        match line[byte..].graphemes(true).next() {
            Some(grapheme) => self.jump((row, col + grapheme.chars().count()), select),
            None if row + 1 < self.area.lines().len() => self.jump((row + 1, 0), select),
            None => Edited::Ignored,
        }
    }

    fn delete_before(&mut self) -> Edited {
        self.delete_to(Self::left)
    }

    fn delete_after(&mut self) -> Edited {
        self.delete_to(Self::right)
    }

    /// Deletes what is selected, else what `step` passes, in one piece that one undo brings back.
    fn delete_to(&mut self, step: fn(&mut Self, bool) -> Edited) -> Edited {
        if !self.area.is_selecting() {
            let before = self.cursor();
            step(self, true);
            if self.cursor() == before {
                self.area.cancel_selection();
                return Edited::Ignored;
            }
        }
        changed(self.area.delete_char())
    }
}

fn changed(changed: bool) -> Edited {
    if changed { Edited::Changed } else { Edited::Moved }
}

/// Which folded paste a character stands for.
fn fold_index(c: char) -> Option<usize> {
    let c = u32::from(c);
    (FOLD_MARK..=FOLD_MARK_LAST).contains(&c).then(|| (c - FOLD_MARK) as usize)
}

#[cfg(test)]
mod tests;
