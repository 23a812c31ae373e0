//! WRITEs into servers' memory, on their way and at the server.

use sluice_host::rdma::{NAK_EVERY, Received, RoceRefusal};
use sluice_switch::{Arrival, Replica};
use sluice_wire::roce::{Acknowledge, NakCode, Syndrome, Write, encode_write_of};
use sluice_wire::{Handle, Psn, Rkey, ServerId, TaskId, slot_head};

use crate::event::Event;
use crate::limits::FAULTS_END;
use crate::network::WRITES;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::{SLOT_BYTES, SealedWrite, path_to, transport};
use crate::switch::ArrivalContext;

/// The longest WRITE with its headers, in bytes.
const PACKET_BYTES: usize = SLOT_BYTES + 64;
/// How many of a thousand WRITEs are changed on their way while faults last.
const CHANGED: u64 = 10;

impl Rack<'_> {
    /// A stranger sends the next WRITE of the pair, with a key that no region has.
    pub(crate) fn send_intruders_write(&mut self, server: usize) -> Result<(), String> {
        let node = &self.servers.nodes[server];
        let psn = node.expected().unwrap_or_default();
        let transport = transport(self.servers.reliable);
        let write = Write { transport, to: node.qpn, psn, rkey: Rkey(99), ..Write::default() };
        let before = node.memory.clone();
        let bytes = sealed(&write, server, [&[], &[0xbd; 64]]);
        self.written(server, &SealedWrite { bytes, sent: self.world.now, spoilt: true })?;
        let node = &self.servers.nodes[server];
        if node.memory == before {
            Ok(())
        } else {
            Err("promise 5: a WRITE without a key changed memory".to_owned())
        }
    }

    /// Sends one copy of a task to its server.
    pub(crate) fn send_write(&mut self, task: TaskId, content: Handle, len: u16, replica: &Replica) {
        let of = |server: &usize| path_to(*server).to() == replica.to;
        let Some(server) = (0..self.servers.nodes.len()).find(of) else { return };
        let arrivals = self.arrivals(WRITES);
        let now = self.world.now;
        self.tell(Party::Switch, Some(Party::Server(server)), Some(task), |task| {
            let (psn, address) = (replica.psn, replica.address);
            let fate = replay_log::fate(now, arrivals);
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
            let changed = self.world.now < FAULTS_END && self.servers.dice.chance(CHANGED);
            if changed {
                let bit = self.servers.dice.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let write = SealedWrite { bytes, sent: now, spoilt: changed };
            self.remind(at, Event::Write { server, write });
        }
    }

    /// A WRITE arrives at a server, and waits there while the server stands still.
    pub(crate) fn on_write(&mut self, server: usize, write: SealedWrite) -> Result<(), String> {
        self.servers.nodes[server].unread.push_back(write);
        self.write_is_read(server)
    }

    /// A server reads the WRITE that came first, unless the server stands still.
    pub(crate) fn write_is_read(&mut self, server: usize) -> Result<(), String> {
        let node = &mut self.servers.nodes[server];
        let goes_on = node.session.frozen_until;
        if self.world.now < goes_on {
            self.remind(goes_on, Event::WriteWaited(server));
            return Ok(());
        }
        let write = node.unread.pop_front();
        write.map_or(Ok(()), |write| self.written(server, &write))
    }

    /// A server takes a WRITE. Checks that no WRITE that arrived unchanged is for memory that it must not
    /// write.
    fn written(&mut self, server: usize, write: &SealedWrite) -> Result<(), String> {
        let path = path_to(server);
        let node = &mut self.servers.nodes[server];
        if !node.lives() {
            return Ok(());
        }
        let Received { outcome, answer, failed } = node.endpoint.receive(&write.bytes, &path);
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
            Err(why) if !write.spoilt && !is_late(why) => {
                return Err(format!("a WRITE to server {server} was refused: {}", why.name()));
            }
            Err(RoceRefusal::Gap | RoceRefusal::Duplicate) if write.sent >= FAULTS_END => {
                node.behind += 1;
                if node.behind > 2 * NAK_EVERY {
                    return Err(format!("server {server} waits for a WRITE that it never gets"));
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

    /// Sends a NAK back to the switch.
    fn answer_write(&mut self, server: usize, answer: &Acknowledge) {
        if answer.syndrome != Syndrome::Nak(NakCode::Sequence) {
            return;
        }
        let Some(id) = self.servers.nodes[server].row else { return };
        let arrivals = self.arrivals(WRITES);
        let (who, now) = (Party::Server(server), self.world.now);
        self.tell(who, Some(Party::Switch), None, |_| {
            format!("NAK: misses WRITE {}{}", answer.psn, replay_log::fate(now, arrivals))
        });
        for at in arrivals.into_iter().flatten() {
            self.remind(at, Event::Nak { server, id, expected: answer.psn });
        }
    }

    pub(crate) fn nak(&mut self, server: usize, id: ServerId, expected: Psn) -> Result<(), String> {
        let from = path_to(server).to();
        self.pass(Arrival::Nak { from, server: id, expected }, ArrivalContext::NOTHING)
    }
}

fn sealed(write: &Write, server: usize, body: [&[u8]; 2]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use sluice_events::WorldEvent;
    use sluice_host::rdma::WriterEnd;
    use sluice_wire::{Endpoint, Epoch, Nanos, SliceId};

    use super::*;
    use crate::RackKind;

    /// The first WRITE comes while the server stands still for 10 us, the second while it stands still for
    /// longer. A reliable pair takes both only if it reads them in that order.
    #[test]
    fn writes_stay_in_order_however_often_their_server_stands_still() {
        let racks = (0..100).map(|seed| Rack::new(&RackKind::default(), seed, None));
        let mut rack =
            racks.into_iter().find(|rack| !rack.servers.nodes.is_empty()).expect("seven in ten have");
        let (began, first) = (rack.world.now, 5);
        let (slots, node) = (rack.servers.slots, &mut rack.servers.nodes[0]);
        let to = WriterEnd { server: ServerId(0), epoch: Epoch(1), switch: Endpoint::default(), icrc: true };
        node.connect(to, true, Psn::new(first));
        let (pair, ring) = (node.qpn, node.ring(SliceId(0), slots));
        for (number, still_for) in [(0, 10_000), (1, 20_000)] {
            rack.servers.nodes[0].session.frozen_until = began + Nanos(still_for);
            let psn = Psn::new(first + number);
            let (transport, address, rkey) = (transport(true), ring.address, ring.rkey);
            let write = Write { transport, to: pair, psn, address, rkey, ..Write::default() };
            let bytes = sealed(&write, 0, [&[], &[number as u8; 16]]);
            rack.on_write(0, SealedWrite { bytes, sent: began, spoilt: false }).expect("it waits");
        }
        while rack.world.now <= began + Nanos(20_000) {
            let (_, what) = rack.world.next().expect("the run goes on");
            let event = match what {
                WorldEvent::Scheduled(event @ Event::WriteWaited(_)) => event,
                // A clock that is not set anew expires again.
                WorldEvent::Clock => Event::Inspect,
                _ => continue,
            };
            rack.happen(event).expect("it is read, or waits on");
        }
        assert_eq!(rack.servers.nodes[0].expected(), Some(Psn::new(first + 2)));
    }
}
