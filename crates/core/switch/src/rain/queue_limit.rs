//! What limits how many tasks may wait in a slice's queue: the slice's row alone, or a target too
//! (`target`).
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

use core::fmt::Debug;

use sluice_wire::tables::SliceRow;
use sluice_wire::{Nanos, SliceId};

use crate::pipeline::Pass;

/// Limits how many tasks may wait in a slice's queue.
pub(crate) trait QueueLimit: Debug + Send {
    /// How many tasks may wait, if the slice's row allows as many.
    fn most(&mut self, pass: &mut Pass, slice: SliceId) -> u32;

    /// How many tasks may already wait when a task of this class comes, if `most` is the slice's limit.
    #[inline(always)]
    fn before_class(&self, most: u32, _class: u8) -> u32 {
        most
    }

    /// A task of the slice is refused because of this limit. Returns the target that its client is told;
    /// `None` if the queue counts as full.
    fn refused(&mut self, slice: SliceId) -> Option<Nanos>;

    /// A token has met the queue; `has_parked` if it found no task.
    fn token_came(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, has_parked: bool);

    /// A task is going to wait in the slice. May return what a note shall say that recirculates.
    fn waits(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId) -> Option<u64>;

    /// A note came round that says what a window counted in the slice.
    fn measured(&mut self, _pass: &mut Pass, _: SliceId, _counted: u32) {}

    /// The controller wrote a slice's row over the row `_before`.
    fn row_set(&mut self, _: SliceId, _before: &SliceRow, _row: &SliceRow) {}

    /// Called by the control software: the limit of a slice as measured, and how many tasks it refused as
    /// busy.
    fn shown(&self, _slice: usize) -> (Option<u32>, u64) {
        (None, 0)
    }
}

/// The limit of the slice's row, and no other.
#[derive(Debug)]
pub(crate) struct RowLimit;

impl QueueLimit for RowLimit {
    #[inline(always)]
    fn most(&mut self, _: &mut Pass, _: SliceId) -> u32 {
        u32::MAX
    }

    #[inline(always)]
    fn refused(&mut self, _: SliceId) -> Option<Nanos> {
        None
    }

    #[inline(always)]
    fn token_came(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) {}

    #[inline(always)]
    fn waits(&mut self, _: &mut Pass, _: Nanos, _: SliceId) -> Option<u64> {
        None
    }
}
