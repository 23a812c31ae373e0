//! The fabric below racks, if their testbed has one (HF²T, with Rain's or Horus' packets across it): one
//! world, one clock.
//!
//! Each packet crosses the fabric as a frame of its own size, among the flows that hosts send each other.
//! The switch of a rack without spines is the first ToR switch, and its servers are that switch's hosts.
//! The pipelines of switches are behind ports of their own, without limits. WRITEs cross the fabric too,
//! and a worker fetches the bytes of a task whose WRITE has not arrived. A reply that does not enter a
//! pipeline goes over a random spine, and takes the time of a pass in each switch. Left out: fetched bytes
//! take the delay of an idle fabric, and racks' packets ignore congestion marks.

use sluice_events::{Address, PacketId};
use sluice_fabric::{FabricError, HostId};
use sluice_stats::Gauges;
use sluice_switch::WriteAhead;
use sluice_testbed::{RackHosts, Testbed, TierHosts};
use sluice_wire::Nanos;

use super::places::{CLIENTS, LEAVES, RackWorld, SPINES, WORKERS};
use super::servers::{Servers, WrittenCopy};
use crate::fabric::{FabricTransport, JoinedFabric, PacketEnds, write_bytes};

/// The hosts of a fabric at which the nodes of racks are.
#[derive(Debug)]
pub(super) struct FabricHosts {
    /// By spine; empty for a rack without spines.
    spines: Vec<HostId>,
    leaves: Vec<HostId>,
    /// The hosts of workers; each host has `workers_each` of them.
    workers: Vec<HostId>,
    workers_each: u32,
    clients: Vec<HostId>,
}

impl FabricHosts {
    /// The hosts of a rack without spines.
    pub(super) fn of_rack(hosts: RackHosts, workers_each: u32) -> Self {
        let RackHosts { servers: workers, clients, switch, .. } = hosts;
        Self { spines: Vec::new(), leaves: vec![switch], workers, workers_each, clients }
    }

    /// The hosts of racks below spines.
    pub(super) fn of_tiers(hosts: TierHosts) -> Self {
        let TierHosts { spines, leaves, workers, clients, .. } = hosts;
        Self { spines, leaves, workers, workers_each: 1, clients }
    }

    fn at(&self, at: Address) -> HostId {
        let place = at.place() as usize;
        match at.at(0) {
            SPINES => self.spines[place],
            LEAVES => self.leaves[place],
            WORKERS => self.workers[place / self.workers_each as usize],
            _ => self.clients[place],
        }
    }
}

/// A fabric, and the racks' traffic on it.
#[derive(Debug)]
pub(super) struct RackFabric {
    crossing: FabricTransport<WrittenCopy>,
    hosts: FabricHosts,
    /// The time in a switch of a packet that does not enter its pipeline.
    pass: Nanos,
    opened: Option<CountsAtStart>,
    closed: Option<Gauges>,
    writes_lost: u64,
}

/// The counts when the measured span began.
#[derive(Clone, Copy, Debug, Default)]
struct CountsAtStart {
    writes_lost: u64,
    awaited: u64,
    late: u64,
}

impl RackFabric {
    /// The fabric of a testbed, if it has one; an error is one line that says what to change.
    pub(super) fn of(testbed: &Testbed, seed: u64, replication: u32) -> Result<Option<Self>, String> {
        let Some((fabric, _)) = testbed.background() else { return Ok(None) };
        let (topology, hosts) = if testbed.racks.are_none() {
            let hosts = fabric.rack(testbed.servers.count, testbed.clients)?;
            let workers_each = testbed.workers / u32::from(testbed.servers.count).max(1);
            (hosts.topology.clone(), FabricHosts::of_rack(hosts, workers_each))
        } else {
            let Some(hosts) = testbed.tiers() else { return Ok(None) };
            let hosts = hosts?;
            (hosts.topology.clone(), FabricHosts::of_tiers(hosts))
        };
        let joined = JoinedFabric::over(&topology, testbed, seed, replication)?;
        Ok(joined.map(|joined| Self::new(joined, hosts, testbed.switch.pass)))
    }

    /// A fabric without traffic of racks.
    pub(super) fn new(joined: JoinedFabric, hosts: FabricHosts, pass: Nanos) -> Self {
        let crossing = FabricTransport::new(joined);
        Self { crossing, hosts, pass, opened: None, closed: None, writes_lost: 0 }
    }

    /// A packet leaves at `leaves`. Kept apart from its callers, which are inlined at many places.
    #[inline(never)]
    pub(super) fn send(
        &mut self,
        world: &mut RackWorld,
        from: Address,
        to: Address,
        leaves: Nanos,
        packet: PacketId,
    ) {
        let spine = u64::from(!self.hosts.spines.is_empty());
        let past = match (from.at(0), to.at(0)) {
            (WORKERS, CLIENTS) => 1 + spine,
            (LEAVES, CLIENTS) => spine,
            _ => 0,
        };
        self.crossing.send(world, self.packet_ends(from, to), leaves + self.pass.times(past), packet);
    }

    /// A copy of a waiting task leaves for its server at `leaves`.
    pub(super) fn write(
        &mut self,
        world: &mut RackWorld,
        servers: &Servers,
        leaves: Nanos,
        written: WrittenCopy,
        write: &WriteAhead,
    ) {
        let leg = self.packet_ends(LEAVES, servers.place(written.server));
        self.crossing.send_other(world, leg, leaves, (write_bytes(write.payload.len), written));
    }

    /// Carries out the fabric's events up to the racks' next event. Returns how many packets were lost.
    pub(super) fn catch_up(
        &mut self,
        world: &mut RackWorld,
        servers: &mut Servers,
    ) -> Result<u64, FabricError> {
        let lost = &mut self.writes_lost;
        self.crossing.catch_up(world, |written, came| {
            if came {
                servers.on_write(written);
            } else {
                *lost += 1;
            }
        })
    }

    /// Notes the counts when the measured span begins, and when it ends.
    pub(super) fn looks(&mut self, is_open: bool, servers: &Servers) {
        match (is_open, self.opened) {
            (true, None) => {
                self.opened = Some(self.counts(servers));
                self.crossing.opens();
            }
            (false, Some(_)) if self.closed.is_none() => self.closed = Some(self.read(servers)),
            _ => {}
        }
    }

    /// The gauges of the measured span.
    pub(super) fn gauges(&self, servers: &Servers) -> Gauges {
        self.closed.unwrap_or_else(|| self.read(servers))
    }

    fn packet_ends(&self, from: Address, to: Address) -> PacketEnds {
        PacketEnds { ends: [from, to], hosts: [from, to].map(|at| self.hosts.at(at)) }
    }

    fn counts(&self, servers: &Servers) -> CountsAtStart {
        let (awaited, late) = servers.awaited();
        CountsAtStart { writes_lost: self.writes_lost, awaited, late }
    }

    fn read(&self, servers: &Servers) -> Gauges {
        if !self.hosts.spines.is_empty() {
            return self.crossing.gauges();
        }
        let (now, then) = (self.counts(servers), self.opened.unwrap_or_default());
        let awaited = now.awaited - then.awaited;
        Gauges {
            writes_late: (awaited > 0).then(|| (now.late - then.late) as f64 / awaited as f64),
            writes_lost: Some((now.writes_lost - then.writes_lost) as f64),
            ..self.crossing.gauges()
        }
    }
}
