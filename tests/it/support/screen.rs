//! The program in a pseudo-terminal: what a person would see, and the keys they would press.
//! Every wait has a deadline and shows the screen when it passes.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Long enough for a busy machine; what is there sooner is seen sooner.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(15);

/// What the terminal was sent.
struct Sent {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// A program and the terminal it runs in. Dropping it kills the program.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    sent: Arc<Mutex<Sent>>,
    modes: String,
}

impl Terminal {
    /// Starts super-agent with a home of its own, `columns` by `rows`.
    pub fn start(home: &Path, arguments: &[&str], (columns, rows): (u16, u16), variables: &[(&str, &str)]) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let modes = modes(pair.master.as_ref());
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_super-agent"));
        command.args(arguments);
        command.cwd(home);
        command.env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
            ("SHELL", "/bin/sh"),
            ("SUPER_AGENT_SCRIPTED_DELAY", "0"),
            // Tests may themselves run under a session; this is none of its processes.
            ("SUPER_AGENT_RUN", ""),
        ] {
            command.env(name, value);
        }
        command.env("HOME", home);
        for (name, folder) in
            [("CONFIG", ".config"), ("DATA", ".data"), ("STATE", ".state"), ("CACHE", ".cache"), ("RUNTIME", ".run")]
        {
            let suffix = if name == "RUNTIME" { "DIR" } else { "HOME" };
            command.env(format!("XDG_{name}_{suffix}"), home.join(folder));
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        let size = |n| NonZeroU16::new(n).expect("a terminal has rows and columns");
        let screen = vt100::Parser::new(size(rows), size(columns), 0);
        let sent = Arc::new(Mutex::new(Sent { screen, bytes: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().expect("a reader of the terminal");
        let taken = sent.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                let mut sent = taken.lock().unwrap_or_else(PoisonError::into_inner);
                sent.screen.process(&buffer[..n]);
                sent.bytes.extend_from_slice(&buffer[..n]);
            }
        });
        let keyboard = pair.master.take_writer().expect("a keyboard");
        Self { master: pair.master, keyboard, child, sent, modes }
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.sent().screen.screen().contents()
    }

    /// Presses keys, as the bytes a terminal sends.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).and_then(|()| self.keyboard.flush()).expect("keys are taken");
    }

    /// Waits until the screen holds `text`.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("`{text}` on the screen"), |screen| screen.contains(text));
    }

    /// Waits until the screen holds `text` no more.
    #[track_caller]
    pub fn wait_without(&self, text: &str) {
        self.wait_until(&format!("no `{text}` on the screen"), |screen| !screen.contains(text));
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if wanted(&text) {
                return;
            }
            assert!(Instant::now() < until, "waited in vain for {what}; the screen:\n{text}");
            std::thread::sleep(LOOK);
        }
    }

    /// Presses `key` until the row under the cursor holds `text`.
    #[track_caller]
    pub fn move_to(&mut self, key: &str, text: &str) {
        let under_cursor = |screen: &str| screen.lines().find(|row| row.contains('▌')).map(str::to_owned);
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.text();
            let row = under_cursor(&screen);
            if row.as_deref().is_some_and(|row| row.contains(text)) {
                return;
            }
            assert!(Instant::now() < until, "the cursor never came to `{text}`; the screen:\n{screen}");
            self.keys(key);
            let moved = Instant::now() + Duration::from_secs(5);
            while under_cursor(&self.text()) == row {
                assert!(Instant::now() < moved, "the cursor stays where it is, before `{text}`; the screen:\n{screen}");
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Makes the terminal larger or smaller and waits until the program has drawn for it: a key
    /// pressed in the same moment is taken only together with the next one.
    #[track_caller]
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let before = self.sent().bytes.len();
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).expect("it resizes");
        let size = |n| NonZeroU16::new(n).expect("a terminal has rows and columns");
        self.sent().screen.screen_mut().set_size(size(rows), size(columns));
        self.wait_until("a frame of the new size", |_| self.sent().bytes.len() > before);
    }

    /// The program's process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().expect("it was started")).expect("process numbers are small")
    }

    /// Waits for the end of the program: its exit code.
    #[track_caller]
    pub fn exit_code(&mut self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its end can be seen") {
                return status.exit_code();
            }
            assert!(Instant::now() < until, "it did not end; the screen:\n{}", self.text());
            std::thread::sleep(LOOK);
        }
    }

    /// Asserts that the terminal is as it was before the program started.
    #[track_caller]
    pub fn assert_restored(&self) {
        // What the program wrote last may still be under way.
        self.wait_until("the shell's screen", |_| !self.sent_state().alternate);
        let state = self.sent_state();
        assert!(!state.hidden_cursor, "the cursor is hidden");
        assert!(!state.paste, "bracketed paste is still on");
        assert!(!state.mouse, "the mouse is still taken");
        let bytes = String::from_utf8_lossy(&self.sent().bytes).into_owned();
        assert_eq!(bytes.matches("\x1b[>1u").count(), bytes.matches("\x1b[<1u").count(), "keyboard flags are left");
        assert_eq!(modes(self.master.as_ref()), self.modes, "the terminal's modes");
    }

    fn sent_state(&self) -> State {
        let sent = self.sent();
        let screen = sent.screen.screen();
        State {
            alternate: screen.alternate_screen(),
            hidden_cursor: screen.hide_cursor(),
            paste: screen.bracketed_paste(),
            mouse: screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None,
        }
    }
}

struct State {
    alternate: bool,
    hidden_cursor: bool,
    paste: bool,
    mouse: bool,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raw or not, echo or not.
fn modes(terminal: &dyn MasterPty) -> String {
    let modes = terminal.get_termios().expect("the modes of a pseudo-terminal");
    format!("{:?} {:?} {:?}", modes.input_flags, modes.output_flags, modes.local_flags)
}
