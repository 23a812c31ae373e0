//! The servers: registered memory behind the real endpoint, and their failures.
//!
//! The WRITEs of the switch are real packets, with an iCRC for the path to the server, and some are changed
//! on that path. Each copy goes through `host::rdma`, which says where its bytes go; nothing else writes a
//! slot. In half of the seeds queue pairs are reliable, and their NAKs travel back like all packets.
//!
//! Servers register with the controller in `run::enlisting`.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sluice_control::{RingOffer, ServerHello};
use sluice_events::dice::Dice;
use sluice_host::rdma::{
    Endpoint, Mtu, NAK_EVERY, PairSpec, PairState, Received, RegionId, RegionSpec, RoceRefusal, WriterEnd,
};
use sluice_nodes::names;
use sluice_switch::Program;
use sluice_wire::roce::{Acknowledge, PORT, Path, Transport, Write, encode_write_of};
use sluice_wire::tables::{RingRow, ServerRow, TableAnswer, TableOp};
use sluice_wire::{Handle, Nanos, Psn, Qpn, Rkey, SLOT_HEAD_BYTES, ServerId, SliceId, TaskId, read_slot};

use super::hosts::ControllerSession;
use super::limits::FAULTS_END;
use super::oracle::Life;
use super::pieces::FIRST_BYTES;
use super::scenario::Scenario;

/// Slices of the switch.
const SLICES: u16 = 2;
/// Bytes of a slot: a task's id and first packet, in whole words.
const SLOT_BYTES: usize = (SLOT_HEAD_BYTES + FIRST_BYTES as usize).next_multiple_of(8);
/// The longest WRITE with its headers, in bytes.
const PACKET_BYTES: usize = SLOT_BYTES + 64;
/// The most bytes of one WRITE, as a server states it.
const MTU: Mtu = Mtu::B2048;
/// The distance of two rings' addresses, as a power of two.
const RING_SHIFT: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFailure {
    /// The process dies, and loses its memory.
    Crash,
    /// It says that it leaves, and ends.
    Leave,
    /// A new life of it begins.
    Back,
    /// A stranger writes where nobody may.
    Intrusion,
    /// The process stands still: WRITEs that arrive meanwhile are applied when it goes on. Its workers are
    /// processes of their own.
    Stall,
}

/// A WRITE on its way.
#[derive(Clone, Debug)]
pub(super) struct SealedWrite {
    pub(super) bytes: Vec<u8>,
    pub(super) sent: Nanos,
    /// Whether it was changed on its way.
    pub(super) spoilt: bool,
}

/// What follows from a WRITE that arrived.
#[derive(Debug, Default)]
pub(super) struct WriteAnswer {
    /// The server answers.
    pub(super) answer: Option<Acknowledge>,
    /// The server's queue pair is in the error state from now on.
    pub(super) has_failed: bool,
}

#[derive(Debug)]
pub(super) struct Servers {
    pub(super) nodes: Vec<ServerNode>,
    pub(super) dice: Dice,
    pub(super) slots: u32,
    pub(super) reliable: bool,
    pub(super) workers: usize,
}

/// A server's process; it may be down.
#[derive(Debug, Default)]
pub(super) struct ServerNode {
    pub(super) index: usize,
    lives_before: u32,
    endpoint: Endpoint,
    /// The life, 64 random bits; zero while it is down.
    pub(super) life: Life,
    pub(super) session: ControllerSession,
    /// The server's queue pair, and the first packet number that the pair expects.
    pub(super) qpn: Qpn,
    pub(super) first: Psn,
    pub(super) connected: Option<WriterEnd>,
    /// The server's row at the switch, as the controller last said.
    pub(super) row: Option<ServerId>,
    /// The rings that the server has told the controller.
    pub(super) offers: Vec<RingOffer>,
    rings: Vec<(RegionId, SliceId)>,
    memory: HashMap<(SliceId, usize), Vec<u8>>,
    /// WRITEs that came while the server stood still, oldest first.
    pub(super) unread: VecDeque<SealedWrite>,
    /// How many WRITEs in a row were not the next one, at times without losses.
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

    /// The name of a worker's server; empty if nothing is written ahead.
    pub(super) fn name_for(&self, worker: usize) -> String {
        self.nodes.get(worker / self.workers).map_or_else(String::new, ServerNode::name)
    }

