//! The one loop: waits for the terminal, for events, for answers, for the time; applies everything
//! that is queued; draws once. Decides nothing; `ui` does.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use ratatui::crossterm::event::{Event as TerminalEvent, EventStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::screen::Level;
use super::terminal::Screenful;
use super::ui::{Answer, Follow, Setup, Ui, ViewId, Work};
use super::{External, Options};
use crate::events::event::Envelope;
use crate::events::port::Port;
use crate::events::problem::Problem;
use crate::ids::SessionId;
use crate::stdx::clock::Clock;

/// Least time between two frames.
const FRAME: Duration = Duration::from_millis(16);

/// Most events applied before the screen gets its turn.
const BATCH: usize = 4096;

/// Runs the interface until the person leaves. What runs is stopped then.
///
/// # Errors
/// There is no terminal, it broke, or the person's keys or themes can't be used.
pub async fn run(options: Options) -> Result<(), Problem> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Problem::usage("the interface needs a terminal, and standard input or output is none")
            .hint("use `super-agent run OBJECTIVE` where there is none"));
    }
    let mouse = options.config.ui.mouse;
    let setup = Setup {
        config: options.config,
        themes: options.themes,
        colors: options.terminal.colors,
        launch_dir: options.launch_dir,
        open: options.open,
        now: options.clock.now(),
        zone: jiff::tz::TimeZone::system(),
    };
    let ui = Ui::new(setup)?;
    let screen = Screenful::enter(mouse, options.terminal.tmux)?;
    let (done_tx, done_rx) = mpsc::unbounded_channel();
    let mut app = App {
        ui,
        screen,
        port: options.port,
        external: options.external,
        clock: options.clock,
        done_tx,
        done_rx,
        followed: Followed::default(),
        input: EventStream::new(),
        last_frame: None,
    };
    let result = app.run().await;
    let left = app.leave().await;
    drop(app);
    result.and(left).map_err(|error| Problem::internal(format!("the terminal broke: {error}")))
}

/// What a background task sends back.
enum Done {
    Answer(ViewId, Answer),
    Follow(SessionId, Follow),
    Said(Level, String),
}

/// Why the loop ends.
#[derive(PartialEq)]
enum Next {
    Go,
    Leave,
}

struct App {
    ui: Ui,
    screen: Screenful,
    port: Arc<dyn Port>,
    external: Arc<dyn External>,
    clock: Arc<dyn Clock>,
    done_tx: mpsc::UnboundedSender<Done>,
    done_rx: mpsc::UnboundedReceiver<Done>,
    followed: Followed,
    input: EventStream,
    last_frame: Option<Instant>,
}

/// One thing that happened.
enum Happened {
    Input(Option<io::Result<TerminalEvent>>),
    Events(SessionId, Vec<Arc<Envelope>>),
    Closed(SessionId),
    Done(Done),
    Signal(Signal),
    Time,
}

impl App {
    async fn run(&mut self) -> io::Result<()> {
        let mut signals = Signals::new()?;
        loop {
            if self.work().await? == Next::Leave {
                return Ok(());
            }
            self.draw_when_due()?;
            let happened = self.next(&mut signals).await;
            self.ui.time(self.clock.now());
            if self.apply(happened)? == Next::Leave || self.apply_queued().await? == Next::Leave {
                return Ok(());
            }
        }
    }

    /// Waits until something happens. Each branch can be dropped without losing anything.
    async fn next(&mut self, signals: &mut Signals) -> Happened {
        let frame = self.ui.is_dirty().then(|| self.last_frame.map_or_else(Instant::now, |at| at + FRAME));
        let wake = self.ui.wake_at().map(|at| {
            let wait = at.duration_since(self.clock.now());
            Instant::now() + Duration::try_from(wait).unwrap_or(Duration::ZERO)
        });
        let due = [frame, wake].into_iter().flatten().min();
        // A disabled branch is never polled, so the instant does not matter then.
        let timer = pin!(sleep_until(due.unwrap_or_else(Instant::now)));
        tokio::select! {
            event = self.input.next() => Happened::Input(event),
            Some(done) = self.done_rx.recv() => Happened::Done(done),
            happened = self.followed.next() => happened,
            signal = signals.next() => Happened::Signal(signal),
            () = timer, if due.is_some() => Happened::Time,
        }
    }

