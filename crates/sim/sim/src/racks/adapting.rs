//! The changes at an interval's end: depths change at once, and slices through the controller.
//!
//! Agents report to the controller. When it has all reports, it evens out depths, or moves workers by the
//! rules of generations: close, raise, read, reset, and open in the other slice, while their old tokens are
//! swept. A worker is told its new registration as soon as it is complete. Hosts renew when an interval
//! ends. Live hosts renew four times a second, and until then clients have more tasks outstanding than
//! lowered depths leave room for, or fewer than raised depths allow.

use sluice_control::{Action, Answer, ClientHello, Event, WorkerHello};
use sluice_host::agent::Decision;
use sluice_nodes::names;
use sluice_switch::Arrival;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, WorkerId};

use super::adaptation::IntervalEnd;
use super::effects::SwitchPass;
use super::places::{LEAVES, Scheduled};
use super::watch::TaskObserver;
use super::world::{RackLead, SimulatedRacks};

/// The time of a controller's step on the switch, there and back. A move takes a worker out for four steps.
const STEP: Nanos = Nanos::from_micros(25);

impl<O: TaskObserver> SimulatedRacks<O> {
    /// If there are agents, begins their first interval and lets the controller run on.
    pub(super) fn begin_adapting(&mut self) {
        if let Some(adaptation) = &self.workers.adaptation {
            self.schedule(adaptation.deadline(), LEAVES, Scheduled::Adapts);
            self.carry_out(Vec::new());
        }
    }

    /// An interval ends: changes depths at once, and reports to the controller.
    pub(super) fn adapt(&mut self) {
        let now = self.world.now;
        let Some(end) = self.workers.interval_ends(now) else { return };
        let IntervalEnd { next, advises, decisions, reports } = end;
        for Decision { worker, to, .. } in decisions {
            self.set_depth(worker, to);
        }
        if let Some(adaptation) = &mut self.workers.adaptation {
            adaptation.note(now, &reports);
        }
        for (index, tallies) in reports.into_iter().enumerate() {
            self.tell(Event::Tallies { server: names::agent(index), advises, tallies });
        }
        self.renew();
        if self.pools[0].arrivals.has_more() {
            self.schedule(next, LEAVES, Scheduled::Adapts);
        }
    }

    /// The controller does what is due.
    pub(super) fn controls(&mut self) {
        let (now, controller) = (self.world.now, &mut self.rack().controller);
        if controller.is_due(now) {
            let actions = controller.tick(now);
            self.carry_out(actions);
        }
    }

    /// The switch carries out the controller's next step, and answers.
    pub(super) fn carry_out_step(&mut self) {
        let Some(step) = self.rack().controller.next_step() else { return };
        let answer = self.leaves[0].program().table(step);
        if let TableOp::Inject(sweep) = step {
            self.pass(&SwitchPass { at: LEAVES, pool: 0, tasks: 0 }, Arrival::Control(sweep));
        }
        self.tell(Event::TableAnswered(answer));
        for worker in 0..self.workers.all.len() as u32 {
            let RackLead { controller, registrations, .. } = self.rack();
            if controller.has_changed(&registrations[worker as usize]) {
                self.renew_worker(worker);
            }
        }
    }

    /// All hosts renew, because the tasks that clients may have outstanding depend on the depths.
    fn renew(&mut self) {
        for server in 0..self.workers.servers.count() {
            self.renew_server(server);
        }
        for worker in 0..self.workers.all.len() as u32 {
            self.renew_worker(worker);
        }
        for client in 0..self.clients.all.len() as u16 {
            let (call, floor) = (self.rack().controller.call(), self.clients.floor(client));
            let hello = ClientHello { floor, ..self.rack().plan.client_hello(client) };
            self.tell(Event::ClientHello { call, hello });
        }
    }

    fn renew_server(&mut self, server: usize) {
        let hello = self.workers.servers.hello(server);
        let call = self.rack().controller.call();
        self.tell(Event::ServerHello { call, hello });
    }

    fn renew_worker(&mut self, worker: u32) {
        let server = self.workers.servers.name_for(worker);
        let RackLead { controller, plan, registrations } = self.rack();
        let WorkerRegistration { worker: id, key, generation, quota, .. } = registrations[worker as usize];
        let held = Some((id, key, generation));
        let hello = WorkerHello { quota, held, ..plan.worker_hello(worker, server) };
        let call = controller.call();
        self.tell(Event::WorkerHello { call, hello });
    }

    fn tell(&mut self, event: Event) {
        let now = self.world.now;
        let actions = self.rack().controller.tell(now, event);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Answer { answer: Answer::Worker(grant), .. } => {
                    self.granted(grant.registration);
                }
                Action::Answer { answer: Answer::Client(grant), .. } => {
                    self.grant_client(grant.registration.client.0.into(), grant.registration);
                }
                Action::SetDepth { worker, depth } => self.set_depth(worker, depth),
                Action::TellAgent { server, others } => {
                    if let Some(adaptation) = &mut self.workers.adaptation {
                        adaptation.add_others(&server, &others);
                    }
                }
                Action::Table(_) => {
                    self.schedule(self.world.now + STEP, LEAVES, Scheduled::Step);
                }
                Action::Answer { .. } | Action::Note(_) => {}
            }
        }
        let now = self.world.now;
        if self.pools[0].arrivals.has_more()
            && let Some(due) = self.rack().controller.wake_at(now)
        {
            self.schedule(due, LEAVES, Scheduled::Controls);
        }
    }

    fn set_depth(&mut self, worker: WorkerId, depth: u8) {
        let now = self.world.now;
        let adaptation = self.workers.adaptation.as_mut();
        if adaptation.is_some_and(|adaptation| adaptation.set_depth(now, worker, depth)) {
            self.rack().registrations[usize::from(worker.0)].quota = depth;
            self.set_quota(worker.0.into(), depth);
        }
    }

    /// A worker that was lent begins anew in its new slice, and its server keeps a ring there; other
    /// workers take the new registration.
    fn granted(&mut self, grant: WorkerRegistration) {
        let worker = u32::from(grant.worker.0);
        let held = &mut self.rack().registrations[worker as usize];
        if std::mem::replace(held, grant).generation == grant.generation {
            return;
        }
        if let Some(adaptation) = &mut self.workers.adaptation {
            adaptation.granted(self.world.now, &grant);
        }
        self.grant_worker(worker as usize, grant);
        if let Some(server) = self.workers.servers.without_ring(worker, grant.slice) {
            self.workers.servers.keep(server, grant.slice);
            self.renew_server(server);
        }
    }
}
