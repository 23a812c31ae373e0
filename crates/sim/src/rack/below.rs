//! The fabric below a rack, where its testbed has one (HF²T, and Rain's packets across it): one world, one
//! clock.
//!
//! Each packet crosses the fabric as a frame of its own size, among the flows that hosts send each other.
//! The rack's switch is the first ToR switch: its pipeline lies behind a port of its own, without a limit,
//! and its servers are that ToR's hosts. Fabric and rack each have their events; what comes first happens
//! first. A packet has its turn from when it was sent, so that where nothing waits all happens as without a
//! fabric. WRITEs cross it, too, and a task whose WRITE has not come fetches its bytes. Left out: what is
//! fetched takes the way of an idle fabric, and marks mean nothing to the rack's packets.

use sluice_fabric::{FabricCounts, FabricError, FabricStep, HostId, Parcel};
use sluice_switch::WriteAhead;
use sluice_wire::Nanos;

use super::places::{Places, RackWorld};
use super::servers::{Servers, Written};
use crate::fabric::{JoinedFabric, fabric_gauges, frame_bytes, write_bytes};
use crate::stats::Gauges;
use crate::testbed::Testbed;
use crate::world::{Address, EventTurn, Id, Mail, PacketId, Reused};

/// A fabric and what of the rack's is on it.
#[derive(Debug)]
pub(super) struct Below {
    joined: JoinedFabric,
    places: Places,
    workers_each: u32,
    /// What a packet that goes past the pipeline takes in it.
    pass: Nanos,
    carried: Reused<Carried>,
    under_way: u32,
    opened: Option<Seen>,
    closed: Option<Gauges>,
    writes_lost: u64,
}

/// Something of the rack's that is under way.
#[derive(Clone, Copy, Debug)]
struct Carried {
    turn: EventTurn,
    from: Address,
    to: Address,
    what: Cargo,
}

#[derive(Clone, Copy, Debug)]
enum Cargo {
    Packet(PacketId),
    Write(Written),
}

/// What had been counted when the measured span began.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    fabric: FabricCounts,
    writes_lost: u64,
    awaited: u64,
    late: u64,
}

impl Below {
    /// A fabric with nobody's packets on it yet.
    pub(super) fn new(joined: JoinedFabric, places: Places, testbed: &Testbed) -> Self {
        let nothing = Carried {
            turn: EventTurn::default(),
            from: places.switch,
            to: places.switch,
            what: Cargo::Write(Written::default()),
        };
        Self {
            joined,
            places,
            workers_each: testbed.workers / u32::from(testbed.servers.count).max(1),
            pass: testbed.switch.pass,
            carried: Reused::new(nothing),
            under_way: 0,
            opened: None,
            closed: None,
            writes_lost: 0,
        }
    }

    /// A packet leaves then.
    pub(super) fn send(
        &mut self,
        world: &mut RackWorld,
        from: Address,
        to: Address,
        leaves: Nanos,
        packet: PacketId,
    ) {
        let bytes = frame_bytes(world.packets.get(packet));
        let is_past = from.at(0) == self.places.workers && to.at(0) == self.places.clients;
        let leaves = if is_past { leaves + self.pass } else { leaves };
        let turn = world.engine.turn();
        self.carry(leaves, bytes, Carried { turn, from, to, what: Cargo::Packet(packet) });
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
        let (turn, to) = (world.engine.turn(), servers.place(written.server));
        let what = Cargo::Write(written);
        self.carry(
            leaves,
            write_bytes(write.payload.len),
            Carried { turn, from: self.places.switch, to, what },
        );
    }

