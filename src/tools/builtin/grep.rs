//! `grep_content`: finds lines by regular expression, with lines around them.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rayon::prelude::*;
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::walk::{Pattern, Scope};
use super::{blocking, describe, word};
use crate::tools::bound::{MARGIN, size};
use crate::tools::paths::{self, Access, Inside};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

/// Larger files are skipped, and named.
const MOST_SEARCHED: u64 = 32 * 1024 * 1024;

/// Longest part of a line that is shown, in characters.
const MOST_LINE: usize = 300;

/// Most lines around a match.
const MOST_CONTEXT: usize = 20;

/// Files searched between two looks at whether enough was found.
const BATCH: usize = 256;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Regular expression, per line
    pattern: String,
    path: Option<String>,
    /// Only these files, like `*.rs`
    glob: Option<String>,
    /// Lines around each match
    context: Option<usize>,
}

/// The `grep_content` tool.
pub(super) struct GrepContent {
    descriptor: Descriptor,
}

impl GrepContent {
    pub(super) fn new() -> Self {
        let description = "Search file contents; (?i) ignores case. Ignored and binary files are left out.";
        let aliases = &["grep", "search_file"];
        Self { descriptor: describe::<Arguments>("grep_content", description, aliases, Need::Read) }
    }
}

#[async_trait]
impl Tool for GrepContent {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        let place = match (word(arguments, "path"), word(arguments, "glob")) {
            ("", "") => String::new(),
            (path, "") => format!(" in {path}"),
            ("", glob) => format!(" in {glob}"),
            (path, glob) => format!(" in {path} {glob}"),
        };
        format!("search {}{place}", word(arguments, "pattern"))
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let title = self.title(&arguments);
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let inside = match paths::resolve(&cx.cwd, arguments.path.as_deref().unwrap_or("."), Access::Read) {
            Ok(inside) => inside,
            Err(declined) => return declined.into(),
        };
        let search = match Search::new(&arguments) {
            Ok(search) => search,
            Err(why) => return ToolOutcome::failed(why),
        };
        let (scope, limit) = (Scope::of(cx), cx.output_chars.saturating_sub(MARGIN));
        let outcome = blocking(move || search.run(&scope, &inside, limit)).await;
        if cx.cancel.is_cancelled() { ToolOutcome::stopped(title) } else { ToolOutcome { title, ..outcome } }
    }
}

struct Search {
    regex: Regex,
    glob: Option<Pattern>,
    context: usize,
}

/// What was found in one file.
enum Found {
    Nothing,
    Lines { text: String, matches: usize },
    TooLarge(u64),
}

impl Search {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let regex = RegexBuilder::new(&arguments.pattern).multi_line(true).crlf(true).build();
        let regex = regex.map_err(|error| format!("`pattern` is not a regular expression: {error}"))?;
        let glob = arguments.glob.as_deref().map(Pattern::new).transpose()?;
        Ok(Self { regex, glob, context: arguments.context.unwrap_or(0).min(MOST_CONTEXT) })
    }

    fn run(&self, scope: &Scope, inside: &Inside, limit: usize) -> ToolOutcome {
        if !inside.path.exists() {
            return ToolOutcome::failed(format!("there is no file or folder `{}`", inside.shown));
        }
        let mut files = scope.files(&inside.path);
        // A file asked for by name is searched whatever its name is.
        if let Some(glob) = self.glob.as_ref().filter(|_| inside.path.is_dir()) {
            files.retain(|file| glob.fits(&inside.path, file));
        }
        let mut report =
            Report { text: String::new(), limit, matches: 0, files: 0, too_large: Vec::new(), full: false };
        for batch in files.chunks(BATCH) {
            if report.full || scope.cancel.is_cancelled() {
                break;
            }
            let found: Vec<Found> = batch.par_iter().map(|file| self.file(scope, file)).collect();
            for (file, found) in batch.iter().zip(found) {
                report.add(scope, file, found);
            }
        }
        ToolOutcome::ran(String::new(), report.finish())
    }

    fn file(&self, scope: &Scope, path: &PathBuf) -> Found {
        let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length == 0 || scope.cancel.is_cancelled() {
            return Found::Nothing;
        }
        if length > MOST_SEARCHED {
            return Found::TooLarge(length);
        }
        // A file that went away or can't be read holds nothing to find.
        let Ok(content) = fs::read(path) else { return Found::Nothing };
        if content[..content.len().min(8_192)].contains(&0) {
            return Found::Nothing;
        }
        let hits = self.hits(&content);
        if hits.is_empty() { Found::Nothing } else { self.show(&content, &hits) }
    }

    /// The start of each line that matches, and where in it. The pattern is tried on the whole
    /// text first, which is much faster than line by line; what it finds across lines is checked again.
    fn hits(&self, content: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut at = 0;
        while at < content.len() {
            let Some(found) = self.regex.find_at(content, at) else { break };
            let start = line_start(content, found.start()).max(at);
            let end = line_end(content, found.start());
            // A match at the very end, after the last line end, is in no line.
            if start >= content.len() {
                break;
            }
            if let Some(within) = self.regex.find(without_end(&content[start..end])) {
                hits.push(Hit { start, end, column: within.start() });
            }
            at = end;
        }
        hits
    }

    fn show(&self, content: &[u8], hits: &[Hit]) -> Found {
        let mut text = String::new();
        let (mut line, mut seen) = (1, 0);
        // The end of what was shown last, so that no line comes twice.
        let mut shown_to = 0;
        for (n, hit) in hits.iter().enumerate() {
            let first = back(content, hit.start, self.context).max(shown_to);
            if self.context > 0 && n > 0 && first > shown_to {
                text.push_str("--\n");
            }
            let next = hits.get(n + 1).map_or(content.len(), |next| next.start);
            let last = forward(content, hit.end, self.context).min(next);
            let mut at = first;
            while at < last.max(hit.end) {
                line += newlines(&content[seen..at]);
                seen = at;
                let end = line_end(content, at);
                let (mark, column) = if at == hit.start { (':', hit.column) } else { ('-', 0) };
                text.push_str(&format!("{line}{mark} {}\n", excerpt(without_end(&content[at..end]), column)));
                at = end;
            }
            shown_to = at.max(shown_to);
        }
        Found::Lines { text, matches: hits.len() }
    }
}

