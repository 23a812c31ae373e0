//! The events of the switch.

use std::mem;

use sluice_events::{Address, Mail};
use sluice_host::client::Client;
use sluice_host::worker::Worker;
use sluice_switch::Arrival;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Handle, Packet, Psn, ServerId, Submit, Term};

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::FAULTS_END;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::path_to;
use crate::switch::ArrivalContext;

impl Rack<'_> {
    /// Something arrives at the switch. A packet that recirculated in an earlier life of the switch is
    /// lost.
    pub(crate) fn at_switch(&mut self, to: Address, mail: Mail) -> Result<(), String> {
        let world = &mut self.world;
        match mail {
            Mail::Packet { from, packet } if self.switch.program.is_none() => {
                world.packets.free(packet);
                self.refused_by_switch(from);
            }
            Mail::Round(round) if to.place() != self.switch.life => world.rounds.free(round),
            _ => self.on_switch_mail(mail)?,
        }
        Ok(())
    }

    /// In half of the cases the operating system reports that no process listens at the switch.
    fn refused_by_switch(&mut self, from: Address) {
        if self.dice.chance(500) {
            return;
        }
        let outcome = match self.host_at(from) {
            Some(Host::Worker(worker)) => {
                let mut process = self.scenario.process_of(worker);
                process.try_for_each(|worker| self.on_worker(worker, Worker::refused))
            }
            Some(Host::Client(client)) => self.on_client(client, Client::refused),
            Some(Host::Server(_)) | None => Ok(()),
        };
        debug_assert!(outcome.is_ok(), "asking for a renewal breaks no promise");
    }

    /// A packet arrives from a host, or has recirculated.
    fn on_switch_mail(&mut self, mail: Mail) -> Result<(), String> {
        match mail {
            Mail::Packet { from, packet } => {
                let mut packet = self.world.packets.take(packet);
                let (bytes, room) = self.bytes_in(&mut packet);
                let context =
                    ArrivalContext { bytes, from: Some(Party::at(from)), task: replay_log::task_of(&packet) };
                self.pass(Arrival::Wire { from: from.endpoint(), packet, room }, context)
            }
            Mail::Round(round) => {
                let mut round = self.world.rounds.take(round);
                let keeps_none = self.scenario.keeps_no_bytes();
                let bytes = if keeps_none { self.take_back(&mut round)? } else { round.payload() };
                self.pass(Arrival::Round(round), ArrivalContext { bytes, ..ArrivalContext::NOTHING })
            }
        }
    }

    /// The content of a packet, or the handle under which the switch keeps it; and whether there was room
    /// for it.
    fn bytes_in(&mut self, packet: &mut Packet) -> (Handle, bool) {
        match packet {
            Packet::Submit(submit) if self.scenario.keeps_no_bytes() => {
                (mem::replace(&mut submit.payload.handle, Handle::NONE), true)
            }
            packet if self.scenario.keeps_no_bytes() => {
                (packet.payload().map_or(Handle::NONE, |payload| payload.handle), true)
            }
            // A reply's bytes travel with it: only tasks' bytes are kept.
            Packet::Submit(submit) => {
                let room = self.reserve(submit);
                (submit.payload.handle, room)
            }
            _ => (Handle::NONE, true),
        }
    }

    /// Stores a large task's bytes in the slab, if there is room.
    fn reserve(&mut self, submit: &mut Submit) -> bool {
        if submit.payload.handle == Handle::NONE {
            return true;
        }
        if self.world.now < FAULTS_END && self.dice.chance(self.scenario.no_room) {
            submit.payload.handle = Handle::NONE;
            return false;
        }
        submit.payload = self.switch.slab.keep(submit.payload);
        true
    }

    pub(crate) fn table_op(&mut self, life: u32, switch: u32, by: Term, op: TableOp) -> Result<(), String> {
        if switch != self.switch.life {
            return Ok(());
        }
        if self.standbys.is_some() {
            let held_until = self.ops_held_until(life);
            if self.world.now < held_until {
                self.remind(held_until, Event::Op { life, switch, by, op: Box::new(op) });
                return Ok(());
            }
        }
        let Some(answer) = self.switch.operate(self.world.now, by, op) else { return Ok(()) };
        if let Some(standbys) = &mut self.standbys {
            standbys.claims.check(life, by, &op, &answer)?;
        }
        self.tell(Party::Controller, Some(Party::Switch), None, |_| replay_log::table(&op, &answer));
        if !matches!(answer, TableAnswer::Superseded(_)) {
            self.servers.check_row(&op)?;
            if let TableOp::Inject(sweep) = op {
                self.pass(Arrival::Control(sweep), ArrivalContext::NOTHING)?;
            }
        }
        self.answer_controller(life, answer);
        Ok(())
    }

    pub(crate) fn nak(&mut self, server: usize, id: ServerId, expected: Psn) -> Result<(), String> {
        let from = path_to(server).to();
        self.pass(Arrival::Nak { from, server: id, expected }, ArrivalContext::NOTHING)
    }
}
