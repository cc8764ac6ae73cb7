//! A key as a person writes it (`ctrl+s`, `shift+tab`, `G`) and as a terminal reports it. Does
//! not know what a key does.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers, in one fixed form: Shift is part of a character, not beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Keys with a name.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
];

impl Chord {
    /// Reads `ctrl+s`, `alt+enter`, `shift+tab`, `f1`, `space`, `G`, `?`.
    ///
    /// # Errors
    /// Says what is wrong and shows the forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is not a key; write it as `s`, `G`, `ctrl+s`, `alt+enter`, `f1`, `space` or `pgup`");
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        // A lone `+` is a key of its own, so a modifier needs something behind its `+`.
        while let Some((word, behind)) =
            rest.split_once('+').filter(|(word, behind)| !word.is_empty() && !behind.is_empty())
        {
            modifiers |= match word.to_ascii_lowercase().as_str() {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(bad()),
            };
            rest = behind;
        }
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next()) {
            (Some(c), None) if !c.is_control() => KeyCode::Char(c),
            _ => named_code(&rest.to_ascii_lowercase()).ok_or_else(bad)?,
        };
        Ok(Self::normal(code, modifiers))
    }

    /// The chord of a key event.
    pub fn of(key: &KeyEvent) -> Self {
        Self::normal(key.code, key.modifiers)
    }

    fn normal(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let mut modifiers = modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::SHIFT) && c != ' ' => {
                modifiers -= KeyModifiers::SHIFT;
                // `ctrl+shift+s` and `ctrl+S` are one chord; terminals report either.
                KeyCode::Char(c.to_uppercase().next().unwrap_or(c))
            }
            KeyCode::Char(' ') => {
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(' ')
            }
            other => other,
        };
        Self { code, modifiers }
    }

    /// Whether a text field takes this key as text: a character without Ctrl or Alt.
    pub fn is_text(self) -> bool {
        // AltGr is reported as Ctrl with Alt on some systems and does make text.
        matches!(self.code, KeyCode::Char(_))
            && (self.modifiers.is_empty() || self.modifiers == KeyModifiers::CONTROL | KeyModifiers::ALT)
    }

    /// Whether a text field uses this key to move or to change text.
    pub fn is_editing(self) -> bool {
        self.is_text()
            || matches!(
                self.code,
                KeyCode::Backspace
                    | KeyCode::Delete
                    | KeyCode::Left
                    | KeyCode::Right
                    | KeyCode::Up
                    | KeyCode::Down
                    | KeyCode::Home
                    | KeyCode::End
                    | KeyCode::PageUp
                    | KeyCode::PageDown
                    | KeyCode::Enter
                    | KeyCode::Tab
            )
    }
}

fn named_code(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    let n: u8 = name.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&n).then_some(KeyCode::F(n))
}

impl fmt::Display for Chord {
    /// As people write it: `Ctrl+S`, `Shift+Tab`, `G`, `F1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, word) in
            [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(word)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) if self.modifiers.is_empty() => write!(f, "{c}"),
            KeyCode::Char(c) => write!(f, "{}", c.to_uppercase()),
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::F(n) => write!(f, "F{n}"),
            code => match NAMES.iter().find(|(_, known)| *known == code) {
                Some((name, _)) => {
                    let (first, rest) = name.split_at(1);
                    write!(f, "{}{rest}", first.to_ascii_uppercase())
                }
                None => write!(f, "{code}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, code: KeyCode, modifiers: KeyModifiers, shown: &str) {
        let chord = Chord::parse(written).unwrap();
        assert_eq!(chord, Chord::of(&KeyEvent::new(code, modifiers)));
        assert_eq!(chord.to_string(), shown);
    }

    #[test]
    fn a_key_is_the_same_however_it_is_written_or_reported() {
        check("s", KeyCode::Char('s'), KeyModifiers::NONE, "s");
        check("G", KeyCode::Char('G'), KeyModifiers::SHIFT, "G");
        check("G", KeyCode::Char('g'), KeyModifiers::SHIFT, "G");
        check("ctrl+s", KeyCode::Char('s'), KeyModifiers::CONTROL, "Ctrl+S");
        check("shift+tab", KeyCode::BackTab, KeyModifiers::NONE, "Shift+Tab");
        check("alt+enter", KeyCode::Enter, KeyModifiers::ALT, "Alt+Enter");
        check("F1", KeyCode::F(1), KeyModifiers::NONE, "F1");
        check("space", KeyCode::Char(' '), KeyModifiers::NONE, "Space");
        check("+", KeyCode::Char('+'), KeyModifiers::NONE, "+");
        check("ctrl++", KeyCode::Char('+'), KeyModifiers::CONTROL, "Ctrl++");
        for wrong in ["", "ctrl+", "hyper+s", "f99", "entre"] {
            assert!(Chord::parse(wrong).is_err(), "{wrong}");
        }
    }
}
