//! The calls of hosts and operators to the controller: what they say, and when a host calls again.

use sluice_control::{ClientHello, Event as Told, WorkerHello};
use sluice_nodes::names;
use sluice_wire::{Endpoint, Nanos, TaskType};

use crate::controller::CALL_WAY;
use crate::event::Event;
use crate::hosts::Host;
use crate::network::CALLS;
use crate::oracle::Life;
use crate::rack::Rack;

/// How long a host waits for the controller's answer before it asks again.
const PATIENCE: Nanos = Nanos::from_millis(1);
/// The least time between two calls of a host.
const CALL_GAP: Nanos = Nanos::from_micros(50);

impl Rack<'_> {
    /// A host's call goes to the controller, or is lost on its way.
    pub(crate) fn call(&mut self, told: Told) {
        let [at, _] = self.arrivals(CALLS);
        if let Some(at) = at {
            self.remind(at + CALL_WAY, Event::Call(Box::new(told)));
        }
    }

    pub(crate) fn renew(&mut self, host: Host) {
        let now = self.world.now;
        let session = self.session(host);
        if session.asked.is_some_and(|at| now < at + PATIENCE) {
            return;
        }
        session.asked = Some(now);
        if let Some(standbys) = &mut self.standbys {
            standbys.calls(host);
        }
        if self.host_is_cut(host) || !self.calls_get_through(host) {
            return;
        }
        let call = self.controllers.call(host, self.life_of(host));
        let told = match host {
            Host::Worker(worker) if self.workers[worker].leaving => {
                let node = &self.workers[worker];
                Told::WorkerLeave { call, name: node.name(), life: self.registered_life(worker) }
            }
            Host::Worker(worker) => Told::WorkerHello { call, hello: self.worker_hello(worker) },
            Host::Client(client) => Told::ClientHello { call, hello: self.client_hello(client) },
            Host::Server(server) => Told::ServerHello { call, hello: self.servers.hello(server) },
        };
        self.call(told);
    }

    fn worker_hello(&self, worker: usize) -> WorkerHello {
        let node = &self.workers[worker];
        WorkerHello {
            name: node.name(),
            life: self.registered_life(worker),
            at: node.node.as_ref().map_or_else(Endpoint::default, |node| node.at.endpoint()),
            slice: names::slice(worker % self.scenario.slices),
            types: self.scenario.serves[worker].clone(),
            labels: self.scenario.worker_labels.names_of(worker),
            quota: self.scenario.quotas[worker],
            capacity: self.scenario.capacity(),
            recent: sluice_control::RecentWork::default(),
            refused_late: 0,
            server: self.servers.name_for(worker),
            rejoins: node.rejoins,
            workers: 0,
            held: node.grant.map(|grant| (grant.worker, grant.key, grant.generation)),
        }
    }

    /// The life under which a worker registers: each lane of a server has one of its own.
    fn registered_life(&self, worker: usize) -> Life {
        let lane = worker - self.scenario.process_of(worker).start;
        self.workers[worker].life ^ ((lane as Life) << 8)
    }

    fn client_hello(&self, client: usize) -> ClientHello {
        let node = &self.clients[client];
        ClientHello {
            name: node.name(),
            incarnation: node.incarnation,
            at: node.node.at.endpoint(),
            floor: node.node.machine.floor(),
            held: node.held,
        }
    }

    /// Schedules a call besides the regular heartbeats.
    pub(crate) fn ask_later(&mut self, host: Host, span: Nanos) {
        let now = self.world.now;
        let gap = span.max(CALL_GAP);
        self.session(host).asked = Some(Nanos((now + gap).0.saturating_sub(PATIENCE.0)));
    }

    pub(crate) fn move_worker(&mut self, worker: usize, slice: usize) {
        let call = self.controllers.call(Host::Worker(worker), 0);
        let name = self.workers[worker].name();
        self.call(Told::MoveWorker { call, name, slice: names::slice(slice) });
    }

    pub(crate) fn map_type(&mut self, task_type: u16, slice: Option<usize>) {
        let call = self.controllers.call(Host::Worker(0), 0);
        let (task_type, slice) = (TaskType(task_type), slice.map(names::slice));
        self.call(Told::SetType { call, task_type, slice });
    }
}
