//! What happens to the clients of a curve (`nodes::client`): an application offers each request when it
//! is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a
//! request was due.

use sluice_events::{Address, PacketId};
use sluice_host::client::{Action, Outcome};
use sluice_nodes::{ClientCall, ClientSide, TaskTag, Try};
use sluice_stats::Replied;
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Payload, Submit, TaskId};
use sluice_workload::Request;

use super::Clients;
use crate::racks::books::Place;
use crate::racks::places::{CLIENTS, Scheduled};
use crate::racks::watch::TaskWatch;
use crate::racks::world::{PoolRun, SimulatedRacks};

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

impl<O: TaskWatch> SimulatedRacks<O> {
    /// A client's machine learns of a registration as it is now, which may be with another switch than
    /// before.
    pub(in crate::racks) fn grant_client(&mut self, client: usize, grant: ClientRegistration) {
        self.clients.all[client].node.switch = Address::of(&grant.switch);
        let Ok(()) =
            self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out));
        self.send_held_back(client);
    }

    /// A pool's next request is drawn.
    #[inline]
    pub(in crate::racks) fn draw(&mut self, pool: usize) {
        let arrivals = &mut self.pools[pool].arrivals;
        arrivals.next = arrivals.requests.next();
        let due = arrivals.next.map_or(Nanos(u64::MAX), |request| request.at);
        self.world.engine.set(arrivals.clock, due);
    }

    /// Clients have nothing to ask any more.
    pub(in crate::racks) fn end_requests(&mut self) {
        for pool in &mut self.pools {
            pool.arrivals.next = None;
            self.world.engine.set(pool.arrivals.clock, Nanos(u64::MAX));
        }
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    pub(in crate::racks) fn request(&mut self, pool: usize) {
        let Some(due) = self.pools[pool].arrivals.next else { return };
        self.draw(pool);
        let client = self.pools[pool].arrivals.machine();
        self.offer(pool, client, due);
        // What is due in the same instant is a job.
        if self.clients.all[client].node.machine.jobs() > 1 {
            while let Some(with_it) = self.pools[pool].arrivals.next.filter(|next| next.at == due.at) {
                self.draw(pool);
                self.offer(pool, client, with_it);
            }
        }
        let Ok(()) = self.client_acts(client);
    }

    /// A request goes to a client.
    #[inline]
    fn offer(&mut self, pool: usize, client: usize, request: Request) {
        let PoolRun { meter, arrivals, .. } = &mut self.pools[pool];
        meter.sent(self.world.now);
        self.books.offered();
        let slice = arrivals.asked.slice[usize::from(request.class)];
        if self.clients.all[client].backlogs[slice].is_empty() && self.submit(client, &request) {
            return;
        }
        self.hold_back(client, slice, request);
    }

    /// A packet comes to a client's machine.
    #[inline]
    pub(in crate::racks) fn at_client(&mut self, client: usize, packet: PacketId) {
        let Ok(()) = self.client_hears(client, packet);
        self.send_held_back(client);
    }

    /// A client was to be woken now.
    pub(in crate::racks) fn wake(&mut self, client: usize) {
        let Ok(_) = self.client_wakes(client);
        self.send_held_back(client);
    }

    /// Hands a request to the machine, which acts afterwards; says whether it was taken.
    #[inline]
    fn submit(&mut self, client: usize, request: &Request) -> bool {
        let Clients { all, settings, retries, .. } = &self.clients;
        let arrivals = &mut self.pools[usize::from(all[client].node.pool)].arrivals;
        let submission = arrivals.submission(request, settings, *retries);
        let ClientCall { now, node, settings, out, .. } = self.client(client);
        let taken = node.machine.submit(now, settings, submission, out).is_ok();
        if taken {
            self.books.moves(Place::Backlog, Place::ToSwitch);
        }
        taken
    }

    #[cold]
    fn hold_back(&mut self, client: usize, slice: usize, request: Request) {
        let submitter = &mut self.clients.all[client];
        if submitter.backlogs[slice].len() < BACKLOG_MAX {
            submitter.backlogs[slice].push_back(request);
            submitter.held_back += 1;
            return;
        }
        self.books.moves(Place::Backlog, Place::PushedBack);
        let meter = &mut self.pools[usize::from(submitter.node.pool)].meter;
        meter.failed(request.at, sluice_stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back(&mut self, client: usize) {
        if self.clients.all[client].held_back > 0 {
            self.try_held_back(client);
        }
    }

    #[cold]
    fn try_held_back(&mut self, client: usize) {
        for slice in 0..self.clients.all[client].backlogs.len() {
            while let Some(request) = self.clients.all[client].backlogs[slice].pop_front() {
                self.clients.all[client].held_back -= 1;
                if !self.submit(client, &request) {
                    self.clients.all[client].held_back += 1;
                    self.clients.all[client].backlogs[slice].push_front(request);
                    break;
                }
            }
        }
        let Ok(()) = self.client_acts(client);
    }
}

impl<O: TaskWatch> ClientSide for SimulatedRacks<O> {
    #[inline]
    fn client(&mut self, client: usize) -> ClientCall<'_> {
        let Clients { all, settings, actions, .. } = &mut self.clients;
        let world = &self.world;
        let node = &mut all[client].node;
        ClientCall { now: world.now, node, settings, packets: &world.packets, out: actions }
    }

    #[inline]
    fn clients_say(&mut self) -> &mut Vec<Action> {
        &mut self.clients.actions
    }

    #[inline]
    fn tries(&mut self, client: usize, submit: &Submit) -> Try<Self, Option<Payload>> {
        let meter = &mut self.pools[usize::from(self.clients.all[client].node.pool)].meter;
        if submit.attempt.0 > 1 {
            meter.counts.retries += 1;
            self.books.moves(Place::ToClient, Place::ToSwitch);
        }
        meter.observer.tried(submit);
        Ok(None)
    }

    #[inline]
    fn ends(&mut self, client: usize, task: TaskId, tag: u64, how: &Outcome) -> Try<Self> {
        let TaskTag { class, intended } = TaskTag::unpack(tag);
        let Self { world, pools, books, clients, .. } = self;
        let PoolRun { meter, intervals, .. } = &mut pools[usize::from(clients.all[client].node.pool)];
        meter.observer.ended(world.now, task, how);
        match how {
            Outcome::Reply(reply) => {
                books.moves(Place::ToClient, Place::Done);
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                let served = Nanos(reply.service_ns.into());
                let at = world.now;
                if let Some(intervals) = intervals {
                    intervals.take(waited, service);
                }
                meter.observer.done(&Replied { class, intended, at, service, served, waited });
            }
            Outcome::Refused(_) => {
                books.moves(Place::ToClient, Place::Refused);
                meter.failed(intended, sluice_stats::Outcome::Refused);
            }
            Outcome::Unknown(_) => {
                books.moves(Place::ToClient, Place::Unknown);
                meter.failed(intended, sluice_stats::Outcome::Unknown);
            }
        }
        Ok(())
    }

    fn wake_client(&mut self, at: Nanos, client: usize) {
        self.schedule(at, CLIENTS.at(client as u32), Scheduled::Tick);
    }

    fn wakes_clients(&self) -> bool {
        self.clients.retries
    }
}
