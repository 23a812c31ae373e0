//! The calls of controllers to the store that grants a lease to one of them.

use sluice_control::{Event as Told, LeadAnswer};
use sluice_wire::Nanos;

use crate::event::Event;
use crate::limits::LEASE;
use crate::rack::Rack;
use crate::replay_log::Party;
use crate::standbys::{ControllerSeat, SEATS, StandbyEvent, StoreFailure, Struck};
use crate::store::LeaseStore;

/// How often in a lease a controller calls the store.
const CALLS_PER_LEASE: u64 = 8;

impl Rack<'_> {
    pub(crate) fn start_store(&mut self) {
        let Some(failures) = self.store.as_mut().map(LeaseStore::draw) else { return };
        for (at, struck, failure) in failures {
            self.remind(at, event(StandbyEvent::StoreFailure(struck, failure)));
        }
        for seat in 0..SEATS {
            self.after(Nanos(1), event(StandbyEvent::AsksStore(seat)));
        }
    }

    pub(crate) fn store_failure(&mut self, struck: Struck, failure: StoreFailure) {
        let (now, seat) = (self.world.now, struck.unwrap_or_else(|| self.leading_seat()));
        self.say(Party::Rack, || format!("FAULT: store, as controller {seat} sees it: {failure:?}"));
        if let Some(store) = &mut self.store {
            store.fails(now, seat, failure);
        }
    }

    /// The controller of this seat, which may act now, calls the store.
    pub(crate) fn asks_store(&mut self, seat: ControllerSeat) {
        let next = self.controllers.stalled_until.max(self.world.now + Nanos(LEASE.0 / CALLS_PER_LEASE));
        if self.world.now >= self.controllers.stalled_until && self.controllers.present.controller.is_some() {
            self.call_store(seat, false);
        }
        self.remind(next, event(StandbyEvent::AsksStore(seat)));
    }

    pub(crate) fn call_store(&mut self, seat: ControllerSeat, ends: bool) {
        let (sent, process) = (self.world.now, self.controllers.present.process);
        if let Some(way) = self.store.as_mut().and_then(|store| store.way(sent, seat)) {
            self.after(way, event(StandbyEvent::StoreHears { seat, process, sent, ends }));
        }
    }

    pub(crate) fn store_hears(&mut self, (seat, process, sent): (ControllerSeat, u32, Nanos), ends: bool) {
        let now = self.world.now;
        let Some(store) = &mut self.store else { return };
        if let Some(holds) = store.asked(now, seat, process, ends)
            && let Some(way) = store.way(now, seat)
        {
            self.after(way, event(StandbyEvent::StoreSays { seat, process, sent, holds }));
        }
    }

    pub(crate) fn store_says(&mut self, (seat, process, sent): (ControllerSeat, u32, Nanos), holds: bool) {
        if process != self.controllers.present.process {
            return;
        }
        if self.world.now < self.controllers.stalled_until {
            let again = StandbyEvent::StoreSays { seat, process, sent, holds };
            return self.remind(self.controllers.stalled_until, event(again));
        }
        if let Some(store) = &mut self.store {
            store.answered(seat, sent, holds);
        }
    }

    /// The controller of this seat takes the switch's answer to its call of `sent`, or has to do without one
    /// for the moment, in a rack with a store.
    pub(crate) fn lead_under_lease(&mut self, seat: ControllerSeat, answer: Option<&LeadAnswer>) {
        let now = self.world.now;
        let Some(lease) = self.store.as_ref().map(|store| store.lease(now, seat)) else { return };
        let (Some(standbys), Some(controller)) = (&mut self.standbys, &self.controllers.present.controller)
        else {
            return;
        };
        let told = standbys.contenders[seat].answered_under(lease, answer, controller);
        if told == Some(Told::StandBy) {
            // So that the next holder of the lease need not wait for the switch.
            self.call_about_lead(seat, true);
        }
        if let Some(told) = told {
            self.on_controller_event(told);
        }
    }
}

fn event(event: StandbyEvent) -> Event {
    Event::Standby(Box::new(event))
}
