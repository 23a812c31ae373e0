//! The terminal as a screen: taken on opening, given back on dropping, also after a panic.

use std::io::{self, IsTerminal, Stderr, stderr, stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, size};
use ratatui::crossterm::{event, execute};
use ratatui::{Frame, Terminal};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// How many columns the terminal behind stdout has, if it is one.
pub fn columns() -> Option<usize> {
    let (width, _) = stdout().is_terminal().then(size)?.ok()?;
    Some(width.into()).filter(|width| *width > 0)
}

/// A screen of its own on the terminal behind stderr. Ctrl-C keeps its meaning.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    keyboard: Keyboard,
}

/// A keyboard whose keys are read one by one and do not write into what is shown, until it is dropped. Ctrl-C
/// keeps its meaning.
pub struct Keyboard {
    before: Option<(OwnedFd, Termios)>,
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
    /// The keyboard of the terminal behind `screen`; where there is none, no key is ever pressed.
    pub fn quiet(screen: impl AsFd) -> Self {
        Self { before: quiet_keyboard(screen.as_fd()) }
    }

    /// The key that is pressed within `patience`, if one is.
    pub fn key(&self, patience: Duration) -> Option<char> {
        let is_there = self.before.is_some();
        match is_there.then(|| event::poll(patience)) {
            Some(Ok(true)) => event::read().ok().and_then(|event| event.as_key_press_event()?.code.as_char()),
            Some(Ok(false)) => None,
            Some(Err(_)) | None => {
                // There is a screen and no keyboard.
                thread::sleep(patience);
                None
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if let Some((screen, before)) = &self.before {
            tcsetattr(screen, OptionalActions::Now, before).ok();
        }
    }
}

/// Keys that are pressed must not write into the picture; signals from the keyboard stay.
fn quiet_keyboard(screen: BorrowedFd<'_>) -> Option<(OwnedFd, Termios)> {
    let before = tcgetattr(screen).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    tcsetattr(screen, OptionalActions::Now, &quiet).ok()?;
    Some((screen.try_clone_to_owned().ok()?, before))
}
