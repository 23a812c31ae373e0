//! What happens to the clients of a curve (`nodes::client`): an application offers each request when it
//! is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a
//! request was due.

use sluice_host::client::{Action, Outcome};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Payload, Submit, TaskId};

use super::Clients;
use crate::events::{Address, PacketId};
use crate::nodes::{ClientCall, ClientSide, TaskTag, Try};
use crate::rack::books::Place;
use crate::rack::nodes::Staged;
use crate::rack::stage::{Scheduled, Stage};
use crate::stats::{self, Observer, Replied};
use crate::workload::Request;

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

impl<O: Observer> Staged<'_, O> {
    /// A client learns of its registration, as it is now.
    pub(in crate::rack) fn grant_client(&mut self, grant: ClientRegistration) {
        let client = usize::from(grant.client.0);
        let Ok(()) =
            self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out));
        self.send_held_back(client);
    }

    /// The next request is drawn.
    #[inline]
    pub(in crate::rack) fn draw(&mut self) {
        let clients = &mut self.nodes.clients;
        clients.next = clients.requests.next();
        let due = clients.next.map_or(Nanos(u64::MAX), |request| request.at);
        self.stage.world.engine.set(clients.clock, due);
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    pub(in crate::rack) fn request(&mut self) {
        let Some(due) = self.nodes.clients.next else { return };
        self.draw();
        let client = self.nodes.clients.next_in_turn();
        self.offer(client, due);
        // What is due in the same instant is a job.
        if self.nodes.clients.all[client].node.machine.jobs() > 1 {
            while let Some(with_it) = self.nodes.clients.next.filter(|next| next.at == due.at) {
                self.draw();
                self.offer(client, with_it);
            }
        }
        let Ok(()) = self.client_acts(client);
    }

    /// A request goes to a client.
    #[inline]
    fn offer(&mut self, client: usize, request: Request) {
        self.stage.meter.sent(self.stage.world.now);
        self.stage.books.offered();
        let clients = &self.nodes.clients;
        let slice = clients.asked.slice[usize::from(request.class)];
        if clients.all[client].backlogs[slice].is_empty() && self.submit(client, &request) {
            return;
        }
        self.hold_back(client, slice, request);
    }

    /// A packet comes to a client.
    #[inline]
    pub(in crate::rack) fn at_client(&mut self, client: u32, packet: PacketId) {
        let Ok(()) = self.client_hears(client as usize, packet);
        self.send_held_back(client as usize);
    }

    /// A client was to be woken now.
    pub(in crate::rack) fn wake(&mut self, client: usize) {
        let Ok(_) = self.client_wakes(client);
        self.send_held_back(client);
    }

    /// Hands a request to the machine, which acts afterwards; says whether it was taken.
    #[inline]
    fn submit(&mut self, client: usize, request: &Request) -> bool {
        let submission = self.nodes.clients.submission(request);
        let ClientCall { now, node, settings, out, .. } = self.client(client);
        let taken = node.machine.submit(now, settings, submission, out).is_ok();
        if taken {
            self.stage.books.moves(Place::Backlog, Place::ToSwitch);
        }
        taken
    }

    #[cold]
    fn hold_back(&mut self, client: usize, slice: usize, request: Request) {
        let submitter = &mut self.nodes.clients.all[client];
        if submitter.backlogs[slice].len() < BACKLOG_MAX {
            submitter.backlogs[slice].push_back(request);
            submitter.held_back += 1;
            return;
        }
        self.stage.books.moves(Place::Backlog, Place::PushedBack);
        self.stage.meter.failed(request.at, stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back(&mut self, client: usize) {
        if self.nodes.clients.all[client].held_back > 0 {
            self.try_held_back(client);
        }
    }

    #[cold]
    fn try_held_back(&mut self, client: usize) {
        for slice in 0..self.nodes.plan.slices() {
            while let Some(request) = self.nodes.clients.all[client].backlogs[slice].pop_front() {
                self.nodes.clients.all[client].held_back -= 1;
                if !self.submit(client, &request) {
                    self.nodes.clients.all[client].held_back += 1;
                    self.nodes.clients.all[client].backlogs[slice].push_front(request);
                    break;
                }
            }
        }
        let Ok(()) = self.client_acts(client);
    }
}

impl<O: Observer> ClientSide for Staged<'_, O> {
    #[inline]
    fn client(&mut self, client: usize) -> ClientCall<'_> {
        let Clients { all, settings, actions, .. } = &mut self.nodes.clients;
        let world = &self.stage.world;
        let node = &mut all[client].node;
        ClientCall { now: world.now, node, settings, packets: &world.packets, out: actions }
    }

    #[inline]
    fn clients_say(&mut self) -> &mut Vec<Action> {
        &mut self.nodes.clients.actions
    }

    #[inline]
    fn front(&self, _: usize) -> Address {
        self.nodes.plan.places.front
    }

    #[inline]
    fn tries(&mut self, submit: &Submit) -> Try<Self, Option<Payload>> {
        if submit.attempt.0 > 1 {
            self.stage.meter.counts.retries += 1;
            self.stage.books.moves(Place::ToClient, Place::ToSwitch);
        }
        Ok(None)
    }

    #[inline]
    fn ends(&mut self, _: usize, _: TaskId, tag: u64, how: &Outcome) -> Try<Self> {
        let TaskTag { class, intended } = TaskTag::unpack(tag);
        let Stage { world, meter, books, .. } = &mut *self.stage;
        match how {
            Outcome::Reply(reply) => {
                books.moves(Place::ToClient, Place::Done);
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                let served = Nanos(reply.service_ns.into());
                let at = world.now;
                meter.observer.done(&Replied { class, intended, at, service, served, waited });
            }
            Outcome::Refused(_) => {
                books.moves(Place::ToClient, Place::Refused);
                meter.failed(intended, stats::Outcome::Refused);
            }
            Outcome::Unknown(_) => {
                books.moves(Place::ToClient, Place::Unknown);
                meter.failed(intended, stats::Outcome::Unknown);
            }
        }
        Ok(())
    }

    fn wake_client(&mut self, at: Nanos, client: usize) {
        self.stage.schedule(at, self.nodes.plan.places.clients.at(client as u32), Scheduled::Tick);
    }

    fn wakes_clients(&self) -> bool {
        self.nodes.clients.retries
    }
}
