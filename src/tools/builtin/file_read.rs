//! `read_file`: a file's lines with their numbers, an image for the model to see, or what was left
//! out of an earlier output. Never holds more of a file than it shows.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use base64::Engine;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{blocking, describe, word};
use crate::tools::bound::{MARGIN, output_path, size};
use crate::tools::paths::{self, Access, Declined};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

/// Larger images are refused (B85).
const MOST_IMAGE: u64 = 5 * 1024 * 1024;

/// Longer lines are cut; a file of one such line can't be paged by lines.
const MOST_LINE: usize = 2_000;

/// The lines of larger files are not counted to the end.
const MOST_COUNTED: u64 = 64 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A file, or output:ID for the full output of an earlier call
    path: String,
    /// First line, from 1
    start: Option<u64>,
    /// Last line
    end: Option<u64>,
}

/// The `read_file` tool.
pub(super) struct ReadFile {
    descriptor: Descriptor,
}

impl ReadFile {
    pub(super) fn new() -> Self {
        let description = "Read a text file with line numbers, or look at an image (png, jpeg, gif, webp).";
        Self { descriptor: describe::<Arguments>("read_file", description, &["read"], Need::Read) }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        let path = word(arguments, "path");
        let line = |name: &str| arguments.get(name).and_then(Value::as_u64);
        match (line("start"), line("end")) {
            (None, None) => format!("read {path}"),
            (start, Some(end)) => format!("read {path}:{}–{end}", start.unwrap_or(1)),
            (Some(start), None) => format!("read {path}:{start}–"),
        }
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let title = self.title(&arguments);
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let range = match Range::new(arguments.start, arguments.end) {
            Ok(range) => range,
            Err(why) => return ToolOutcome::failed(why),
        };
        let (path, shown) = match locate(cx, &arguments.path) {
            Ok(found) => found,
            Err(declined) => return declined.into(),
        };
        let limit = cx.output_chars.saturating_sub(MARGIN).max(1);
        let result = blocking(move || read(&path, &shown, range, limit)).await;
        ToolOutcome { title, ..result }
    }
}

/// Lines from 1, both ends included.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
}

impl Range {
    fn new(start: Option<u64>, end: Option<u64>) -> Result<Self, String> {
        let range = Self { start: start.unwrap_or(1).max(1), end: end.unwrap_or(u64::MAX) };
        if range.end < range.start {
            return Err(format!("`end` {} comes before `start` {}; lines count from 1", range.end, range.start));
        }
        Ok(range)
    }
}

fn locate(cx: &ToolCx, path: &str) -> Result<(PathBuf, String), Declined> {
    let Some(id) = path.strip_prefix("output:") else {
        return paths::resolve(&cx.cwd, path, Access::Read).map(|inside| (inside.path, inside.shown));
    };
    let file = output_path(&cx.outputs, id.trim());
    if !file.is_file() {
        return Err(Declined::Failed(format!(
            "there is no stored output `{id}`; only outputs that were shortened or go on are stored, under the id their result names"
        )));
    }
    Ok((file, path.to_owned()))
}

fn read(path: &Path, shown: &str, range: Range, limit: usize) -> ToolOutcome {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return ToolOutcome::failed(not_readable(path, shown, &error)),
    };
    if metadata.is_dir() {
        return ToolOutcome::failed(format!("`{shown}` is a folder; list_files shows what is in it"));
    }
    if !metadata.is_file() {
        return ToolOutcome::failed(format!(
            "`{shown}` is no ordinary file (a pipe, socket or device) and can't be read"
        ));
    }
    match read_file(path, shown, metadata.len(), range, limit) {
        Ok(outcome) => outcome,
        Err(error) => ToolOutcome::failed(not_readable(path, shown, &error)),
    }
}

fn not_readable(path: &Path, shown: &str, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::NotFound {
        return format!("`{shown}` can't be read: {error}");
    }
    match near_names(path) {
        names if names.is_empty() => format!("there is no file `{shown}`; glob_files finds files by name"),
        names => format!("there is no file `{shown}`; its folder holds {}", names.join(", ")),
    }
}

/// Names in the same folder that are most like the one asked for.
fn near_names(path: &Path) -> Vec<String> {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let entries = path.parent().map(fs::read_dir).and_then(Result::ok).into_iter().flatten().flatten();
    let mut names: Vec<(f32, String)> = entries
        .take(1_000)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (similar::TextDiff::from_chars(wanted.as_str(), name.to_lowercase().as_str()).ratio(), name))
        .filter(|(likeness, _)| *likeness > 0.6)
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    names.into_iter().take(3).map(|(_, name)| format!("`{name}`")).collect()
}

