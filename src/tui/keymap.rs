//! The one table of keys: embedded defaults with the person's changes laid over them. Help, footer
//! and palette are generated from it. Does not carry actions out.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::action::{Action, Layer};
use super::chord::Chord;
use crate::config::OneOrMany;
use crate::events::problem::Problem;

const STANDARD: &str = include_str!("keys.toml");

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Where it holds.
    pub layer: Layer,
    /// What it does.
    pub action: Action,
    /// Its keys; the first is shown.
    pub keys: Vec<Chord>,
    /// A word or two, for the footer.
    pub short: String,
    /// A line, for help and palette.
    pub desc: String,
}

impl Binding {
    /// Its keys as a person reads them: `? F1`.
    pub fn keys_label(&self) -> String {
        self.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Which key does what.
#[derive(Clone, Debug)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    keys: Vec<String>,
    short: String,
    desc: String,
}

type Person = BTreeMap<String, BTreeMap<String, OneOrMany>>;

impl Keymap {
    /// The defaults with the person's `[keys.SCREEN]` laid over them.
    ///
    /// # Errors
    /// A screen, an action or a key that does not exist, or a key with two meanings on one screen.
    pub fn new(person: &Person) -> Result<Self, Problem> {
        let mut keymap = Self::parse(STANDARD).map_err(|why| Problem::internal(format!("keys.toml: {why}")))?;
        keymap.overlay(person).map_err(|why| {
            Problem::usage(why).hint("change it under `[keys.SCREEN]` in config.toml; `?` lists screens and actions")
        })?;
        keymap.check().map_err(|why| {
            Problem::usage(why)
                .hint("give one of them another key under `[keys.SCREEN]` in config.toml, or `[]` for none")
        })?;
        Ok(keymap)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let tables: BTreeMap<String, toml::Table> = toml::from_str(text).map_err(|e| e.to_string())?;
        let mut bindings = Vec::new();
        // In the order of the enums, which is the order a person reads.
        for &layer in Layer::ALL {
            let Some(table) = tables.get(layer.name()) else { continue };
            for (name, value) in table {
                let action = Action::named(name).ok_or_else(|| {
                    let names: Vec<_> = Action::ALL.iter().map(|a| a.name()).collect();
                    format!(
                        "`{}.{name}`: there is no such action; did you mean `{}`?",
                        layer.name(),
                        nearest(name, &names)
                    )
                })?;
                let entry: Entry = value.clone().try_into().map_err(|e: toml::de::Error| e.to_string())?;
                let keys = chords(&entry.keys)?;
                bindings.push(Binding { layer, action, keys, short: entry.short, desc: entry.desc });
            }
        }
        bindings.sort_by_key(|b: &Binding| (b.layer, b.action));
        Ok(Self { bindings })
    }

    fn overlay(&mut self, person: &Person) -> Result<(), String> {
        for (screen, actions) in person {
            let layer = Layer::named(screen).ok_or_else(|| {
                let names: Vec<_> = Layer::ALL.iter().map(|l| l.name()).collect();
                format!("`keys.{screen}`: there is no screen `{screen}`; did you mean `{}`?", nearest(screen, &names))
            })?;
            for (name, keys) in actions {
                let place = self.bindings.iter().position(|b| b.layer == layer && b.action.name() == name);
                let Some(place) = place else {
                    let names: Vec<_> =
                        self.bindings.iter().filter(|b| b.layer == layer).map(|b| b.action.name()).collect();
                    let other = nearest(name, &names);
                    return Err(format!("`keys.{screen}.{name}`: no such action there; did you mean `{other}`?"));
                };
                let keys = match keys {
                    OneOrMany::One(key) => std::slice::from_ref(key),
                    OneOrMany::Many(keys) => keys.as_slice(),
                };
                self.bindings[place].keys = chords(keys).map_err(|why| format!("`keys.{screen}.{name}`: {why}"))?;
            }
        }
        Ok(())
    }

    /// No key may mean two things on one screen.
    fn check(&self) -> Result<(), String> {
        for &layer in Layer::ALL {
            let mut seen: Vec<(Chord, &Binding)> = Vec::new();
            let layers: &[Layer] = if layer.is_mode() { &[] } else { layer.behind() };
            for binding in self.of(layer).chain(layers.iter().flat_map(|&l| self.of(l))) {
                for &key in &binding.keys {
                    if let Some((_, other)) = seen.iter().find(|(known, _)| *known == key) {
                        return Err(format!(
                            "`{key}` means two things on screen `{}`: `keys.{}.{}` and `keys.{}.{}`",
                            layer.name(),
                            other.layer.name(),
                            other.action.name(),
                            binding.layer.name(),
                            binding.action.name(),
                        ));
                    }
                    seen.push((key, binding));
                }
            }
        }
        Ok(())
    }

