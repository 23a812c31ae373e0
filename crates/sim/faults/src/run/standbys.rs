//! The events of controllers of which one leads while the switch lets it: they die, end, stand still and
//! are cut off from the switch, they call it about the lead, and hosts turn from one to the other.

use sluice_control::{Answer, CallId, Event as Told, LeadAnswer, LeadCall, Waiting};
use sluice_wire::{Nanos, Term};

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::{FAULTS_END, LEASE};
use crate::rack::Rack;
use crate::replay_log::Party;
use crate::standbys::{ControllerSeat, SEATS, StandbyEvent, StandbyFailure, Standbys, Struck};

impl Rack<'_> {
    pub(crate) fn start_standbys(&mut self) {
        let Some(failures) = self.standbys.as_mut().map(Standbys::draw) else { return };
        for (at, struck, failure) in failures {
            self.remind(at, standby(StandbyEvent::Failure(struck, failure)));
        }
        for seat in 0..SEATS {
            self.on_seat(seat, Self::connect_controller);
            self.looks_soon(seat);
        }
        self.start_store();
    }

    pub(crate) fn on_standby_event(&mut self, event: StandbyEvent) {
        match event {
            StandbyEvent::Failure(struck, failure) => self.standby_failure(struck, failure),
            StandbyEvent::Looks(seat) => {
                let is_due = self.standbys.as_ref().is_some_and(|all| all.looks_at[seat] == self.world.now);
                if is_due {
                    self.on_seat(seat, |rack| rack.look_for_lead(seat));
                }
            }
            StandbyEvent::Call { seat, process, sent, call } => {
                self.on_seat(seat, |rack| rack.lead_call_arrives((seat, process, sent), call));
            }
            StandbyEvent::Answered { seat, process, sent, answer } => {
                self.on_seat(seat, |rack| rack.lead_answered((seat, process, sent), answer));
            }
            StandbyEvent::Back(seat) => self.on_seat(seat, Self::restart_controller),
            StandbyEvent::LinkBack(seat) => self.on_seat(seat, Self::connect_controller),
            StandbyEvent::StoreFailure(struck, failure) => self.store_failure(struck, failure),
            StandbyEvent::AsksStore(seat) => self.on_seat(seat, |rack| rack.asks_store(seat)),
            StandbyEvent::StoreHears { seat, process, sent, ends } => {
                self.store_hears((seat, process, sent), ends);
            }
            StandbyEvent::StoreSays { seat, process, sent, holds } => {
                self.on_seat(seat, |rack| rack.store_says((seat, process, sent), holds));
            }
        }
    }

    /// Lets the controller of this seat act.
    pub(crate) fn on_seat(&mut self, seat: ControllerSeat, act: impl FnOnce(&mut Self)) {
        if self.controllers.present.seat == seat {
            act(self);
        } else {
            self.as_former(act);
        }
    }

    /// The seat to which a call goes. While faults last an operator's or agent's call goes to any; later
    /// they find who leads.
    pub(crate) fn seat_called(&mut self, told: &Told) -> Option<ControllerSeat> {
        let host = call_of(told).and_then(|call| self.controllers.caller(call)).map(|(host, _)| host);
        let (is_calm, leader) = (self.world.now >= FAULTS_END, self.leading_seat());
        let standbys = self.standbys.as_mut()?;
        Some(match host {
            Some(host) => standbys.called_by(host),
            None if is_calm => leader,
            None => standbys.any_seat(),
        })
    }

    /// A host hears an answer, perhaps that another controller leads.
    pub(crate) fn note_answer(&mut self, host: Host, answer: &Answer) {
        let is_leader = !matches!(answer, Answer::Wait { why: Waiting::Standby | Waiting::Superseded, .. });
        if let Some(standbys) = &mut self.standbys {
            standbys.is_answered(host, is_leader);
        }
    }

    /// Stops the controller if its time as the leader is over, whatever else it is about to do.
    pub(crate) fn stop_leading_in_time(&mut self) {
        let (Some(standbys), present) = (&self.standbys, &mut self.controllers.present) else { return };
        let Some(controller) = &mut present.controller else { return };
        let seat = present.seat;
        if !standbys.contenders[seat].lapses(self.world.now, controller) {
            return;
        }
        if self.store.is_some() {
            // The switch may be there, and only the store be gone.
            self.call_about_lead(seat, true);
        }
        let (now, mut out) = (self.world.now, Vec::new());
        if let Some(controller) = &mut self.controllers.present.controller {
            controller.event(now, Told::StandBy, &mut out);
        }
        self.perform_controller_actions(out);
    }

    /// A controller's process has started.
    pub(crate) fn looks_soon(&mut self, seat: ControllerSeat) {
        let now = self.world.now;
        if let Some(standbys) = &mut self.standbys {
            standbys.looks_at[seat] = now + Nanos(1);
            self.after(Nanos(1), standby(StandbyEvent::Looks(seat)));
        }
    }

    /// How many controllers lead now, by what they believe themselves.
    pub(crate) fn leaders(&self) -> usize {
        let Some(standbys) = &self.standbys else { return 0 };
        let all = [Some(&self.controllers.present), self.controllers.former.as_ref()];
        let leads = |process: &&crate::controller::ControllerProcess| {
            process.controller.as_ref().is_some_and(|controller| {
                let lapses = standbys.contenders[process.seat].lapses(self.world.now, controller);
                !controller.is_standby() && controller.term() != Term(0) && !lapses
            })
        };
        all.into_iter().flatten().filter(leads).count()
    }

    fn standby_failure(&mut self, struck: Struck, failure: StandbyFailure) {
        let seat = struck.unwrap_or_else(|| self.leading_seat());
        self.say(Party::Rack, || format!("FAULT: controller {seat}: {failure:?}"));
        match failure {
            StandbyFailure::CutAll { lasts } => {
                (0..SEATS).for_each(|seat| self.cut_controller(seat, lasts));
            }
            StandbyFailure::Cut { lasts } => self.cut_controller(seat, lasts),
            StandbyFailure::Stall { lasts } => self.on_seat(seat, |rack| rack.stall_controller(lasts)),
            StandbyFailure::AtNextWrite { stalls, lasts } => {
                if let Some(standbys) = &mut self.standbys {
                    standbys.at_next_write[seat] = Some((stalls, lasts));
                }
            }
            StandbyFailure::Kill { down_for } => {
                self.on_seat(seat, |rack| rack.controllers.stop());
                self.after(down_for, standby(StandbyEvent::Back(seat)));
            }
            StandbyFailure::End { down_for } => {
                self.on_seat(seat, |rack| {
                    rack.call_about_lead(seat, true);
                    rack.call_store(seat, true);
                    rack.on_controller_event(Told::StandBy);
                    rack.controllers.stop();
                });
                self.after(down_for, standby(StandbyEvent::Back(seat)));
            }
        }
    }

    /// The controller has sent operations, and something may be to happen to it then.
    pub(crate) fn controller_wrote(&mut self) {
        let seat = self.controllers.present.seat;
        let struck = self.standbys.as_mut().and_then(|standbys| standbys.at_next_write[seat].take());
        let Some((stalls, lasts)) = struck.filter(|_| self.world.now < FAULTS_END) else { return };
        // The write may come long after the failure was due.
        let lasts = lasts.min(FAULTS_END - self.world.now);
        self.say(Party::Rack, || format!("FAULT: controller {seat} in the middle of a write"));
        if stalls { self.stall_controller(lasts) } else { self.cut_controller(seat, lasts) }
    }

    /// Until when the operations of this connection's process are held up.
    pub(crate) fn ops_held_until(&mut self, line: u32) -> Nanos {
        let process = self.standbys.as_ref().and_then(|standbys| standbys.claims.process_of(line));
        let until = |rack: &mut Self| {
            let is_it = process == Some(rack.controllers.present.process);
            let controllers = &rack.controllers;
            if is_it { controllers.stalled_until.max(controllers.cut_until) } else { Nanos(0) }
        };
        let here = until(self);
        here.max(self.as_former(until).unwrap_or_default())
    }

    fn stall_controller(&mut self, lasts: Nanos) {
        self.controllers.stalled_until = self.controllers.stalled_until.max(self.world.now + lasts);
    }

    pub(crate) fn leading_seat(&self) -> ControllerSeat {
        let leads = |process: &crate::controller::ControllerProcess| {
            process.controller.as_ref().is_some_and(|controller| !controller.is_standby())
        };
        let present = &self.controllers.present;
        if leads(present) { present.seat } else { 1 - present.seat }
    }

    fn cut_controller(&mut self, seat: ControllerSeat, lasts: Nanos) {
        self.on_seat(seat, |rack| {
            rack.controllers.cut_until = rack.controllers.cut_until.max(rack.world.now + lasts);
            rack.disconnect_controller();
        });
        self.after(lasts, standby(StandbyEvent::LinkBack(seat)));
    }

    fn look_for_lead(&mut self, seat: ControllerSeat) {
        let (now, stalled_until) = (self.world.now, self.controllers.stalled_until);
        if self.controllers.present.controller.is_none() {
            return;
        }
        let next = if now < stalled_until {
            stalled_until
        } else {
            self.stop_leading_in_time();
            let (Some(standbys), Some(controller)) =
                (&mut self.standbys, &self.controllers.present.controller)
            else {
                return;
            };
            let calls = standbys.contenders[seat].calls(now, controller);
            let next = standbys.contenders[seat].deadline(controller).max(now + Nanos(1));
            if calls {
                self.lead_under_lease(seat, None);
                self.call_about_lead(seat, false);
            }
            next
        };
        if let Some(standbys) = &mut self.standbys {
            standbys.looks_at[seat] = next;
            self.remind(next, standby(StandbyEvent::Looks(seat)));
        }
    }

    pub(crate) fn call_about_lead(&mut self, seat: ControllerSeat, ends: bool) {
        let now = self.world.now;
        let process = self.controllers.present.process;
        let (Some(standbys), Some(controller)) = (&mut self.standbys, &self.controllers.present.controller)
        else {
            return;
        };
        let term = controller.term();
        let call = LeadCall { at: format!("controller {seat}"), term, lease: LEASE, plan: 1, ends };
        if let Some(way) = standbys.way(now).filter(|_| now >= self.controllers.cut_until) {
            self.after(way, standby(StandbyEvent::Call { seat, process, sent: now, call }));
        }
    }

    /// A call reaches the switch, unless the partition is there by now.
    fn lead_call_arrives(&mut self, (seat, process, sent): (ControllerSeat, u32, Nanos), call: LeadCall) {
        let now = self.world.now;
        if now < self.controllers.cut_until {
            return;
        }
        if now < self.switch.stalled_until {
            let again = StandbyEvent::Call { seat, process, sent, call };
            self.remind(self.switch.stalled_until, standby(again));
            return;
        }
        let Some(answer) = self.switch.lead(now, &call) else { return };
        if let Some(way) = self.standbys.as_mut().and_then(|standbys| standbys.way(now)) {
            self.after(way, standby(StandbyEvent::Answered { seat, process, sent, answer }));
        }
    }

    fn lead_answered(&mut self, (seat, process, sent): (ControllerSeat, u32, Nanos), answer: LeadAnswer) {
        let now = self.world.now;
        if now < self.controllers.cut_until || process != self.controllers.present.process {
            return;
        }
        if now < self.controllers.stalled_until {
            let again = StandbyEvent::Answered { seat, process, sent, answer };
            self.remind(self.controllers.stalled_until, standby(again));
            return;
        }
        if self.store.is_some() {
            self.lead_under_lease(seat, Some(&answer));
            return self.looks_soon(seat);
        }
        let (Some(standbys), Some(controller)) = (&mut self.standbys, &self.controllers.present.controller)
        else {
            return;
        };
        if let Some(told) = standbys.contenders[seat].answered(sent, &answer, controller) {
            self.on_controller_event(told);
        }
        self.looks_soon(seat);
    }
}

fn standby(event: StandbyEvent) -> Event {
    Event::Standby(Box::new(event))
}

/// The call that an event of a host or operator is.
const fn call_of(told: &Told) -> Option<CallId> {
    match told {
        Told::WorkerHello { call, .. }
        | Told::WorkerLeave { call, .. }
        | Told::ClientHello { call, .. }
        | Told::ClientLeave { call, .. }
        | Told::ServerHello { call, .. }
        | Told::ServerLeave { call, .. } => Some(*call),
        _ => None,
    }
}
