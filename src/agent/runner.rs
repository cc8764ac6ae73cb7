//! Drives a run: prepares its trace, sends its history, carries out what the machine decides,
//! writes everything down (B23–B28). The only place where the agent loop meets the world.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::config::{RunConfig, TraceChoice};
use super::doom_loop::DoomLoop;
use super::execute::{Executor, Round};
use super::heal;
use super::machine::{Answered, Effect, Ending, Input, Limits, Machine, Tools};
use super::plan_keeper::PlanKeeper;
use super::ports::Ports;
use super::preset::DEFAULT_TURNS;
use super::report::{Finish, RunError, RunItem, RunReport};
use super::scribe::{Extra, Scribe, Sink, answer_message};
use super::streaming::Streaming;
use crate::events::data::{Plan, Totals, UserMessageState};
use crate::events::event::Event;
use crate::ids::Seq;
use crate::llm::chat::{Answer, Caller, ChatMessage, ChatRole, FinishReason, Request, Usage};
use crate::llm::error::ProviderError;
use crate::llm::prices::estimate_message_tokens;
use crate::llm::retry::{CallError, RetryPolicy, call_with_retry};
use crate::prompts::{Library, PromptName, Section};
use crate::stdx::bounded;
use crate::stdx::clock::Clock;
use crate::stdx::random::Random;
use crate::tools::ToolCx;
use crate::tools::registry::{Registry, Selection, Toolset};
use crate::trace::store::{FileSystemTraceStore, TraceStore};
use crate::trace::tree::{self, Messages};
use crate::trace::{Trace, TraceStatus, rewind};

/// What all runs of a session share (B17).
#[derive(Clone)]
pub struct Runner {
    /// Where traces are kept.
    pub store: Arc<FileSystemTraceStore>,
    /// All tools.
    pub registry: Arc<Registry>,
    /// All prompts.
    pub prompts: Arc<Library>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance, for spreading retries.
    pub random: Arc<dyn Random>,
}

/// A run as a stream of its trace and messages (B23). Dropping it stops the run.
#[derive(Debug)]
pub struct RunStream {
    items: mpsc::UnboundedReceiver<Result<RunItem, RunError>>,
    _stop: DropGuard,
}

impl Stream for RunStream {
    type Item = Result<RunItem, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.poll_recv(cx)
    }
}

/// Ports that a run owns, for running it on its own task.
pub trait OwnPorts: Send + Sync + 'static {
    /// They as a run borrows them.
    fn ports(&self) -> Ports<'_>;
}

impl Runner {
    /// The one entry (B23): runs `messages` on the trace that `config` names. New, continue,
    /// rewind and regenerate follow from the parameters alone (B24).
    pub fn run(&self, messages: Vec<ChatMessage>, config: RunConfig, ports: Arc<dyn OwnPorts>) -> RunStream {
        let (tx, items) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let stop = cancel.clone().drop_guard();
        let runner = self.clone();
        tokio::spawn(async move {
            let sink = |item| {
                // An error means that nobody listens any more; the guard stops the run then.
                let _ = tx.send(Ok(item));
            };
            if let Err(error) = runner.run_result(messages, config, ports.ports(), &cancel, &sink).await {
                let _ = tx.send(Err(error));
            }
        });
        RunStream { items, _stop: stop }
    }

    /// Runs to the end, handing every item to `on_item`, and returns what came out.
    ///
    /// # Errors
    /// Storage failed, or what was asked for makes no sense. A provider's failure is not one: the
    /// report says so.
    ///
    /// # Cancellation
    /// `cancel` ends it at the next await, with the trace stopped and resumable (B40, B41).
    pub async fn run_result(
        &self,
        messages: Vec<ChatMessage>,
        config: RunConfig,
        ports: Ports<'_>,
        cancel: &CancellationToken,
        on_item: Sink<'_>,
    ) -> Result<RunReport, RunError> {
        let toolset = self.toolset(&config)?;
        let (mut scribe, plan) = self.prepare(&config, &toolset, &messages, on_item)?;
        for message in messages {
            scribe.record(message, &Extra::default())?;
        }
        let model = config.model.reference.clone();
        scribe.event(Event::TraceStart {
            name: scribe.trace.name.clone().unwrap_or_default(),
            agent_type: config.agent_type.clone(),
            role: config.role,
            model,
        })?;
        scribe.save_trace()?;
        let executor = self.executor(&config, ports, &toolset, &plan);
        let mut drive = Drive {
            runner: self,
            config: &config,
            ports,
            cancel,
            plan,
            scribe,
            executor,
            answer: None,
            text: None,
            failure: None,
            why: None,
            totals: Totals::default(),
            specs: toolset.specs(),
        };
        let finish = drive.run().await?;
        drive.complete(finish)
    }

