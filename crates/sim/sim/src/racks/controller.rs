//! The rack's controller, the real one: hosts register with it before the first request, and the switch's
//! program carries out its steps. If depths and slices are found at run time, it runs on (`adapting`).
//!
//! Calls take no time, and before the run begins steps take none. Neither can fail here; the fault runs
//! test that.

use std::collections::VecDeque;

use sluice_control::{
    Action, Answer, CallId, ClientGrant, ClientHello, Controller, Event, WorkerGrant, WorkerHello,
};
use sluice_nodes::Wakeup;
use sluice_switch::Program;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, SliceId};

use super::servers::Servers;
use super::setup::RackSetup;

/// When hosts register.
const BEGINNING: Nanos = Nanos(0);

/// The registrations of hosts when the run begins.
#[derive(Debug)]
pub(super) struct Grants {
    pub(super) workers: Vec<WorkerGrant>,
    pub(super) clients: Vec<ClientGrant>,
}

/// The controller with its connection to the switch.
#[derive(Debug)]
pub(super) struct ControllerNode {
    machine: Controller,
    /// For how long the controller has run before the run begins.
    ahead: Nanos,
    calls: u64,
    /// Steps that the switch has not carried out yet.
    steps: VecDeque<TableOp>,
    /// The wake-up of the controller's next tick in the event queue.
    wakeup: Wakeup,
}

impl ControllerNode {
    /// A controller that has found its switch.
    pub(super) fn new(plan: &RackSetup, switch: &mut dyn Program) -> Self {
        let seed = plan.dice("controller").seed();
        let machine = Controller::new(plan.of_controller(), seed).expect("the plan is sound");
        let ahead = Nanos(0);
        let mut node = Self { machine, ahead, calls: 0, steps: VecDeque::new(), wakeup: Wakeup::NONE };
        let shape = switch.shape();
        node.tell_at_once(switch, Event::SwitchUp(shape));
        // The controller reads for a while what an earlier life may have left in the switch.
        while let Some(due) = node.machine.deadline() {
            node.ahead = due;
            let actions = node.tick(BEGINNING);
            node.carry_out_at_once(switch, actions);
        }
        node
    }

    /// Registers all hosts. Clients register twice, because what they may have outstanding depends on the
    /// number of clients.
    pub(super) fn enrol(
        &mut self,
        plan: &RackSetup,
        servers: &mut Servers,
        switch: &mut dyn Program,
    ) -> Grants {
        let workers = (0..plan.workers()).map(|worker| {
            self.provide(servers, worker, plan.slice_of(worker), switch);
            self.worker(plan.worker_hello(worker, servers.name_for(worker)), switch)
        });
        let workers = workers.collect();
        let mut all =
            || (0..plan.clients()).map(|client| self.client(plan.client_hello(client), switch)).collect();
        let _: Vec<_> = all();
        Grants { workers, clients: all() }
    }

    /// Gives the worker's server a ring for a slice, if it has none.
    fn provide(&mut self, servers: &mut Servers, worker: u32, slice: SliceId, switch: &mut dyn Program) {
        let Some(server) = servers.without_ring(worker, slice) else { return };
        servers.keep(server, slice);
        let hello = servers.hello(server);
        let answer = self.ask(switch, |call| Event::ServerHello { call, hello });
        debug_assert!(
            matches!(answer, Answer::Server(_)),
            "the rack is laid out for all servers: {answer:?}"
        );
    }

    fn worker(&mut self, hello: WorkerHello, switch: &mut dyn Program) -> WorkerGrant {
        match self.ask(switch, |call| Event::WorkerHello { call, hello }) {
            Answer::Worker(grant) => grant,
            other => unreachable!("the rack is laid out for all workers: {other:?}"),
        }
    }

    fn client(&mut self, hello: ClientHello, switch: &mut dyn Program) -> ClientGrant {
        match self.ask(switch, |call| Event::ClientHello { call, hello }) {
            Answer::Client(grant) => *grant,
            other => unreachable!("the rack is laid out for all clients: {other:?}"),
        }
    }

    fn ask(&mut self, switch: &mut dyn Program, call: impl FnOnce(CallId) -> Event) -> Answer {
        let event = call(self.call());
        let said = self.tell_at_once(switch, event);
        let answer = |action| if let Action::Answer { answer, .. } = action { Some(answer) } else { None };
        said.into_iter().find_map(answer).expect("nobody has to wait for a switch that answers at once")
    }

