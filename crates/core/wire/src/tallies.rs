//! What agents and the controller tell each other of a slice at each interval's end (Rain §3.3).
//!
//! Agents send tallies of their own workers; each hears what the slice's workers on other servers did. These
//! are no packets and go rarely, so that they alone in this crate may allocate.

use alloc::vec::Vec;

use crate::{SliceId, WorkerId};

/// What an agent says of a slice's workers in one interval, or all agents together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceTally {
    pub slice: SliceId,
    /// Workers that are overloaded.
    pub overloads: u32,
    /// The idle shares of workers whose slowdown is as it should be, in thousandths of a worker.
    pub idle_milli: u32,
    /// The workers and their depths.
    pub depths: Vec<(WorkerId, u8)>,
    /// Tasks that they ended.
    pub tasks: u64,
}

/// What the workers of a slice that belong to other servers than an agent's did in its last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceOthers {
    pub slice: SliceId,
    /// How many of them serve it.
    pub workers: u32,
    /// How many of them other agents have just spoken for.
    pub heard: u32,
    /// The tasks that those ended.
    pub tasks: u64,
}

impl SliceTally {
    /// A slice of which nothing has been said yet.
    pub const fn new(slice: SliceId) -> Self {
        Self { slice, overloads: 0, idle_milli: 0, depths: Vec::new(), tasks: 0 }
    }
}
