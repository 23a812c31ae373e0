//! Servers: the machines into whose registered memory tasks are written ahead (Rain §3.2.2).
//!
//! A server registers and says its address. The answer tells which rings the slices need. The server
//! registers the memory and says where the rings are, and its rows are written to the switch. They are
//! withdrawn when the server leaves or its lease ends, and written again after the switch restarted. A
//! server that returns has another life at the same address. Only one process can hold that address, so it
//! gets its name at once. None of this waits for packets to drain: a worker whose task was written to a
//! withdrawn ring asks the client, one round trip.

use alloc::string::ToString;
use alloc::vec::Vec;

use sluice_wire::sizes::ring_slots;
use sluice_wire::tables::{RingRow, ServerState, TableOp};
use sluice_wire::{Nanos, SLOT_HEAD_BYTES, ServerId, SliceId};

use crate::controller::{Controller, SOON, wait};
use crate::ledger::Expect;
use crate::message::{Action, Answer, CallId, Refusal, Waiting};
use crate::name::check_name;
use crate::note::Note;
use crate::registration::{NameConflict, Registry};
use crate::rings::{RingNeed, RingOffer, RingPlace, ServerGrant, ServerHello};
use crate::server::{Server, ServerRows};

impl Controller {
    pub(crate) fn server_hello(
        &mut self,
        now: Nanos,
        call: CallId,
        hello: &ServerHello,
        out: &mut Vec<Action>,
    ) {
        let answer = match self.admit_server(now, hello) {
            Err(answer) => answer,
            Ok(index) => {
                self.lease_started(now + self.plan.lease);
                self.settle_server(index, out);
                self.unreachable().unwrap_or_else(|| Answer::Server(self.server_grant(ServerId(index))))
            }
        };
        out.push(Action::Answer { call, answer });
    }

    pub(crate) fn server_leave(&mut self, call: CallId, name: &str, life: u64, out: &mut Vec<Action>) {
        let held = |i: &u16| self.servers.get(*i).is_some_and(|s| s.registration.life == life);
        if let Some(index) = self.servers.by_name(name).filter(held) {
            self.withdraw_server(index, out);
            self.remove_server(index);
            out.push(Action::Note(Note::ServerLeft { name: name.to_string(), server: ServerId(index) }));
        }
        out.push(Action::Answer { call, answer: Answer::Left { final_sent: None } });
    }

    /// Ends the leases that were not renewed; returns the end of the next lease.
    pub(crate) fn end_server_leases(&mut self, now: Nanos, out: &mut Vec<Action>) -> Option<Nanos> {
        let lease = self.plan.lease;
        let is_over = |(_, server): &(u16, &Server)| server.registration.ends(lease) <= now;
        let over: Vec<u16> = self.servers.iter().filter(is_over).map(|(index, _)| index).collect();
        for index in over {
            self.withdraw_server(index, out);
            if let Some(server) = self.remove_server(index) {
                let name = server.registration.shown();
                out.push(Action::Note(Note::ServerDied { name, server: ServerId(index) }));
            }
        }
        self.servers.iter().map(|(_, server)| server.registration.ends(lease)).min()
    }

    /// The tables were read back. Known servers get the rows that the switch lacks; rows of unknown servers
    /// are kept until these call.
    pub(crate) fn restore_servers(
        &mut self,
        now: Nanos,
        states: &[ServerState],
        rings: &[Option<RingRow>],
        out: &mut Vec<Action>,
    ) {
        for (index, state) in states.iter().enumerate() {
            // For each slice a row of servers.
            let of_server = rings.iter().skip(index).step_by(states.len()).enumerate();
            let offers = of_server
                .filter_map(|(slice, row)| row.map(|row| RingOffer { slice: SliceId(slice as u16), row }));
            let rows = state.row.map(|row| ServerRows { row, rings: offers.collect() });
            let index = index as u16;
            match (self.servers.get_mut(index), rows) {
                (Some(server), rows) => server.written = rows,
                (None, Some(rows)) => self.seat_server(index, Server::read_back(now, rows)),
                (None, None) => {}
            }
        }
        for index in 0..self.servers.len() {
            self.settle_server(index, out);
        }
        if !states.is_empty() {
            for slice in 0..self.slices.len() {
                let op = TableOp::SetCopies(SliceId(slice as u16), self.plan.rdma.copies);
                self.ledger.ask(op, Expect::Done, out);
            }
        }
    }

    /// Another life of the switch holds no rows of servers, and has room for so many.
    pub(crate) fn forget_servers(&mut self, room: u16) {
        if self.servers.len() != room {
            for index in 0..self.servers.len() {
                self.remove_server(index);
            }
            self.servers = Registry::new(room);
        }
        for index in 0..room {
            if self.servers.get(index).is_some_and(|server| server.registration.name.is_none()) {
                self.remove_server(index);
            } else if let Some(server) = self.servers.get_mut(index) {
                server.written = None;
            }
        }
    }

