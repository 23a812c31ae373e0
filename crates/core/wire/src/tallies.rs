//! The messages between agents and the controller about a slice at the end of each interval (Rain §3.3).
//!
//! Agents send tallies of their own workers, and each is told what the slice's workers on other servers
//! did. They are no packets and are sent rarely, so they may allocate.

use alloc::vec::Vec;

use crate::{SliceId, WorkerId};

/// The report of an agent on a slice's workers in one interval, or the sum over all agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceTally {
    pub slice: SliceId,
    /// How many workers are overloaded.
    pub overloads: u32,
    /// The sum of the idle shares of workers with an acceptable slowdown, in thousandths of a worker.
    pub idle_milli: u32,
    pub depths: Vec<(WorkerId, u8)>,
    /// Tasks that these workers ended.
    pub tasks: u64,
}

/// What a slice's workers on the servers of other agents did in the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceOthers {
    pub slice: SliceId,
    /// How many such workers serve the slice.
    pub workers: u32,
    /// For how many of them an agent has reported.
    pub heard: u32,
    /// The tasks that those workers ended.
    pub tasks: u64,
}

impl SliceTally {
    /// The tally of a slice of which nothing was reported yet.
    pub const fn new(slice: SliceId) -> Self {
        Self { slice, overloads: 0, idle_milli: 0, depths: Vec::new(), tasks: 0 }
    }
}
