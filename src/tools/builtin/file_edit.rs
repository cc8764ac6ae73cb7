//! `edit_file`: replaces one exact piece of a text file. Line ends and byte order mark stay as the
//! file has them; the model never sees them and needn't write them.

use std::fs;
use std::io;
use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::replace::{change, is_read_only, replace, summary};
use super::{blocking, describe, word};
use crate::stdx::bounded;
use crate::tools::bound::size;
use crate::tools::paths::{self, Access, Inside};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

/// Larger files are for commands.
const MOST_EDITED: u64 = 64 * 1024 * 1024;

const MARK: &str = "\u{feff}";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    /// Exact text, without line numbers
    old: String,
    new: String,
    replace_all: Option<bool>,
}

/// The `edit_file` tool.
pub(super) struct EditFile {
    descriptor: Descriptor,
}

impl EditFile {
    pub(super) fn new() -> Self {
        let description = "Replace `old` by `new` in a file. `old` must occur exactly once, else add lines around it or set replace_all.";
        Self { descriptor: describe::<Arguments>("edit_file", description, &["edit"], Need::Write) }
    }
}

#[async_trait]
impl Tool for EditFile {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        format!("edit {}", word(arguments, "path"))
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let inside = match paths::resolve(&cx.cwd, &arguments.path, Access::Write) {
            Ok(inside) => inside,
            Err(declined) => return declined.into(),
        };
        blocking(move || edit(&inside, &arguments).unwrap_or_else(ToolOutcome::failed)).await
    }
}

fn edit(inside: &Inside, arguments: &Arguments) -> Result<ToolOutcome, String> {
    let Inside { path, shown } = inside;
    if arguments.old.is_empty() {
        return Err("`old` is empty, so there is no place for `new`; write_file makes new files".to_owned());
    }
    if arguments.old == arguments.new {
        return Err("`old` and `new` are the same; nothing would change".to_owned());
    }
    let content = read(path, shown)?;
    let edited = Text::of(&content).edit(arguments).map_err(|miss| miss.explain(shown, &content, arguments))?;
    replace(path, edited.content.as_bytes()).map_err(|error| format!("`{shown}` can't be written: {error}"))?;
    let change = change(shown, Some(content.as_bytes()), edited.content.as_bytes());
    let line = format!("{shown} ({})", summary(&change));
    let places = lines_of(&edited.lines);
    let said = format!("edited {line} at {places}");
    Ok(ToolOutcome { files: vec![change], ..ToolOutcome::ran(format!("edit {line}"), said) })
}

fn read(path: &Path, shown: &str) -> Result<String, String> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file `{shown}`; write_file makes new files"),
        _ => format!("`{shown}` can't be read: {error}"),
    })?;
    if !metadata.is_file() {
        return Err(format!("`{shown}` is a folder or no ordinary file; only files can be edited"));
    }
    if is_read_only(&metadata) {
        return Err(format!("`{shown}` is read-only; whoever made it so does not want it changed"));
    }
    if metadata.len() > MOST_EDITED {
        return Err(format!(
            "`{shown}` has {}; use a command such as sed for files over {}",
            size(metadata.len()),
            size(MOST_EDITED)
        ));
    }
    let bytes = fs::read(path).map_err(|error| format!("`{shown}` can't be read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        format!("`{shown}` is not UTF-8 text (byte {}); change it with a command", error.utf8_error().valid_up_to())
    })
}

/// A file's text with what the model does not write taken off.
struct Text {
    mark: &'static str,
    /// Whether every line ends in CR LF; then the body has LF only.
    crlf: bool,
    body: String,
}

struct Edited {
    content: String,
    /// The lines of the new content at which something was put.
    lines: Vec<usize>,
}

/// Why there is no one place to edit.
enum Miss {
    Absent,
    Many(Vec<usize>),
}

impl Text {
    fn of(content: &str) -> Self {
        let (mark, body) = match content.strip_prefix(MARK) {
            Some(body) => (MARK, body),
            None => ("", content),
        };
        let crlf_count = body.matches("\r\n").count();
        let crlf = crlf_count > 0 && crlf_count == body.matches('\n').count();
        let body = if crlf { body.replace("\r\n", "\n") } else { body.to_owned() };
        Self { mark, crlf, body }
    }

