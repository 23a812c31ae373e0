//! What happens to clients (`nodes::client`).

use sluice_host::client::{Action, Outcome};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Payload, Submit, TaskId};

use super::Submitter;
use crate::datacenter::watch::TaskWatch;
use crate::datacenter::world::{Datacenter, PoolRun, Reminder};
use crate::events::{Address, PacketId};
use crate::nodes::{ClientCall, ClientSide, TaskTag, Try};
use crate::stats::{self, Replied};
use crate::workload::Request;

/// Requests that a client holds back; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

impl<O: TaskWatch> Datacenter<O> {
    /// A pool's next request is drawn.
    #[inline]
    pub(in crate::datacenter) fn draw(&mut self, pool: usize) {
        let arrivals = &mut self.pools[pool].arrivals;
        arrivals.next = arrivals.requests.next();
        let due = arrivals.next.map_or(Nanos(u64::MAX), |request| request.at);
        self.world.engine.set(arrivals.clock, due);
    }

    /// Clients have nothing to ask any more.
    pub(in crate::datacenter) fn end_requests(&mut self) {
        for pool in &mut self.pools {
            pool.arrivals.next = None;
            self.world.engine.set(pool.arrivals.clock, Nanos(u64::MAX));
        }
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    pub(in crate::datacenter) fn request(&mut self, pool: usize) {
        let due = self.pools[pool].arrivals.next;
        self.draw(pool);
        let Some(request) = due else { return };
        self.pool = pool;
        self.pools[pool].meter.sent(self.world.now);
        let machine = self.pools[pool].arrivals.machine();
        if self.machines[machine].backlog.is_empty() && self.submit(machine, &request) {
            return;
        }
        self.hold_back(machine, request);
    }

    /// A client's machine learns of a registration, which may be with another switch than before.
    pub(in crate::datacenter) fn grant_client(&mut self, machine: usize, grant: ClientRegistration) {
        self.pool = self.machines[machine].pool;
        self.machines[machine].front = Address::of(&grant.switch);
        let Ok(()) = self.on_client(machine, |client, now, settings, out| {
            client.grant(now, settings, grant, out);
        });
        self.send_held_back(machine);
    }

    /// A packet comes to a client's machine.
    #[inline]
    pub(in crate::datacenter) fn at_client(&mut self, machine: usize, packet: PacketId) {
        self.pool = self.machines[machine].pool;
        let Ok(()) = self.client_hears(machine, packet);
        self.send_held_back(machine);
    }

    /// A client's machine was to be woken now.
    pub(in crate::datacenter) fn wake(&mut self, machine: usize) {
        self.pool = self.machines[machine].pool;
        let Ok(_) = self.client_wakes(machine);
        self.send_held_back(machine);
    }

    /// Hands a request to the machine; says whether it was taken.
    #[inline]
    fn submit(&mut self, machine: usize, request: &Request) -> bool {
        let arrivals = &self.pools[self.machines[machine].pool].arrivals;
        let deadline = self.client_settings.deadline_default;
        let submission = arrivals.submission(request, deadline, self.has_faults);
        let ClientCall { now, node, settings, out, .. } = self.client(machine);
        let taken = node.machine.submit(now, settings, submission, out).is_ok();
        let Ok(()) = self.client_acts(machine);
        taken
    }

    #[cold]
    fn hold_back(&mut self, machine: usize, request: Request) {
        let Submitter { backlog, pool, .. } = &mut self.machines[machine];
        if backlog.len() < BACKLOG_MAX {
            backlog.push_back(request);
            return;
        }
        self.pools[*pool].meter.failed(request.at, stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back(&mut self, machine: usize) {
        while let Some(request) = self.machines[machine].backlog.pop_front() {
            if !self.submit(machine, &request) {
                self.machines[machine].backlog.push_front(request);
                return;
            }
        }
    }
}

impl<O: TaskWatch> ClientSide for Datacenter<O> {
    #[inline]
    fn client(&mut self, client: usize) -> ClientCall<'_> {
        let Self { machines, client_settings, clients_say, world, .. } = self;
        let node = &mut machines[client].node;
        ClientCall {
            now: world.now,
            node,
            settings: client_settings,
            packets: &world.packets,
            out: clients_say,
        }
    }

    #[inline]
    fn clients_say(&mut self) -> &mut Vec<Action> {
        &mut self.clients_say
    }

    #[inline]
    fn front(&self, client: usize) -> Address {
        self.machines[client].front
    }

    #[inline]
    fn tries(&mut self, submit: &Submit) -> Try<Self, Option<Payload>> {
        let meter = &mut self.pools[self.pool].meter;
        meter.counts.retries += u64::from(submit.attempt.0 > 1);
        meter.observer.tried(submit);
        Ok(None)
    }

    #[inline]
    fn ends(&mut self, client: usize, task: TaskId, tag: u64, how: &Outcome) -> Try<Self> {
        let TaskTag { class, intended } = TaskTag::unpack(tag);
        let PoolRun { meter, intervals, .. } = &mut self.pools[self.machines[client].pool];
        meter.observer.ended(self.world.now, task, how);
        match how {
            Outcome::Reply(reply) => {
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                let served = Nanos(reply.service_ns.into());
                let at = self.world.now;
                if let Some(intervals) = intervals {
                    intervals.take(waited, service);
                }
                meter.observer.done(&Replied { class, intended, at, service, served, waited });
            }
            Outcome::Refused(_) => meter.failed(intended, stats::Outcome::Refused),
            Outcome::Unknown(_) => meter.failed(intended, stats::Outcome::Unknown),
        }
        Ok(())
    }

    fn wake_client(&mut self, at: Nanos, client: usize) {
        self.world.engine.schedule(at, self.machines[client].node.at, Reminder::Client(client as u32));
    }

    fn wakes_clients(&self) -> bool {
        self.has_faults
    }
}
