//! The servers: registered memory behind the real endpoint, and how they fail.
//!
//! What the switch writes are real packets, sealed for the way from it to the server, and some are changed on
//! that way. Each copy goes through `host::rdma`, which says where its bytes go; nothing else writes a slot.
//! In half of the seeds pairs are reliable, and their NAKs travel back like all packets.
//!
//! A server can be killed, and loses its memory; and someone can write where nobody may, which puts a
//! reliable pair into its error state. Then its workers send no tokens until they were let in anew, as live
//! ones do. The rows in the switch's tables are set here, at once, where a controller would set them a little
//! later: how servers register is the controller's tests' affair.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sluice_host::rdma::{
    Endpoint, Mtu, NAK_EVERY, PairSpec, PairState, Received, RegionId, RegionSpec, RoceRefusal,
};
use sluice_switch::Arrival;
use sluice_wire::roce::{Acknowledge, NakCode, PORT, Path, Syndrome, Transport, Write, encode_write_of};
use sluice_wire::tables::{RingRow, ServerRow, TableOp};
use sluice_wire::{
    Handle, Nanos, Psn, Qpn, Rkey, SLOT_HEAD_BYTES, ServerId, SliceId, TaskId, read_slot, slot_head,
};

use super::large::FIRST_BYTES;
use super::network::WRITES;
use super::rack::{Event, Host, Rack};
use super::scenario::{FAULTS_END, Scenario};
use super::story::{self, Who};
use crate::dice::Dice;

/// Workers of a server.
pub(super) const WORKERS: usize = 2;
/// Slices of the switch.
const SLICES: u16 = 2;
const SLOT_BYTES: usize = SLOT_HEAD_BYTES + FIRST_BYTES as usize;
/// What lies between two rings' addresses.
const RING_SHIFT: u32 = 32;
/// Room for a WRITE.
const PACKET_BYTES: usize = SLOT_BYTES + 64;
/// Of a thousand WRITEs, those that are changed on their way while faults last.
const CHANGED: u64 = 10;

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    /// The process is gone, and its memory.
    Crash,
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
    nodes: Vec<Node>,
    dice: Dice,
    slots: u32,
    reliable: bool,
}

#[derive(Debug)]
struct Node {
    endpoint: Endpoint,
    lives: bool,
    /// It stands still until then.
    stalled_until: Nanos,
    qpn: u32,
    rings: Vec<(RegionId, SliceId)>,
    memory: HashMap<(SliceId, usize), Vec<u8>>,
    /// WRITEs in a row that came behind a missing one when nothing was lost any more.
    behind: u32,
}

impl Servers {
    pub(super) fn new(seed: u64, scenario: &Scenario) -> Self {
        let mut dice = Dice::named(seed, "servers", 0);
        let reliable = dice.chance(500);
        let count = Self::count(scenario);
        let nodes = (0..count).map(|_| Node::new(scenario.ring_slots)).collect();
        Self { nodes, dice, slots: scenario.ring_slots, reliable }
    }

    pub(super) fn count(scenario: &Scenario) -> u16 {
        if scenario.writes_ahead { scenario.workers.div_ceil(WORKERS) as u16 } else { 0 }
    }

    /// What the slot of this ticket holds: whose it is, and what its bytes consist of.
    pub(super) fn slot(&self, worker: usize, slice: SliceId, ticket: u32) -> Option<(TaskId, Handle)> {
        let place = (ticket & (self.slots - 1)) as usize;
        let (task, bytes) = read_slot(self.nodes[worker / WORKERS].memory.get(&(slice, place))?)?;
        Some((task, Handle(u32::from_be_bytes(*bytes.first_chunk()?))))
    }

    /// Whether nothing but the network can keep a WRITE from a worker's server: a reliable pair waits for
    /// nothing.
    pub(super) fn takes(&self, worker: usize) -> bool {
        let node = &self.nodes[worker / WORKERS];
        node.lives && !self.reliable
    }
}

impl Node {
    fn new(slots: u32) -> Self {
        let mut endpoint = Endpoint::new();
        let rings = (0..SLICES).map(|slice| {
            let rkey = Rkey(u32::from(slice) + 1);
            let spec = RegionSpec { rkey, address: ring_address(slice), bytes: slots as usize * SLOT_BYTES };
            (endpoint.register(spec).expect("two regions with keys of their own"), SliceId(slice))
        });
        let rings = rings.collect();
        let stalled_until = Nanos(0);
        Self { endpoint, lives: true, stalled_until, qpn: 16, rings, memory: HashMap::new(), behind: 0 }
    }

