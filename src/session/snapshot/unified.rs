//! Differences between two texts: counted lines and unified hunks. Reads no files.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::stdx::bounded;

/// Larger files are not compared line by line.
pub(super) const MAX_FILE: u64 = 1_000_000;

/// Most text of one file's hunks.
const MAX_UNIFIED: usize = 256 * 1024;

/// After this long a comparison is finished roughly.
const PATIENCE: Duration = Duration::from_millis(500);

/// How a file differs, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiffText {
    /// The hunks; empty for binary and very large files.
    pub unified: String,
    /// Why there are none, or what else differs.
    pub note: Option<String>,
    /// Lines added; `None` where they are not counted.
    pub added: Option<u64>,
    /// Lines removed; `None` where they are not counted.
    pub removed: Option<u64>,
}

/// One side of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Absent,
    Lines {
        text: String,
        mode: u32,
    },
    Binary {
        size: u64,
        mode: u32,
    },
    Large(u64),
    Link(String),
    /// Its content can't be had, with why.
    Unknown(String),
}

impl Text {
    /// A content as text, unless it is binary.
    pub(super) fn of(bytes: &[u8], mode: u32) -> Self {
        if bytes.contains(&0) {
            Self::Binary { size: bytes.len() as u64, mode }
        } else {
            Self::Lines { text: String::from_utf8_lossy(bytes).into_owned(), mode }
        }
    }

    /// The lines, where there are any; a missing file has none.
    fn lines(&self) -> Option<&str> {
        match self {
            Self::Absent => Some(""),
            Self::Lines { text, .. } => Some(text),
            Self::Binary { .. } | Self::Large(_) | Self::Link(_) | Self::Unknown(_) => None,
        }
    }

    fn mode(&self) -> Option<u32> {
        match self {
            Self::Lines { mode, .. } | Self::Binary { mode, .. } => Some(*mode),
            Self::Absent | Self::Large(_) | Self::Link(_) | Self::Unknown(_) => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::Lines { .. } => "a text file".to_owned(),
            Self::Binary { size, .. } => format!("a binary file of {size} bytes"),
            Self::Large(size) => format!("a file of {size} bytes, too large to compare line by line"),
            Self::Link(target) => format!("a symbolic link to `{target}`"),
            Self::Unknown(why) => format!("unknown ({why})"),
        }
    }
}

/// Lines added and removed; `None` where they can't be counted.
pub(super) fn count(old: &Text, new: &Text) -> (Option<u64>, Option<u64>) {
    let (Some(old), Some(new)) = (old.lines(), new.lines()) else { return (None, None) };
    if old.is_empty() || new.is_empty() {
        return (Some(new.lines().count() as u64), Some(old.lines().count() as u64));
    }
    let (added, removed) = changed_lines(&compare(old, new));
    (Some(added), Some(removed))
}

/// The unified difference of two sides.
pub(super) fn render(path: &str, old: &Text, new: &Text) -> FileDiffText {
    let (Some(old_lines), Some(new_lines)) = (old.lines(), new.lines()) else {
        return FileDiffText {
            note: Some(format!("{} → {}", old.describe(), new.describe())),
            ..FileDiffText::default()
        };
    };
    let diff = compare(old_lines, new_lines);
    let (added, removed) = changed_lines(&diff);
    let name = |text: &Text, side: &str| match text {
        Text::Absent => "/dev/null".to_owned(),
        Text::Lines { .. } | Text::Binary { .. } | Text::Large(_) | Text::Link(_) | Text::Unknown(_) => {
            format!("{side}/{path}")
        }
    };
    let mut unified = diff.unified_diff().header(&name(old, "a"), &name(new, "b")).to_string();
    let mut notes = Vec::new();
    if let (Some(before), Some(after)) = (old.mode(), new.mode())
        && before != after
    {
        notes.push(format!("mode {before:o} → {after:o}"));
    }
    if unified.len() > MAX_UNIFIED {
        let shown = bounded::prefix(&unified, MAX_UNIFIED).len();
        // Up to a line's end, so that what is left reads as a difference.
        unified.truncate(unified[..shown].rfind('\n').map_or(shown, |end| end + 1));
        notes.push(format!("only the first {} KB of the difference", MAX_UNIFIED / 1024));
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    FileDiffText { unified, note, added: Some(added), removed: Some(removed) }
}

fn compare<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().timeout(PATIENCE).diff_lines(old, new)
}

fn changed_lines(diff: &TextDiff<'_, '_, str>) -> (u64, u64) {
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}
