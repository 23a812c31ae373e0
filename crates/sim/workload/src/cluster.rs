//! The recorded tasks of a cluster, in the columns of the 2011 cluster trace's task events (Draconis'
//! evaluation).
//!
//! Each line is an event of a task: time in microseconds, missing info, job, task index, machine, event
//! type, user, scheduling class, priority, the CPU, memory and disk that the task requests (as shares of
//! the largest machine's), and whether it needs another machine than the other tasks of its job. Here a
//! task is a submission that was scheduled and finished; it is due when it was submitted and takes as long
//! as it ran. Cluster tasks run for minutes, so their times are scaled to a given mean, and the arrivals to
//! the given rate.
//!
//! A task's class consists of what a scheduler may look at: the band of its priority, whether it is `big`,
//! and whether it has to run `apart`.
//!
//! Left out: submissions that were evicted, failed, killed or lost, or that came before the trace or did
//! not end in it; they are only counted. Also left out: machines, users and scheduling classes, and updates
//! of requests.

use std::collections::HashMap;

use sluice_wire::Nanos;

use super::SERVICE_MAX;
use super::text::{self, Cell};

/// The columns' names in error messages.
const COLUMNS: [&str; 13] = [
    "time",
    "missing info",
    "job",
    "task index",
    "machine",
    "event type",
    "user",
    "scheduling class",
    "priority",
    "CPU request",
    "memory request",
    "disk request",
    "different-machines",
];
/// Later than any event; the trace uses it for events after its end.
const AFTER: u64 = i64::MAX as u64;
/// The default request from which on a task is `big`.
pub(super) const BIG: f64 = 0.1;

/// Priorities in bands, as the trace's own description has them; the first band goes first.
const BANDS: [(&str, std::ops::RangeInclusive<u8>); 4] =
    [("monitoring", 10..=11), ("production", 9..=9), ("batch", 2..=8), ("free", 0..=1)];

/// An error: its column, and what helps.
type Fault = (usize, String);

/// Collects events into tasks.
#[derive(Debug)]
pub(super) struct ClusterEvents {
    big: f64,
    waiting: HashMap<(u64, u64), Submission>,
    submitted: u64,
    last: u64,
    done: Vec<FinishedRun>,
    left_out: u64,
}

/// A task that was submitted.
#[derive(Clone, Copy, Debug)]
struct Submission {
    /// The task's position among all submissions.
    place: u64,
    /// When the task was submitted; `None` if before the trace.
    at: Option<u64>,
    scheduled: Option<u64>,
    class: u8,
}

/// A submission that finished; times in microseconds of the trace.
#[derive(Clone, Copy, Debug)]
struct FinishedRun {
    place: u64,
    at: u64,
    class: u8,
    took: u64,
}

/// A task, for lists in order of submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinishedTask {
    pub(super) at: Nanos,
    pub(super) class: u8,
    pub(super) service: Nanos,
}

/// The part of a task's line about the task itself.
#[derive(Clone, Copy, Debug)]
struct TaskTraits {
    priority: u8,
    big: bool,
    apart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Submitted,
    Scheduled,
    Finished,
    /// Evicted, failed, killed or lost.
    Ended,
    Updated,
}

impl ClusterEvents {
    pub(super) fn new(big: f64) -> Self {
        Self { big, waiting: HashMap::new(), submitted: 0, last: 0, done: Vec::new(), left_out: 0 }
    }

    /// Adds a line; `class` returns the number of the class with this name, or an error.
    pub(super) fn take(
        &mut self,
        line: &str,
        class: impl FnOnce(Cell<'_>) -> Result<u8, Fault>,
    ) -> Result<(), Fault> {
        let cells = text::cells(line);
        let Ok(cells) = <[Cell<'_>; 13]>::try_from(cells) else {
            let count = line.split(',').count();
            return Err((1, format!("{count} columns are not the 13 of task events: {}", COLUMNS.join(","))));
        };
        let time = self.time(cells[0])?;
        optional(cells[1], 1, 2)?;
        let task = (whole(cells[2], 2, u64::MAX)?, whole(cells[3], 3, u64::MAX)?);
        optional(cells[4], 4, u64::MAX)?;
        let event = Event::read(cells[5])?;
        optional(cells[7], 7, 3)?;
        let asked = self.asked(&cells)?;
        if event == Event::Submitted {
            let name = asked.class_name();
            let class = class(Cell { text: &name, column: cells[8].column })?;
            let at = (time > 0).then_some(time);
            let place = self.submitted;
            self.submitted += 1;
            let before = self.waiting.insert(task, Submission { place, at, scheduled: None, class });
            self.left_out += u64::from(before.is_some());
            return Ok(());
        }
        self.is_running(task, event, time);
        Ok(())
    }

    /// How many submissions became no task.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out + self.waiting.len() as u64
    }