    fn seat_server(&mut self, index: u16, mut server: Server) {
        self.pairs_of_gone.give_to(&mut server);
        self.servers.seat(index, server);
    }

    fn remove_server(&mut self, index: u16) -> Option<Server> {
        let server = self.servers.remove(index)?;
        self.pairs_of_gone.keep(&server);
        Some(server)
    }

    /// The ring that a worker's server keeps for a slice.
    pub(crate) fn ring_of(&self, server: &str, slice: SliceId) -> Option<RingPlace> {
        self.servers.by_name(server).and_then(|index| self.servers.get(index)?.ring(slice))
    }

    /// Checks that a worker's server keeps a ring for the slice. A server that is not registered may still
    /// come; until then its workers ask the clients for bytes that they miss.
    pub(crate) fn check_ring(&self, worker: &str, server: &str, slice: SliceId) -> Result<(), Refusal> {
        let known = self.servers.by_name(server).and_then(|index| self.servers.get(index));
        let Some(rows) = known.and_then(|server| server.written.as_ref()) else { return Ok(()) };
        if rows.rings.iter().any(|ring| ring.slice == slice) {
            return Ok(());
        }
        let slice = self.slice_name(slice);
        Err(Refusal::SliceWithoutServer { worker: worker.to_string(), server: server.to_string(), slice })
    }

    /// The seat of the server that calls, or the answer if it gets none.
    fn admit_server(&mut self, now: Nanos, hello: &ServerHello) -> Result<u16, Answer> {
        let refused = |why| Answer::Refused { why };
        check_name(&hello.name).map_err(|why| refused(why.into()))?;
        let known = self.servers.by_name(&hello.name);
        if let Some(index) = known {
            self.check_holder(now, index, hello)?;
        } else if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        self.check_server(hello).map_err(refused)?;
        let index = known.or_else(|| self.nameless_server(hello));
        let limit = self.servers.len();
        let Some(index) = index.or_else(|| self.servers.vacant(|_| true)) else {
            return Err(refused(Refusal::TableFull { limit }));
        };
        if self.servers.get(index).is_none() {
            self.seat_server(index, Server::new(now, hello));
        }
        if let Some(server) = self.servers.get_mut(index) {
            server.hear(now, hello);
        }
        Ok(index)
    }

    /// Checks that the holder of a name is the life that calls, or gives way to it.
    fn check_holder(&mut self, now: Nanos, index: u16, hello: &ServerHello) -> Result<(), Answer> {
        let (lease, renew_every) = (self.plan.lease, self.plan.renew_every);
        let Some(server) = self.servers.get_mut(index) else { return Err(wait(Waiting::Leaving, SOON)) };
        if server.registration.life == hello.life || server.at == hello.at {
            return Ok(());
        }
        Err(match server.registration.contest(hello.life, now, lease) {
            NameConflict::Wait => wait(Waiting::NameHeld, renew_every),
            NameConflict::GiveUp => Answer::Refused { why: Refusal::NameHeld { name: hello.name.clone() } },
        })
    }

    /// A row that was read back and belongs to this server: no other process can be at its address.
    fn nameless_server(&mut self, hello: &ServerHello) -> Option<u16> {
        let is_mine = |(_, s): &(u16, &Server)| s.registration.name.is_none() && s.at == hello.at;
        let index = self.servers.iter().find(is_mine).map(|(index, _)| index)?;
        self.servers.name(index, &hello.name);
        Some(index)
    }

    /// Checks that the switch can use what a server offers, and that the slices' needs are met.
    fn check_server(&self, hello: &ServerHello) -> Result<(), Refusal> {
        if self.servers.len() == 0 {
            return Err(Refusal::NoServers);
        }
        if hello.reliable && self.has_plain_writes() {
            return Err(Refusal::UnreliableOnly { server: hello.name.clone() });
        }
        let (needed, name) = (self.slot_bytes(), hello.name.clone());
        if hello.mtu < needed {
            return Err(Refusal::MtuTooSmall { server: name, mtu: hello.mtu, needed });
        }
        for (i, RingOffer { slice, row }) in hello.rings.iter().enumerate() {
            let server = hello.name.clone();
            if !self.slice_exists(*slice) || hello.rings[..i].iter().any(|ring| ring.slice == *slice) {
                return Err(Refusal::BadRing { server, slice: *slice, why: "no such slice, or named twice" });
            }
            let bad = |why| Err(Refusal::BadRing { server: hello.name.clone(), slice: *slice, why });
            let bytes = u64::from(row.slots) * u64::from(row.slot_bytes);
            if !row.slots.is_power_of_two() {
                return bad("its slots are not a power of two");
            }
            if row.slot_bytes < needed {
                return bad("its slots do not hold a task's first packet and id");
            }
            if row.slot_bytes > hello.mtu {
                return bad("its slots are longer than the server's RDMA MTU: a task is one WRITE");
            }
            if row.address.checked_add(bytes).is_none() {
                return bad("it reaches past the last address");
            }
            let needed = self.slots_needed(*slice);
            if row.slots < needed && !self.plan.rdma.tiny_rings {
                let slice = self.slice_name(*slice);
                return Err(Refusal::RingTooSmall { server, slice, slots: row.slots, needed });
            }
        }
        Ok(())
    }

