//! What happens to the clients of a curve, and what follows from what they say (`nodes::client`): an
//! application offers each request when it is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a
//! request was due.

use std::mem;

use sluice_events::{Address, PacketId};
use sluice_host::client::{Action, Bundle, Client, ClientSettings, CutOff, Outcome, RefusedWhy};
use sluice_nodes::{ClientEffect, PacketSource, TaskTag, bundled, write_submit};
use sluice_stats::Replied;
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Submit, TaskId};
use sluice_workload::Request;

use crate::racks::clients::Clients;
use crate::racks::places::{CLIENTS, Scheduled};
use crate::racks::task_places::Place;
use crate::racks::watch::TaskObserver;
use crate::racks::world::{PoolRun, SimulatedRacks};

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

impl<O: TaskObserver> SimulatedRacks<O> {
    /// A client's machine learns of a registration as it is now, which may be with another switch than
    /// before.
    pub(in crate::racks) fn grant_client(&mut self, client: usize, grant: ClientRegistration) {
        self.clients.all[client].node.switch = Address::of(&grant.switch);
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
        self.perform_client_actions(client);
    }

    /// A request goes to a client.
    #[inline]
    fn offer(&mut self, pool: usize, client: usize, request: Request) {
        let PoolRun { meter, arrivals, .. } = &mut self.pools[pool];
        meter.sent(self.world.now);
        if let Some(clients) = meter.open_clients() {
            clients.offered(client);
        }
        self.task_places.offered();
        let slice = arrivals.asked.slice[usize::from(request.class)];
        if self.clients.all[client].backlogs[slice].is_empty() && self.submit(client, &request) {
            return;
        }
        self.hold_back(client, slice, request);
    }

    /// A packet comes to a client's machine.
    #[inline]
    pub(in crate::racks) fn at_client(&mut self, client: usize, packet: PacketId) {
        let Self { world, clients, .. } = self;
        let Clients { all, settings, actions, .. } = clients;
        all[client].node.machine.packet(world.now, settings, world.packets.get(packet), actions);
        world.packets.free(packet);
        self.perform_client_actions(client);
        self.send_held_back(client);
    }

    /// A client was to be woken now.
    pub(in crate::racks) fn wake(&mut self, client: usize) {
        let (now, Clients { all, settings, actions, .. }) = (self.world.now, &mut self.clients);
        let node = &mut all[client].node;
        if node.wakeup.fires(now) {
            node.machine.tick(now, settings, actions);
            self.perform_client_actions(client);
        }
        self.send_held_back(client);
    }

    /// Calls a client's machine, and does what it says.
    pub(in crate::racks) fn on_client(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Client, Nanos, &ClientSettings, &mut Vec<Action>),
    ) {
        let Clients { all, settings, actions, .. } = &mut self.clients;
        call(&mut all[client].node.machine, self.world.now, settings, actions);
        self.perform_client_actions(client);
    }

    /// Hands a request to the machine, which acts afterwards; says whether it was taken.
    #[inline]
    fn submit(&mut self, client: usize, request: &Request) -> bool {
        let Clients { all, settings, retries, actions } = &mut self.clients;
        let node = &mut all[client].node;
        let arrivals = &mut self.pools[usize::from(node.pool)].arrivals;
        let submission = arrivals.submission(request, settings, *retries);
        let taken = node.machine.submit(self.world.now, settings, submission, actions).is_ok();
        if taken {
            self.task_places.move_task(Place::Backlog, Place::ToSwitch);
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
        self.task_places.move_task(Place::Backlog, Place::PushedBack);
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
        self.perform_client_actions(client);
    }
}

impl<O: TaskObserver> SimulatedRacks<O> {
    /// Does what a client's machine said.
    #[inline]
    fn perform_client_actions(&mut self, client: usize) {
        let node = &self.clients.all[client].node;
        let (sender, mut bundle) = (node.sender(), Bundle::new(node.machine.jobs()));
        let mut actions = mem::take(&mut self.clients.actions);
        for action in &actions {
            match ClientEffect::of(action, sender) {
                ClientEffect::Try(submit) => self.tries(sender, submit, &mut bundle),
                ClientEffect::Ended { task, attempts, tag, how } => {
                    self.ends(sender, task, (attempts, tag), how);
                }
                ClientEffect::Send(to, packet) => {
                    self.send(sender, to, self.world.now, |place| *place = packet);
                }
                // The bytes of a curve's tasks are nowhere, and its controller is asked elsewhere.
                ClientEffect::Keep(_) => {}
            }
        }
        if let Some(packet) = bundle.close() {
            self.send(sender, sender.switch, self.world.now, |place| *place = packet);
        }
        actions.clear();
        self.clients.actions = actions;
        if self.clients.retries {
            self.arm_client(client);
        }
    }

    /// A try of a task leaves.
    #[inline]
    fn tries(&mut self, sender: PacketSource, submit: &Submit, bundle: &mut Bundle) {
        let meter = &mut self.pools[usize::from(sender.pool)].meter;
        if submit.attempt.0 > 1 {
            meter.counts.retries += 1;
            self.task_places.move_task(Place::ToClient, Place::ToSwitch);
        }
        meter.observer.tried(submit);
        let now = self.world.now;
        if bundle.is_off() {
            return self.send(sender, sender.switch, now, |place| write_submit(place, submit, None));
        }
        for packet in bundled(bundle, submit) {
            self.send(sender, sender.switch, now, |place| *place = packet);
        }
    }

    #[inline]
    fn ends(&mut self, sender: PacketSource, task: TaskId, (attempts, tag): (u16, u64), how: &Outcome) {
        let TaskTag { class, intended } = TaskTag::unpack(tag);
        let Self { world, pools, task_places, .. } = self;
        let PoolRun { meter, intervals, .. } = &mut pools[usize::from(sender.pool)];
        meter.observer.ended(world.now, task, how);
        match how {
            Outcome::Reply(reply) => {
                task_places.move_task(Place::ToClient, Place::Done);
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                meter.waited_in_switch(reply.switch_wait_ns);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                let served = Nanos(reply.service_ns.into());
                let at = world.now;
                if let Some(intervals) = intervals {
                    intervals.take(waited, service);
                }
                if let Some(clients) = meter.open_clients() {
                    clients.replied(sender.at.place() as usize);
                }
                meter.observer.done(&Replied { class, intended, at, service, served, waited });
            }
            Outcome::Refused(why) => {
                let from = if attempts > 0 { Place::ToClient } else { Place::ToSwitch };
                task_places.move_task(from, Place::Refused);
                meter.failed(intended, refusal(*why));
            }
            Outcome::Unknown(_) => {
                task_places.move_task(Place::ToClient, Place::Unknown);
                meter.failed(intended, sluice_stats::Outcome::Unknown);
            }
        }
    }

    /// Asks to be woken for what the machine wants next.
    fn arm_client(&mut self, client: usize) {
        let (now, node) = (self.world.now, &mut self.clients.all[client].node);
        if let Some(due) = node.wakes_at(node.machine.deadline(), now) {
            self.schedule(due, CLIENTS.at(client as u32), Scheduled::Tick);
        }
    }
}

/// How a refused task is counted.
const fn refusal(why: RefusedWhy) -> sluice_stats::Outcome {
    match why {
        RefusedWhy::Late(CutOff::Client) => sluice_stats::Outcome::LateAtClient,
        RefusedWhy::Late(CutOff::Switch) => sluice_stats::Outcome::LateInSwitch,
        RefusedWhy::Late(CutOff::Worker) => sluice_stats::Outcome::LateAtWorker,
        _ => sluice_stats::Outcome::Refused,
    }
}
