//! What a leaf tells the spine of its pool (Horus §3.4), and the numbers by which the two know each other.

use sluice_wire::{Endpoint, Epoch, Generation, RackNews, SliceId, Update, WorkerId};

use crate::program::Mirror;

/// The queue that a spine writes in a task's DISPATCH when it took the leaf from its list of idle racks
/// (the paper's *idleSelected*). Otherwise it writes the leaf's average load, in 1/256 of a task.
pub const IDLE_SELECTED: u16 = u16::MAX;

/// The address of a spine, and the numbers by which it knows a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineLink {
    pub at: Endpoint,
    pub epoch: Epoch,
    /// The leaf's number at the spine.
    pub leaf: WorkerId,
    /// The generation in which the leaf has that number.
    pub generation: Generation,
}

impl SpineLink {
    /// The UPDATE with this news of a pool, for this spine.
    pub(crate) const fn tells(&self, pool: SliceId, news: RackNews) -> Mirror {
        let update = Update { epoch: self.epoch, leaf: self.leaf, generation: self.generation, pool, news };
        Mirror { to: self.at, update }
    }
}
