//! Colours of plain terminal output, and text cut to a width. Colour is never the only signal.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::cli::args::ColorWhen;
use crate::config::environment::Environment;

/// Whether and how to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Done, verified, added.
    Good,
    /// To be looked at.
    Warning,
    /// Failed, removed.
    Bad,
    /// A heading.
    Strong,
    /// Beside the point.
    Faint,
}

impl Paint {
    /// Decides from `--color`, whether the stream is a terminal, `NO_COLOR` and `TERM`.
    pub fn new(when: ColorWhen, is_terminal: bool, environment: &Environment) -> Self {
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                is_terminal && environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb")
            }
        };
        Self { on }
    }

    /// Without colours.
    pub fn plain() -> Self {
        Self { on: false }
    }

    /// Colours a text that is safe already.
    pub fn tone<'a>(self, tone: Tone, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        let text = text.into();
        if !self.on || text.is_empty() {
            return text;
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Warning => 33,
            Tone::Bad => 31,
            Tone::Strong => 1,
            Tone::Faint => 2,
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// Columns a text takes.
pub fn columns(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` within `width` columns, with `…` at its end when it was cut. Never splits a character.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let kept: String = text
        .graphemes(true)
        .take_while(|grapheme| {
            used += columns(grapheme);
            used < width
        })
        .collect();
    Cow::Owned(if width == 0 { kept } else { format!("{}…", kept.trim_end()) })
}

/// `text` filled with spaces up to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_follows_option_terminal_and_environment() {
        let environment = |variables: &[(&str, &str)]| Environment {
            variables: variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            current_dir: "/".into(),
        };
        let on = |when, terminal, variables: &[(&str, &str)]| Paint::new(when, terminal, &environment(variables)).on;
        assert!(on(ColorWhen::Auto, true, &[]));
        assert!(on(ColorWhen::Auto, true, &[("NO_COLOR", "")]));
        assert!(!on(ColorWhen::Auto, true, &[("NO_COLOR", "1")]));
        assert!(!on(ColorWhen::Auto, true, &[("TERM", "dumb")]));
        assert!(!on(ColorWhen::Auto, false, &[]));
        assert!(on(ColorWhen::Always, false, &[("NO_COLOR", "1")]));
        assert!(!on(ColorWhen::Never, true, &[]));
    }

    #[test]
    fn a_cut_never_exceeds_its_width_nor_splits_a_character() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 3), "👩‍👩‍👧…");
        assert_eq!(cut("x", 0), "");
        assert_eq!(pad("漢", 4), "漢  ");
    }
}
