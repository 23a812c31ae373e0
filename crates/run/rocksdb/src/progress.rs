//! How progress is shown while a database is loaded or measured: a bar on a terminal, otherwise one line at
//! the start and one at the end.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};
use sluice_log::LogEvent;

/// A progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another process loads the database; this one waits.
    Waiting,
    /// How many of all keys are written; from 0 to all.
    Loaded {
        /// Keys written.
        done: u64,
        /// Keys in all.
        total: u64,
    },
    /// How many of all operations are measured; from 0 to all.
    Measured {
        /// Operations measured.
        done: u64,
        /// Operations in all.
        total: u64,
    },
}

/// A receiver of progress reports.
pub trait Progress {
    /// Takes a report.
    fn step(&mut self, step: Step);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn step(&mut self, _: Step) {}
}

/// Shows progress on stderr.
#[derive(Debug, Default)]
pub struct Shown {
    bar: Option<ProgressBar>,
}

impl Shown {
    /// Nothing shown yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn show(&mut self, verbs: [&'static str; 2], what: &str, done: u64, total: u64) {
        if !io::stderr().is_terminal() || sluice_log::is_json() {
            if done == 0 {
                say(&format!("{} {total} {what}", verbs[0]));
            } else if done == total {
                say(&format!("{} {total} {what}", verbs[1]));
            }
            return;
        }
        let bar = self.bar.get_or_insert_with(|| bar(verbs[0], total));
        bar.set_position(done);
        if done == total {
            bar.finish_and_clear();
            self.bar = None;
        }
    }
}

impl Progress for Shown {
    fn step(&mut self, step: Step) {
        match step {
            Step::Waiting => say("another process loads the database; waiting for it"),
            Step::Loaded { done, total } => self.show(["loading", "loaded"], "keys", done, total),
            Step::Measured { done, total } => self.show(["measuring", "measured"], "operations", done, total),
        }
    }
}

fn bar(verb: &'static str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %  {per_sec}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_prefix(verb)
}

/// Writes a message. Failure is ignored: if no one can read the message, that is no reason to stop.
fn say(what: &str) {
    sluice_log::tell(LogEvent::Said, what);
}
