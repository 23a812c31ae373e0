//! The terminal as a screen: set up on opening, restored on dropping, even after a panic.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Stderr, stderr, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, size};
use ratatui::{Frame, Terminal};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// How long a read waits for a key, in tenths of a second, the terminal's unit.
const READ_TENTHS: u8 = 1;

/// The number of columns of the terminal at stdout, if there is one.
pub fn columns() -> Option<usize> {
    let (width, _) = stdout().is_terminal().then(size)?.ok()?;
    Some(width.into()).filter(|width| *width > 0)
}

/// A separate screen on the terminal at stderr. Ctrl-C keeps its meaning.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    keyboard: Keyboard,
}

/// A keyboard whose keys are read one by one and not echoed, until it is dropped. Ctrl-C keeps its meaning.
pub struct Keyboard {
    before: Option<(OwnedFd, Termios)>,
    /// The input for keys, as long as there is a terminal.
    keys: Cell<Option<File>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let keyboard = Keyboard::quiet(stderr());
        execute!(stderr(), EnterAlternateScreen)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stderr()))?, keyboard })
    }

    /// The key that is pressed within `patience`, if one is.
    pub(super) fn key(&self, patience: Duration) -> Option<char> {
        self.keyboard.key(patience)
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        execute!(stderr(), LeaveAlternateScreen, Show).ok();
    }
}

impl Keyboard {
    /// The keyboard of the terminal of `screen`; without one, no key is ever pressed.
    pub fn quiet(screen: impl AsFd) -> Self {
        let before = quiet_keyboard(screen.as_fd());
        let keys = before.as_ref().and_then(|_| keys());
        Self { before, keys: Cell::new(keys) }
    }

    /// The key that is pressed within `patience`, if one is. A terminal that is gone is not read again.
    pub fn key(&self, patience: Duration) -> Option<char> {
        let began = Instant::now();
        while let Some(left) = patience.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            let Some(keys) = self.keys.take() else {
                // The process has a screen but no keyboard.
                thread::sleep(left);
                return None;
            };
            let pressed = pressed(&keys);
            if pressed.is_ok() {
                self.keys.set(Some(keys));
            }
            if let Ok(Some(key)) = pressed {
                return Some(key);
            }
        }
        None
    }
}

/// The input for keys: stdin if it is a terminal, otherwise the terminal of this process.
fn keys() -> Option<File> {
    let stdin = stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned().ok().map(File::from);
    }
    File::open("/dev/tty").ok()
}

/// The first of the pressed keys; `None` if none is pressed within [`READ_TENTHS`]. Keys that send more
/// than a letter are skipped.
///
/// crossterm's own function cannot be used: it asks a terminal that is gone again and again, and never
/// returns.
fn pressed(mut keys: &File) -> io::Result<Option<char>> {
    let mut read = [0; 64];
    let pressed = match keys.read(&mut read) {
        Err(why) if why.kind() == ErrorKind::Interrupted => 0,
        read => read?,
    };
    if pressed == 0 {
        // No key, or the terminal is gone; then reading its settings fails.
        tcgetattr(keys)?;
        return Ok(None);
    }
    let pressed = String::from_utf8_lossy(&read[..pressed]);
    Ok(pressed.chars().next().filter(|key| !key.is_control()))
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if let Some((screen, before)) = &self.before {
            tcsetattr(screen, OptionalActions::Now, before).ok();
        }
    }
}

/// Turns echo off, so that keys do not write into the picture; signals from the keyboard stay.
fn quiet_keyboard(screen: BorrowedFd<'_>) -> Option<(OwnedFd, Termios)> {
    let before = tcgetattr(screen).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
    quiet.special_codes[SpecialCodeIndex::VTIME] = READ_TENTHS;
    tcsetattr(screen, OptionalActions::Now, &quiet).ok()?;
    Some((screen.try_clone_to_owned().ok()?, before))
}