    /// Opens a pair that nothing that is still on its way was sent to.
    fn connect(&mut self, server: ServerId, reliable: bool, first: Psn) {
        self.endpoint.disconnect(Qpn(self.qpn));
        self.qpn += 1;
        self.endpoint.connect(PairSpec {
            number: Qpn(self.qpn),
            peer_number: Qpn(server.0.into()),
            peer: Some(IpAddr::V4(SWITCH)),
            transport: transport(reliable),
            first,
            mtu: Mtu::B2048,
            icrc: true,
        });
    }
}

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn path_to(server: ServerId) -> Path {
    let at = |ip| SocketAddr::new(IpAddr::V4(ip), PORT);
    let [high, low] = server.0.to_be_bytes();
    Path::new(at(SWITCH), at(Ipv4Addr::new(10, 1, high, low))).expect("both are IPv4")
}

const fn transport(reliable: bool) -> Transport {
    if reliable { Transport::Rc } else { Transport::Uc }
}

const fn ring_address(slice: u16) -> u64 {
    (slice as u64 + 1) << RING_SHIFT
}

impl Rack<'_> {
    /// The servers' rings enter the tables of a new life of the switch, each with a new pair.
    pub(super) fn set_rings(&mut self) {
        for server in 0..self.servers.nodes.len() {
            self.set_server(ServerId(server as u16));
        }
    }

    fn set_server(&mut self, server: ServerId) {
        let Servers { nodes, dice, slots, reliable } = &mut self.servers;
        let node = &mut nodes[usize::from(server.0)];
        let first = Psn::new(u32::MAX - dice.below(4) as u32);
        node.connect(server, *reliable, first);
        let Some(program) = &mut self.switch.program else { return };
        let (at, qpn) = (path_to(server).to(), Qpn(node.qpn));
        let row = ServerRow { at, qpn, reliable: *reliable, icrc: true };
        program.table(TableOp::SetServer(server, node.lives.then_some((row, first))));
        for slice in 0..SLICES {
            let (rkey, address) = (Rkey(u32::from(slice) + 1), ring_address(slice));
            let ring = RingRow { rkey, address, slots: *slots, slot_bytes: SLOT_BYTES as u32 };
            program.table(TableOp::SetRing(SliceId(slice), server, node.lives.then_some(ring)));
            program.table(TableOp::SetCopies(SliceId(slice), self.scenario.copies));
        }
    }

    /// What will happen to servers in this run.
    pub(super) fn plan_mishaps(&mut self) {
        let count = self.servers.nodes.len() as u64;
        if count == 0 {
            return;
        }
        let dice = &mut self.servers.dice;
        for _ in 0..dice.pick(&[0, 0, 1, 3]) {
            let at = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
            let server = ServerId(dice.below(count) as u16);
            let mishap = dice.pick(&[Mishap::Crash, Mishap::Intrusion, Mishap::Stall]);
            self.agenda.add(at, Event::Mishap(server, mishap));
        }
    }

    pub(super) fn mishap(&mut self, server: ServerId, mishap: Mishap) -> Result<(), String> {
        self.say(Who::Server(server.0.into()), || story::mishap(mishap).to_owned());
        let node = &mut self.servers.nodes[usize::from(server.0)];
        match mishap {
            Mishap::Crash if node.lives => {
                *node = Node { lives: false, qpn: node.qpn, ..Node::new(self.servers.slots) };
                let down = self.servers.dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
                self.set_server(server);
                self.after(down, Event::Mishap(server, Mishap::Back));
            }
            Mishap::Back => {
                node.lives = true;
                self.set_server(server);
            }
            Mishap::Intrusion if node.lives => self.intrude(server)?,
            Mishap::Stall => {
                let lasts = self.servers.dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
                node.stalled_until = self.now + lasts;
            }
            Mishap::Crash | Mishap::Intrusion => {}
        }
        Ok(())
    }

    /// The very next WRITE of the pair, with a key that no region has.
    fn intrude(&mut self, server: ServerId) -> Result<(), String> {
        let node = &self.servers.nodes[usize::from(server.0)];
        let psn = node.endpoint.expected(Qpn(node.qpn)).unwrap_or_default();
        let transport = transport(self.servers.reliable);
        let write = Write { transport, to: Qpn(node.qpn), psn, rkey: Rkey(99), ..Write::default() };
        let before = node.memory.clone();
        let bytes = sealed(&write, server, [&[], &[0xbd; 64]]);
        self.written(server, &bytes, true)?;
        let node = &self.servers.nodes[usize::from(server.0)];
        if node.memory == before {
            Ok(())
        } else {
            Err("promise 5: a WRITE without a key changed memory".to_owned())
        }
    }

    /// One copy of a task leaves for its server.
    pub(super) fn send_write(
        &mut self,
        task: TaskId,
        content: Handle,
        len: u16,
        replica: &sluice_switch::Replica,
    ) {
        let arrivals = self.network.arrivals(self.now, WRITES);
        let (server, now) = (replica.server, self.now);
        self.tell(Who::Switch, Some(Who::Server(server.0.into())), Some(task), |task| {
            let (psn, address) = (replica.psn, replica.address);
            let fate = story::fate(now, arrivals);
            format!("WRITE {psn} of waiting task {task}: {len} bytes to address {address:#x}{fate}")
        });
        let write = Write {
            transport: transport(replica.reliable),
            to: replica.qpn,
            psn: replica.psn,
            ack_request: false,
            address: replica.address,
            rkey: replica.rkey,
        };
        let mut body = vec![0; len.into()];
        body.iter_mut().zip(content.0.to_be_bytes().into_iter().cycle()).for_each(|(to, from)| *to = from);
        let bytes = sealed(&write, server, [&slot_head(task), &body]);
        for at in arrivals.into_iter().flatten() {
            let mut bytes = bytes.clone();
            let changed = self.now < FAULTS_END && self.servers.dice.chance(CHANGED);
            if changed {
                let bit = self.servers.dice.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            self.agenda.add(at, Event::Write { server, bytes, spoilt: changed });
        }
    }

    /// A WRITE comes to a server, and waits there while that stands still.
    pub(super) fn write_comes(
        &mut self,
        server: ServerId,
        bytes: Vec<u8>,
        spoilt: bool,
    ) -> Result<(), String> {
        let goes_on = self.servers.nodes[usize::from(server.0)].stalled_until;
        if self.now < goes_on {
            self.agenda.add(goes_on, Event::Write { server, bytes, spoilt });
            return Ok(());
        }
        self.written(server, &bytes, spoilt)
    }

    /// A server takes a WRITE. Of those that nobody spoilt none is for a place that it must not go to.
    fn written(&mut self, server: ServerId, bytes: &[u8], spoilt: bool) -> Result<(), String> {
        let path = path_to(server);
        let node = &mut self.servers.nodes[usize::from(server.0)];
        if !node.lives {
            return Ok(());
        }
        let Received { outcome, answer, failed } = node.endpoint.receive(bytes, &path);
        match outcome {
            Ok(placed) => {
                let found = node.rings.iter().find(|(region, _)| *region == placed.region);
                let (_, slice) = *found.ok_or("a WRITE went to a region that is none")?;
                if !placed.offset.is_multiple_of(SLOT_BYTES) {
                    return Err(format!("a WRITE to server {server} went to {:x}", placed.offset));
                }
                node.behind = 0;
                node.memory.insert((slice, placed.offset / SLOT_BYTES), placed.bytes.to_vec());
            }
            Err(why) if !spoilt && !is_late(why) => {
                return Err(format!("a WRITE to server {server} was refused: {}", why.name()));
            }
            Err(RoceRefusal::Gap) if self.now >= FAULTS_END => {
                node.behind += 1;
                if node.behind > 2 * NAK_EVERY {
                    return Err(format!("server {server} misses a WRITE that it never gets"));
                }
            }
            Err(_) => {}
        }
        if let Some(answer) = answer {
            self.answer_write(server, &answer);
        }
        if failed.is_some() {
            self.mend(server)?;
        }
        Ok(())
    }

    /// A NAK goes back to the switch.
    fn answer_write(&mut self, server: ServerId, answer: &Acknowledge) {
        if answer.syndrome != Syndrome::Nak(NakCode::Sequence) {
            return;
        }
        let arrivals = self.network.arrivals(self.now, WRITES);
        let (who, now) = (Who::Server(server.0.into()), self.now);
        self.tell(who, Some(Who::Switch), None, |_| {
            format!("NAK: misses WRITE {}{}", answer.psn, story::fate(now, arrivals))
        });
        for at in arrivals.into_iter().flatten() {
            self.agenda.add(at, Event::Nak { server, expected: answer.psn });
        }
    }

    pub(super) fn nak(&mut self, server: ServerId, expected: Psn) -> Result<(), String> {
        self.pass_through(Arrival::Nak { from: path_to(server).to(), server, expected }, Handle::NONE)
    }

    /// A pair is in error: its workers send no tokens until the controller let them in anew, and it is
    /// connected anew.
    fn mend(&mut self, server: ServerId) -> Result<(), String> {
        let node = &self.servers.nodes[usize::from(server.0)];
        if node.endpoint.state(Qpn(node.qpn)) != Some(PairState::Error) {
            return Err(format!("server {server}'s pair failed and takes packets"));
        }
        self.set_server(server);
        let first = usize::from(server.0) * WORKERS;
        for worker in first..(first + WORKERS).min(self.workers.len()) {
            self.workers[worker].rejoins += 1;
            self.on_worker(worker, |machine, _, _, _| machine.suspend())?;
            self.renew(Host::Worker(worker));
        }
        Ok(())
    }
}

fn sealed(write: &Write, server: ServerId, body: [&[u8]; 2]) -> Vec<u8> {
    let mut bytes = vec![0; PACKET_BYTES];
    let length = encode_write_of(write, body, Some(&path_to(server)), &mut bytes).expect("there is room");
    bytes.truncate(length);
    bytes
}

/// Refusals of what comes out of order, twice, or to a pair that is no more.
const fn is_late(why: RoceRefusal) -> bool {
    use RoceRefusal::{Duplicate, Gap, PairInError, UnknownPair};
    matches!(why, Duplicate | Gap | PairInError | UnknownPair)
}
