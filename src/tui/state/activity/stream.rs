//! What is being written right now: text, reasoning and tool calls as they arrive. Text is kept up
//! to a bound; its beginning gives way to its end.

use std::collections::{HashMap, VecDeque};

use super::{Activity, Piece, Row, RowId, RowKind, TraceRef};
use crate::events::event::{Envelope, MessageAdded};

/// Most bytes of a text that is being written.
const STREAM_BYTES: usize = 64 * 1024;

/// Most bytes kept of reasoning once it is over.
const THOUGHT_BYTES: usize = 4 * 1024;

/// How many of the newest texts stay as they were read, beyond the preview of their message, so
/// that nothing changes under the eyes of who reads them.
const WHOLE_TEXTS: usize = 8;

/// Everything that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    open: HashMap<TraceRef, Stream>,
    /// Texts kept whole, with the preview that will replace them.
    whole: VecDeque<(RowId, String)>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    text: Option<RowId>,
    thinking: Option<RowId>,
    /// Index within the message → row.
    composing: Vec<(u32, RowId)>,
}

impl Streams {
    /// Whether anything is being written.
    pub(super) fn is_open(&self) -> bool {
        self.open.values().any(|s| s.text.is_some() || s.thinking.is_some() || !s.composing.is_empty())
    }
}

#[derive(Clone, Copy)]
pub(super) enum Flow {
    Text,
    Thinking,
}

impl Activity {
    pub(super) fn delta(&mut self, envelope: &Envelope, flow: Flow, piece: &str) {
        let Some(trace) = envelope.trace_id.as_ref().map(|id| self.trace_ref(id)) else { return };
        let stream = self.streams.open.entry(trace).or_default();
        let known = match flow {
            Flow::Text => stream.text,
            Flow::Thinking => stream.thinking,
        };
        let row = known.unwrap_or_else(|| {
            let empty = Piece { streaming: true, ..Piece::default() };
            let kind = match flow {
                Flow::Text => RowKind::Text(empty),
                Flow::Thinking => RowKind::Thinking(empty),
            };
            self.add(envelope, kind)
        });
        let stream = self.streams.open.entry(trace).or_default();
        match flow {
            Flow::Text => stream.text = Some(row),
            Flow::Thinking => stream.thinking = Some(row),
        }
        if let Some(Row { kind: RowKind::Text(text) | RowKind::Thinking(text), .. }) = self.row_mut(row) {
            text.push(piece);
        }
    }

    pub(super) fn call_delta(&mut self, envelope: &Envelope, index: u32, tool: Option<&str>, arguments: &str) {
        let Some(trace) = envelope.trace_id.as_ref().map(|id| self.trace_ref(id)) else { return };
        let known = self.streams.open.get(&trace).and_then(|s| s.composing.iter().find(|(i, _)| *i == index));
        let row = match known {
            Some((_, row)) => *row,
            None => {
                let row = self.add(envelope, RowKind::Composing { tool: None, bytes: 0 });
                self.streams.open.entry(trace).or_default().composing.push((index, row));
                row
            }
        };
        if let Some(Row { kind: RowKind::Composing { tool: name, bytes }, .. }) = self.row_mut(row) {
            *bytes += arguments.len() as u64;
            if name.is_none() {
                *name = tool.map(str::to_owned);
            }
        }
    }

    /// The row that a call was composed in, in the order of the calls.
    pub(super) fn take_composed(&mut self, trace: TraceRef) -> Option<RowId> {
        let composing = &mut self.streams.open.get_mut(&trace)?.composing;
        (!composing.is_empty()).then(|| composing.remove(0).1)
    }

    /// What was written is discarded: the call failed and is tried again, or its run ended.
    pub(super) fn discard(&mut self, trace: TraceRef) {
        let Some(stream) = self.streams.open.remove(&trace) else { return };
        let rows = stream.text.into_iter().chain(stream.thinking).chain(stream.composing.into_iter().map(|(_, r)| r));
        for row in rows {
            if let Some(row) = self.row_mut(row) {
                row.kind = RowKind::Gone;
            }
        }
    }

    pub(super) fn discard_all(&mut self) {
        let traces: Vec<_> = self.streams.open.keys().copied().collect();
        for trace in traces {
            self.discard(trace);
        }
    }

    /// The message that was being written is complete.
    pub(super) fn complete(&mut self, envelope: &Envelope, trace: TraceRef, message: &MessageAdded) {
        let stream = self.streams.open.get_mut(&trace);
        let (text, thinking) = stream.map_or((None, None), |s| (s.text.take(), s.thinking.take()));
        if let Some(Row { kind: RowKind::Thinking(piece), .. }) = thinking.and_then(|row| self.row_mut(row)) {
            piece.streaming = false;
            piece.keep_end(THOUGHT_BYTES);
            piece.text.shrink_to_fit();
        }
        if message.preview.trim().is_empty() {
            if let Some(row) = text.and_then(|row| self.row_mut(row)) {
                row.kind = RowKind::Gone;
            }
            return;
        }
        let row = text.unwrap_or_else(|| self.add(envelope, RowKind::Text(Piece::default())));
        let Some(Row { kind: RowKind::Text(piece), sequence, .. }) = self.row_mut(row) else { return };
        *sequence = Some(message.sequence);
        piece.streaming = false;
        let is_whole = piece.missing == 0 && piece.text.len() as u64 == message.bytes;
        piece.bytes = message.bytes;
        piece.missing = 0;
        if is_whole && piece.text.len() > message.preview.len() {
            self.streams.whole.push_back((row, message.preview.clone()));
        } else {
            piece.text.clone_from(&message.preview);
        }
        piece_text_fits(self, row);
        if self.streams.whole.len() > WHOLE_TEXTS {
            self.shorten_oldest();
        }
    }

    fn shorten_oldest(&mut self) {
        let Some((row, preview)) = self.streams.whole.pop_front() else { return };
        if let Some(Row { kind: RowKind::Text(piece), .. }) = self.row_mut(row) {
            piece.text = preview;
        }
    }
}

fn piece_text_fits(activity: &mut Activity, row: RowId) {
    if let Some(Row { kind: RowKind::Text(piece), .. }) = activity.row_mut(row) {
        piece.text.shrink_to_fit();
    }
}

impl Piece {
    fn push(&mut self, piece: &str) {
        self.bytes += piece.len() as u64;
        self.text.push_str(piece);
        // Twice the bound, so that cutting costs each byte once.
        if self.text.len() > 2 * STREAM_BYTES {
            self.keep_end(STREAM_BYTES);
        }
    }

    /// Drops the beginning, up to a line's end where there is one near.
    fn keep_end(&mut self, max: usize) {
        if self.text.len() <= max {
            return;
        }
        let mut from = self.text.len() - max;
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        if let Some(newline) = self.text[from..].find('\n').filter(|n| *n < max / 4) {
            from += newline + 1;
        }
        self.text.drain(..from);
        self.missing += from as u64;
    }
}
