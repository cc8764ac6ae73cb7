//! The journal: one JSON object a line, appended with one `write` each, so that the death of the
//! process can tear at most the last line. Does not publish; `recorder` does.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::event::Envelope;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    last_event_id: u64,
}

impl Journal {
    /// Opens or creates the journal at `path` for appending. A torn last line is cut off.
    ///
    /// # Errors
    /// The file can't be opened or mended.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let whole = whole_lines(&mut file)?;
        if whole < file.metadata()?.len() {
            file.set_len(whole)?;
        }
        let last_event_id = last_event_id(&mut file, whole)?;
        Ok(Self { file, last_event_id })
    }

    /// The newest event id, 0 when there is none.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// Appends one line, which must end with a newline and carry `event_id`.
    ///
    /// # Errors
    /// The line could not be written; nothing may be built on it then. What was written of it is
    /// taken back, so that the next line begins where a line should.
    pub fn append(&mut self, event_id: u64, line: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            if let Ok(whole) = whole_lines(&mut self.file) {
                let _ = self.file.set_len(whole);
            }
            return Err(error);
        }
        self.last_event_id = event_id;
        Ok(())
    }

    /// A handle for syncing from another thread.
    ///
    /// # Errors
    /// The handle can't be duplicated.
    pub fn sync_handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Length of the part that ends with a newline.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = [0_u8; 8192];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(i) = part.iter().rposition(|&b| b == b'\n') {
            return Ok(start + i as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The id of the last line that has one.
fn last_event_id(file: &mut File, whole: u64) -> io::Result<u64> {
    #[derive(serde::Deserialize)]
    struct Id {
        event_id: Option<u64>,
    }
    // Events are a few kilobytes at most, but hand-edited files may hold anything: widen the look
    // backwards until a line with an id is found.
    let mut window = 64 * 1024;
    loop {
        let start = whole.saturating_sub(window);
        let mut tail = vec![0; (whole - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut tail)?;
        let found = tail.split(|&b| b == b'\n').rev().find_map(|line| {
            let id: Id = serde_json::from_slice(line).ok()?;
            id.event_id
        });
        match found {
            Some(id) => return Ok(id),
            None if start == 0 => return Ok(0),
            None => window *= 8,
        }
    }
}

/// What a journal held when it was read.
#[derive(Debug, Default)]
pub struct Replay {
    /// The events in order.
    pub events: Vec<Envelope>,
    /// Lines that could not be understood: their number and why. A torn last line is not one.
    pub broken: Vec<(u64, String)>,
    /// Bytes read, up to the last whole line: where a later read goes on.
    pub offset: u64,
}

/// Reads whole lines from `offset` on; a last line without its newline is left for later.
///
/// # Errors
/// The file can't be read. A journal that does not exist is an error too.
pub fn read(path: &Path, offset: u64) -> io::Result<Replay> {
    read_filtered(path, offset, |_| true)
}

/// As [`read`], keeping only the events that `keep` wants.
///
/// # Errors
/// As [`read`].
pub fn read_filtered(path: &Path, offset: u64, keep: impl Fn(&Envelope) -> bool) -> io::Result<Replay> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut replay = Replay { offset, ..Replay::default() };
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let n = reader.read_until(b'\n', &mut line)?;
        if n == 0 || line.last() != Some(&b'\n') {
            return Ok(replay);
        }
        number += 1;
        replay.offset += n as u64;
        match serde_json::from_slice::<Envelope>(&line) {
            Ok(envelope) if keep(&envelope) => replay.events.push(envelope),
            Ok(_) => {}
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(error) => replay.broken.push((number, error.to_string())),
        }
    }
}

/// The newest event id of a journal, without changing anything: a torn last line is passed over.
///
/// # Errors
/// The file can't be read.
pub fn newest_event_id(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let whole = whole_lines(&mut file)?;
    last_event_id(&mut file, whole)
}
