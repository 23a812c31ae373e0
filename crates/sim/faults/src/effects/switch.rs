//! The events of the switch in a fault run, and the effects of its verdicts.

use std::mem;

use sluice_events::{Address, Mail};
use sluice_switch::{Arrival, Circulating, Verdict};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Dispatch, Handle, Nanos, Packet, Place, Submit, Term};

use crate::hosts::SWITCH;
use crate::limits::{FAULTS_END, PASS};
use crate::rack::Rack;
use crate::replay_log::{self, Party};
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

    pub(crate) fn table_op(&mut self, life: u32, switch: u32, by: Term, op: TableOp) -> Result<(), String> {
        if switch != self.switch.life {
            return Ok(());
        }
        let Some(program) = &mut self.switch.program else { return Ok(()) };
        let obeyed = program.shape().term;
        if !obeyed.obeys(by, &op) {
            let answer = TableAnswer::Superseded(obeyed);
            self.tell(Party::Controller, Some(Party::Switch), None, |_| replay_log::table(&op, &answer));
            self.answer_controller(life, answer);
            return Ok(());
        }
        if let TableOp::SetSlice(slice, row) = op {
            let limit = &mut self.switch.limits[usize::from(slice.0)];
            *limit = row.limit.max(*limit);
        }
        let answer = program.table(op);
        (self.switch.queues, self.switch.is_unseen) = (None, true);
        self.switch.gate.written(&op);
        // The switch stores the term in its state folder.
        self.switch.config.term = program.shape().term;
        self.tell(Party::Controller, Some(Party::Switch), None, |_| replay_log::table(&op, &answer));
        self.check_row(&op)?;
        if let TableOp::Inject(sweep) = op {
            self.pass(Arrival::Control(sweep), ArrivalContext::NOTHING)?;
        }
        self.answer_controller(life, answer);
        Ok(())
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

    /// The time at which the present pass read the clock, which may be hours ahead of the hosts' clocks. On
    /// a switch with many CPUs a pass may read the clock before another one and reach the queue after it.
    fn looked(&mut self) -> Nanos {
        let on_its_way = if self.looks.chance(100) { self.looks.span(Nanos(0), PASS) } else { Nanos(0) };
        self.world.now.since(on_its_way) + self.scenario.long.ahead(self.world.now)
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
}

impl Rack<'_> {
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

    /// A pass of the program, if the switch is up, and its effects.
    pub(crate) fn pass(&mut self, arrival: Arrival, context: ArrivalContext) -> Result<(), String> {
        let now = self.looked();
        match self.pass_gate(now, arrival)? {
            Some(Verdict::Send { to, packet }) => self.send_out(Address::of(&to), packet, context.bytes),
            // A waiting task was refused: its bytes are no longer needed.
            Some(Verdict::Swept { to, packet, payload }) => {
                self.forgets(payload)?;
                self.send_out(Address::of(&to), packet, context.bytes)
            }
            // The same for a late task. Its token goes on.
            Some(Verdict::Late { to, reject, payload, token }) => {
                self.forgets(payload)?;
                self.send_out(Address::of(&to), Packet::Reject(reject), Handle::NONE)?;
                self.goes_round(&Circulating::note(token));
                Ok(())
            }
            Some(Verdict::Again(mut round)) => {
                if self.scenario.keeps_no_bytes() {
                    self.keep_bytes(&mut round, context.bytes);
                }
                self.goes_round(&round);
                Ok(())
            }
            Some(Verdict::Ahead(write)) => {
                if self.scenario.writes_ahead {
                    self.write_ahead(&write, context.bytes);
                }
                self.forgets(context.bytes)
            }
            Some(Verdict::Drop(why)) => {
                self.tell(Party::Switch, context.from, context.task, |_| replay_log::dropped(why));
                self.forgets(context.bytes)
            }
            Some(Verdict::Parked) | None => Ok(()),
        }
    }

    /// A packet recirculates, which ends with this life of the switch.
    fn goes_round(&mut self, round: &Circulating) {
        let (at, to) = (self.world.now + self.scenario.round, SWITCH.at(self.switch.life));
        let lane = self.world.engine.lane(self.scenario.round);
        self.world.send_round(lane, to, at, round);
    }

    /// Sends a packet with its bytes.
    fn send_out(&mut self, to: Address, mut packet: Packet, bytes: Handle) -> Result<(), String> {
        match &mut packet {
            Packet::Dispatch(Dispatch { payload, place, .. }) if self.scenario.keeps_no_bytes() => {
                if payload.is_large() && *place == Place::Here {
                    payload.handle = bytes;
                }
            }
            Packet::Dispatch(Dispatch { payload, .. }) if payload.handle != Handle::NONE => {
                *payload = self.switch.slab.give_back(payload.handle)?;
            }
            // The task that recirculated with a poll that ends here waits now, so its bytes stay.
            Packet::Dispatch(_) | Packet::Empty(_) => {}
            _ => self.forgets(bytes)?,
        }
        self.send(SWITCH, to, packet);
        Ok(())
    }

    fn forgets(&mut self, bytes: Handle) -> Result<(), String> {
        if bytes != Handle::NONE && !self.scenario.keeps_no_bytes() {
            self.switch.slab.give_back(bytes)?;
        }
        Ok(())
    }
}