    /// Writes a server's rows to the switch, if they are not there as they should be.
    fn settle_server(&mut self, index: u16, out: &mut Vec<Action>) {
        if self.unreachable().is_some() {
            return;
        }
        let plain = self.has_plain_writes();
        let Some(server) = self.servers.get_mut(index) else { return };
        let Some((mut rows, first)) = server.wanted.clone() else { return };
        if rows.row.reliable && plain {
            // Another switch was here when the server registered; its next renewal is refused.
            return;
        }
        rows.row.icrc &= !plain;
        if server.written.as_ref() == Some(&rows) {
            return;
        }
        let name = server.registration.shown();
        let id = ServerId(index);
        if server.spent_pair().is_some() {
            self.withdraw_server(index, out);
            return;
        }
        server.use_pair(rows.row.qpn);
        let kept = server.take_rings_beside(&rows.row);
        if kept.is_none() {
            self.withdraw_server(index, out);
            self.ledger.ask(TableOp::SetServer(id, Some((rows.row, first))), Expect::Done, out);
        }
        let kept = kept.unwrap_or_default();
        for RingOffer { slice, .. } in kept.iter().filter(|ring| !rows.rings.contains(ring)) {
            self.ledger.ask(TableOp::SetRing(*slice, id, None), Expect::Done, out);
        }
        for RingOffer { slice, row } in rows.rings.iter().filter(|ring| !kept.contains(ring)) {
            self.ledger.ask(TableOp::SetRing(*slice, id, Some(*row)), Expect::Done, out);
        }
        let bytes =
            rows.rings.iter().map(|ring| u64::from(ring.row.slots) * u64::from(ring.row.slot_bytes)).sum();
        out.push(Action::Note(Note::ServerJoined { name, server: id, rings: rows.rings.len(), bytes }));
        if let Some(server) = self.servers.get_mut(index) {
            server.written = Some(rows);
        }
    }

    /// Takes a server's rows out of the switch, the rings first, so that no WRITE shows one connection's
    /// key to another.
    fn withdraw_server(&mut self, index: u16, out: &mut Vec<Action>) {
        let Some(rows) = self.servers.get_mut(index).and_then(|server| server.written.take()) else { return };
        if self.unreachable().is_some() {
            return;
        }
        let id = ServerId(index);
        for RingOffer { slice, .. } in rows.rings {
            self.ledger.ask(TableOp::SetRing(slice, id, None), Expect::Done, out);
        }
        self.ledger.ask(TableOp::SetServer(id, None), Expect::Done, out);
    }

    fn server_grant(&self, id: ServerId) -> ServerGrant {
        let slot_bytes = self.slot_bytes();
        let need = |slice: u16| {
            let slice = SliceId(slice);
            let (name, slots) = (self.slice_name(slice), self.slots_needed(slice));
            RingNeed { slice, name, slots, slot_bytes }
        };
        ServerGrant {
            server: id,
            epoch: self.epoch(),
            switch: self.plan.switch,
            rings: (0..self.slices.len() as u16).map(need).collect(),
            lease: self.plan.lease,
            renew_every: self.plan.renew_every,
            without_icrc: self.has_plain_writes(),
            spent_pair: self.servers.get(id.0).and_then(Server::spent_pair),
        }
    }

    fn has_plain_writes(&self) -> bool {
        self.shape.is_some_and(|shape| shape.plain_writes)
    }

    /// The bytes of a slot: a task's id and as many bytes as its first packet brings.
    fn slot_bytes(&self) -> u32 {
        (self.plan.rdma.first_bytes + SLOT_HEAD_BYTES as u32).next_multiple_of(SLOT_ALIGNMENT)
    }

    /// The slots that a slice's ring needs (R), so that no slot is written again while its task may still
    /// be copied. They hold the tasks that wait (C), the tasks that workers were sent (ΣN, at most what the
    /// token ring holds), and the tasks that may pass while a worker is stopped. All of them may be of one
    /// class, so each class has as many slots.
    fn slots_needed(&self, slice: SliceId) -> u32 {
        let (tasks, tokens) =
            self.shape.map_or((0, 0), |shape| (shape.tasks_per_slice, shape.tokens_per_slice));
        let planned = self.plan.slices.get(usize::from(slice.0)).and_then(|slice| slice.limit);
        let waiting = planned.unwrap_or(tasks).min(tasks);
        let classes = self.shape.map_or(1, |shape| shape.classes);
        ring_slots(waiting, tokens, self.plan.rdma.stall_tasks) * u32::from(classes)
    }
}

/// Slots are whole words of 8 bytes, because shared memory is written and read by such words.
const SLOT_ALIGNMENT: u32 = 8;
