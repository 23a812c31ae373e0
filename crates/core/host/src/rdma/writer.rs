//! Who writes into a server's memory: the switch, as the server's registration names it.

use sluice_wire::{Endpoint, Epoch, ServerId};

/// The other end of a server's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterEnd {
    /// The server's index there, which is that end's number.
    pub server: ServerId,
    /// The switch's life: another one counts its WRITEs anew.
    pub epoch: Epoch,
    pub switch: Endpoint,
    /// Whether it computes the iCRC, so that it must hold.
    pub icrc: bool,
}

impl WriterEnd {
    /// Whether a pair that was connected to this end has to be connected anew for that one. An unreliable
    /// pair goes on from whatever number comes, and answers nobody: only the writer's address counts, and
    /// what it computes.
    pub fn is_outdated_by(&self, to: &Self, reliable: bool) -> bool {
        if reliable { self != to } else { self.switch.ip != to.switch.ip || self.icrc != to.icrc }
    }
}