    fn apply(&mut self, happened: Happened) -> io::Result<Next> {
        match happened {
            Happened::Input(Some(Ok(event))) => self.ui.terminal(event),
            // The terminal is gone.
            Happened::Input(Some(Err(_)) | None) => return Ok(Next::Leave),
            Happened::Events(session, events) => self.ui.events(&session, &events),
            Happened::Closed(session) => self.ui.closed(&session),
            Happened::Done(done) => self.done(done),
            Happened::Signal(Signal::Leave) => return Ok(Next::Leave),
            Happened::Signal(Signal::Back) => self.screen.reenter()?,
            Happened::Time => {}
        }
        Ok(Next::Go)
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Answer(view, answer) => self.ui.answered(view, answer),
            Done::Follow(session, Ok(subscription)) => {
                self.followed.channels.insert(session.clone(), subscription.events);
                self.ui.followed(&session, Ok(()));
            }
            Done::Follow(session, Err(problem)) => self.ui.followed(&session, Err(problem)),
            Done::Said(level, text) => self.ui.toast(level, text),
        }
    }

    /// Takes along what is there already, so that one frame shows all of it.
    async fn apply_queued(&mut self) -> io::Result<Next> {
        while let Poll::Ready(event) = self.poll_input().await {
            if self.apply(Happened::Input(event))? == Next::Leave {
                return Ok(Next::Leave);
            }
        }
        while let Ok(done) = self.done_rx.try_recv() {
            self.done(done);
        }
        if let Some(happened) = self.followed.next().now_or_never() {
            return self.apply(happened);
        }
        Ok(Next::Go)
    }

    /// An event of the terminal that is there already. The stream wakes only whoever it first told
    /// to wait, so it must always be asked in the name of this task.
    async fn poll_input(&mut self) -> Poll<Option<io::Result<TerminalEvent>>> {
        std::future::poll_fn(|cx| Poll::Ready(self.input.poll_next_unpin(cx))).await
    }

    fn draw_when_due(&mut self) -> io::Result<()> {
        let due = self.last_frame.is_none_or(|at| at.elapsed() >= FRAME);
        if self.ui.is_dirty() && due {
            self.last_frame = Some(Instant::now());
            self.screen.draw(&mut self.ui)?;
        }
        Ok(())
    }

    /// Carries out what the interface wants.
    async fn work(&mut self) -> io::Result<Next> {
        loop {
            let work = self.ui.take_work();
            if work.is_empty() {
                return Ok(Next::Go);
            }
            for work in work {
                if self.carry_out(work).await? == Next::Leave {
                    return Ok(Next::Leave);
                }
            }
        }
    }

    async fn carry_out(&mut self, work: Work) -> io::Result<Next> {
        match work {
            Work::Query { view, query } => {
                let port = self.port.clone();
                self.spawn(async move {
                    let result = port.query(query.clone()).await;
                    Done::Answer(view, Answer::Reply(query, result))
                });
            }
            Work::Command { view, command } => {
                let port = self.port.clone();
                self.spawn(async move {
                    let result = port.command(command.clone()).await;
                    Done::Answer(view, Answer::Done(command, result))
                });
            }
            Work::Follow { session, after, wait } => {
                let port = self.port.clone();
                self.spawn(async move {
                    sleep(wait).await;
                    let result = port.follow(&session, after).await;
                    Done::Follow(session, result)
                });
            }
            Work::Unfollow { session } => {
                self.followed.channels.remove(&session);
            }
            Work::Edit { view, text, suffix } => self.edit(view, text, suffix).await?,
            Work::Copy(text) => self.copy(text)?,
            Work::Bell => self.screen.bell()?,
            Work::Notify(word) => self.screen.notify(&word)?,
            Work::KeepTheme(theme) => {
                let external = self.external.clone();
                self.spawn(async move {
                    match external.keep_theme(theme.clone()).await {
                        Ok(()) => Done::Said(Level::Info, format!("theme {theme} is kept")),
                        Err(problem) => Done::Said(Level::Warning, problem.to_string()),
                    }
                });
            }
            Work::Mouse(on) => self.screen.set_mouse(on)?,
            Work::Suspend => self.suspend()?,
            Work::Redraw => self.screen.clear()?,
            Work::Leave => return Ok(Next::Leave),
        }
        Ok(Next::Go)
    }

    fn spawn(&self, task: impl Future<Output = Done> + Send + 'static) {
        let tx = self.done_tx.clone();
        // Nobody is left to hear the answer once the interface is gone.
        tokio::spawn(async move { drop(tx.send(task.await)) });
    }

    /// The editor has the terminal; nothing is drawn and no key is read meanwhile. What happens in
    /// the sessions waits in their channels.
    async fn edit(&mut self, view: ViewId, text: String, suffix: &'static str) -> io::Result<()> {
        self.screen.leave();
        // A reader of the terminal would take the editor's keys.
        self.input = EventStream::new();
        let result = self.external.edit(text, suffix).await;
        self.screen.reenter()?;
        self.ui.answered(view, Answer::Edited(result));
        Ok(())
    }

    /// To the terminal's clipboard, which also works over SSH, and to the system's.
    fn copy(&mut self, text: String) -> io::Result<()> {
        let short_enough = self.screen.copy(&text)?;
        let external = self.external.clone();
        self.spawn(async move {
            match external.copy(text).await {
                Ok(()) => Done::Said(Level::Info, "copied".to_owned()),
                Err(_) if short_enough => Done::Said(Level::Info, "copied through the terminal".to_owned()),
                Err(problem) => Done::Said(Level::Error, problem.to_string()),
            }
        });
        Ok(())
    }

    #[cfg(unix)]
    fn suspend(&mut self) -> io::Result<()> {
        self.screen.leave();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP)?;
        self.screen.reenter()
    }

    #[cfg(not(unix))]
    fn suspend(&mut self) -> io::Result<()> {
        self.ui.toast(Level::Info, "this system can't put a program into the background");
        Ok(())
    }

    /// Stops what runs, saying so while it takes time.
    async fn leave(&mut self) -> io::Result<()> {
        let port = self.port.clone();
        let mut shutdown = pin!(port.shutdown());
        let said_after = Duration::from_millis(150);
        if tokio::time::timeout(said_after, shutdown.as_mut()).await.is_ok() {
            return Ok(());
        }
        self.ui.time(self.clock.now());
        self.ui.toast(Level::Warning, "stopping what runs");
        // The terminal may be gone already; stopping matters more.
        let _ = self.screen.draw(&mut self.ui);
        shutdown.await;
        Ok(())
    }
}

