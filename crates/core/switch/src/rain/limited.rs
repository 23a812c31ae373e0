//! Rain with another limit on waiting tasks beside the slices' rows: a target's, or a fixed one.
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

use sluice_wire::tables::{SliceRow, SliceState};
use sluice_wire::{Nanos, Rank, SliceId, Sweep};

use super::queue_limit::QueueLimit;
use super::{Rain, ReturningToken};
use crate::front::{Entering, Front, Granted, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;

/// Rain, and what else limits its queues.
#[derive(Debug)]
pub(crate) struct Limited<L> {
    pub(super) rain: Rain,
    pub(super) limit: L,
}

impl<L: QueueLimit> Limited<L> {
    /// Kept apart, so that a program without classes does not pay for them.
    #[inline(never)]
    fn token_among_classes(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        self.rain.token_of::<true>(pass, now, slice, (granted, rank), &mut None, &mut self.limit)
    }
}

impl<L: QueueLimit> Scheduler for Limited<L> {
    const NAME: &'static str = Rain::NAME;

    #[inline]
    fn front(&self) -> &Front {
        &self.rain.front
    }

    #[inline]
    fn front_mut(&mut self) -> &mut Front {
        &mut self.rain.front
    }

    #[inline(always)]
    fn token(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        if self.rain.memory.tasks.are_classed() {
            return self.token_among_classes(pass, now, slice, granted, rank);
        }
        self.rain.token_of::<false>(pass, now, slice, (granted, rank), &mut None, &mut self.limit)
    }

    #[inline(always)]
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        self.rain.task_of(pass, now, task, &mut None, &mut self.limit)
    }

    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        if ReturningToken::read(memo).is_some() {
            return match self.rain.returning(memo) {
                Ok((slice, granted, rank)) => self.token(pass, now, slice, granted, rank),
                Err(refusal) => Verdict::Drop(refusal),
            };
        }
        self.limit.measured(pass, SliceId((memo >> 32) as u16), memo as u32);
        Verdict::Drop(Refusal::LimitMeasured)
    }

    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.rain.sweep(pass, now, sweep, memo)
    }

    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        self.rain.engine.as_mut()
    }

    fn slice_set(&mut self, slice: SliceId, before: &SliceRow, row: &SliceRow) {
        self.limit.row_set(slice, before, row);
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let (measured_limit, refused_busy) = self.limit.shown(slice);
        SliceState { measured_limit, refused_busy, ..self.rain.slice_state(slice) }
    }

    fn waiting(&self) -> u32 {
        Scheduler::waiting(&self.rain)
    }

    fn parked(&self, slice: SliceId) -> Parked {
        Scheduler::parked(&self.rain, slice)
    }
}