fn read_file(path: &Path, shown: &str, length: u64, range: Range, limit: usize) -> io::Result<ToolOutcome> {
    let mut reader = BufReader::with_capacity(64 * 1024, File::open(path)?);
    let start = reader.fill_buf()?;
    let start = start[..start.len().min(8_192)].to_vec();
    if let Some(kind) = image_kind(&start) {
        return image(&mut reader, shown, kind, length);
    }
    if start.contains(&0) {
        return Ok(ToolOutcome::failed(format!(
            "`{shown}` is binary ({}, {}), so there are no lines to show; a command can look into it",
            binary_kind(&start),
            size(length)
        )));
    }
    let mut page = Page::new(range, limit);
    if start.starts_with("\u{feff}".as_bytes()) {
        reader.consume(3);
    }
    let read_to_end = page.fill(&mut reader, length)?;
    Ok(ToolOutcome::ran(String::new(), page.finish(shown, length, read_to_end)))
}

/// The lines to show, as far as they fit.
struct Page {
    range: Range,
    limit: usize,
    text: String,
    chars: usize,
    /// Lines seen.
    line: u64,
    shown: u64,
    full: bool,
}

impl Page {
    fn new(range: Range, limit: usize) -> Self {
        Self { range, limit, text: String::new(), chars: 0, line: 0, shown: 0, full: false }
    }

    /// Reads on until everything is shown and counted; whether that was to the file's end.
    fn fill(&mut self, reader: &mut impl BufRead, length: u64) -> io::Result<bool> {
        let mut seen = 0;
        let mut line = Vec::new();
        loop {
            let bytes = read_line(reader, &mut line)?;
            if bytes == 0 {
                return Ok(true);
            }
            seen += bytes;
            self.line += 1;
            if !self.full && self.line >= self.range.start && self.line <= self.range.end {
                self.show(&line, bytes);
            }
            let done = self.full || self.line >= self.range.end;
            if done && length > MOST_COUNTED && seen < length {
                return Ok(false);
            }
        }
    }

    fn show(&mut self, line: &[u8], bytes: u64) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let mut row = match text.char_indices().nth(MOST_LINE) {
            None => format!("{}\t{text}", self.line),
            Some((end, _)) => {
                let more = size(bytes.saturating_sub(end as u64));
                format!("{}\t{}… [{more} more on this line]", self.line, &text[..end])
            }
        };
        row.push('\n');
        let chars = row.chars().count();
        if self.chars + chars > self.limit && self.shown > 0 {
            self.full = true;
            return;
        }
        self.chars += chars;
        self.shown += 1;
        self.text.push_str(&row);
    }

    fn finish(self, shown: &str, length: u64, read_to_end: bool) -> String {
        let total = if read_to_end { format!("{} lines", self.line) } else { format!("{}, more lines", size(length)) };
        if self.line == 0 {
            return format!("`{shown}` is empty");
        }
        if self.shown == 0 {
            return format!("`{shown}` has no line {}; it has {total}", self.range.start);
        }
        let last = self.range.start + self.shown - 1;
        if read_to_end && last >= self.line {
            return self.text;
        }
        // Asked for and given: nothing was left out against the model's will.
        if !self.full {
            return format!("{}[of {total}]\n", self.text);
        }
        format!("{}[of {total}; read on with start {}]\n", self.text, last + 1)
    }
}

/// Reads one line, of which `line` gets as many bytes as [`MOST_LINE`] characters may have.
/// Returns its length in bytes with the line end; 0 at the file's end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut bytes = 0;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(bytes);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(chunk.len());
        let room = (MOST_LINE * 4 + 4).saturating_sub(line.len()).min(taken);
        line.extend_from_slice(&chunk[..room]);
        reader.consume(taken);
        bytes += taken as u64;
        if end.is_some() {
            return Ok(bytes);
        }
    }
}

fn image(reader: &mut impl Read, shown: &str, kind: &str, length: u64) -> io::Result<ToolOutcome> {
    if length > MOST_IMAGE {
        return Ok(ToolOutcome::failed(format!(
            "`{shown}` is an image of {}; {} is the most that can be looked at, so make a smaller copy",
            size(length),
            size(MOST_IMAGE)
        )));
    }
    let mut bytes = Vec::new();
    reader.take(MOST_IMAGE + 1).read_to_end(&mut bytes)?;
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let said = format!("`{shown}`: image/{kind}, {}", size(length));
    Ok(ToolOutcome {
        images: vec![format!("data:image/{kind};base64,{data}")],
        ..ToolOutcome::ran(String::new(), said)
    })
}

fn image_kind(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

fn binary_kind(start: &[u8]) -> &'static str {
    match start {
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        [b'P', b'K', 3, 4, ..] => "a zip archive or document",
        [0x1f, 0x8b, ..] => "gzip data",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd data",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16 text, which `iconv` converts",
        start if start.starts_with(b"SQLite format 3") => "an SQLite database",
        _ => "of unknown type",
    }
}
