//! The servers: registered memory behind the real endpoint, and how they fail.
//!
//! What the switch writes are real packets, sealed for the way from it to the server, and some are changed on
//! that way. Each copy goes through `host::rdma`, which says where its bytes go; nothing else writes a slot.
//! In half of the seeds pairs are reliable, and their NAKs travel back like all packets.
//!
//! How they register is in `enlisting`.

mod writes;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sluice_control::RingOffer;
use sluice_events::dice::Dice;
use sluice_host::rdma::{Endpoint, Mtu, PairSpec, PairState, RegionId, RegionSpec, WriterEnd};
use sluice_nodes::names;
use sluice_wire::roce::{PORT, Path, Transport};
use sluice_wire::tables::RingRow;
use sluice_wire::{Handle, Psn, Qpn, Rkey, SLOT_HEAD_BYTES, ServerId, SliceId, TaskId, read_slot};

use super::hosts::ControllerSession;
use super::oracle::Life;
use super::pieces::FIRST_BYTES;
use super::scenario::Scenario;

/// Slices of the switch.
const SLICES: u16 = 2;
/// A task's id and first packet, in whole words.
const SLOT_BYTES: usize = (SLOT_HEAD_BYTES + FIRST_BYTES as usize).next_multiple_of(8);
/// What a server says that one WRITE may have.
pub(super) const MTU: Mtu = Mtu::B2048;
/// What lies between two rings' addresses.
const RING_SHIFT: u32 = 32;

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFailure {
    /// The process is gone, and its memory.
    Crash,
    /// It says that it leaves, and is gone.
    Leave,
    /// A new life of it begins.
    Back,
    /// Someone writes where nobody may.
    Intrusion,
    /// The process stands still: what is written meanwhile is in memory once it goes on. Its workers are
    /// processes of their own.
    Stall,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) nodes: Vec<ServerNode>,
    pub(super) dice: Dice,
    pub(super) slots: u32,
    pub(super) reliable: bool,
    /// Workers of a server.
    pub(super) workers: usize,
}

/// A server's process, if it lives.
#[derive(Debug)]
pub(super) struct ServerNode {
    pub(super) index: usize,
    lives_before: u32,
    endpoint: Endpoint,
    /// Zero while it is down.
    pub(super) life: Life,
    pub(super) session: ControllerSession,
    /// Its queue pair, and the number that this expects first.
    pub(super) qpn: Qpn,
    pub(super) first: Psn,
    pub(super) connected: Option<WriterEnd>,
    /// Its row at the switch, as the controller last said.
    pub(super) row: Option<ServerId>,
    /// The rings that it has told the controller of.
    pub(super) offers: Vec<RingOffer>,
    rings: Vec<(RegionId, SliceId)>,
    memory: HashMap<(SliceId, usize), Vec<u8>>,
    /// WRITEs in a row that were not the next when nothing was lost any more.
    behind: u32,
}

impl Servers {
    pub(super) fn new(seed: u64, scenario: &Scenario) -> Self {
        let mut dice = Dice::named(seed, "servers", 0);
        let reliable = dice.chance(500);
        let count = Self::count(scenario);
        let nodes =
            (0..usize::from(count)).map(|index| ServerNode::new(index, scenario.ring_slots)).collect();
        let workers = scenario.workers_per_server();
        Self { nodes, dice, slots: scenario.ring_slots, reliable, workers }
    }

    pub(super) fn count(scenario: &Scenario) -> u16 {
        if scenario.writes_ahead {
            scenario.workers.div_ceil(scenario.workers_per_server()) as u16
        } else {
            0
        }
    }

    /// The name of a worker's server; empty, if nothing is written ahead.
    pub(super) fn name_for(&self, worker: usize) -> String {
        self.nodes.get(worker / self.workers).map_or_else(String::new, ServerNode::name)
    }

    /// What the slot of this ticket holds: whose it is, and what its bytes consist of.
    pub(super) fn slot(&self, worker: usize, slice: SliceId, ticket: u32) -> Option<(TaskId, Handle)> {
        let place = (ticket & (self.slots - 1)) as usize;
        let (task, bytes) = read_slot(self.nodes[worker / self.workers].memory.get(&(slice, place))?)?;
        Some((task, Handle(u32::from_be_bytes(*bytes.first_chunk()?))))
    }