    /// The task in the slot of this ticket, and the content of its bytes.
    pub(super) fn slot(&self, worker: usize, slice: SliceId, ticket: u32) -> Option<(TaskId, Handle)> {
        let place = (ticket & (self.slots - 1)) as usize;
        let (task, bytes) = read_slot(self.nodes[worker / self.workers].memory.get(&(slice, place))?)?;
        Some((task, Handle(u32::from_be_bytes(*bytes.first_chunk()?))))
    }

    /// What a server says when it registers or renews.
    pub(super) fn hello(&self, server: usize) -> ServerHello {
        let node = &self.nodes[server];
        ServerHello {
            name: node.name(),
            life: node.life,
            at: path_to(server).to(),
            qpn: node.qpn,
            first: node.first,
            mtu: MTU.bytes() as u32,
            reliable: self.reliable,
            icrc: true,
            rings: node.offers.clone(),
        }
    }

    /// Whether a worker's server takes every WRITE that arrives, so that only the network can lose one. A
    /// reliable pair has to expect it.
    pub(super) fn takes(&self, worker: usize) -> bool {
        let node = &self.nodes[worker / self.workers];
        node.lives() && !self.reliable
    }

    /// Promise 4: the row of a reliable pair starts at the number that the pair expects. Otherwise the pair
    /// would take each WRITE for one that came before.
    pub(super) fn check_row(&self, op: &TableOp) -> Result<(), String> {
        let TableOp::SetServer(_, Some((row, first))) = op else { return Ok(()) };
        let Some(node) = self.nodes.iter().find(|node| is_of(row, node)) else { return Ok(()) };
        match node.expected() {
            Some(expected) if row.reliable && expected != *first => Err(format!(
                "promise 4: server {}'s pair expects WRITE {expected}, and its row counts from {first} on",
                node.index
            )),
            _ => Ok(()),
        }
    }

    /// Promise 4: at rest the switch has each server's pair and rings as they are, and no others.
    pub(super) fn inspect(&self, program: &mut dyn Program) -> Result<(), String> {
        for (index, node) in self.nodes.iter().enumerate() {
            let lacks =
                |what: &str| Err(format!("promise 4: at rest the switch has no {what} of server {index}"));
            let Some(id) = node.row else { return lacks("registration") };
            match program.table(TableOp::ReadServer(id)) {
                TableAnswer::Server(state) if state.row.is_some_and(|row| is_of(&row, node)) => {}
                _ => return lacks("queue pair"),
            }
            for RingOffer { slice, row } in &node.offers {
                if program.table(TableOp::ReadRing(*slice, id)) != TableAnswer::Ring(Some(*row)) {
                    return lacks("ring");
                }
            }
        }
        let rows = (0..self.nodes.len()).map(|row| ServerId(row as u16));
        let nobodys = |row: &ServerId| self.nodes.iter().all(|node| node.row != Some(*row));
        match rows.filter(nobodys).find(|row| is_set(&program.table(TableOp::ReadServer(*row)))) {
            Some(row) => Err(format!("promise 4: at rest server row {row} is nobody's")),
            None => Ok(()),
        }
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
        let rings = rings.collect();
        Self { rings, index, lives_before, endpoint, qpn: Qpn(16), ..Self::default() }
    }

    /// Ends the process, which loses its memory. No later life uses the pair's number again.
    pub(super) fn end(&mut self, slots: u32) {
        *self = Self { qpn: self.qpn, ..Self::after(self.index, self.lives_before + 1, slots) };
    }

    pub(super) const fn lives(&self) -> bool {
        self.life != 0
    }

    pub(super) fn name(&self) -> String {
        names::server(self.index)
    }

    /// Opens a new pair, to which no packet on its way was sent.
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

    /// The ring in which it keeps a slice's tasks.
    pub(super) fn ring(&self, slice: SliceId, slots: u32) -> RingRow {
        let rkey = rkey(self.index, self.lives_before, slice.0);
        RingRow { rkey, address: ring_address(slice.0), slots, slot_bytes: SLOT_BYTES as u32 }
    }