    fn toolset(&self, config: &RunConfig) -> Result<Toolset, RunError> {
        let preset = &config.preset;
        let mut allow = preset.allowed_tools.clone();
        if let Some(run) = &config.tools {
            let canonical = |n: &String| self.registry.canonical_name(n.trim()).unwrap_or(n).to_owned();
            let run: Vec<String> = run.iter().map(canonical).collect();
            allow = Some(match allow {
                Some(preset) => run.into_iter().filter(|n| preset.contains(n)).collect(),
                None => run,
            });
        }
        let mut block = config.tools_block.clone();
        block.extend(preset.denied_tools.clone().unwrap_or_default());
        let read_only = config.permission == crate::events::data::PermissionMode::Plan;
        self.registry.select(&Selection { allow, block, read_only }).map_err(RunError::Invalid)
    }

    /// Phases 1 and 2 (B25, B26): the trace, its healed history, the plan.
    fn prepare<'a>(
        &self,
        config: &RunConfig,
        toolset: &Toolset,
        input: &[ChatMessage],
        sink: Sink<'a>,
    ) -> Result<(Scribe<'a>, Arc<PlanKeeper>), RunError> {
        match &config.trace {
            TraceChoice::New(id) => {
                let task = input.first().map(ChatMessage::plain_text).unwrap_or_default();
                let mission = config.mission.clone().unwrap_or_else(|| task.clone());
                let mut trace = Trace::new(id.clone(), self.clock.now());
                trace.name = Some(config.name.clone().unwrap_or_else(|| bounded::first_line(&mission, 60)));
                trace.prompt_name.clone_from(&config.prompt_name);
                trace.task = Some(mission.clone());
                trace.agent_type = Some(config.agent_type.clone());
                trace.parent_trace_id.clone_from(&config.parent_trace_id);
                trace.parent_goal_id.clone_from(&config.parent_goal_id);
                trace.uid.clone_from(&config.uid);
                trace.model = Some(config.model.reference.clone());
                trace.tools = Some(toolset.specs().to_vec());
                if let Some(temperature) = config.temperature.or(config.preset.temperature) {
                    trace.llm_params.insert("temperature".to_owned(), temperature.into());
                }
                let plan = Plan { mission, ..Plan::default() };
                self.store.create_trace(&trace, &plan)?;
                let (mut scribe, plan) = self.scribe(config, trace, plan, Vec::new(), sink);
                scribe.record(ChatMessage::text(ChatRole::System, &config.system_prompt), &Extra::default())?;
                Ok((scribe, plan))
            }
            TraceChoice::Existing { id, after } => {
                let mut trace = self.store.get_trace(id)?;
                let messages = self.store.get_trace_messages(id)?;
                trace.last_sequence = trace.last_sequence.max(messages.keys().next_back().copied().unwrap_or(0));
                let mut plan = self.store.get_plan(id)?;
                if let Some(after) = after.filter(|after| *after != trace.head_sequence) {
                    self.rewind(config, &mut trace, &mut plan, &messages, after)?;
                }
                trace.status = TraceStatus::Running;
                trace.completed_at = None;
                trace.error_message = None;
                trace.model = Some(config.model.reference.clone());
                let path = tree::path_to(&messages, trace.head_sequence);
                let history = path.iter().map(|s| Arc::new(messages[s].to_chat())).collect();
                let (mut scribe, plan) = self.scribe(config, trace, plan, history, sink);
                heal::heal(&mut scribe, &messages, input, &self.prompts)?;
                Ok((scribe, plan))
            }
        }
    }

    fn scribe<'a>(
        &self,
        config: &RunConfig,
        trace: Trace,
        plan: Plan,
        history: Vec<Arc<ChatMessage>>,
        sink: Sink<'a>,
    ) -> (Scribe<'a>, Arc<PlanKeeper>) {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let plan = PlanKeeper::new(store.clone(), clock.clone(), trace.trace_id.clone(), config.cycle, plan);
        let plan = Arc::new(plan);
        (Scribe::new(trace, history, store, clock, plan.clone(), config.cycle, sink), plan)
    }

    /// Rewinds a trace that belongs to no session's rewind (B35): event first, then head and plan.
    fn rewind(
        &self,
        config: &RunConfig,
        trace: &mut Trace,
        plan: &mut Plan,
        messages: &Messages,
        after: Seq,
    ) -> Result<(), RunError> {
        let journal = self.store.recorder().path();
        let events = crate::events::log::read_filtered(&journal, 0, |e| e.trace_id.as_ref() == Some(&trace.trace_id))?;
        let record = rewind::record(events.events.iter(), trace, plan, messages, after).map_err(RunError::Invalid)?;
        self.store.append_event(&trace.trace_id, Some(config.cycle), Event::Rewind(Box::new(record.clone())))?;
        *plan = record.goal_tree;
        self.store.update_plan(&trace.trace_id, plan)?;
        trace.head_sequence = record.cut;
        self.store.update_trace(trace)?;
        Ok(())
    }

    fn executor<'a>(
        &'a self,
        config: &'a RunConfig,
        ports: Ports<'a>,
        toolset: &'a Toolset,
        plan: &Arc<PlanKeeper>,
    ) -> Executor<'a> {
        let settings = &config.settings;
        let cx = ToolCx {
            cwd: settings.cwd.clone(),
            temp: settings.temp.clone(),
            outputs: self.store.outputs(config.trace.id()),
            call_id: String::new(),
            shell: settings.shell.clone(),
            cancel: CancellationToken::new(),
            output_chars: settings.output_chars,
            command_timeout: settings.command_timeout,
            git_ceiling: settings.git_ceiling.clone(),
            goals: plan.clone(),
        };
        Executor {
            config,
            ports,
            toolset,
            cx,
            prompts: &self.prompts,
            doom: DoomLoop::default(),
            next_number: config.first_call,
            records: Vec::new(),
        }
    }
}

