//! Reads and prints how Draconis is asked for: `draconis`, `draconis:classes=4,jobs=5`,
//! `draconis:labels,swaps=8`.

use core::fmt;

use sluice_units::WholeSpan;
use sluice_wire::{JOB_TASKS_MAX, Nanos};

use crate::arguments;

/// The argument for priority classes.
const CLASSES: &str = "classes";
/// The argument for workers that serve some tasks only.
const LABELS: &str = "labels";
/// The argument for the design without our corrections.
const AS_PUBLISHED: &str = "as-published";
/// The argument for several tasks in one submission.
const JOBS: &str = "jobs";
/// The most swaps that a memo has bits for.
const SWAPS_MAX: u8 = 63;

/// How idle workers poll, and which classes and labels tasks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(super) every: Nanos,
    pub(super) classes: u8,
    pub(super) labels: bool,
    pub(super) swapping: Swapping,
    /// The most tasks in one submission.
    pub(super) jobs: u8,
    pub(super) as_published: bool,
}

/// The bounds of task swapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swapping {
    /// The most swaps for one poll.
    pub(super) most: u8,
    /// How long a task waits for a worker that meets all its wishes (its node), in virtual or real
    /// nanoseconds.
    pub(super) node: Nanos,
    /// How long a task waits for a worker that meets any of its wishes (its rack); later any worker takes
    /// it.
    pub(super) rack: Nanos,
}

/// The default bounds. They are ours: the slides name swapping, but neither the bound on swaps nor the
/// waits for locality.
pub(super) const SWAPPING: Swapping =
    Swapping { most: 16, node: Nanos::from_micros(10), rack: Nanos::from_micros(20) };

impl Default for Settings {
    fn default() -> Self {
        Self { every: Nanos(0), classes: 1, labels: false, swapping: SWAPPING, jobs: 1, as_published: false }
    }
}

impl Settings {
    /// Reads one argument; `None` if it is unknown or out of range.
    pub(super) fn read(&mut self, argument: &str) -> Option<()> {
        match argument.split_once('=') {
            None if argument == LABELS => self.labels = true,
            None if argument == AS_PUBLISHED => self.as_published = true,
            Some(("poll", span)) => self.every = wait(span)?,
            Some(("node", span)) => self.swapping.node = wait(span)?,
            Some(("rack", span)) => self.swapping.rack = wait(span)?,
            Some(("swaps", number)) => self.swapping.most = arguments::number(number, 1..=SWAPS_MAX)?,
            Some((JOBS, number)) => self.jobs = arguments::number(number, 2..=JOB_TASKS_MAX as u8)?,
            Some((CLASSES, number)) => {
                self.classes =
                    arguments::number(number, 2..=4).filter(|classes| classes.is_power_of_two())?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// Reads a wait, up to 4 s.
fn wait(text: &str) -> Option<Nanos> {
    let span = sluice_units::span(text).ok()?;
    Some(span).filter(|span| *span <= Nanos::from_millis(4_000))
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { every, classes, labels, swapping, jobs, as_published } = *self;
        let mut written = Arguments { f, before: "" };
        if every != Nanos(0) {
            written.add(format_args!("poll={}", WholeSpan(every)))?;
        }
        if classes > 1 {
            written.add(format_args!("{CLASSES}={classes}"))?;
        }
        if labels {
            written.add(format_args!("{LABELS}"))?;
        }
        if swapping.most != SWAPPING.most {
            written.add(format_args!("swaps={}", swapping.most))?;
        }
        if swapping.node != SWAPPING.node {
            written.add(format_args!("node={}", WholeSpan(swapping.node)))?;
        }
        if swapping.rack != SWAPPING.rack {
            written.add(format_args!("rack={}", WholeSpan(swapping.rack)))?;
        }
        if jobs > 1 {
            written.add(format_args!("{JOBS}={jobs}"))?;
        }
        if as_published { written.add(format_args!("{AS_PUBLISHED}")) } else { Ok(()) }
    }
}

/// Writes arguments with commas between them.
struct Arguments<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    before: &'static str,
}

impl Arguments<'_, '_> {
    fn add(&mut self, argument: fmt::Arguments<'_>) -> fmt::Result {
        write!(self.f, "{}{argument}", self.before)?;
        self.before = ",";
        Ok(())
    }
}
