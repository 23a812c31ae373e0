//! Progress: a bar on a terminal, otherwise a line from time to time, or nothing with `--quiet`.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::cost::span_text;

use sluice_support::print;

/// How often a line is written without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The length of the bar, in thousandths of the cost.
const BAR: u64 = 1_000;

/// The progress of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: ProgressForm,
    started: Instant,
    done: f64,
    total: f64,
    jobs: usize,
    jobs_done: usize,
}

#[derive(Debug)]
enum ProgressForm {
    Nothing,
    Lines { next: Instant },
    Bar(ProgressBar),
}

impl Progress {
    /// Nothing done yet.
    pub(crate) fn new(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let shown = match (quiet, std::io::stderr().is_terminal() && !dumb) {
            (true, _) => ProgressForm::Nothing,
            (false, true) => ProgressForm::Bar(bar()),
            (false, false) => ProgressForm::Lines { next: Instant::now() + LINE_EVERY },
        };
        Self { shown, started: Instant::now(), done: 0.0, total: 0.0, jobs: 0, jobs_done: 0 }
    }

    /// Prints a message that stays.
    pub(crate) fn print_message(&self, what: &str) {
        match &self.shown {
            ProgressForm::Nothing => {}
            ProgressForm::Lines { .. } => print::to_stderr(what),
            ProgressForm::Bar(bar) => bar.suspend(|| print::to_stderr(what)),
        }
    }

    /// Adds jobs with this cost.
    pub(crate) fn more(&mut self, jobs: usize, cost: f64) {
        self.jobs += jobs;
        self.total += cost;
    }

    /// Notes that a job is done.
    pub(crate) fn one_done(&mut self, cost: f64) {
        self.jobs_done += 1;
        self.done += cost;
        let line = self.line();
        let share = (self.done / self.total * BAR as f64) as u64;
        match &mut self.shown {
            ProgressForm::Lines { next } if Instant::now() >= *next => {
                *next = Instant::now() + LINE_EVERY;
                print::to_stderr(line);
            }
            ProgressForm::Bar(bar) => {
                bar.set_position(share.min(BAR));
                bar.set_message(line);
            }
            ProgressForm::Nothing | ProgressForm::Lines { .. } => {}
        }
    }

    /// The end.
    pub(crate) fn finish(self) {
        if let ProgressForm::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn line(&self) -> String {
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = elapsed * (self.total - self.done).max(0.0) / self.done.max(1e-9);
        format!("{} of {} runs, about {} left", self.jobs_done, self.jobs, span_text(left))
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
    ProgressBar::new(BAR).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