    /// The lines of one layer.
    pub fn of(&self, layer: Layer) -> impl Iterator<Item = &Binding> {
        self.bindings.iter().filter(move |b| b.layer == layer)
    }

    /// What `key` does on the screen of `layer`, looked up in `mode` first.
    pub fn action(&self, mode: Option<Layer>, layer: Layer, key: Chord) -> Option<Action> {
        mode.into_iter()
            .chain([layer])
            .chain(layer.behind().iter().copied())
            .find_map(|layer| self.of(layer).find(|b| b.keys.contains(&key)))
            .map(|b| b.action)
    }

    /// The line for `action` on the screen of `layer`.
    pub fn binding(&self, layer: Layer, action: Action) -> Option<&Binding> {
        [layer, Layer::Matches]
            .into_iter()
            .chain(layer.behind().iter().copied())
            .find_map(|layer| self.of(layer).find(|b| b.action == action))
    }

    /// The key that a person is told for `action` on the screen of `layer`.
    pub fn key(&self, layer: Layer, action: Action) -> Option<String> {
        self.binding(layer, action)?.keys.first().map(ToString::to_string)
    }
}

fn chords(keys: &[String]) -> Result<Vec<Chord>, String> {
    keys.iter().map(|key| Chord::parse(key)).collect()
}

/// The name that takes the fewest changes to become `wrong`.
pub fn nearest<'a>(wrong: &str, names: &[&'a str]) -> &'a str {
    names.iter().copied().min_by_key(|name| distance(wrong, name)).unwrap_or("")
}

/// Insertions, removals and replacements between two words (Wagner and Fischer 1974).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(screen: &str, action: &str, keys: &[&str]) -> Person {
        let keys = OneOrMany::Many(keys.iter().map(|k| (*k).to_owned()).collect());
        BTreeMap::from([(screen.to_owned(), BTreeMap::from([(action.to_owned(), keys)]))])
    }

    #[test]
    fn no_two_actions_of_one_screen_share_a_key() {
        Keymap::new(&Person::new()).unwrap();
    }

    #[test]
    fn every_action_has_a_line_in_the_table() {
        let keymap = Keymap::new(&Person::new()).unwrap();
        for &action in Action::ALL {
            assert!(keymap.bindings.iter().any(|b| b.action == action), "{}", action.name());
        }
    }

    #[test]
    fn the_persons_keys_replace_the_defaults() {
        let keymap = Keymap::new(&person("session", "stop", &["ctrl+x"])).unwrap();
        let action = |key: &str| keymap.action(None, Layer::Session, Chord::parse(key).unwrap());
        assert_eq!(action("ctrl+x"), Some(Action::Stop));
        assert_eq!(action("s"), None);
        assert_eq!(action("q"), Some(Action::Quit));
        assert_eq!(keymap.key(Layer::Session, Action::Stop).as_deref(), Some("Ctrl+X"));
    }

    #[track_caller]
    fn check_error(screen: &str, action: &str, key: &str, expected: &str) {
        assert_eq!(Keymap::new(&person(screen, action, &[key])).unwrap_err().what, expected);
    }

    #[test]
    fn a_wrong_table_says_what_is_wrong_and_names_the_nearest() {
        check_error("sesion", "stop", "s", "`keys.sesion`: there is no screen `sesion`; did you mean `session`?");
        check_error("session", "stopp", "s", "`keys.session.stopp`: no such action there; did you mean `stop`?");
        check_error(
            "session",
            "stop",
            "entre",
            "`keys.session.stop`: `entre` is not a key; write it as `s`, `G`, `ctrl+s`, `alt+enter`, `f1`, `space` or `pgup`",
        );
        check_error(
            "session",
            "stop",
            "j",
            "`j` means two things on screen `session`: `keys.session.stop` and `keys.move.down`",
        );
    }

    #[test]
    fn a_mode_lies_over_the_screen() {
        let keymap = Keymap::new(&Person::new()).unwrap();
        let n = Chord::parse("n").unwrap();
        assert_eq!(keymap.action(None, Layer::Session, n), Some(Action::Launch));
        assert_eq!(keymap.action(Some(Layer::Matches), Layer::Session, n), Some(Action::NextMatch));
    }
}
