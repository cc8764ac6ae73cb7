//! Publishes what a model says while it says it: pieces are gathered and handed on at most once a
//! frame, so that a fast stream costs frames, not pieces.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::events::event::Event;
use crate::events::recorder::Recorder;
use crate::ids::TraceId;
use crate::llm::chat::Delta;

/// One frame of a screen that draws 60 times a second.
const FRAME: Duration = Duration::from_millis(16);

/// What streamed since the last frame.
pub struct Streaming<'a> {
    recorder: &'a Recorder,
    trace: TraceId,
    cycle: u32,
    pending: Mutex<Vec<Piece>>,
    /// Fires when the first piece of a frame arrives.
    arrived: Notify,
}

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Thinking(String),
    Call { index: u32, tool: Option<String>, arguments: String },
}

impl<'a> Streaming<'a> {
    /// Publishes for one trace.
    pub fn new(recorder: &'a Recorder, trace: TraceId, cycle: u32) -> Self {
        Self { recorder, trace, cycle, pending: Mutex::default(), arrived: Notify::new() }
    }

    /// Takes a piece. Without anyone watching it is dropped at once.
    pub fn take(&self, delta: Delta<'_>) {
        if !self.recorder.is_watched() {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.is_empty() {
            self.arrived.notify_one();
        }
        match (pending.last_mut(), delta) {
            (Some(Piece::Text(text)), Delta::Text(more)) | (Some(Piece::Thinking(text)), Delta::Thinking(more)) => {
                text.push_str(more);
            }
            (Some(Piece::Call { index, arguments, .. }), Delta::ToolCall { index: i, name: None, arguments: more })
                if *index as usize == i =>
            {
                arguments.push_str(more);
            }
            (_, Delta::Text(text)) => pending.push(Piece::Text(text.to_owned())),
            (_, Delta::Thinking(text)) => pending.push(Piece::Thinking(text.to_owned())),
            (_, Delta::ToolCall { index, name, arguments }) => pending.push(Piece::Call {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                tool: name.map(str::to_owned),
                arguments: arguments.to_owned(),
            }),
        }
    }

    /// Waits until something gathered and the last frame, which was at `last`, is over. Sleeps while
    /// nothing streams.
    pub async fn due(&self, last: Instant) {
        self.arrived.notified().await;
        tokio::time::sleep_until(last + FRAME).await;
    }

    /// Publishes what gathered.
    pub fn flush(&self) {
        let pieces = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        for piece in pieces {
            let event = match piece {
                Piece::Text(text) => Event::TextDelta { text },
                Piece::Thinking(text) => Event::ThinkingDelta { text },
                Piece::Call { index, tool, arguments } => Event::ToolCallDelta { index, tool, arguments },
            };
            self.recorder.publish_delta(Some(self.cycle), Some(&self.trace), event);
        }
    }

    /// Forgets what gathered, when the call that said it failed.
    pub fn discard(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdx::clock::SystemClock;

    #[tokio::test]
    async fn a_piece_that_arrives_before_anyone_watches_keeps_no_later_one_back() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("state")).unwrap();
        let recorder = Recorder::open("s".into(), home.path(), std::sync::Arc::new(SystemClock)).unwrap();
        let streaming = Streaming::new(&recorder, "w1".into(), 1);
        streaming.take(Delta::Text("unseen "));
        let (_, mut watcher) = recorder.subscribe();
        streaming.take(Delta::Text("seen "));
        streaming.take(Delta::Text("at once"));
        streaming.due(Instant::now()).await;
        streaming.flush();
        let event = watcher.recv().await.unwrap();
        assert_eq!(event.event, Event::TextDelta { text: "seen at once".to_owned() });
    }
}
