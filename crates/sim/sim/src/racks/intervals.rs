//! The times of a pool's tasks, interval by interval (Horus §4.3, Figure 9).

use sluice_stats::{IntervalTasks, SliceDepths};
use sluice_wire::Nanos;

/// The present interval, and those that have ended.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    ended: IntervalTasks,
    told: Vec<SliceDepths>,
}

impl Intervals {
    /// A task got a reply.
    pub(super) fn take(&mut self, waits: Nanos, service: Nanos) {
        self.ended.take(waits, service);
    }

    /// The interval ends; so many workers have leaves that are up.
    pub(super) fn end(&mut self, now: Nanos, workers: u32) {
        let mut ended = std::mem::take(&mut self.ended);
        self.told.push(SliceDepths {
            at_ns: now.0,
            workers,
            tasks: ended.tasks(),
            slowdown_p99: ended.slowdown_p99(),
            response_p99_ns: ended.response_p99_ns(),
            ..SliceDepths::default()
        });
    }

    /// All intervals that have ended.
    pub(super) fn ended(self) -> Vec<SliceDepths> {
        self.told
    }
}
