//! Rain with a queue of a fixed size (ours): the simplest way to bound waits, and what a target is held
//! against. Whoever chooses the size has to know at which rate tokens come.
//!
//! It differs from a slice's own limit in what clients do: their shares follow the slice's limit, so a small
//! one makes them hold tasks back, and this one makes the switch refuse.

use sluice_wire::{Nanos, SliceId};

use super::Rain;
use super::limited::Limited;
use super::queue_limit::QueueLimit;
use crate::config::Config;
use crate::pipeline::Pass;

/// The most tasks that may wait in each slice.
#[derive(Debug)]
pub(crate) struct FixedLimit(u16);

impl QueueLimit for FixedLimit {
    #[inline]
    fn most(&mut self, _: &mut Pass, _: SliceId) -> u32 {
        self.0.into()
    }

    #[inline]
    fn refused(&mut self, _: SliceId) -> Option<Nanos> {
        None
    }

    #[inline]
    fn token_came(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: bool) {}

    #[inline]
    fn waits(&mut self, _: &mut Pass, _: Nanos, _: SliceId) -> Option<u64> {
        None
    }
}

/// Rain, with so many tasks at most in each slice's queue.
pub(crate) type SizedQueue = Limited<FixedLimit>;

impl SizedQueue {
    /// An empty switch.
    ///
    /// # Panics
    /// As [`Rain::new`].
    pub(crate) fn new(config: Config, queue: u16) -> Self {
        Self { rain: Rain::new(config), limit: FixedLimit(queue) }
    }
}