    /// What happens in the fabric until the rack's next event comes to pass: packets that come are entered
    /// into the rack's world. Gives how many packets were lost.
    pub(super) fn catch_up(
        &mut self,
        world: &mut RackWorld,
        servers: &mut Servers,
    ) -> Result<u64, FabricError> {
        let mut lost = 0;
        while self.joined.fabric.next_at() <= world.engine.next_at() && self.is_awaited(world) {
            match self.joined.fabric.step()? {
                Some(FabricStep::Due(flow)) => {
                    self.joined.fabric.expect(self.joined.flows.as_mut().and_then(Iterator::next))?;
                    self.joined.fabric.begin(flow);
                }
                Some(FabricStep::Came(parcel)) => self.came(world, servers, parcel),
                Some(FabricStep::Lost(parcel)) => lost += self.lost(world, parcel),
                Some(FabricStep::Ended(_) | FabricStep::Other) => {}
                None => break,
            }
        }
        Ok(lost)
    }

    /// Looks whether the measured span has begun, or is over.
    pub(super) fn looks(&mut self, is_open: bool, servers: &Servers) {
        match (is_open, self.opened) {
            (true, None) => {
                self.opened = Some(self.seen(servers));
                self.joined.fabric.forget_gaps();
            }
            (false, Some(_)) if self.closed.is_none() => self.closed = Some(self.read(servers)),
            _ => {}
        }
    }

    /// What it counted in the measured span.
    pub(super) fn gauges(&self, servers: &Servers) -> Gauges {
        self.closed.unwrap_or_else(|| self.read(servers))
    }

    fn carry(&mut self, leaves: Nanos, bytes: u32, carried: Carried) {
        let (from, to) = (self.host_of(carried.from), self.host_of(carried.to));
        let tag = self.carried.keep(&carried).number();
        self.under_way += 1;
        self.joined.fabric.carry(leaves, Parcel { from, to, bytes, tag });
    }

    fn host_of(&self, at: Address) -> HostId {
        let place = at.place();
        match at.at(0) {
            node if node == self.places.workers => {
                self.joined.hosts.servers[(place / self.workers_each) as usize]
            }
            node if node == self.places.clients => self.joined.hosts.clients[place as usize],
            _ => self.joined.hosts.switch,
        }
    }

    /// Whether anything of the rack's is still to happen: flows go on for ever.
    fn is_awaited(&self, world: &RackWorld) -> bool {
        self.under_way > 0 || world.engine.next_at() != Nanos(u64::MAX)
    }

    fn came(&mut self, world: &mut RackWorld, servers: &mut Servers, parcel: Parcel) {
        let Carried { turn, from, to, what } = self.takes(parcel);
        match what {
            Cargo::Packet(packet) => {
                world.engine.arrives(turn, self.joined.fabric.now(), to, Mail::Packet { from, packet });
            }
            Cargo::Write(written) => servers.landed(written),
        }
    }

    /// Says how many packets that were.
    fn lost(&mut self, world: &mut RackWorld, parcel: Parcel) -> u64 {
        match self.takes(parcel).what {
            Cargo::Packet(packet) => {
                world.packets.free(packet);
                1
            }
            Cargo::Write(_) => {
                self.writes_lost += 1;
                0
            }
        }
    }

    fn takes(&mut self, parcel: Parcel) -> Carried {
        self.under_way -= 1;
        self.carried.take(Id::of(parcel.tag))
    }

    fn seen(&self, servers: &Servers) -> Seen {
        let (awaited, late) = servers.awaited();
        Seen { fabric: self.joined.fabric.counts(), writes_lost: self.writes_lost, awaited, late }
    }

    fn read(&self, servers: &Servers) -> Gauges {
        let (now, then) = (self.seen(servers), self.opened.unwrap_or_default());
        let awaited = now.awaited - then.awaited;
        Gauges {
            writes_late: (awaited > 0).then(|| (now.late - then.late) as f64 / awaited as f64),
            writes_lost: Some((now.writes_lost - then.writes_lost) as f64),
            ..fabric_gauges(&now.fabric, &then.fabric, self.joined.fabric.gaps(), self.joined.round_trip)
        }
    }
}
