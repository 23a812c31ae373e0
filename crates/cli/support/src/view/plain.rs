//! Progress without a terminal: a line a second, and a line for each event.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sluice_report::table::{NOTHING, time};

use super::heading::{DRAW_EVERY, Heading};
use crate::board::{Board, LoadNow};
use crate::print;

/// How often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Writes lines to stderr until the run is over.
pub(super) fn show(heading: &Heading, board: &Board, over: &AtomicBool) {
    print::to_stderr(format_args!("{}; {}", heading.what, heading.place));
    let mut noted = 0;
    let mut zero_is_said = false;
    let mut next = Instant::now() + LINE_EVERY;
    loop {
        let last = over.load(Ordering::Relaxed);
        for note in board.notes_from(noted) {
            noted += 1;
            if let (Some(start), Some(_), false) = (board.known().zero, note.at, zero_is_said) {
                zero_is_said = true;
                print::to_stderr(format_args!("times of events are seconds since {}", start.text()));
            }
            print::to_stderr(format_args!("{}  {}", note.when(), note.text));
        }
        if last {
            return;
        }
        if Instant::now() >= next {
            next += LINE_EVERY;
            if let Some(load) = board.known().load {
                print::to_stderr(line(&load));
            }
        }
        thread::sleep(DRAW_EVERY);
    }
}

fn line(load: &LoadNow) -> String {
    let left = load.length.saturating_sub(load.elapsed);
    let phase = if load.elapsed < load.warm_up { "warm-up" } else { "load" };
    let mut line = format!(
        "{phase} {:.0} of {:.0} s ({:.0} s left)",
        load.elapsed.as_secs_f64().min(load.length.as_secs_f64()),
        load.length.as_secs_f64(),
        left.as_secs_f64()
    );
    for kind in &load.kinds {
        let answered = kind.replied_per_s > 0.0;
        let p99 = if answered { time(kind.latency_ns[1] as f64) } else { NOTHING.to_owned() };
        // Writing to a string cannot fail.
        let _ = write!(line, "; {} {:.0}/s p99 {p99}", kind.name, kind.replied_per_s);
    }
    let (refused, unknown) = (load.refused_text(), load.unknown);
    let _ = write!(line, "; refused {refused}, unknown {unknown}, in flight {}", load.outstanding);
    line
}
