//! What a leaf tells the spine that it is linked with (Horus §3.4), and how each knows the other.

use sluice_wire::{Endpoint, Epoch, Generation, SliceId, WorkerId};

use super::Average;

/// What a spine writes as a task's queue when it took the leaf from its list of idle racks (the paper's
/// *idleSelected*); else that is the leaf's average load, in [`Average::bits`].
pub const IDLE_SELECTED: u32 = u32::MAX;

/// How a leaf is known to one of its spines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The spine.
    pub at: Endpoint,
    /// Its life.
    pub epoch: Epoch,
    /// The leaf's number there.
    pub leaf: WorkerId,
    /// The generation in which it has that number.
    pub generation: Generation,
}

/// What changed in a rack. A packet of its own on the chip, mirrored from the one that changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The life of the spine that it is for.
    pub epoch: Epoch,
    /// The leaf's number there.
    pub leaf: WorkerId,
    /// And in which generation.
    pub generation: Generation,
    /// Whose workers.
    pub pool: SliceId,
    /// What is new.
    pub news: News,
}

/// What is new in a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// There are idle workers (the paper's *idleAdd*).
    Idle,
    /// There are none any more (*idleRemove*).
    Busy,
    /// The mean queue of its workers (*loadUpdate*).
    Load(Average),
}

/// An update beside a pass's one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The spine.
    pub to: Endpoint,
    /// What it is told.
    pub update: Update,
}

impl Link {
    /// News of a pool's workers for this spine.
    pub(super) const fn tells(&self, pool: SliceId, news: News) -> Mirror {
        let update = Update { epoch: self.epoch, leaf: self.leaf, generation: self.generation, pool, news };
        Mirror { to: self.at, update }
    }
}
