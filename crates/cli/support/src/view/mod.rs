//! The display of a running rack: a live view on a terminal, otherwise a line a second, or nothing.

mod draw;
mod heading;
mod plain;
mod terminal;

pub use heading::Heading;
pub use terminal::{Keyboard, columns};

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::board::Board;
use crate::stop::Stop;
use heading::DRAW_EVERY;

/// What a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewContent {
    /// Nothing at all.
    Nothing,
    /// A line a second.
    Lines,
    Screen,
}

impl ViewContent {
    /// The screen if there is one, free of log lines, and `quiet` is not set; stdout stays free for the
    /// result.
    pub fn fitting(quiet: bool) -> Self {
        let stderr = std::io::stderr();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let has_screen = stderr.is_terminal() && !dumb && !sluice_log::is_started();
        match (quiet, has_screen) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Screen,
            (false, false) => Self::Lines,
        }
    }
}

/// A view, shown until it is dropped.
pub struct View {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl View {
    /// Starts to show `board`. If there is a keyboard, the key `q` sets `stop`.
    pub fn start(shown: ViewContent, heading: Heading, board: Board, stop: Stop) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let show = move || match shown {
            ViewContent::Nothing => {}
            ViewContent::Lines => plain::show(&heading, &board, &seen),
            ViewContent::Screen => screen(&heading, &board, &seen, &stop),
        };
        Self { over, thread: Some(thread::spawn(show)) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the view is ignored: the run's result matters.
            thread.join().ok();
        }
    }
}

/// Shows the live view; lines if the terminal does not support it.
fn screen(heading: &Heading, board: &Board, over: &AtomicBool, stop: &Stop) {
    let Ok(mut terminal) = terminal::Screen::open() else { return plain::show(heading, board, over) };
    while !over.load(Ordering::Relaxed) {
        let known = board.known();
        if terminal.draw(|frame| draw::draw(frame, heading, &known)).is_err() {
            return;
        }
        if terminal.key(DRAW_EVERY) == Some('q') {
            stop.ask();
        }
    }
}
