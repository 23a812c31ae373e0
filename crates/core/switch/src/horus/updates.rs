//! What a leaf tells the spine that it is linked with (Horus §3.4), and how each knows the other.

use sluice_wire::{Endpoint, Epoch, Generation, RackNews, SliceId, Update, WorkerId};

use crate::program::Mirror;

/// What a spine writes as a task's queue when it took the leaf from its list of idle racks (the paper's
/// *idleSelected*); else that is the leaf's average load, in [`Average::bits`](super::Average::bits).
pub const IDLE_SELECTED: u32 = u32::MAX;

/// How a leaf is known to one of its spines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineLink {
    pub at: Endpoint,
    pub epoch: Epoch,
    /// The leaf's number there.
    pub leaf: WorkerId,
    /// The generation in which it has that number.
    pub generation: Generation,
}

impl SpineLink {
    /// What is new of a pool's workers, for this spine.
    pub(crate) const fn tells(&self, pool: SliceId, news: RackNews) -> Mirror {
        let update = Update { epoch: self.epoch, leaf: self.leaf, generation: self.generation, pool, news };
        Mirror { to: self.at, update }
    }
}