/// The channels of the followed sessions.
#[derive(Default)]
struct Followed {
    channels: HashMap<SessionId, mpsc::UnboundedReceiver<Arc<Envelope>>>,
}

impl Followed {
    /// The next events of any session. Nothing is lost when this is dropped before it is ready.
    async fn next(&mut self) -> Happened {
        let happened = std::future::poll_fn(|cx| {
            let mut events = Vec::new();
            for (session, channel) in &mut self.channels {
                match channel.poll_recv_many(cx, &mut events, BATCH) {
                    Poll::Ready(0) => return Poll::Ready(Happened::Closed(session.clone())),
                    Poll::Ready(_) => {
                        return Poll::Ready(Happened::Events(session.clone(), std::mem::take(&mut events)));
                    }
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await;
        if let Happened::Closed(session) = &happened {
            self.channels.remove(session);
        }
        happened
    }
}

/// What a signal asks for.
enum Signal {
    /// To end.
    Leave,
    /// To take the terminal back after a stop.
    Back,
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            go_on: signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGCONT as i32))?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Leave,
            _ = self.hang_up.recv() => Signal::Leave,
            _ = self.interrupt.recv() => Signal::Leave,
            _ = self.go_on.recv() => Signal::Back,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        // An error means that the handler can't be set: then Ctrl+C is only a key.
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Leave,
            Err(_) => std::future::pending().await,
        }
    }
}
