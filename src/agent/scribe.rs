//! Writes a run down: numbers its messages, stores each before its event, keeps the history that
//! is sent and the trace's totals.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::plan_keeper::PlanKeeper;
use super::report::RunItem;
use crate::events::data::{CallRef, GoalStats, Totals};
use crate::events::event::{Event, MessageAdded, PREVIEW_BYTES};
use crate::ids::Seq;
use crate::llm::chat::{Answer, ChatMessage};
use crate::stdx::bounded;
use crate::stdx::clock::Clock;
use crate::trace::Trace;
use crate::trace::message::{Message, Slot};
use crate::trace::store::{FileSystemTraceStore, TraceStore};

/// How far behind the caches of a trace may be while its run is busy. They are made anew from the
/// messages and the journal after a crash.
const CACHE_LAG: Duration = Duration::from_secs(1);

/// A wait of this length is used to write them.
const CACHE_PAUSE: Duration = Duration::from_millis(50);

/// Takes each item as it is recorded.
pub type Sink<'a> = &'a (dyn Fn(RunItem) + Send + Sync);

/// What is known of a message besides its text.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// What it cost.
    pub totals: Totals,
    /// Whether the price is known.
    pub priced: bool,
    /// Why the model stopped.
    pub finish_reason: Option<String>,
    /// How long the call or the tool took.
    pub duration_ms: Option<u64>,
}

/// The pen of one run.
pub struct Scribe<'a> {
    /// The trace as it stands.
    pub trace: Trace,
    /// What is sent to the model.
    pub history: Vec<Arc<ChatMessage>>,
    /// What the newest answer cost, until it is recorded; and whether its price is known.
    pub pending_totals: Option<(Totals, bool)>,
    store: Arc<FileSystemTraceStore>,
    clock: Arc<dyn Clock>,
    plan: Arc<PlanKeeper>,
    cycle: u32,
    sink: Sink<'a>,
    /// Whether `meta.json` is behind.
    is_behind: bool,
    /// When the caches were written last.
    caught_up: Instant,
}

impl<'a> Scribe<'a> {
    /// Goes on with `trace`, whose main path is `history`.
    pub fn new(
        trace: Trace,
        history: Vec<Arc<ChatMessage>>,
        store: Arc<FileSystemTraceStore>,
        clock: Arc<dyn Clock>,
        plan: Arc<PlanKeeper>,
        cycle: u32,
        sink: Sink<'a>,
    ) -> Self {
        Self {
            trace,
            history,
            pending_totals: None,
            store,
            clock,
            plan,
            cycle,
            sink,
            is_behind: false,
            caught_up: Instant::now(),
        }
    }

    /// Stores a message after the head and makes it the head. Message and journal are written when
    /// this returns; the caches follow with [`Scribe::catch_up`].
    ///
    /// # Errors
    /// It could not be written; it was not shown then.
    pub fn record(&mut self, chat: ChatMessage, extra: &Extra) -> io::Result<Seq> {
        let initial = self.trace.current_goal_id.is_none() && self.plan.is_empty();
        let goal_id = if initial { None } else { self.plan.focus() };
        let sequence = self.trace.last_sequence + 1;
        let slot = Slot {
            trace_id: self.trace.trace_id.clone(),
            sequence,
            parent_sequence: (self.trace.head_sequence > 0).then_some(self.trace.head_sequence),
            goal_id: goal_id.clone(),
            created_at: self.clock.now(),
        };
        let mut message = Message::from_chat(slot, &chat);
        message.duration_ms = extra.duration_ms;
        message.finish_reason.clone_from(&extra.finish_reason);
        if extra.totals.calls > 0 {
            message.prompt_tokens = Some(extra.totals.prompt_tokens);
            message.completion_tokens = Some(extra.totals.completion_tokens);
            message.cost = extra.priced.then_some(extra.totals.cost_usd);
        }
        self.store.add_message(&message)?;
        let event_id = self.store.append_event(&self.trace.trace_id, Some(self.cycle), added(&message, &chat))?;
        self.count(sequence, event_id, extra);
        self.charge_goal(goal_id.as_ref(), &chat, extra);
        self.is_behind = true;
        self.history.push(Arc::new(chat));
        (self.sink)(RunItem::Message(Box::new(message)));
        Ok(sequence)
    }