/// One run under way.
struct Drive<'a> {
    runner: &'a Runner,
    config: &'a RunConfig,
    ports: Ports<'a>,
    cancel: &'a CancellationToken,
    plan: Arc<PlanKeeper>,
    scribe: Scribe<'a>,
    executor: Executor<'a>,
    answer: Option<Answer>,
    text: Option<String>,
    failure: Option<ProviderError>,
    why: Option<String>,
    totals: Totals,
    specs: Arc<[crate::llm::chat::ToolSpec]>,
}

impl Drive<'_> {
    async fn run(&mut self) -> Result<Ending, RunError> {
        self.executor.cx.cancel = self.cancel.clone();
        let turns = self.config.max_iterations.or(self.config.preset.max_iterations).unwrap_or(DEFAULT_TURNS);
        let tools = if self.config.auto_execute_tools { Tools::Run } else { Tools::HandOver };
        let mut machine = Machine::new(Limits { turns: turns.max(1), last_turn: self.config.last_turn, tools });
        if let Some(text) = self.already_done() {
            self.text = Some(text);
            return Ok(Ending::Completed);
        }
        let mut input = Input::Begin;
        loop {
            let mut next = None;
            for effect in machine.step(input) {
                match effect {
                    Effect::Finish(ending) => return Ok(ending),
                    effect => next = self.carry_out(effect).await?.or(next),
                }
                if matches!(next, Some(Input::Interrupt(_))) {
                    break;
                }
            }
            // Every list of effects ends with a call, an execution or the end.
            input = next.unwrap_or(Input::Interrupt(Ending::Stopped));
        }
    }

    /// A trace whose newest message is a final text had come to its end before its process did;
    /// asking again would only repeat it.
    fn already_done(&self) -> Option<String> {
        let last = self.scribe.history.last()?;
        let done = last.role == ChatRole::Assistant && last.tool_calls.is_empty() && self.ports.inbox.is_empty();
        done.then(|| last.plain_text())
    }

    async fn carry_out(&mut self, effect: Effect) -> Result<Option<Input>, RunError> {
        match effect {
            Effect::InjectPlan => self.inject_plan().map(|()| None),
            Effect::SayLastTurn => self.say(PromptName::LastTurn).map(|()| None),
            Effect::SayEmpty => self.say(PromptName::EmptyAnswer).map(|()| None),
            Effect::SayCut => self.say(PromptName::CutAnswer).map(|()| None),
            Effect::Call { allow_tools } => self.call(allow_tools).await.map(Some),
            Effect::Record => self.record_answer().map(|()| None),
            Effect::Execute => self.execute().await.map(Some),
            Effect::RefuseCalls => {
                let calls = self.answer.take().map(|a| a.message.tool_calls).unwrap_or_default();
                self.executor.refuse_all(&mut self.scribe, &calls)?;
                Ok(None)
            }
            Effect::Finish(_) => Ok(None),
        }
    }

    fn inject_plan(&mut self) -> Result<(), RunError> {
        let Some((plan, focus)) = self.plan.for_injection() else { return Ok(()) };
        let values = [("plan", plan.as_str()), ("focus", focus.as_str())];
        let text = self.render(PromptName::PlanReminder, Section::System, &values)?;
        self.scribe.record(ChatMessage::text(ChatRole::System, text), &Extra::default())?;
        Ok(())
    }

    fn say(&mut self, name: PromptName) -> Result<(), RunError> {
        let text = self.render(name, Section::User, &[])?;
        self.scribe.record(ChatMessage::text(ChatRole::User, text), &Extra::default())?;
        Ok(())
    }

    fn render(&self, name: PromptName, section: Section, values: &[(&str, &str)]) -> Result<String, RunError> {
        self.runner.prompts.render(name, section, values).map_err(|e| RunError::Invalid(e.to_string()))
    }

    async fn call(&mut self, allow_tools: bool) -> Result<Input, RunError> {
        if self.cancel.is_cancelled() {
            return Ok(Input::Interrupt(Ending::Stopped));
        }
        if let Some(why) = self.ports.meter.exhausted(self.config.role) {
            self.why = Some(why);
            return Ok(Input::Interrupt(Ending::Budget));
        }
        self.deliver()?;
        let started = Instant::now();
        match self.ask(allow_tools).await? {
            Ok(answer) => {
                let answered = self.account(answer, started)?;
                Ok(Input::Answered(answered))
            }
            Err(CallError::Cancelled) => Ok(Input::Interrupt(Ending::Stopped)),
            Err(CallError::Provider(error)) => {
                self.why = Some(error.to_string());
                self.failure = Some(error);
                Ok(Input::Interrupt(Ending::Provider))
            }
        }
    }

    /// Puts a person's waiting messages into the history.
    fn deliver(&mut self) -> Result<(), RunError> {
        for waiting in self.ports.inbox.take() {
            self.scribe.record(ChatMessage::text(ChatRole::User, &waiting.text), &Extra::default())?;
            let state = UserMessageState::Delivered;
            self.scribe.event(Event::UserMessage { message_id: waiting.message_id, text: waiting.text, state })?;
        }
        Ok(())
    }

    async fn ask(&mut self, allow_tools: bool) -> Result<Result<Answer, CallError>, RunError> {
        let config = self.config;
        let request = Request {
            model: config.model.name.clone(),
            messages: self.scribe.history.clone(),
            tools: self.specs.clone(),
            allow_tool_calls: allow_tools,
            temperature: config.temperature.or(config.preset.temperature),
            max_output_tokens: None,
            caller: Caller { role: config.role.word().to_owned(), cycle: config.cycle },
        };
        let recorder = self.runner.store.recorder().clone();
        let trace_id = self.scribe.trace.trace_id.clone();
        let streaming = Streaming::new(&recorder, trace_id.clone(), config.cycle);
        let broken: std::sync::Mutex<Option<io::Error>> = std::sync::Mutex::new(None);
        let on_delta = |delta: crate::llm::chat::Delta<'_>| streaming.take(delta);
        let on_retry = |notice: crate::llm::retry::RetryNotice| {
            streaming.discard();
            let event = Event::Retry {
                attempt: notice.attempt,
                attempts: notice.attempts,
                wait_ms: u64::try_from(notice.wait.as_millis()).unwrap_or(u64::MAX),
                cause: notice.error.to_string(),
            };
            if let Err(error) = recorder.record(Some(config.cycle), Some(&trace_id), event) {
                *broken.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            }
        };
        let policy = RetryPolicy { attempts: config.model.attempts, random: self.runner.random.as_ref() };
        let provider = config.model.provider.as_ref();
        let call = call_with_retry(provider, &request, policy, self.cancel, &on_delta, &on_retry);
        tokio::pin!(call);
        let mut last_frame = tokio::time::Instant::now();
        let answer = loop {
            tokio::select! {
                answer = &mut call => break answer,
                () = streaming.due(last_frame) => {
                    streaming.flush();
                    last_frame = tokio::time::Instant::now();
                }
            }
        };
        streaming.flush();
        let broken = broken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }

    /// Counts what an answer cost and keeps it for recording.
    fn account(&mut self, answer: Answer, started: Instant) -> Result<Answered, RunError> {
        let reported = answer.usage.is_some();
        let usage = answer.usage.unwrap_or_else(|| self.estimate(&answer));
        let cost = (self.config.model.price)(&usage);
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let totals = Totals {
            calls: 1,
            tool_calls: 0,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: cost.unwrap_or(0.0),
            unpriced_calls: u64::from(cost.is_none()),
            duration_ms,
        };
        self.totals.add(&totals);
        let model = self.config.model.reference.clone();
        self.scribe.event(Event::Usage { role: self.config.role, model, totals, reported })?;
        let text = answer.message.plain_text();
        let answered = Answered {
            calls: answer.message.tool_calls.len(),
            has_text: !text.trim().is_empty(),
            cut: answer.finish == FinishReason::Length,
            message_waits: !self.ports.inbox.is_empty(),
        };
        if answered.has_text {
            self.text = Some(text);
        }
        self.answer = Some(answer);
        self.scribe.pending_totals = Some((totals, cost.is_some()));
        Ok(answered)
    }

    fn estimate(&self, answer: &Answer) -> Usage {
        let sent: u64 = self.scribe.history.iter().map(|m| estimate_message_tokens(m)).sum();
        Usage { prompt_tokens: sent, completion_tokens: estimate_message_tokens(&answer.message), ..Usage::default() }
    }

    fn record_answer(&mut self) -> Result<(), RunError> {
        let Some(answer) = &self.answer else { return Ok(()) };
        let (totals, priced) = self.scribe.pending_totals.take().unwrap_or_default();
        let extra = Extra {
            priced,
            finish_reason: Some(answer.finish.word().to_owned()),
            duration_ms: Some(totals.duration_ms),
            totals,
        };
        let message = answer_message(answer);
        let is_goal = |name: &str| self.runner.registry.canonical_name(name) == Some("goal");
        // A message that plans by itself needs no goal made for it (B29).
        let works = !message.tool_calls.is_empty() && !message.tool_calls.iter().any(|c| is_goal(&c.function.name));
        let is_checker_text =
            self.config.role == crate::events::data::Role::Checker && !message.plain_text().is_empty();
        let text = message.plain_text();
        self.scribe.record(message, &extra)?;
        if works && self.config.role == crate::events::data::Role::Worker {
            self.plan.ensure_root()?;
        }
        if is_checker_text {
            self.scribe.event(Event::CheckerStream { text })?;
        }
        Ok(())
    }

    async fn execute(&mut self) -> Result<Input, RunError> {
        let Some(answer) = self.answer.take() else { return Ok(Input::Executed { in_a_loop: false }) };
        let cut = answer.finish == FinishReason::Length;
        let round = self.executor.run(&mut self.scribe, &answer.message.tool_calls, cut, self.cancel).await?;
        Ok(match round {
            Round::Done => Input::Executed { in_a_loop: false },
            Round::InALoop => Input::Executed { in_a_loop: true },
            Round::Stopped => Input::Interrupt(Ending::Stopped),
            Round::NeedsHuman => {
                self.why = Some("a tool needs a person's consent and nobody is there to give it".to_owned());
                Input::Interrupt(Ending::NeedsHuman)
            }
        })
    }

    /// Phase 4 (B28): status, summary, error, totals.
    fn complete(mut self, ending: Ending) -> Result<RunReport, RunError> {
        let why = match ending {
            Ending::Completed => None,
            Ending::TurnLimit => Some("the limit of turns is reached".to_owned()),
            Ending::DoomLoop => Some("the same tool call was repeated without anything new coming of it".to_owned()),
            Ending::EmptyAnswers => Some("the model answered nothing, several times".to_owned()),
            Ending::HandedOver => Some("the caller carries the tool calls out".to_owned()),
            Ending::Stopped => Some("stopped".to_owned()),
            Ending::Provider | Ending::Budget | Ending::NeedsHuman => self.why.take(),
        };
        let finish = Finish { ending, why, provider: self.failure.take() };
        let status = finish.status();
        let trace = &mut self.scribe.trace;
        trace.status = status;
        trace.completed_at = Some(self.runner.clock.now());
        trace.result_summary = (ending == Ending::Completed).then(|| self.text.clone()).flatten();
        trace.error_message = (status == TraceStatus::Failed).then(|| finish.why.clone()).flatten();
        let event = Event::TraceComplete {
            status: status.word().to_owned(),
            summary: trace.result_summary.as_deref().map(|s| bounded::preview(s, crate::events::event::PREVIEW_BYTES)),
            error: finish.why.clone(),
        };
        self.scribe.event(event)?;
        self.scribe.save_trace()?;
        Ok(RunReport {
            trace_id: self.scribe.trace.trace_id.clone(),
            finish,
            text: self.text,
            head: self.scribe.trace.head_sequence,
            calls: self.executor.records,
            totals: self.totals,
        })
    }
}
