//! The list of file names that follows an `@` being typed. The editor says what prefix it wants
//! names for; whoever holds it asks and hands them in.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::CursorMove;

use super::{Edited, Editor};
use crate::stdx::text::sanitize_line;

/// Most names shown at once.
pub(super) const MOST_NAMES: usize = 6;

/// An open list, or none.
#[derive(Debug, Default)]
pub(super) struct Completion {
    /// What stands after the `@`, while the cursor is at its end.
    prefix: Option<String>,
    /// The prefix that names were asked for last.
    asked: Option<String>,
    /// What was found for it.
    pub(super) names: Vec<String>,
    /// The name under the cursor.
    pub(super) selected: usize,
    /// A prefix the person closed the list for; it stays closed while that is typed on.
    dismissed: Option<String>,
}

impl Completion {
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_open(&self) -> bool {
        self.prefix.is_some() && !self.names.is_empty()
    }
}

impl Editor {
    /// A prefix that names are wanted for, once for each. Answer with [`Editor::set_names`].
    pub fn wants_names(&mut self) -> Option<String> {
        let prefix = self.completion.prefix.clone()?;
        if self.completion.asked.as_ref() == Some(&prefix) {
            return None;
        }
        self.completion.asked = Some(prefix.clone());
        Some(prefix)
    }

    /// Takes the names found for `prefix`; an answer that came too late is left out.
    pub fn set_names(&mut self, prefix: &str, names: Vec<String>) {
        if self.completion.prefix.as_deref() != Some(prefix) {
            return;
        }
        self.completion.names = names.iter().map(|name| sanitize_line(name)).collect();
        self.completion.selected = 0;
    }

    /// Whether the list of names is open and takes Enter, Tab, Esc and the arrows.
    pub fn is_completing(&self) -> bool {
        self.completion.is_open()
    }

    pub(super) fn completion_key(&mut self, key: KeyEvent) -> Option<Edited> {
        if !self.completion.is_open() || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let last = self.completion.names.len() - 1;
        let selected = &mut self.completion.selected;
        match key.code {
            KeyCode::Up => *selected = selected.checked_sub(1).unwrap_or(last),
            KeyCode::Down => *selected = if *selected == last { 0 } else { *selected + 1 },
            KeyCode::Enter | KeyCode::Tab => return Some(self.accept_name()),
            KeyCode::Esc => {
                let prefix = self.completion.prefix.take();
                self.completion.close();
                self.completion.dismissed = prefix;
            }
            _ => return None,
        }
        Some(Edited::Moved)
    }

    /// Puts the chosen name in place of the prefix. A folder keeps its `@`, so that what is in it
    /// comes next; a file stands as its plain path.
    fn accept_name(&mut self) -> Edited {
        let Some(name) = self.completion.names.get(self.completion.selected).cloned() else {
            return Edited::Moved;
        };
        let typed = self.completion.prefix.as_ref().map_or(0, |prefix| prefix.chars().count()) + 1;
        let (row, col) = self.cursor();
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(short(row), short(col.saturating_sub(typed))));
        self.area.start_selection();
        self.area.move_cursor(CursorMove::Jump(short(row), short(col)));
        let folder = name.ends_with('/');
        let text = if folder { format!("@{name}") } else { format!("{name} ") };
        self.area.insert_str(text);
        self.completion.close();
        self.follow_completion(Edited::Changed);
        Edited::Changed
    }

    /// Brings the prefix up to what stands before the cursor now.
    pub(super) fn follow_completion(&mut self, edited: Edited) {
        if edited == Edited::Ignored {
            return;
        }
        let (line, byte) = self.here();
        let prefix = prefix_before(&line[..byte]).map(str::to_owned);
        if prefix.is_none() {
            self.completion.close();
            return;
        }
        let dismissed = self.completion.dismissed.as_deref();
        if let (Some(old), Some(new)) = (dismissed, prefix.as_deref())
            && new.starts_with(old)
        {
            return;
        }
        if self.completion.prefix != prefix {
            // Names of a shorter prefix still fit as far as they begin with the longer one.
            let beginning = prefix.clone().unwrap_or_default();
            self.completion.names.retain(|name| name.starts_with(&beginning));
            self.completion.selected = 0;
            self.completion.prefix = prefix;
        }
    }
}

/// What stands after the last `@` of the word that ends here. An `@` within a word (a mail
/// address, a decorator of a name) is not one.
fn prefix_before(text: &str) -> Option<&str> {
    let at = text.rfind('@')?;
    let before = text[..at].chars().next_back();
    let prefix = &text[at + 1..];
    let starts_word = before.is_none_or(|c| !c.is_alphanumeric());
    (starts_word && !prefix.contains(char::is_whitespace)).then_some(prefix)
}
