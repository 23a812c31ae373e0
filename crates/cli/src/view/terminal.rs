//! The terminal as a screen: taken on opening, given back on dropping, also after a panic.

use std::io::{self, Stderr, stderr};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{event, execute};
use ratatui::{Frame, Terminal};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A screen of its own on the terminal behind stderr. Ctrl-C keeps its meaning.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    before: Option<Termios>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let before = quiet_keyboard();
        execute!(stderr(), EnterAlternateScreen)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stderr()))?, before })
    }

    /// The key that is pressed within `patience`, if one is.
    pub(super) fn key(patience: Duration) -> Option<char> {
        match event::poll(patience) {
            Ok(true) => event::read().ok().and_then(|event| event.as_key_press_event()?.code.as_char()),
            Ok(false) => None,
            Err(_) => {
                // There is a screen and no keyboard.
                thread::sleep(patience);
                None
            }
        }
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        execute!(stderr(), LeaveAlternateScreen, Show).ok();
        if let Some(before) = &self.before {
            tcsetattr(stderr(), OptionalActions::Now, before).ok();
        }
    }
}

/// Keys that are pressed must not write into the picture; signals from the keyboard stay.
fn quiet_keyboard() -> Option<Termios> {
    let before = tcgetattr(stderr()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    tcsetattr(stderr(), OptionalActions::Now, &quiet).ok()?;
    Some(before)
}
