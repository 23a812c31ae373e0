//! `AwaitChange`: a worker that was granted a row asks to be told when the row changes, and then renews at
//! once instead of at its next heartbeat. The call ends with the controller that it was made to.

use crate::controller::{Await, CALL_WAY};
use crate::event::Event;
use crate::hosts::Host;
use crate::network::CALLS;
use crate::oracle::Life;
use crate::rack::Rack;
use crate::replay_log::Party;

impl Rack<'_> {
    pub(crate) fn await_change(&mut self, worker: usize) {
        let host = Host::Worker(worker);
        if self.host_is_cut(host) || !self.calls_get_through(host) {
            return;
        }
        let node = &self.workers[worker];
        let Some(grant) = node.grant else { return };
        let call = Await { worker, life: node.life, row: grant.worker, known: (grant.key, grant.generation) };
        let [at, _] = self.arrivals(CALLS);
        if let Some(at) = at {
            self.remind(at + CALL_WAY, Event::Await(call));
        }
    }

    /// The call arrives at the controller. A worker that asks again has ended its earlier call.
    pub(crate) fn await_arrives(&mut self, call: Await) {
        match self.standbys.as_mut().map(|standbys| standbys.called_by(Host::Worker(call.worker))) {
            Some(seat) => self.on_seat(seat, |rack| rack.await_arrives_here(call)),
            None => self.await_arrives_here(call),
        }
    }

    fn await_arrives_here(&mut self, call: Await) {
        if self.world.now < self.controllers.stalled_until {
            self.remind(self.controllers.stalled_until, Event::Await(call));
        } else if self.controllers.present.controller.is_some() {
            self.controllers.present.awaits.retain(|other| other.worker != call.worker);
            self.controllers.present.awaits.push(call);
            self.tell_who_awaits();
        }
    }

    /// The worker is told of the change.
    pub(crate) fn changed(&mut self, worker: usize, life: Life) {
        let host = Host::Worker(worker);
        if self.life_of(host) != life || life == 0 || self.host_is_cut(host) {
            return;
        }
        let thaws = self.session(host).frozen_until;
        if self.world.now < thaws {
            self.remind(thaws, Event::Changed { worker, life });
            return;
        }
        self.say(Party::Worker(worker), || "hears that its registration is another".to_owned());
        self.renew(host);
    }
}
