//! What an interval's end changes in a rack: depths at once, and through the controller what follows for
//! slices.
//!
//! Agents report to the controller. Once it has gathered what all of them say it evens out depths, or moves
//! workers by the generation rules: closed, raised, read, reset, and opened elsewhere, while their old tokens
//! are swept. A worker hears of its new registration as soon as it stands. Hosts renew when an interval ends:
//! real ones do so four times a second, and for as long clients have more outstanding than fallen depths
//! leave room for, or less than risen ones do.

use sluice_control::{Action, Answer, ClientHello, Event, WorkerHello};
use sluice_host::agent::Decision;
use sluice_switch::Arrival;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, WorkerId};

use super::adaptation::IntervalEnd;
use super::nodes::{Nodes, Staged};
use super::stage::Scheduled;
use crate::names;
use crate::nodes::SwitchSide;
use crate::stats::Observer;

/// What a step on the switch takes the controller, there and back. A worker that moves is away for four.
const STEP: Nanos = Nanos::from_micros(25);

impl<O: Observer> Staged<'_, O> {
    /// If there are agents, their first interval begins, and the controller goes on.
    pub(super) fn begin_adapting(&mut self) {
        if let Some(adaptation) = &self.nodes.workers.adaptation {
            self.stage.schedule(adaptation.deadline(), self.nodes.plan.places.switch, Scheduled::Adapts);
            self.carry_out(Vec::new());
        }
    }

    /// An interval ends: depths change at once, and the controller hears of it.
    pub(super) fn adapt(&mut self) {
        let now = self.stage.now();
        let Some(end) = self.nodes.workers.interval_ends(now) else { return };
        let IntervalEnd { next, advises, decisions, reports } = end;
        for Decision { worker, to, .. } in decisions {
            self.set_depth(worker, to);
        }
        if let Some(adaptation) = &mut self.nodes.workers.adaptation {
            adaptation.note(now, &reports);
        }
        for (index, tallies) in reports.into_iter().enumerate() {
            self.tell(Event::Tallies { server: names::agent(index), advises, tallies });
        }
        self.renew();
        if self.nodes.clients.has_more() {
            self.stage.schedule(next, self.nodes.plan.places.switch, Scheduled::Adapts);
        }
    }

    /// The controller does what is due.
    pub(super) fn controls(&mut self) {
        if self.nodes.controller.is_due(self.stage.now()) {
            let actions = self.nodes.controller.tick(self.stage.now());
            self.carry_out(actions);
        }
    }

    /// The switch carries out the controller's next step, and answers.
    pub(super) fn carry_out_step(&mut self) {
        let Some(step) = self.nodes.controller.next_step() else { return };
        let answer = self.nodes.switch.table(step);
        if let TableOp::Inject(sweep) = step {
            let Ok(()) = self.pass(Arrival::Control(sweep), 0);
        }
        self.tell(Event::TableAnswered(answer));
        for worker in 0..self.nodes.plan.workers() {
            if self.nodes.controller.has_changed(&self.nodes.registrations[worker as usize]) {
                self.renew_worker(worker);
            }
        }
    }

    /// All hosts renew: what clients may have outstanding follows from the depths.
    fn renew(&mut self) {
        for server in 0..self.nodes.workers.servers.count() {
            self.renew_server(server);
        }
        for worker in 0..self.nodes.plan.workers() {
            self.renew_worker(worker);
        }
        for client in 0..self.nodes.plan.clients() {
            let (call, floor) = (self.nodes.controller.call(), self.nodes.clients.floor(client));
            let hello = ClientHello { floor, ..self.nodes.plan.client_hello(client) };
            self.tell(Event::ClientHello { call, hello });
        }
    }

    fn renew_server(&mut self, server: usize) {
        let hello = self.nodes.workers.servers.hello(server);
        let call = self.nodes.controller.call();
        self.tell(Event::ServerHello { call, hello });
    }

    fn renew_worker(&mut self, worker: u32) {
        let Nodes { controller, plan, registrations, workers, .. } = &mut *self.nodes;
        let WorkerRegistration { worker: id, key, generation, quota, .. } = registrations[worker as usize];
        let server = workers.servers.name_for(worker);
        let held = Some((id, key, generation));
        let hello = WorkerHello { quota, held, ..plan.worker_hello(worker, server) };
        let call = controller.call();
        self.tell(Event::WorkerHello { call, hello });
    }

    fn tell(&mut self, event: Event) {
        let actions = self.nodes.controller.tell(self.stage.now(), event);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Answer { answer: Answer::Worker(grant), .. } => {
                    self.granted(grant.registration);
                }
                Action::Answer { answer: Answer::Client(grant), .. } => {
                    self.grant_client(grant.registration);
                }
                Action::SetDepth { worker, depth } => self.set_depth(worker, depth),
                Action::TellAgent { server, others } => {
                    if let Some(adaptation) = &mut self.nodes.workers.adaptation {
                        adaptation.told(&server, &others);
                    }
                }
                Action::Table(_) => {
                    self.stage.schedule(
                        self.stage.now() + STEP,
                        self.nodes.plan.places.switch,
                        Scheduled::Step,
                    );
                }
                Action::Answer { .. } | Action::Note(_) => {}
            }
        }
        if self.nodes.clients.has_more()
            && let Some(due) = self.nodes.controller.wakes(self.stage.now())
        {
            self.stage.schedule(due, self.nodes.plan.places.switch, Scheduled::Controls);
        }
    }

    fn set_depth(&mut self, worker: WorkerId, depth: u8) {
        let now = self.stage.now();
        let adaptation = self.nodes.workers.adaptation.as_mut();
        if adaptation.is_some_and(|adaptation| adaptation.set_depth(now, worker, depth)) {
            self.nodes.registrations[usize::from(worker.0)].quota = depth;
            self.set_quota(worker.0.into(), depth);
        }
    }

    /// A worker that was lent begins anew where it is now, and its server keeps a ring there; others know
    /// what they are told.
    fn granted(&mut self, grant: WorkerRegistration) {
        let worker = u32::from(grant.worker.0);
        let held = &mut self.nodes.registrations[worker as usize];
        if std::mem::replace(held, grant).generation == grant.generation {
            return;
        }
        if let Some(adaptation) = &mut self.nodes.workers.adaptation {
            adaptation.granted(self.stage.world.now, &grant);
        }
        self.grant_worker(worker, grant);
        if let Some(server) = self.nodes.workers.servers.without_ring(worker, grant.slice) {
            self.nodes.workers.servers.keep(server, grant.slice);
            self.renew_server(server);
        }
    }
}
