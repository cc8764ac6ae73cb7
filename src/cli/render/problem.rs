//! Problems and notes as a person reads them on standard error.

use super::paint::{Paint, Tone};
use crate::config::error::ConfigError;
use crate::events::problem::{Problem, ProblemKind};
use crate::stdx::text::{sanitize, sanitize_line};

/// `error: what failed`, and below it what to do.
pub fn problem(problem: &Problem, paint: Paint) -> String {
    let mut out = format!("{} {}\n", paint.tone(Tone::Bad, "error:"), sanitize(&problem.what));
    if let Some(hint) = &problem.hint {
        out.push_str(&format!("  {} {}\n", paint.tone(Tone::Good, "try:"), sanitize(hint)));
    }
    out
}

/// One line for each thing a person should know.
pub fn notes(notes: &[String], paint: Paint) -> String {
    notes.iter().map(|note| format!("{} {}\n", paint.tone(Tone::Warning, "note:"), sanitize_line(note))).collect()
}

/// The exit code of a command that ends with a problem.
pub fn exit_code(kind: ProblemKind) -> u8 {
    match kind {
        ProblemKind::Usage => 2,
        ProblemKind::Provider => 3,
        ProblemKind::Internal => 7,
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        let hint = error.hint.clone();
        let what = ConfigError { hint: None, ..error }.to_string();
        Self { hint, ..Self::usage(what) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_problem_is_shown_with_its_place_and_the_way_out() {
        let error =
            ConfigError::new("unknown key `a\u{1b}[31m`").hint("did you mean `b`?").at(Path::new("/c.toml"), Some(3));
        let expected = "error: unknown key `a` (/c.toml:3)\n  try: did you mean `b`?\n";
        assert_eq!(problem(&error.into(), Paint::plain()), expected);
        assert_eq!(notes(&["one\ntwo".to_owned()], Paint::plain()), "note: one two\n");
        assert_eq!([ProblemKind::Usage, ProblemKind::Provider, ProblemKind::Internal].map(exit_code), [2, 3, 7]);
    }
}
