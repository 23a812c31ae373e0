//! What befalls packets, drawn for each pool from a stream of its own: what one pool sends decides nothing
//! about another's packets.

use sluice_wire::Packet;

use crate::events::{Copies, FaultInjector, Transit};
use crate::rack::packet_loss::PacketLoss;
use crate::testbed::Faults;

/// The pools' streams.
#[derive(Debug)]
pub(super) struct PoolLoss {
    each: Vec<PacketLoss>,
    /// Whose packet is sent next.
    pool: usize,
}

impl PoolLoss {
    /// Of pools with these seeds; `None` if nothing ever happens to a packet.
    pub(super) fn new(
        faults: &Faults,
        seeds: impl Iterator<Item = u64>,
        replication: u32,
    ) -> Option<Box<Self>> {
        let each: Option<_> = seeds.map(|seed| PacketLoss::new(faults, seed, replication)).collect();
        each.map(|each| Box::new(Self { each, pool: 0 }))
    }

    /// The next packets are this pool's.
    pub(super) const fn turn_to(&mut self, pool: usize) {
        self.pool = pool;
    }
}

impl FaultInjector for PoolLoss {
    fn is_any(&self) -> bool {
        true
    }

    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies {
        FaultInjector::copies(&mut self.each[self.pool], transit, packet)
    }
}
