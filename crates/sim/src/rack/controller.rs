//! The rack's controller, the real one: hosts register with it before the first request, and the switch's
//! program carries out its steps.
//!
//! Calls and steps take no time before the run begins, and nothing goes wrong with them: the fault runs are
//! about that.

use std::collections::VecDeque;

use sluice_control::{
    Action, Answer, CallId, ClientGrant, ClientHello, Controller, Event, ServerGrant, ServerHello,
    WorkerGrant, WorkerHello,
};
use sluice_switch::Program;
use sluice_wire::{Nanos, SliceId};

use super::servers::Servers;
use super::setup::Plan;

/// When hosts register.
const BEGINNING: Nanos = Nanos(0);

/// What hosts hold when the run begins.
#[derive(Debug)]
pub(super) struct Grants {
    pub(super) workers: Vec<WorkerGrant>,
    pub(super) clients: Vec<ClientGrant>,
}

/// The controller, joined to the switch.
#[derive(Debug)]
pub(super) struct ControllerNode {
    machine: Controller,
    calls: u64,
}

impl ControllerNode {
    /// A controller that has found its switch.
    pub(super) fn new(plan: &Plan, switch: &mut dyn Program) -> Self {
        let seed = plan.dice("controller").seed();
        let machine = Controller::new(plan.of_controller(), seed).expect("the plan is sound");
        let mut node = Self { machine, calls: 0 };
        let shape = switch.shape();
        node.tell(switch, Event::SwitchUp(shape));
        node
    }

    /// Everybody registers. Clients ask once more: what they may have outstanding follows from how many there
    /// are.
    pub(super) fn enrol(&mut self, plan: &Plan, servers: &mut Servers, switch: &mut dyn Program) -> Grants {
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

    /// The worker's server gets a ring for a slice, if it has none.
    pub(super) fn provide(
        &mut self,
        servers: &mut Servers,
        worker: u32,
        slice: SliceId,
        switch: &mut dyn Program,
    ) {
        let Some(server) = servers.without_ring(worker, slice) else { return };
        let grant = self.server(servers.hello(server), switch);
        servers.keep(server, &grant.rings[usize::from(slice.0)]);
        self.server(servers.hello(server), switch);
    }

    fn worker(&mut self, hello: WorkerHello, switch: &mut dyn Program) -> WorkerGrant {
        match self.ask(switch, |call| Event::WorkerHello { call, hello }) {
            Answer::Worker(grant) => grant,
            other => unreachable!("the rack is laid out for all workers: {other:?}"),
        }
    }

    fn client(&mut self, hello: ClientHello, switch: &mut dyn Program) -> ClientGrant {
        match self.ask(switch, |call| Event::ClientHello { call, hello }) {
            Answer::Client(grant) => grant,
            other => unreachable!("the rack is laid out for all clients: {other:?}"),
        }
    }

    fn server(&mut self, hello: ServerHello, switch: &mut dyn Program) -> ServerGrant {
        match self.ask(switch, |call| Event::ServerHello { call, hello }) {
            Answer::Server(grant) => grant,
            other => unreachable!("the rack is laid out for all servers: {other:?}"),
        }
    }

    fn ask(&mut self, switch: &mut dyn Program, call: impl FnOnce(CallId) -> Event) -> Answer {
        self.calls += 1;
        let event = call(CallId(self.calls));
        self.tell(switch, event).expect("nobody has to wait for a switch that answers at once")
    }

    /// Tells it something, and lets the program do all that follows; gives the answer, if one was asked for.
    fn tell(&mut self, switch: &mut dyn Program, event: Event) -> Option<Answer> {
        let (mut told, mut actions, mut given) = (VecDeque::from([event]), Vec::new(), None);
        while let Some(event) = told.pop_front() {
            self.machine.event(BEGINNING, event, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Table(op) => told.push_back(Event::TableAnswered(switch.table(op))),
                    Action::Answer { answer, .. } => given = Some(answer),
                    Action::SetDepth { .. } | Action::TellAgent { .. } | Action::Note(_) => {}
                }
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::WorkerId;
    use sluice_wire::tables::{TableAnswer, TableOp};

    use super::super::stage::Places;
    use super::*;
    use crate::point::Point;
    use crate::policy::Policy;
    use crate::stats::Warmup;
    use crate::testbed::Testbed;
    use crate::workload::Workload;

    fn point() -> Point {
        Point {
            policy: Policy::parse("rain:2").unwrap(),
            testbed: Testbed { workers: 8, clients: 3, queue: 100, ..Testbed::rain_rdma() },
            workload: Workload::parse("get=0.9@const:8us,large=1+scan=0.1@const:107us").unwrap(),
            rate_per_s: 1e5,
            tasks: 1,
            warmup: Warmup::Tasks(0),
            seed: 1,
            transient: false,
            repeats: false,
            slices: Some(vec![("get".to_owned(), 3), ("scan".to_owned(), 5)]),
        }
    }

    #[test]
    fn everybody_holds_what_stands_in_the_tables() {
        let point = point();
        let Policy::Program(choice) = &point.policy else { panic!("it is a program") };
        let plan = Plan::new(Places::ALONE, &point, choice, 0);
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