    /// Waits for a model or a tool. When that takes longer, or when the caches have been behind for
    /// long, they are written meanwhile: replacing a file can take as long as a whole turn.
    ///
    /// # Errors
    /// They can't be written.
    pub async fn keep_up<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        let mut work = pin!(work);
        let due = (self.caught_up + CACHE_LAG).min(Instant::now() + CACHE_PAUSE);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep_until(due) => self.catch_up()?,
        }
        Ok(work.await)
    }

    /// Writes the caches that are behind: the plan and the trace's metadata.
    ///
    /// # Errors
    /// They can't be written.
    pub fn catch_up(&mut self) -> io::Result<()> {
        self.caught_up = Instant::now();
        self.plan.catch_up()?;
        if std::mem::take(&mut self.is_behind) {
            self.store.update_trace(&self.trace)?;
        }
        Ok(())
    }

    /// Writes the trace's metadata and hands it on.
    ///
    /// # Errors
    /// It can't be written.
    pub fn save_trace(&mut self) -> io::Result<()> {
        self.trace.current_goal_id = self.plan.focus();
        self.is_behind = true;
        self.catch_up()?;
        (self.sink)(RunItem::Trace(Box::new(self.trace.clone())));
        Ok(())
    }

    /// Journals an event of this trace.
    ///
    /// # Errors
    /// It could not be written.
    pub fn event(&mut self, event: Event) -> io::Result<()> {
        self.trace.last_event_id = self.store.append_event(&self.trace.trace_id, Some(self.cycle), event)?;
        Ok(())
    }

    fn count(&mut self, sequence: Seq, event_id: u64, extra: &Extra) {
        let trace = &mut self.trace;
        trace.last_sequence = sequence;
        trace.head_sequence = sequence;
        trace.last_event_id = event_id;
        trace.total_messages += 1;
        trace.total_prompt_tokens += extra.totals.prompt_tokens;
        trace.total_completion_tokens += extra.totals.completion_tokens;
        trace.total_tokens = trace.total_prompt_tokens + trace.total_completion_tokens;
        trace.total_cost += extra.totals.cost_usd;
        trace.total_duration_ms += extra.duration_ms.unwrap_or(0);
        trace.current_goal_id = self.plan.focus();
    }

    fn charge_goal(&self, goal: Option<&crate::ids::GoalId>, chat: &ChatMessage, extra: &Extra) {
        let calls: Vec<_> = chat.tool_calls.iter().map(|c| c.function.name.as_str()).collect();
        let stats = GoalStats {
            message_count: 1,
            total_tokens: extra.totals.tokens(),
            total_cost: extra.totals.cost_usd,
            duration_ms: extra.duration_ms.unwrap_or(0),
            preview: bounded::first_line(&calls.join(", "), 80),
        };
        self.plan.charge(goal, &stats);
    }
}

fn added(message: &Message, chat: &ChatMessage) -> Event {
    let text = chat.plain_text();
    Event::MessageAdded(Box::new(MessageAdded {
        sequence: message.sequence,
        parent_sequence: message.parent_sequence,
        role: message.role.word().to_owned(),
        goal_id: message.goal_id.clone(),
        description: message.description.clone(),
        preview: bounded::preview(&text, PREVIEW_BYTES),
        bytes: text.len() as u64,
        tool_calls: chat
            .tool_calls
            .iter()
            .map(|c| CallRef { id: c.id.clone(), tool: c.function.name.clone() })
            .collect(),
        tool_call_id: message.tool_call_id.clone(),
        finish_reason: message.finish_reason.clone(),
        branch_type: None,
        duration_ms: message.duration_ms,
    }))
}

/// The stored form of an answer's message: what it was, an empty text left out.
pub fn answer_message(answer: &Answer) -> ChatMessage {
    let mut message = answer.message.clone();
    if message.plain_text().is_empty() && !message.tool_calls.is_empty() {
        message.content = None;
    }
    message
}
