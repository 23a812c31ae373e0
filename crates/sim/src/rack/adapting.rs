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
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, WorkerId};

use super::adaptation::IntervalEnd;
use super::nodes::Nodes;
use super::stage::{Cue, Stage};
use crate::names;
use crate::stats::Observer;

/// What a step on the switch takes the controller, there and back. A worker that moves is away for four.
const STEP: Nanos = Nanos::from_micros(25);

impl Nodes {
    /// If there are agents, their first interval begins, and the controller goes on.
    pub(super) fn begin_adapting<O: Observer>(&mut self, stage: &mut Stage<O>) {
        if let Some(adaptation) = &self.workers.adaptation {
            stage.cue(adaptation.deadline(), self.plan.places.switch, Cue::Adapts);
            self.carry_out(stage, Vec::new());
        }
    }

    /// An interval ends: depths change at once, and the controller hears of it.
    pub(super) fn adapt<O: Observer>(&mut self, stage: &mut Stage<O>) {
        let now = stage.now();
        let Some(end) = self.workers.interval_ends(now) else { return };
        let IntervalEnd { next, advises, decisions, reports } = end;
        for Decision { worker, to, .. } in decisions {
            self.set_depth(stage, worker, to);
        }
        if let Some(adaptation) = &mut self.workers.adaptation {
            adaptation.note(now, &reports);
        }
        for (index, tallies) in reports.into_iter().enumerate() {
            self.tell(stage, Event::Tallies { server: names::agent(index), advises, tallies });
        }
        self.renew(stage);
        if self.clients.has_more() {
            stage.cue(next, self.plan.places.switch, Cue::Adapts);
        }
    }

    /// The controller does what is due.
    pub(super) fn controls<O: Observer>(&mut self, stage: &mut Stage<O>) {
        if self.controller.is_due(stage.now()) {
            let actions = self.controller.tick(stage.now());
            self.carry_out(stage, actions);
        }
    }

    /// The switch carries out the controller's next step, and answers.
    pub(super) fn carry_out_step<O: Observer>(&mut self, stage: &mut Stage<O>) {
        let Some(step) = self.controller.next_step() else { return };
        let answer = self.switch.table(step);
        if let TableOp::Inject(sweep) = step {
            self.switch.sweep(stage, sweep);
        }
        self.tell(stage, Event::TableAnswered(answer));
        for worker in 0..self.plan.workers() {
            if self.controller.has_changed(&self.registrations[worker as usize]) {
                self.renew_worker(stage, worker);
            }
        }
    }

    /// All hosts renew: what clients may have outstanding follows from the depths.
    fn renew<O: Observer>(&mut self, stage: &mut Stage<O>) {
        for server in 0..self.workers.servers.count() {
            self.renew_server(stage, server);
        }
        for worker in 0..self.plan.workers() {
            self.renew_worker(stage, worker);
        }
        for client in 0..self.plan.clients() {
            let (call, floor) = (self.controller.call(), self.clients.floor(client));
            let hello = ClientHello { floor, ..self.plan.client_hello(client) };
            self.tell(stage, Event::ClientHello { call, hello });
        }
    }

    fn renew_server<O: Observer>(&mut self, stage: &mut Stage<O>, server: usize) {
        let hello = self.workers.servers.hello(server);
        let call = self.controller.call();
        self.tell(stage, Event::ServerHello { call, hello });
    }

    fn renew_worker<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        let Nodes { controller, plan, registrations, workers, .. } = self;
        let WorkerRegistration { worker: id, key, generation, quota, .. } = registrations[worker as usize];
        let server = workers.servers.name_for(worker);
        let held = Some((id, key, generation));
        let hello = WorkerHello { quota, held, ..plan.worker_hello(worker, server) };
        let call = controller.call();
        self.tell(stage, Event::WorkerHello { call, hello });
    }

    fn tell<O: Observer>(&mut self, stage: &mut Stage<O>, event: Event) {
        let actions = self.controller.tell(stage.now(), event);
        self.carry_out(stage, actions);
    }

    fn carry_out<O: Observer>(&mut self, stage: &mut Stage<O>, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Answer { answer: Answer::Worker(grant), .. } => {
                    self.granted(stage, grant.registration);
                }
                Action::Answer { answer: Answer::Client(grant), .. } => {
                    self.clients.grant(stage, grant.registration);
                }
                Action::SetDepth { worker, depth } => self.set_depth(stage, worker, depth),
                Action::TellAgent { server, others } => {
                    if let Some(adaptation) = &mut self.workers.adaptation {
                        adaptation.told(&server, &others);
                    }
                }
                Action::Table(_) => stage.cue(stage.now() + STEP, self.plan.places.switch, Cue::Step),
                Action::Answer { .. } | Action::Note(_) => {}
            }
        }
        if self.clients.has_more()
            && let Some(due) = self.controller.wakes(stage.now())
        {
            stage.cue(due, self.plan.places.switch, Cue::Controls);
        }
    }

    fn set_depth<O: Observer>(&mut self, stage: &mut Stage<O>, worker: WorkerId, depth: u8) {
        let now = stage.now();
        let adaptation = self.workers.adaptation.as_mut();
        if adaptation.is_some_and(|adaptation| adaptation.set_depth(now, worker, depth)) {
            self.registrations[usize::from(worker.0)].quota = depth;
            self.workers.set_quota(stage, worker.0.into(), depth);
        }
    }

    /// A worker that was lent begins anew where it is now, and its server keeps a ring there; others know
    /// what they are told.
    fn granted<O: Observer>(&mut self, stage: &mut Stage<O>, grant: WorkerRegistration) {
        let worker = u32::from(grant.worker.0);
        let held = &mut self.registrations[worker as usize];
        if std::mem::replace(held, grant).generation == grant.generation {
            return;
        }
        if let Some(adaptation) = &mut self.workers.adaptation {
            adaptation.granted(stage.world.now, &grant);
        }
        self.workers.grant(stage, worker, grant);
        if let Some(server) = self.workers.servers.without_ring(worker, grant.slice) {
            self.workers.servers.keep(server, grant.slice);
            self.renew_server(stage, server);
        }
    }
}