    fn edit(&self, arguments: &Arguments) -> Result<Edited, Miss> {
        let Arguments { old, new, .. } = arguments;
        let all = arguments.replace_all.unwrap_or(false);
        let result = if self.crlf {
            replaced(&self.body, &old.replace("\r\n", "\n"), &new.replace("\r\n", "\n"), all)
        } else {
            // In a file of mixed line ends the place itself may have CR LF.
            replaced(&self.body, old, new, all).or_else(|miss| match miss {
                Miss::Absent if old.contains('\n') && !old.contains('\r') => {
                    replaced(&self.body, &old.replace('\n', "\r\n"), &new.replace('\n', "\r\n"), all)
                }
                Miss::Absent | Miss::Many(_) => Err(miss),
            })
        };
        let edited = result?;
        let body = if self.crlf { edited.content.replace('\n', "\r\n") } else { edited.content };
        Ok(Edited { content: format!("{}{body}", self.mark), lines: edited.lines })
    }
}

fn replaced(body: &str, old: &str, new: &str, all: bool) -> Result<Edited, Miss> {
    let places: Vec<usize> = body.match_indices(old).map(|(at, _)| at).collect();
    if places.is_empty() {
        return Err(Miss::Absent);
    }
    if places.len() > 1 && !all {
        return Err(Miss::Many(line_numbers(body, &places)));
    }
    let content = body.replace(old, new);
    let shifted: Vec<usize> = places.iter().enumerate().map(|(n, at)| at + n * new.len() - n * old.len()).collect();
    let lines = line_numbers(&content, &shifted);
    Ok(Edited { content, lines })
}

/// The line of each of the rising places.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let (mut line, mut seen) = (1, 0);
    let number = |place: &usize| {
        line += text.as_bytes()[seen..*place].iter().filter(|byte| **byte == b'\n').count();
        seen = *place;
        line
    };
    places.iter().map(number).collect()
}

fn lines_of(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(usize::to_string).collect();
    let more = if lines.len() > 10 { format!(" and {} more", lines.len() - 10) } else { String::new() };
    format!("line{} {}{more}", if lines.len() == 1 { "" } else { "s" }, shown.join(", "))
}

impl Miss {
    fn explain(&self, shown: &str, content: &str, arguments: &Arguments) -> String {
        match self {
            Self::Many(lines) => format!(
                "`old` occurs {} times in `{shown}`, at {}; add lines around the one you mean, or set replace_all",
                lines.len(),
                lines_of(lines)
            ),
            Self::Absent => {
                let hint = hint(content, &arguments.old);
                format!("`old` does not occur in `{shown}`{hint}; nothing was changed")
            }
        }
    }
}

/// Where `old` was probably meant to be.
fn hint(content: &str, old: &str) -> String {
    let lines: Vec<&str> = content.strip_prefix(MARK).unwrap_or(content).lines().collect();
    let wanted: Vec<String> = old.lines().map(plain).collect();
    let wanted = trimmed(&wanted);
    if wanted.is_empty() {
        return String::new();
    }
    let plain_lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
    if let Some(at) = plain_lines.windows(wanted.len()).position(|window| window == wanted) {
        let found = lines[at..at + wanted.len()].join("\n");
        let found = bounded::preview(&found, 1_000);
        return format!("; lines {}–{} differ from it only in white space:\n{found}\n", at + 1, at + wanted.len());
    }
    match nearest(&plain_lines, &wanted[0]) {
        Some(at) => {
            format!("; line {} is nearest to its first line: {}", at + 1, bounded::preview(lines[at].trim(), 200))
        }
        None => String::new(),
    }
}

/// A line without what a model gets wrong most easily.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without the empty lines around.
fn trimmed(lines: &[String]) -> &[String] {
    let Some(first) = lines.iter().position(|line| !line.is_empty()) else { return &[] };
    let last = lines.iter().rposition(|line| !line.is_empty()).unwrap_or(first);
    &lines[first..=last]
}

fn nearest(lines: &[String], wanted: &str) -> Option<usize> {
    // Comparing costs; files of more lines and longer lines are not worth it.
    let candidates = lines.iter().take(5_000).enumerate().filter(|(_, line)| {
        let (short, long) = (line.len().min(wanted.len()), line.len().max(wanted.len()));
        short > 0 && long < 400 && long <= short * 3
    });
    let likeness = |line: &str| similar::TextDiff::from_chars(line, wanted).ratio();
    let (at, likeness) = candidates.map(|(at, line)| (at, likeness(line))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (likeness >= 0.6).then_some(at)
}
