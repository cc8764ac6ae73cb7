//! Events as JSON lines, for other programs.

use std::io::{self, Write};

use crate::events::event::Envelope;

/// Whether anyone still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The line was taken.
    Listening,
    /// The other side closed; nothing more need be written, and that is no error.
    Gone,
}

/// Writes one event a line.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    reader: Reader,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, reader: Reader::Listening }
    }

    /// Writes an event at once.
    ///
    /// # Errors
    /// It could not be written, for another reason than that nobody reads any more.
    pub fn write(&mut self, envelope: &Envelope) -> io::Result<Reader> {
        if self.reader == Reader::Gone {
            return Ok(Reader::Gone);
        }
        let mut line = serde_json::to_vec(envelope)?;
        line.push(b'\n');
        match self.out.write_all(&line).and_then(|()| self.out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.reader = Reader::Gone,
            Err(error) => return Err(error),
        }
        Ok(self.reader)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::events::event::Event;
    use crate::ids::SessionId;

    fn note() -> Envelope {
        Envelope {
            event_id: Some(1),
            at: Timestamp::UNIX_EPOCH,
            session_id: SessionId::new("23456789"),
            cycle: None,
            trace_id: None,
            event: Event::Note { text: "two\nlines".to_owned() },
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let mut lines = JsonLines::new(Vec::new());
        assert_eq!(lines.write(&note()).unwrap(), Reader::Listening);
        let text = String::from_utf8(lines.out).unwrap();
        let expected = r#"{"event_id":1,"at":"1970-01-01T00:00:00.000Z","session_id":"23456789","cycle":null,"trace_id":null,"type":"note","text":"two\nlines"}"#;
        assert_eq!(text, format!("{expected}\n"));
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        struct Closed(u32);
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut lines = JsonLines::new(Closed(0));
        assert_eq!(lines.write(&note()).unwrap(), Reader::Gone);
        assert_eq!(lines.write(&note()).unwrap(), Reader::Gone);
        assert_eq!(lines.out.0, 1, "nothing more is written to a closed pipe");
    }
}
