//! A command's output as it arrives: both ends in memory, all of it in a file once it is long or
//! outlives the command. Does not read pipes and does not shorten for the model.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is kept of one command's output.
#[derive(Debug)]
pub(super) struct Capture {
    /// Bytes kept at each end.
    keep: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
    newlines: u64,
    place: PathBuf,
    most: u64,
    file: Spill,
}

#[derive(Debug)]
enum Spill {
    /// The head still holds everything.
    None,
    Open {
        file: File,
        written: u64,
    },
    /// The most that is kept is on disk; the rest is dropped.
    Full,
    Failed(String),
}

impl Capture {
    pub(super) fn new(keep: usize, place: &Path, most: u64) -> Self {
        Self {
            keep: keep.max(1),
            head: Vec::new(),
            tail: Vec::new(),
            bytes: 0,
            newlines: 0,
            place: place.to_owned(),
            most,
            file: Spill::None,
        }
    }

    pub(super) fn push(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        self.newlines += data.iter().filter(|byte| **byte == b'\n').count() as u64;
        let room = self.keep.saturating_sub(self.head.len()).min(data.len());
        if room < data.len() {
            // What has been kept goes first; it is all there was so far.
            self.spill();
        }
        let (first, rest) = data.split_at(room);
        self.head.extend_from_slice(first);
        self.write(data);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 4 * self.keep {
            self.tail.drain(..self.tail.len() - self.keep);
        }
    }

    /// From now on everything is in the file too.
    pub(super) fn spill(&mut self) {
        if !matches!(self.file, Spill::None) {
            return;
        }
        let open = || -> io::Result<File> {
            if let Some(folder) = self.place.parent() {
                fs::create_dir_all(folder)?;
            }
            File::create(&self.place)
        };
        self.file = match open() {
            Ok(file) => Spill::Open { file, written: 0 },
            Err(error) => Spill::Failed(error.to_string()),
        };
        let so_far = std::mem::take(&mut self.head);
        self.write(&so_far);
        self.head = so_far;
    }

    fn write(&mut self, data: &[u8]) {
        let Spill::Open { file, written } = &mut self.file else { return };
        let room = usize::try_from(self.most.saturating_sub(*written)).unwrap_or(usize::MAX).min(data.len());
        let mut result = file.write_all(&data[..room]);
        *written += room as u64;
        if room < data.len() {
            result =
                result.and_then(|()| writeln!(file, "\n[more came and was not kept: {} bytes is the most]", self.most));
            self.file = Spill::Full;
        }
        if let Err(error) = result {
            self.file = Spill::Failed(error.to_string());
        }
    }

    /// What there is so far; the capture may go on.
    pub(super) fn captured(&self) -> Captured {
        let tail_start = self.tail.len().saturating_sub(self.keep);
        let tail = || String::from_utf8_lossy(from_char_start(&self.tail[tail_start..])).into_owned();
        Captured {
            head: String::from_utf8_lossy(&self.head).into_owned(),
            tail: (!self.tail.is_empty()).then(tail),
            bytes: self.bytes,
            newlines: self.newlines,
            stored: match &self.file {
                Spill::None => Stored::InMemory,
                Spill::Open { .. } => Stored::Whole,
                Spill::Full => Stored::Part,
                Spill::Failed(why) => Stored::Failed(why.clone()),
            },
        }
    }
}

/// `bytes` without the end of a character that was cut in two.
fn from_char_start(bytes: &[u8]) -> &[u8] {
    let continued = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[continued..]
}

/// A command's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its beginning; all of it when there is no tail.
    pub head: String,
    /// Its end, when the beginning is not all of it. May overlap nothing, may leave a gap.
    pub tail: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its line ends.
    pub newlines: u64,
    /// Whether it is in the file.
    pub stored: Stored,
}

/// How much of an output is in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stored {
    /// There is no file: the head is everything.
    #[default]
    InMemory,
    /// All of it.
    Whole,
    /// As much as is kept of one output.
    Part,
    /// Nothing more since this went wrong.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_makes_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("o/1");
        let mut capture = Capture::new(10, &place, 100);
        capture.push(b"one\n");
        capture.push("é".as_bytes());
        let expected = Captured { head: "one\né".to_owned(), bytes: 6, newlines: 1, ..Captured::default() };
        assert_eq!(capture.captured(), expected);
        assert!(!place.exists());
    }

    #[test]
    fn a_long_output_keeps_its_ends_and_is_on_disk_up_to_the_most() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("o/1");
        let mut capture = Capture::new(4, &place, 30);
        for n in 0..10 {
            capture.push(format!("{n}234\n").as_bytes());
        }
        let captured = capture.captured();
        assert_eq!(captured.head, "0234");
        assert_eq!(captured.tail.as_deref(), Some("234\n"));
        assert_eq!((captured.bytes, captured.newlines), (50, 10));
        assert_eq!(captured.stored, Stored::Part);
        let on_disk = fs::read_to_string(&place).unwrap();
        assert!(on_disk.starts_with("0234\n1234\n2234\n3234\n4234\n5234\n\n[more came"), "{on_disk}");
    }

    #[test]
    fn a_cut_never_shows_half_a_character() {
        let dir = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(4, &dir.path().join("1"), 100);
        capture.push("漢漢漢漢".as_bytes());
        assert_eq!(capture.captured().tail.as_deref(), Some("漢"));
    }
}