    /// Passes an event to the controller, and lets the program carry out all steps that follow.
    fn tell_at_once(&mut self, switch: &mut dyn Program, event: Event) -> Vec<Action> {
        let said = self.tell(BEGINNING, event);
        self.carry_out_at_once(switch, said)
    }

    fn carry_out_at_once(&mut self, switch: &mut dyn Program, mut said: Vec<Action>) -> Vec<Action> {
        while let Some(step) = self.next_step() {
            said.extend(self.tell(BEGINNING, Event::TableAnswered(switch.table(step))));
        }
        said
    }

    /// The id of a new call. Grants name their host, so calls need not be remembered.
    pub(super) fn call(&mut self) -> CallId {
        self.calls += 1;
        CallId(self.calls)
    }

    /// Passes an event to the controller; returns its actions.
    pub(super) fn tell(&mut self, now: Nanos, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.machine.event(now + self.ahead, event, &mut actions);
        self.note_steps(&actions);
        actions
    }

    /// Lets the controller do what is due.
    pub(super) fn tick(&mut self, now: Nanos) -> Vec<Action> {
        let mut actions = Vec::new();
        self.machine.tick(now + self.ahead, &mut actions);
        self.note_steps(&actions);
        actions
    }

    /// When the controller has to be woken; `None` if that is scheduled already.
    pub(super) fn wake_at(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.machine.deadline()?.since(self.ahead).max(now);
        self.wakeup.wake_by(due).then_some(due)
    }

    /// Whether this is the time at which the controller wanted to be woken.
    pub(super) fn is_due(&mut self, now: Nanos) -> bool {
        self.wakeup.fires(now)
    }

    /// Takes the oldest step that the switch has not carried out; it is under way then.
    pub(super) fn next_step(&mut self) -> Option<TableOp> {
        self.steps.pop_front()
    }

    /// Whether a worker has another registration than this one now, and its change is complete.
    pub(super) fn has_changed(&self, held: &WorkerRegistration) -> bool {
        self.machine.settled(held.worker).is_some_and(|(_, generation)| generation != held.generation)
    }

    fn note_steps(&mut self, actions: &[Action]) {
        let step = |action: &Action| if let Action::Table(step) = action { Some(*step) } else { None };
        self.steps.extend(actions.iter().filter_map(step));
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::WorkerId;
    use sluice_wire::tables::TableAnswer;

    use super::*;
    use crate::point::Point;
    use crate::policy::Policy;
    use sluice_testbed::Testbed;
    use sluice_workload::Workload;

    fn point() -> Point {
        Point {
            slices: Some(vec![("get".to_owned(), 3), ("scan".to_owned(), 5)]),
            ..Point::new(
                Policy::parse("rain:2").unwrap(),
                Testbed { workers: 8, clients: 3, queue: 100, ..Testbed::rain_rdma() },
                Workload::parse("get=0.9@const:8us,large=1+scan=0.1@const:107us").unwrap(),
                1e5,
            )
        }
    }

    #[test]
    fn everybody_holds_what_stands_in_the_tables() {
        let point = point();
        let Policy::Program(choice) = &point.policy else { panic!("it is a program") };
        let plan = RackSetup::new(&point, choice, 0);
        let mut switch = choice.build(plan.config());
        let mut servers = Servers::new(&plan, &point.testbed);
        let mut controller = ControllerNode::new(&plan, &mut *switch);
        let grants = controller.enrol(&plan, &mut servers, &mut *switch);
        for (index, grant) in grants.workers.iter().enumerate() {
            let TableAnswer::Worker(state) = switch.table(TableOp::ReadWorker(WorkerId(index as u16))) else {
                panic!("worker {index} has a row");
            };
            let row = state.row.filter(|row| row.open).map(|row| (row.key, row.slice, row.generation));
            assert_eq!(row, Some((grant.key, grant.slice, grant.generation)));
            assert_eq!(grant.slice, SliceId(u16::from(index >= 3)));
            assert!(grant.ring.is_some(), "its server writes down what waits there");
        }
        let shares = [(SliceId(0), 106 / 3), (SliceId(1), 110 / 3)];
        assert!(grants.clients.iter().all(|grant| grant.shares == shares), "C + ΣN, shared by three");
    }
}
