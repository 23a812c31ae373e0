//! The fabric below a rack, where its testbed has one (HF²T, and Rain's packets across it): one world, one
//! clock.
//!
//! Each packet crosses the fabric as a frame of its own size, among the flows that hosts send each other.
//! The rack's switch is the first ToR switch: its pipeline lies behind a port of its own, without a limit,
//! and its servers are that ToR's hosts. WRITEs cross it, too, and a task whose WRITE has not come fetches
//! its bytes. Left out: what is fetched takes the way of an idle fabric, and marks mean nothing to the rack's
//! packets.

use sluice_fabric::{FabricError, HostId};
use sluice_switch::WriteAhead;
use sluice_wire::Nanos;

use super::places::{Places, RackWorld};
use super::servers::{Servers, Written};
use crate::events::{Address, PacketId};
use crate::fabric::{Crossing, JoinedFabric, Leg, write_bytes};
use crate::stats::Gauges;
use crate::testbed::{RackHosts, Testbed};

/// A fabric and what of the rack's is on it.
#[derive(Debug)]
pub(super) struct Below {
    crossing: Crossing<Written>,
    hosts: RackHosts,
    places: Places,
    workers_each: u32,
    /// What a packet that goes past the pipeline takes in it.
    pass: Nanos,
    opened: Option<Seen>,
    closed: Option<Gauges>,
    writes_lost: u64,
}

/// What had been counted when the measured span began.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    writes_lost: u64,
    awaited: u64,
    late: u64,
}

impl Below {
    /// The fabric of a testbed that has one; an error is one line that says what to change.
    pub(super) fn of(testbed: &Testbed, seed: u64, replication: u32) -> Result<Option<Self>, String> {
        let Some((fabric, _)) = testbed.background() else { return Ok(None) };
        let hosts = fabric.rack(testbed.servers.count, testbed.clients)?;
        let joined = JoinedFabric::over(&hosts.topology, testbed, seed, replication)?;
        Ok(joined.map(|joined| Self::new(joined, hosts, testbed)))
    }

    /// A fabric with nobody's packets on it yet.
    pub(super) fn new(joined: JoinedFabric, hosts: RackHosts, testbed: &Testbed) -> Self {
        Self {
            crossing: Crossing::new(joined),
            hosts,
            places: Places::ALONE,
            workers_each: testbed.workers / u32::from(testbed.servers.count).max(1),
            pass: testbed.switch.pass,
            opened: None,
            closed: None,
            writes_lost: 0,
        }
    }

    /// A packet leaves then. Apart from what sends it, which is copied to many places.
    #[inline(never)]
    pub(super) fn send(
        &mut self,
        world: &mut RackWorld,
        from: Address,
        to: Address,
        leaves: Nanos,
        packet: PacketId,
    ) {
        let is_past = from.at(0) == self.places.workers && to.at(0) == self.places.clients;
        let leaves = if is_past { leaves + self.pass } else { leaves };
        self.crossing.send(world, self.leg(from, to), leaves, packet);
    }

    /// A copy of a waiting task leaves for its server then.
    pub(super) fn write(
        &mut self,
        world: &mut RackWorld,
        servers: &Servers,
        leaves: Nanos,
        written: Written,
        write: &WriteAhead,
    ) {
        let leg = self.leg(self.places.switch, servers.place(written.server));
        self.crossing.send_other(world, leg, leaves, (write_bytes(write.payload.len), written));
    }

    /// What happens in the fabric until the rack's next event comes to pass. Gives how many packets were
    /// lost.
    pub(super) fn catch_up(
        &mut self,
        world: &mut RackWorld,
        servers: &mut Servers,
    ) -> Result<u64, FabricError> {
        let lost = &mut self.writes_lost;
        self.crossing.catch_up(world, |written, came| {
            if came {
                servers.landed(written);
            } else {
                *lost += 1;
            }
        })
    }

    /// Looks whether the measured span has begun, or is over.
    pub(super) fn looks(&mut self, is_open: bool, servers: &Servers) {
        match (is_open, self.opened) {
            (true, None) => {
                self.opened = Some(self.seen(servers));
                self.crossing.opens();
            }
            (false, Some(_)) if self.closed.is_none() => self.closed = Some(self.read(servers)),
            _ => {}
        }
    }

    /// What it counted in the measured span.
    pub(super) fn gauges(&self, servers: &Servers) -> Gauges {
        self.closed.unwrap_or_else(|| self.read(servers))
    }

    fn leg(&self, from: Address, to: Address) -> Leg {
        Leg { ends: [from, to], hosts: [from, to].map(|at| self.host_of(at)) }
    }

    fn host_of(&self, at: Address) -> HostId {
        let place = at.place();
        match at.at(0) {
            node if node == self.places.workers => self.hosts.servers[(place / self.workers_each) as usize],
            node if node == self.places.clients => self.hosts.clients[place as usize],
            _ => self.hosts.switch,
        }
    }

    fn seen(&self, servers: &Servers) -> Seen {
        let (awaited, late) = servers.awaited();
        Seen { writes_lost: self.writes_lost, awaited, late }
    }

    fn read(&self, servers: &Servers) -> Gauges {
        let (now, then) = (self.seen(servers), self.opened.unwrap_or_default());
        let awaited = now.awaited - then.awaited;
        Gauges {
            writes_late: (awaited > 0).then(|| (now.late - then.late) as f64 / awaited as f64),
            writes_lost: Some((now.writes_lost - then.writes_lost) as f64),
            ..self.crossing.gauges()
        }
    }
}