struct Hit {
    start: usize,
    end: usize,
    column: usize,
}

struct Report {
    text: String,
    limit: usize,
    matches: usize,
    files: usize,
    too_large: Vec<String>,
    full: bool,
}

impl Report {
    fn add(&mut self, scope: &Scope, file: &Path, found: Found) {
        match found {
            Found::Nothing => {}
            Found::TooLarge(length) => self.too_large.push(format!("{} ({})", scope.shown(file), size(length))),
            Found::Lines { text, matches } => {
                self.matches += matches;
                self.files += 1;
                if self.full {
                    return;
                }
                self.text.push_str(&format!("{}\n", scope.shown(file)));
                for row in text.lines() {
                    // Bytes are more than characters: a little early is early enough.
                    if self.text.len() + row.len() >= self.limit {
                        self.full = true;
                        return;
                    }
                    self.text.push_str(row);
                    self.text.push('\n');
                }
            }
        }
    }

    fn finish(mut self) -> String {
        if self.files == 0 {
            self.text.push_str("no line matches\n");
        }
        if self.full {
            let (matches, files) = (self.matches, self.files);
            self.text.push_str(&format!(
                "[more left out: over {matches} matches in over {files} files; narrow pattern, path or glob]\n"
            ));
        }
        if !self.too_large.is_empty() {
            let names = crate::stdx::bounded::preview(&self.too_large.join(", "), 200);
            self.text.push_str(&format!("[too large to search: {names}]\n"));
        }
        self.text
    }
}

fn line_start(content: &[u8], at: usize) -> usize {
    content[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn line_end(content: &[u8], at: usize) -> usize {
    content[at..].iter().position(|byte| *byte == b'\n').map_or(content.len(), |end| at + end + 1)
}

fn back(content: &[u8], mut at: usize, lines: usize) -> usize {
    for _ in 0..lines {
        match at.checked_sub(1) {
            Some(before) => at = line_start(content, before),
            None => break,
        }
    }
    at
}

fn forward(content: &[u8], mut at: usize, lines: usize) -> usize {
    for _ in 0..lines {
        if at < content.len() {
            at = line_end(content, at);
        }
    }
    at
}

fn newlines(content: &[u8]) -> usize {
    content.iter().filter(|byte| **byte == b'\n').count()
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line, or the part of a long one around `column`.
fn excerpt(line: &[u8], column: usize) -> String {
    if line.len() <= MOST_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = column.saturating_sub(MOST_LINE / 3);
    // Only the neighbourhood is decoded: a line may be megabytes long.
    let part = String::from_utf8_lossy(&line[from..line.len().min(from + MOST_LINE * 4)]).into_owned();
    let part = part.trim_start_matches('\u{fffd}');
    let before = if from > 0 { "…" } else { "" };
    let shown: String = part.chars().take(MOST_LINE).collect();
    let after = if from + shown.len() < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}
