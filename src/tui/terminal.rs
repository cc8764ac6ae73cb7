//! The terminal's modes: entered together, undone together on every way out (normal end, error,
//! panic, signal, suspension). Does not draw.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::Command;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};

use super::ui::Ui;

/// A whole frame goes out in one `write`.
const FRAME_BYTES: usize = 256 * 1024;

/// Longest text handed to the terminal's clipboard; longer ones are refused by most.
const CLIPBOARD_BYTES: usize = 100_000;

type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// The terminal in the interface's modes; dropping it brings the shell's back.
pub struct Screenful {
    terminal: Terminal<Backend>,
    entered: Arc<AtomicBool>,
    mouse: bool,
    tmux: bool,
}

impl Screenful {
    /// Enters the modes.
    ///
    /// # Errors
    /// There is no terminal, or it refuses.
    pub fn enter(mouse: bool, tmux: bool) -> io::Result<Self> {
        let entered = Arc::new(AtomicBool::new(false));
        restore_on_panic(entered.clone());
        enter_modes(mouse, &entered)?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, io::stdout()));
        let terminal = Terminal::new(backend).inspect_err(|_| leave_modes(&entered))?;
        Ok(Self { terminal, entered, mouse, tmux })
    }

    /// Draws a frame, shown at once and whole where the terminal can do that.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, ui: &mut Ui) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| ui.draw(frame))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Write::flush(self.terminal.backend_mut())
    }

    /// Forgets what is on screen, so that the next frame is drawn whole.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it asks where the cursor is, and the answer would be read as keys.
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    /// Gives the terminal away, to an editor or to the shell.
    pub fn leave(&mut self) {
        leave_modes(&self.entered);
    }

    /// Takes it back.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn reenter(&mut self) -> io::Result<()> {
        // Stopped by a signal of its own, it never left; what is pushed is popped once only.
        leave_modes(&self.entered);
        enter_modes(self.mouse, &self.entered)?;
        self.clear()
    }

    /// Takes the mouse or releases it for the terminal's own selection.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        if on { execute!(io::stdout(), MouseOn) } else { execute!(io::stdout(), MouseOff) }
    }

    /// Puts text on the clipboard of the machine the person sits at (OSC 52). Says whether it was
    /// short enough to try.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<bool> {
        if text.len() > CLIPBOARD_BYTES {
            return Ok(false);
        }
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?;
        Ok(true)
    }

    /// Rings.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn bell(&mut self) -> io::Result<()> {
        raw("\x07")
    }

    /// Shows a desktop notification (OSC 9), through the multiplexer when there is one.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn notify(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        if self.tmux {
            raw(&format!("\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\"))
        } else {
            raw(&format!("\x1b]9;{text}\x07"))
        }
    }
}

impl Drop for Screenful {
    fn drop(&mut self) {
        leave_modes(&self.entered);
    }
}

fn raw(sequence: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

fn enter_modes(mouse: bool, entered: &AtomicBool) -> io::Result<()> {
    enable_raw_mode()?;
    entered.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    // Terminals that don't know the keyboard protocol ignore it; asking first would cost them
    // a wait of up to two seconds.
    execute!(
        out,
        EnterAlternateScreen,
        EnableBracketedPaste,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
        cursor::Hide
    )
    .inspect_err(|_| leave_modes(entered))?;
    if mouse { execute!(out, MouseOn) } else { Ok(()) }
}

/// Undoes everything, once. There is nobody left to tell about a failure.
fn leave_modes(entered: &AtomicBool) {
    if !entered.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        MouseOff,
        PopKeyboardEnhancementFlags,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// A panic of this thread ends the interface: the terminal is brought back before its message is
/// printed. A panic of a background task does not; its message goes to the log, not over the screen.
fn restore_on_panic(entered: Arc<AtomicBool>) {
    let ours = std::thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == ours {
            leave_modes(&entered);
        }
        if entered.load(Ordering::SeqCst) {
            tracing::error!(panic = %info, "a background task panicked");
        } else {
            before(info);
        }
    }));
}

/// Clicks and the wheel only: reporting every movement would wake an idle program.
struct MouseOn;

impl Command for MouseOn {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str("\x1b[?1000h\x1b[?1006h")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        ratatui::crossterm::event::EnableMouseCapture.execute_winapi()
    }

    #[cfg(windows)]
    fn is_ansi_code_supported(&self) -> bool {
        false
    }
}

/// Undoes [`MouseOn`].
struct MouseOff;

impl Command for MouseOff {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str("\x1b[?1006l\x1b[?1000l")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        ratatui::crossterm::event::DisableMouseCapture.execute_winapi()
    }

    #[cfg(windows)]
    fn is_ansi_code_supported(&self) -> bool {
        false
    }
}
