//! A pass of the switch, and the effects of its verdict.

use sluice_events::Address;
use sluice_switch::{Arrival, Circulating, Verdict};
use sluice_wire::{Dispatch, Handle, Nanos, Packet, Place};

use crate::hosts::SWITCH;
use crate::limits::PASS;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::switch::ArrivalContext;

impl Rack<'_> {
    /// A pass of the program, if the switch is up, and its effects.
    pub(crate) fn pass(&mut self, arrival: Arrival, context: ArrivalContext) -> Result<(), String> {
        let is_new = matches!(arrival, Arrival::Wire { packet: Packet::Submit(_) | Packet::Job(_), .. });
        if is_new && !self.switch.takes_tasks {
            self.tell(Party::Switch, context.from, context.task, |_| "not taken: it drains".to_owned());
            return self.forgets(context.bytes);
        }
        let now = self.looked();
        match self.switch.pass(now, arrival, &self.scenario, &mut self.oracle)? {
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

    /// The time at which the present pass read the clock, which may be hours ahead of the hosts' clocks. On
    /// a switch with many CPUs a pass may read the clock before another one and reach the queue after it.
    fn looked(&mut self) -> Nanos {
        let on_its_way = if self.looks.chance(100) { self.looks.span(Nanos(0), PASS) } else { Nanos(0) };
        self.world.now.since(on_its_way) + self.scenario.long.ahead(self.world.now)
    }
}
