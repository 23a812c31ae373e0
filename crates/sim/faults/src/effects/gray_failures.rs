//! Gray failures, beside those of whole processes: links that work in one direction only, a switch that
//! stands still and goes on with its state, hosts that change their address within a life, and hosts that
//! leave with work unfinished.
//!
//! They are drawn from a stream of their own, so that the process failures of a seed stay unchanged. Left
//! out: a connection between controller and switch that works in one direction. That connection is cut as a
//! whole, and operations are carried out whose answers are lost.

use sluice_control::Event as Told;
use sluice_events::Mail;
use sluice_wire::Packet;

use crate::event::Event;
use crate::hosts::{Host, SWITCH};
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

    pub(crate) fn calls_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Host(self.process_at(host)), End::Controller)
    }

    pub(crate) fn answers_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Controller, End::Host(self.process_at(host)))
    }

    /// The host that stands for this host's process: for a lane, the first lane of its server.
    pub(crate) fn process_at(&self, host: Host) -> Host {
        match host {
            Host::Worker(worker) => Host::Worker(self.scenario.process_of(worker).start),
            other => other,
        }
    }

    fn end_at(&self, end: End) -> End {
        match end {
            End::Host(host) => End::Host(self.process_at(host)),
            other => other,
        }
    }

    fn is_closed(&self, from: End, to: End) -> bool {
        self.world.network.injector.partitions.is_closed(self.world.now, Some(from), Some(to))
    }

    /// Keeps a packet back that arrives at a switch which stands still.
    pub(crate) fn hold_up(&mut self, event: Event) -> Option<Event> {
        let waits = match &event {
            Event::Mail(to, _) => to.at(0) == SWITCH,
            Event::Op { .. } | Event::Nak { .. } => true,
            _ => false,
        };
        if !waits || self.world.now >= self.switch.stalled_until {
            return Some(event);
        }
        self.switch.unread.push((self.world.now, event));
        None
    }

    /// The switch goes on, unless a second stall lasts longer. It handles what arrived in that order. A
    /// task that lay in the socket meanwhile is older by that time, and its budget less, as a live switch
    /// counts it.
    pub(crate) fn resume_switch(&mut self) -> Result<(), String> {
        if self.world.now < self.switch.stalled_until {
            return Ok(());
        }
        for (came, event) in std::mem::take(&mut self.switch.unread) {
            if let Event::Mail(_, Mail::Packet { packet, .. }) = &event {
                let late = self.world.now.since(came);
                match self.world.packets.get_mut(*packet) {
                    Packet::Submit(submit) => *submit = submit.after(late),
                    Packet::Job(job) => *job = job.after(late),
                    _ => {}
                }
            }
            self.happen(event)?;
        }
        Ok(())
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