    /// Whether nothing but the network can keep a WRITE from a worker's server: a reliable pair waits for
    /// nothing.
    pub(super) fn takes(&self, worker: usize) -> bool {
        let node = &self.nodes[worker / self.workers];
        node.lives() && !self.reliable
    }
}

impl ServerNode {
    /// A server that is down.
    fn new(index: usize, slots: u32) -> Self {
        Self::after(index, 0, slots)
    }

    /// The next life of a server, before it begins.
    fn after(index: usize, lives_before: u32, slots: u32) -> Self {
        let mut endpoint = Endpoint::new();
        let rings = (0..SLICES).map(|slice| {
            let rkey = rkey(index, lives_before, slice);
            let spec = RegionSpec { rkey, address: ring_address(slice), bytes: slots as usize * SLOT_BYTES };
            (endpoint.register(spec).expect("two regions with keys of their own"), SliceId(slice))
        });
        Self {
            rings: rings.collect(),
            index,
            lives_before,
            endpoint,
            life: 0,
            session: ControllerSession::default(),
            qpn: Qpn(16),
            first: Psn::new(0),
            connected: None,
            row: None,
            offers: Vec::new(),
            memory: HashMap::new(),
            behind: 0,
        }
    }

    /// The process is gone, and its memory. No later life uses a pair's number again.
    pub(super) fn end(&mut self, slots: u32) {
        *self = Self { qpn: self.qpn, ..Self::after(self.index, self.lives_before + 1, slots) };
    }

    pub(super) const fn lives(&self) -> bool {
        self.life != 0
    }

    pub(super) fn name(&self) -> String {
        names::server(self.index)
    }

    /// Opens a pair that nothing that is still on its way was sent to.
    pub(super) fn connect(&mut self, to: WriterEnd, reliable: bool, first: Psn) {
        self.endpoint.disconnect(self.qpn);
        (self.qpn, self.first, self.connected) = (Qpn(self.qpn.0 + 1), first, Some(to));
        self.endpoint.connect(PairSpec {
            number: self.qpn,
            peer_number: Qpn(to.server.0.into()),
            peer: Some(IpAddr::V4(SWITCH)),
            transport: transport(reliable),
            first,
            mtu: MTU,
            icrc: to.icrc,
        });
    }

    /// Where it keeps a slice's tasks.
    pub(super) fn ring(&self, slice: SliceId, slots: u32) -> RingRow {
        let rkey = rkey(self.index, self.lives_before, slice.0);
        RingRow { rkey, address: ring_address(slice.0), slots, slot_bytes: SLOT_BYTES as u32 }
    }

    /// The number of the WRITE that its pair expects next.
    pub(super) fn expected(&self) -> Option<Psn> {
        self.endpoint.expected(self.qpn)
    }

    /// Whether its pair is in error.
    pub(super) fn has_failed(&self) -> bool {
        self.endpoint.state(self.qpn) == Some(PairState::Error)
    }
}

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The way from the switch to a server: each has an address of its own.
pub(super) fn path_to(server: usize) -> Path {
    let at = |ip| SocketAddr::new(IpAddr::V4(ip), PORT);
    let [high, low] = (server as u16).to_be_bytes();
    Path::new(at(SWITCH), at(Ipv4Addr::new(10, 1, high, low))).expect("both are IPv4")
}

const fn transport(reliable: bool) -> Transport {
    if reliable { Transport::Rc } else { Transport::Uc }
}

/// A key for each ring of each life of each server, so that none takes what is meant for another.
fn rkey(server: usize, lives_before: u32, slice: u16) -> Rkey {
    Rkey(1_000 * (server as u32 + 1) + u32::from(SLICES) * lives_before + u32::from(slice))
}

/// Where a slice's ring begins in a server's memory.
const fn ring_address(slice: u16) -> u64 {
    (slice as u64 + 1) << RING_SHIFT
}
