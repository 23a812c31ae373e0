//! The writer into a server's memory: the switch, as the server's registration names it.

use sluice_wire::{Endpoint, Epoch, ServerId};

/// The other end of a server's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterEnd {
    /// The server's index in the switch. It is also the queue pair's number at the switch.
    pub server: ServerId,
    /// The switch's life: a restarted switch numbers its WRITEs anew.
    pub epoch: Epoch,
    pub switch: Endpoint,
    /// Whether the switch computes the iCRC; if so, it must be right.
    pub icrc: bool,
}

impl WriterEnd {
    /// Whether a pair that was connected to this end must be connected anew for the end `to`. An unreliable
    /// pair continues from any sequence number and sends no answers: for it, only the writer's address and
    /// the iCRC setting matter.
    pub fn is_outdated_by(&self, to: &Self, reliable: bool) -> bool {
        if reliable { self != to } else { self.switch.ip != to.switch.ip || self.icrc != to.icrc }
    }
}
