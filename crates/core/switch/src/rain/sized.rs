//! Rain with a queue of a fixed size (ours): the simplest way to bound waits, and what a target is held
//! against. Whoever chooses the size has to know at which rate tokens come.
//!
//! It differs from a slice's own limit in what clients do: their shares follow the slice's limit, so a small
//! one makes them hold tasks back, and this one makes the switch refuse.

use sluice_wire::tables::SliceState;
use sluice_wire::{Nanos, Rank, SliceId, Sweep};

use super::Rain;
use super::queue_limit::QueueLimit;
use crate::config::Config;
use crate::front::{Entering, Front, Granted, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Circulating, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;

/// The most tasks that may wait in each slice.
#[derive(Debug)]
struct FixedLimit(u16);

impl QueueLimit for FixedLimit {
    #[inline]
    fn most(&mut self, _: &mut Pass, _: SliceId, _: Nanos, _: u8) -> u32 {
        self.0.into()
    }

    #[inline]
    fn refused(&mut self, _: (SliceId, Nanos)) -> Option<Nanos> {
        None
    }

    #[inline]
    fn token_came(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) {}

    #[inline]
    fn waits(&mut self, _: &mut Pass, _: Nanos, _: (SliceId, Nanos)) -> Option<Circulating> {
        None
    }
}

/// Rain, with so many tasks at most in each slice's queue.
#[derive(Debug)]
pub(crate) struct SizedQueue {
    rain: Rain,
    limit: FixedLimit,
}

impl SizedQueue {
    /// An empty switch.
    ///
    /// # Panics
    /// As [`Rain::new`].
    pub(crate) fn new(config: Config, queue: u16) -> Self {
        Self { rain: Rain::new(config), limit: FixedLimit(queue) }
    }
}

impl Scheduler for SizedQueue {
    const NAME: &'static str = Rain::NAME;

    #[inline]
    fn front(&self) -> &Front {
        &self.rain.front
    }

    #[inline]
    fn front_mut(&mut self) -> &mut Front {
        &mut self.rain.front
    }

    #[inline]
    fn token(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        self.rain.token_of::<false>(pass, now, slice, (granted, rank), &mut None, &mut self.limit)
    }

    #[inline]
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        self.rain.task_of(pass, now, task, &mut None, &mut self.limit)
    }

    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.rain.sweep(pass, now, sweep, memo)
    }

    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        self.rain.engine.as_mut()
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        self.rain.slice_state(slice)
    }

    fn waiting(&self) -> u32 {
        Scheduler::waiting(&self.rain)
    }

    fn parked(&self, slice: SliceId) -> Parked {
        Scheduler::parked(&self.rain, slice)
    }
}
