//! What limits how many tasks may wait in a slice's queue: the slice's row alone, or a target too
//! (`target`).
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

use sluice_wire::{Nanos, SliceId};

use crate::pipeline::Pass;
use crate::program::Circulating;

/// Limits how many tasks may wait in a slice's queue.
pub(super) trait QueueLimit {
    /// How many tasks may wait in the slice, if its row allows as many.
    fn most(&mut self, pass: &mut Pass, slice: SliceId) -> u32;

    /// The longest wait in the switch that is worth having; zero if nothing but the row limits the queue.
    fn target(&self) -> Nanos;

    /// A token has met the queue; `has_parked` if it found no task.
    fn token_came(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, has_parked: bool);

    /// A task is going to wait; `is_first` if no other task waits. May return a note to recirculate.
    fn waits(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, is_first: bool) -> Option<Circulating>;
}

/// The limit of the slice's row, and no other.
#[derive(Debug)]
pub(super) struct RowLimit;

impl QueueLimit for RowLimit {
    #[inline(always)]
    fn most(&mut self, _: &mut Pass, _: SliceId) -> u32 {
        u32::MAX
    }

    #[inline(always)]
    fn target(&self) -> Nanos {
        Nanos(0)
    }

    #[inline(always)]
    fn token_came(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) {}

    #[inline(always)]
    fn waits(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) -> Option<Circulating> {
        None
    }
}
