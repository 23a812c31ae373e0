//! The fabric below a datacenter, where its testbed has one (Horus over HF²T's fabric): each packet crosses
//! it as a frame of its own size, among the flows that hosts send each other.
//!
//! The pipelines of leaves and spines lie behind ports of their own at the fabric's switches, without a
//! limit. A reply that goes past them takes any spine, and as long as a pass in each pipeline. Marks mean
//! nothing to a datacenter's packets.

use core::convert::Infallible;

use sluice_fabric::{FabricError, HostId};
use sluice_wire::Nanos;

use super::places::{CLIENTS, LEAVES, SPINES, WORKERS};
use crate::events::{Address, PacketId, World};
use crate::fabric::{Crossing, JoinedFabric, Leg};
use crate::stats::Gauges;
use crate::testbed::{Testbed, TierHosts};

/// A fabric and where the nodes of a datacenter are on it.
#[derive(Debug)]
pub(super) struct TiersBelow {
    crossing: Crossing<Infallible>,
    hosts: TierHosts,
    /// What a packet that goes past a pipeline takes in it.
    pass: Nanos,
    is_open: bool,
    closed: Option<Gauges>,
}

impl TiersBelow {
    /// The fabric of a testbed that has one; an error is one line that says what to change.
    pub(super) fn of(testbed: &Testbed, seed: u64, replication: u32) -> Result<Option<Self>, String> {
        let Some(hosts) = testbed.tiers() else { return Ok(None) };
        let hosts = hosts?;
        let joined = JoinedFabric::over(&hosts.topology, testbed, seed, replication)?;
        Ok(joined.map(|joined| Self::new(joined, hosts, testbed.switch.pass)))
    }

    /// A fabric with nobody's packets on it yet.
    pub(super) fn new(joined: JoinedFabric, hosts: TierHosts, pass: Nanos) -> Self {
        Self { crossing: Crossing::new(joined), hosts, pass, is_open: false, closed: None }
    }

    /// A packet leaves then.
    pub(super) fn send<C, W>(
        &mut self,
        world: &mut World<C, W>,
        from: Address,
        to: Address,
        leaves: Nanos,
        packet: PacketId,
    ) {
        let past = match (from.at(0), to.at(0)) {
            (WORKERS, CLIENTS) => 2,
            (LEAVES, CLIENTS) => 1,
            _ => 0,
        };
        let leg = Leg { ends: [from, to], hosts: [from, to].map(|at| self.host_of(at)) };
        self.crossing.send(world, leg, leaves + self.pass.times(past), packet);
    }

    /// What happens in the fabric until the datacenter's next event comes to pass. Gives how many packets
    /// were lost.
    pub(super) fn catch_up<C, W>(
        &mut self,
        world: &mut World<C, W>,
        is_open: bool,
    ) -> Result<u64, FabricError> {
        match (is_open, self.is_open) {
            (true, false) => {
                self.crossing.opens();
                self.is_open = true;
            }
            (false, true) if self.closed.is_none() => self.closed = Some(self.crossing.gauges()),
            _ => {}
        }
        self.crossing.catch_up(world, |nothing, _| match nothing {})
    }

    /// What it counted in the measured span.
    pub(super) fn gauges(&self) -> Gauges {
        self.closed.unwrap_or_else(|| self.crossing.gauges())
    }

    fn host_of(&self, at: Address) -> HostId {
        let (hosts, place) = (&self.hosts, at.place() as usize);
        match at.at(0) {
            SPINES => hosts.spines[place],
            LEAVES => hosts.leaves[place],
            WORKERS => hosts.workers[place],
            _ => hosts.clients[place],
        }
    }
}