    /// Takes a WRITE, and says what follows from it; nothing does while the server is down. Checks that no
    /// WRITE that arrived unchanged is for memory that it must not write.
    pub(super) fn receive(&mut self, write: &SealedWrite) -> Result<WriteAnswer, String> {
        if !self.lives() {
            return Ok(WriteAnswer::default());
        }
        let index = self.index;
        let Received { outcome, answer, failed } = self.endpoint.receive(&write.bytes, &path_to(index));
        match outcome {
            Ok(placed) => {
                let found = self.rings.iter().find(|(region, _)| *region == placed.region);
                let (_, slice) = *found.ok_or("a WRITE went to a region that is none")?;
                if !placed.offset.is_multiple_of(SLOT_BYTES) {
                    return Err(format!("a WRITE to server {index} went to {:x}", placed.offset));
                }
                self.behind = 0;
                self.memory.insert((slice, placed.offset / SLOT_BYTES), placed.bytes.to_vec());
            }
            Err(why) if !write.spoilt && !is_late(why) => {
                return Err(format!("a WRITE to server {index} was refused: {}", why.name()));
            }
            Err(RoceRefusal::Gap | RoceRefusal::Duplicate) if write.sent >= FAULTS_END => {
                self.behind += 1;
                if self.behind > 2 * NAK_EVERY {
                    return Err(format!("server {index} waits for a WRITE that it never gets"));
                }
            }
            Err(_) => {}
        }
        Ok(WriteAnswer { answer, has_failed: failed.is_some() })
    }

    /// A stranger sends the next WRITE of the pair, with a key that no region has.
    pub(super) fn receive_intruders_write(
        &mut self,
        sent: Nanos,
        reliable: bool,
    ) -> Result<WriteAnswer, String> {
        let psn = self.expected().unwrap_or_default();
        let transport = transport(reliable);
        let write = Write { transport, to: self.qpn, psn, rkey: Rkey(99), ..Write::default() };
        let before = self.memory.clone();
        let bytes = sealed(&write, self.index, [&[], &[0xbd; 64]]);
        let answer = self.receive(&SealedWrite { bytes, sent, spoilt: true })?;
        if self.memory == before {
            Ok(answer)
        } else {
            Err("promise 5: a WRITE without a key changed memory".to_owned())
        }
    }

    /// The number of the WRITE that its pair expects next.
    pub(super) fn expected(&self) -> Option<Psn> {
        self.endpoint.expected(self.qpn)
    }

    /// Whether its pair is in the error state.
    pub(super) fn has_failed(&self) -> bool {
        self.endpoint.state(self.qpn) == Some(PairState::Error)
    }
}

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The path from the switch to a server; each server has an address of its own.
pub(super) fn path_to(server: usize) -> Path {
    let at = |ip| SocketAddr::new(IpAddr::V4(ip), PORT);
    let [high, low] = (server as u16).to_be_bytes();
    Path::new(at(SWITCH), at(Ipv4Addr::new(10, 1, high, low))).expect("both are IPv4")
}

pub(super) const fn transport(reliable: bool) -> Transport {
    if reliable { Transport::Rc } else { Transport::Uc }
}

/// The key of a ring. Each ring of each life of each server has its own, so that none takes a WRITE that is
/// meant for another.
fn rkey(server: usize, lives_before: u32, slice: u16) -> Rkey {
    Rkey(1_000 * (server as u32 + 1) + u32::from(SLICES) * lives_before + u32::from(slice))
}

/// The address of a slice's ring in a server's memory.
const fn ring_address(slice: u16) -> u64 {
    (slice as u64 + 1) << RING_SHIFT
}

/// The first packet number that a pair expects: just before its wrap.
pub(super) fn first(dice: &mut Dice) -> Psn {
    Psn::new(u32::MAX - dice.below(4) as u32)
}

/// The bytes of a WRITE to a server.
pub(super) fn sealed(write: &Write, server: usize, body: [&[u8]; 2]) -> Vec<u8> {
    let mut bytes = vec![0; PACKET_BYTES];
    let length = encode_write_of(write, body, Some(&path_to(server)), &mut bytes).expect("there is room");
    bytes.truncate(length);
    bytes
}

/// Whether the refusal means that the WRITE came out of order, twice, or for a pair that exists no more.
const fn is_late(why: RoceRefusal) -> bool {
    use RoceRefusal::{Duplicate, Gap, PairInError, UnknownPair};
    matches!(why, Duplicate | Gap | PairInError | UnknownPair)
}

fn is_of(row: &ServerRow, node: &ServerNode) -> bool {
    (row.qpn, row.at) == (node.qpn, path_to(node.index).to())
}

fn is_set(answer: &TableAnswer) -> bool {
    matches!(answer, TableAnswer::Server(state) if state.row.is_some())
}
