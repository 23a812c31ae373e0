//! What limits how many tasks may wait in a slice's queue: the slice's row alone, or a target too
//! (`target`).
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

use sluice_wire::{Nanos, SliceId};

use crate::pipeline::Pass;
use crate::program::Circulating;

/// Limits how many tasks may wait in a slice's queue.
pub(super) trait QueueLimit {
    /// How many tasks may wait before a task of this class, if the slice's row allows as many; `target` is
    /// the row's.
    fn most(&mut self, pass: &mut Pass, slice: SliceId, target: Nanos, class: u8) -> u32;

    /// A task was refused because of this limit.
    fn refused(&mut self, slice: SliceId);

    /// A token has met the queue; `has_parked` if it found no task.
    fn token_came(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, has_parked: bool);

    /// A task is going to wait; `is_first` if no other task waits. May return a note to recirculate.
    fn waits(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        of: (SliceId, Nanos),
        is_first: bool,
    ) -> Option<Circulating>;
}

/// The limit of the slice's row, and no other.
#[derive(Debug)]
pub(super) struct RowLimit;

impl QueueLimit for RowLimit {
    #[inline(always)]
    fn most(&mut self, _: &mut Pass, _: SliceId, _: Nanos, _: u8) -> u32 {
        u32::MAX
    }

    #[inline(always)]
    fn refused(&mut self, _: SliceId) {}

    #[inline(always)]
    fn token_came(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) {}

    #[inline(always)]
    fn waits(&mut self, _: &mut Pass, _: Nanos, _: (SliceId, Nanos), _: bool) -> Option<Circulating> {
        None
    }
}
