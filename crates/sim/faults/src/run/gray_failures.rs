//! Gray failures, beside those of whole processes: links that work in one direction only, a switch that
//! stands still and goes on with its state, hosts that change their address within a life, and hosts that
//! leave with work unfinished.
//!
//! They are drawn from a stream of their own, so that the process failures of a seed stay unchanged. Left
//! out: a connection between controller and switch that works in one direction. That connection is cut as a
//! whole, and operations are carried out whose answers are lost.

use sluice_control::Event as Told;

use crate::event::Event;
use crate::hosts::Host;
use crate::partitions::End;
use crate::rack::Rack;
use crate::replay_log;
use crate::scenario::GrayFailure;

impl Rack<'_> {
    pub(crate) fn gray_failure(&mut self, gray_failure: GrayFailure) -> Result<(), String> {
        let (who, what) = replay_log::gray_failure(&gray_failure);
        self.say(who, || what);
        match gray_failure {
            GrayFailure::OneWay { from, to, lasts } => {
                let [from, to] = [from, to].map(|end| self.end_at(end));
                self.world.network.injector.partitions.close(from, to, self.world.now + lasts);
            }
            GrayFailure::SwitchStall { lasts } => {
                self.switch.stalled_until = self.switch.stalled_until.max(self.world.now + lasts);
                self.after(lasts, Event::SwitchGoesOn);
            }
            GrayFailure::NewAddress(Host::Worker(worker)) => {
                let process = self.scenario.process_of(worker);
                let first = process.start;
                self.workers[process].iter_mut().for_each(|worker| worker.change_address(first));
            }
            GrayFailure::NewAddress(Host::Client(client)) => self.clients[client].change_address(),
            // A server's queue pair is bound to its address, so a server keeps its address.
            GrayFailure::NewAddress(Host::Server(_)) => {}
            GrayFailure::ClientLeave(client) => self.client_leaves(client),
            GrayFailure::WorkerQuits { worker, gone_after, back_after } => {
                if self.workers[worker].lives() && !self.workers[worker].leaving {
                    self.leave(worker)?;
                }
                self.after(gone_after, Event::GrayFailure(GrayFailure::WorkerGone { worker, back_after }));
            }
            GrayFailure::WorkerGone { worker, back_after } => {
                self.process_ends(worker);
                self.after(back_after, Event::WorkerBack(worker));
            }
        }
        Ok(())
    }

    fn end_at(&self, end: End) -> End {
        match end {
            End::Host(host) => End::Host(self.process_at(host)),
            other => other,
        }
    }

    fn client_leaves(&mut self, client: usize) {
        let incarnation = self.clients[client].incarnation;
        if self.calls_get_through(Host::Client(client)) {
            let call = self.controllers.call(Host::Client(client), incarnation.0);
            let name = self.clients[client].name();
            self.call(Told::ClientLeave { call, name, incarnation });
        }
        self.oracle.abandoned(incarnation);
        self.start_client(client);
    }
}
