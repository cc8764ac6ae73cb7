//! Server-sent events out of bytes, cut anywhere: LF, CRLF or CR, a byte order mark, comments,
//! several data lines, broken UTF-8. Knows nothing of what the events mean.

use std::borrow::Cow;

/// A stream that sends more than this in one event is not a stream of answers.
pub const LARGEST_EVENT: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's name; empty when it has none.
    pub name: Cow<'a, str>,
    /// Its data lines, joined by LF. Broken UTF-8 is replaced by U+FFFD.
    pub data: Cow<'a, str>,
}

/// An event that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit.
    pub limit: usize,
}

/// Takes the bytes of one stream in any pieces.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The line that has begun.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// Whether a data line was seen: an empty one counts too.
    has_data: bool,
    /// The last byte was a CR; an LF after it belongs to the same line end.
    after_cr: bool,
    /// No line has ended yet, so a byte order mark may lead.
    at_start: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new(LARGEST_EVENT)
    }
}

impl SseParser {
    /// A parser that refuses events larger than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Takes the next bytes and hands over each event they complete. `on_event` returns whether
    /// to go on; after `false` the rest of `bytes` is dropped.
    ///
    /// # Errors
    /// When an event grows over the limit.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut dyn FnMut(&SseEvent<'_>) -> bool,
    ) -> Result<(), EventTooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return self.check_size();
            };
            self.after_cr = bytes[end] == b'\r';
            let (head, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            let go_on = if self.line.is_empty() {
                self.end_line(head, on_event)
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                let go_on = self.end_line(&line, on_event);
                line.clear();
                self.line = line; // keeps its memory for the next one
                go_on
            };
            self.check_size()?;
            if !go_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The stream ended: hands over what was still open. The standard drops such an event; a
    /// provider that forgets the last blank line is more likely than half an event, and half an
    /// event does not parse.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(&SseEvent<'_>) -> bool) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() || self.end_line(&line, on_event) {
            self.dispatch(on_event);
        }
    }

    fn check_size(&self) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + self.name.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn end_line(&mut self, mut line: &[u8], on_event: &mut dyn FnMut(&SseEvent<'_>) -> bool) -> bool {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // A comment has an empty field name; `id` and `retry` are for reconnecting, which an
            // answer can't; others are to be ignored.
            _ => {}
        }
        true
    }

    fn dispatch(&mut self, on_event: &mut dyn FnMut(&SseEvent<'_>) -> bool) -> bool {
        let go_on = if self.has_data {
            on_event(&SseEvent { name: String::from_utf8_lossy(&self.name), data: String::from_utf8_lossy(&self.data) })
        } else {
            true
        };
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        go_on
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = ": a comment\n\
        data: one\n\n\
        event: named\ndata: first\ndata: second\nid: 7\nretry: 10\n\n\
        data\n\n\
        event: no data\n\n\
        data:  two spaces\n\n\
        data: {\"smile\":\"😀\"}\nunknown: field\n\n\
        data: [DONE]\n\n";

    const EXPECTED: &[(&str, &str)] = &[
        ("", "one"),
        ("named", "first\nsecond"),
        ("", ""),
        ("", " two spaces"),
        ("", "{\"smile\":\"😀\"}"),
        ("", "[DONE]"),
    ];

    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut take = |event: &SseEvent<'_>| {
            events.push((event.name.to_string(), event.data.to_string()));
            true
        };
        for piece in pieces {
            parser.push(piece, &mut take).unwrap();
        }
        parser.finish(&mut take);
        events
    }

    fn expected() -> Vec<(String, String)> {
        EXPECTED.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
    }

    fn variants() -> Vec<Vec<u8>> {
        let mixed: String = STREAM
            .split_inclusive('\n')
            .enumerate()
            // Never LF right after CR: together they would be one line end.
            .map(|(i, line)| line.replace('\n', if i % 2 == 0 { "\r\n" } else { "\r" }))
            .collect();
        [
            STREAM.to_owned(),
            STREAM.replace('\n', "\r\n"),
            STREAM.replace('\n', "\r"),
            format!("\u{feff}{}", STREAM.replace(": a comment\n", "")),
            mixed,
            STREAM.trim_end().to_owned(),
        ]
        .into_iter()
        .map(String::into_bytes)
        .collect()
    }

    #[test]
    fn a_stream_may_be_cut_at_every_byte() {
        for stream in variants() {
            for cut in 0..=stream.len() {
                let (head, tail) = stream.split_at(cut);
                assert_eq!(events([head, tail]), expected(), "cut at {cut} of {stream:?}");
            }
            assert_eq!(events(stream.chunks(1)), expected());
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(sizes in prop::collection::vec(1usize..9, 1..80), which in 0usize..6) {
            let stream = &variants()[which];
            let mut pieces = Vec::new();
            let mut at = 0;
            for size in sizes.iter().cycle() {
                if at >= stream.len() { break; }
                let end = (at + size).min(stream.len());
                pieces.push(&stream[at..end]);
                at = end;
            }
            prop_assert_eq!(events(pieces), expected());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole = events([bytes.as_slice()]);
            prop_assert_eq!(events(bytes.chunks(1)), whole);
        }
    }

    #[test]
    fn broken_text_is_replaced_and_the_stream_goes_on() {
        let stream = b"data: a\xffb\n\ndata: c\n\n";
        assert_eq!(events([&stream[..]]), [(String::new(), "a\u{fffd}b".to_owned()), (String::new(), "c".to_owned())]);
    }

    #[test]
    fn an_event_over_the_limit_is_refused() {
        let mut parser = SseParser::new(10);
        let mut ignore = |_: &SseEvent<'_>| true;
        assert_eq!(parser.push(b"data: 1234567890\n", &mut ignore), Ok(()));
        assert_eq!(parser.push(b"data: 1\n", &mut ignore), Err(EventTooLarge { limit: 10 }));
        let mut parser = SseParser::new(10);
        assert_eq!(parser.push(b"no line end here", &mut ignore), Err(EventTooLarge { limit: 10 }));
    }

    #[test]
    fn nothing_is_read_after_the_reader_has_enough() {
        let mut parser = SseParser::default();
        let mut count = 0;
        parser
            .push(b"data: 1\n\ndata: 2\n\n", &mut |_| {
                count += 1;
                false
            })
            .unwrap();
        assert_eq!(count, 1);
    }
}
