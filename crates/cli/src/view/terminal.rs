//! The terminal as a screen: taken on opening, given back on dropping, also after a panic.

use std::io::{self, Stderr, stderr};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
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
