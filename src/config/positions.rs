//! Where each key of a TOML text stands, and what a parser's complaint about it means to a person.
//! Does not know which keys there are; the types of `config` do.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::nearest::nearest;

/// The keys of a TOML text with their places.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    keys: Vec<Key>,
    /// Where each line begins.
    lines: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Key {
    path: String,
    name: Range<usize>,
    value: Range<usize>,
}

impl Positions {
    /// Finds the keys of `text`; none when it is not TOML.
    pub fn of(text: &str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut positions = Self { keys: Vec::new(), lines };
        if let Ok(table) = DeTable::parse(text) {
            positions.walk(table.get_ref(), "");
        }
        positions
    }

    fn walk(&mut self, table: &DeTable<'_>, above: &str) {
        for (name, value) in table.iter() {
            let path = dotted(above, name.get_ref());
            self.keys.push(Key { path: path.clone(), name: name.span(), value: value.span() });
            if let DeValue::Table(below) = value.get_ref() {
                self.walk(below, &path);
            }
        }
    }

    /// The line of a dotted key, from 1.
    pub fn line(&self, path: &str) -> Option<usize> {
        self.keys.iter().find(|key| key.path == path).map(|key| self.line_at(key.name.start))
    }

    fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// The key that a span of the text belongs to: the smallest that holds it.
    fn key_at(&self, span: &Range<usize>) -> Option<&Key> {
        let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
        self.keys.iter().filter(|key| holds(&key.name) || holds(&key.value)).min_by_key(|key| {
            let name = if holds(&key.name) { key.name.len() } else { usize::MAX };
            let value = if holds(&key.value) { key.value.len() } else { usize::MAX };
            name.min(value)
        })
    }
}

/// A key below another one, quoted where TOML needs it.
pub fn dotted(above: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let name = if bare { name.to_owned() } else { format!("{name:?}") };
    if above.is_empty() { name } else { format!("{above}.{name}") }
}

/// Reads a TOML file's text strictly.
///
/// # Errors
/// What is wrong, in which line of `file`, and the nearest valid key or value.
pub fn read<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| explain(text, &error).at(file, line_of(text, &error)))
}

fn line_of(text: &str, error: &toml::de::Error) -> Option<usize> {
    let start = error.span()?.start;
    Some(text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1)
}

/// A parser's complaint in our words, without its place.
fn explain(text: &str, error: &toml::de::Error) -> ConfigError {
    let message = error.message().trim().replace('\n', ", ");
    let positions = Positions::of(text);
    let key = error.span().and_then(|span| positions.key_at(&span).cloned());
    if let Some((word, valid)) = unknown(&message, "unknown field") {
        let path = match &key {
            Some(key) if key.path.ends_with(&word) => key.path.clone(),
            Some(key) => dotted(&key.path, &word),
            None => word.clone(),
        };
        return unknown_key(&path, &word, &valid);
    }
    let Some(key) = key else { return ConfigError::new(message) };
    let value = text.get(key.value.clone()).unwrap_or_default();
    // The value of a table is its header.
    let is_header = key.value.start <= key.name.start;
    let shown = if is_header || value.contains('\n') || value.chars().count() > 60 {
        format!("`{}`", key.path)
    } else {
        format!("`{} = {value}`", key.path)
    };
    wrong_value(&shown, &message)
}

/// An unknown key, with the nearest of the valid ones.
pub fn unknown_key(path: &str, word: &str, valid: &[String]) -> ConfigError {
    let error = ConfigError::new(format!("unknown key `{path}`"));
    match nearest(word, valid.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if valid.is_empty() => error,
        None => error.hint(format!("valid here: {}", list(valid))),
    }
}

/// A wrong value, with what would be right.
pub fn wrong_value(shown: &str, message: &str) -> ConfigError {
    if let Some((word, valid)) = unknown(message, "unknown variant") {
        let error = ConfigError::new(format!("{shown}: not one of {}", list(&valid)));
        return match nearest(&word, valid.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        };
    }
    let expected = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .and_then(|rest| rest.rsplit_once(", expected "))
        .map(|(_, expected)| expected)
        // The YAML reader names only the type.
        .or_else(|| message.strip_prefix("invalid ").filter(|kind| plain(kind) != *kind))
        .map(|expected| format!("expected {}", plain(expected)));
    ConfigError::new(format!("{shown}: {}", expected.unwrap_or_else(|| message.to_owned())))
}

/// What a type of ours is called by people.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" | "bool" | "boolean" => "`true` or `false`",
        "a string" | "path string" | "a path" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// Takes serde's ``unknown field `x`, expected one of `a`, `b` `` apart.
fn unknown(message: &str, what: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix(what)?;
    let mut quoted = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
