//! The hosts' session with the controller: how they register and renew, and what they do with the answers.

use sluice_control::{Answer, ClientHello, Event as Told, ServerHello, WorkerHello};
use sluice_host::worker::Worker;
use sluice_nodes::names;
use sluice_wire::{Endpoint, Nanos};

use super::event::Event;
use super::hosts::{ControllerSession, Host};
use super::limits::RENEW_EVERY;
use super::oracle::Life;
use super::rack::Rack;

/// How long a host waits for the controller's answer before it asks again.
const PATIENCE: Nanos = Nanos::from_millis(1);
/// The least time between two calls of a host.
const CALL_GAP: Nanos = Nanos::from_micros(50);

impl Rack<'_> {
    /// A host registers or renews, unless its process has ended or it has just called.
    pub(super) fn renew_if_alive(&mut self, host: Host, life: Life) {
        if self.life_of(host) != life || life == 0 {
            return;
        }
        let thaws = self.session(host).frozen_until;
        if self.world.now < thaws {
            self.remind(thaws, Event::Renew(host, life));
        } else {
            self.renew(host);
            self.after(RENEW_EVERY, Event::Renew(host, life));
        }
    }

    pub(super) fn renew(&mut self, host: Host) {
        let now = self.world.now;
        let session = self.session(host);
        if session.asked.is_some_and(|at| now < at + PATIENCE) {
            return;
        }
        session.asked = Some(now);
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
            Host::Server(server) => Told::ServerHello { call, hello: self.server_hello(server) },
        };
        self.call(told);
    }

    pub(super) fn worker_answered(
        &mut self,
        worker: usize,
        life: Life,
        answer: &Answer,
    ) -> Result<(), String> {
        if self.workers[worker].life != life || !self.workers[worker].lives() {
            return Ok(());
        }
        self.workers[worker].session.asked = None;
        match answer {
            Answer::Worker(grant) => {
                let ring = grant.ring;
                let grant = grant.registration;
                let node = &mut self.workers[worker];
                node.ring = ring;
                node.grant = Some(grant);
                node.quota_highest = node.quota_highest.max(grant.quota);
                self.await_change(worker);
                let is_lane = self.has_cores();
                self.on_worker(worker, |machine, now, settings, out| {
                    let take = if is_lane { Worker::grant_lane } else { Worker::grant };
                    take(machine, now, settings, grant, out);
                })?;
                self.settle_lanes(worker)
            }
            Answer::Left { final_sent } => {
                let final_sent = *final_sent;
                self.on_worker(worker, |machine, now, _, _| machine.left(now, final_sent))?;
                self.settle_lanes(worker)
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Worker(worker), *retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn client_answered(
        &mut self,
        client: usize,
        life: Life,
        answer: Answer,
    ) -> Result<(), String> {
        if self.clients[client].incarnation.0 != life {
            return Ok(());
        }
        self.clients[client].session.asked = None;
        match answer {
            Answer::Client(grant) => {
                self.clients[client].held = Some((grant.client, grant.key));
                let grant = grant.registration;
                self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out))
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Client(client), retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
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

    fn server_hello(&self, server: usize) -> ServerHello {
        self.servers.nodes[server].hello(self.servers.reliable)
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

    pub(super) fn life_of(&self, host: Host) -> Life {
        match host {
            Host::Worker(worker) => self.workers[worker].life,
            Host::Client(client) => self.clients[client].incarnation.0,
            Host::Server(server) => self.servers.nodes[server].life,
        }
    }

    pub(super) fn session(&mut self, host: Host) -> &mut ControllerSession {
        match host {
            Host::Worker(worker) => &mut self.workers[worker].session,
            Host::Client(client) => &mut self.clients[client].session,
            Host::Server(server) => &mut self.servers.nodes[server].session,
        }
    }

    /// Schedules a call besides the regular heartbeats.
    pub(super) fn ask_later(&mut self, host: Host, span: Nanos) {
        let now = self.world.now;
        let gap = span.max(CALL_GAP);
        self.session(host).asked = Some(Nanos((now + gap).0.saturating_sub(PATIENCE.0)));
    }
}