    /// The tasks, in order of their submission, with services scaled to this mean.
    pub(super) fn finish(mut self, mean: Nanos) -> Vec<FinishedTask> {
        // The list is in order of finishing: without this, tasks of the same time would begin with the
        // shortest.
        self.done.sort_by_key(|run| run.place);
        let start = self.done.first().map_or(0, |run| run.at);
        let took: u128 = self.done.iter().map(|run| u128::from(run.took)).sum();
        let scale = mean.0 as f64 * self.done.len() as f64 / took as f64;
        let finished = |run: &FinishedRun| FinishedTask {
            at: Nanos((run.at - start).saturating_mul(1_000)),
            class: run.class,
            service: Nanos((run.took as f64 * scale) as u64).clamp(Nanos(1), SERVICE_MAX),
        };
        self.done.iter().map(finished).collect()
    }

    fn time(&mut self, cell: Cell<'_>) -> Result<u64, Fault> {
        let time = whole(cell, 0, AFTER)?;
        if time < self.last {
            return Err((cell.column, format!("{time} comes after a later time: sort the lines")));
        }
        self.last = time;
        Ok(time)
    }

    fn asked(&self, cells: &[Cell<'_>; 13]) -> Result<TaskTraits, Fault> {
        let priority = whole(cells[8], 8, 11)? as u8;
        let mut big = false;
        for (column, cell) in cells.iter().enumerate().skip(9).take(3) {
            big |= request(*cell, column)? > self.big;
        }
        let apart = optional(cells[12], 12, 1)? == Some(1);
        Ok(TaskTraits { priority, big, apart })
    }

    /// Applies an event of a task; events of tasks that were submitted before the file begins are ignored.
    fn is_running(&mut self, task: (u64, u64), event: Event, time: u64) {
        match event {
            Event::Scheduled => {
                if let Some(submission) = self.waiting.get_mut(&task) {
                    submission.scheduled = Some(time);
                }
            }
            Event::Finished => {
                let Some(Submission { place, at, scheduled, class }) = self.waiting.remove(&task) else {
                    return;
                };
                match (at, scheduled) {
                    // A task that began and ended within one step of the clock took about one step.
                    (Some(at), Some(began)) if time < AFTER => {
                        self.done.push(FinishedRun { place, at, class, took: (time - began).max(1) });
                    }
                    _ => self.left_out += 1,
                }
            }
            Event::Ended => self.left_out += u64::from(self.waiting.remove(&task).is_some()),
            Event::Submitted | Event::Updated => {}
        }
    }
}

/// The priority of a class with this name, 0 first.
pub(super) fn urgency(class: &str) -> Option<u8> {
    let band = class.split('-').next()?;
    BANDS.iter().position(|(name, _)| *name == band).map(|place| place as u8)
}

impl TaskTraits {
    fn class_name(self) -> String {
        let band = BANDS.iter().find(|(_, priorities)| priorities.contains(&self.priority));
        let mut name = band.map_or("free", |(name, _)| *name).to_owned();
        if self.big {
            name += "-big";
        }
        if self.apart {
            name += "-apart";
        }
        name
    }
}

impl Event {
    fn read(cell: Cell<'_>) -> Result<Self, Fault> {
        Ok(match whole(cell, 5, 8)? {
            0 => Self::Submitted,
            1 => Self::Scheduled,
            4 => Self::Finished,
            7 | 8 => Self::Updated,
            _ => Self::Ended,
        })
    }
}

fn whole(cell: Cell<'_>, column: usize, most: u64) -> Result<u64, Fault> {
    let number = cell.text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| {
        let range = if most == u64::MAX { String::new() } else { format!(" from 0 to {most}") };
        (cell.column, format!("the {} `{}` is not a whole number{range}", COLUMNS[column], cell.text))
    })
}

/// A number that may be missing.
fn optional(cell: Cell<'_>, column: usize, most: u64) -> Result<Option<u64>, Fault> {
    if cell.text.is_empty() { Ok(None) } else { whole(cell, column, most).map(Some) }
}

/// A task's request, as a share of the largest machine's; a missing one is 0.
fn request(cell: Cell<'_>, column: usize) -> Result<f64, Fault> {
    if cell.text.is_empty() {
        return Ok(0.0);
    }
    let why = |_| {
        format!(
            "the {} `{}` is not a share of the largest machine: write 0 to 1, or nothing",
            COLUMNS[column], cell.text
        )
    };
    text::share(cell.text).map_err(why).map_err(|why| (cell.column, why))
}
