//! What all hosts' processes share: their places in the network, and when they wake.

use sluice_host::client::Client;
use sluice_host::worker::Worker;
use sluice_wire::{Endpoint, Nanos};

use super::inspection::nothing_is_due;
use super::rack::{Event, Host, Rack};

/// Where a host's process is: each start of it has a port of its own.
pub(super) const fn endpoint(base: u16, index: u16, starts: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port: base + index * 100 + starts }
}

impl Rack<'_> {
    pub(super) fn host_at(&self, to: Endpoint) -> Option<Host> {
        let worker = self.workers.iter().position(|node| node.lives() && node.at == to).map(Host::Worker);
        worker.or_else(|| self.clients.iter().position(|node| node.at == to).map(Host::Client))
    }

    /// Whether this end of the network is cut off now.
    pub(super) fn is_cut(&self, end: Endpoint) -> bool {
        let workers = self.workers.iter().map(|node| (node.at, &node.dealings));
        let clients = self.clients.iter().map(|node| (node.at, &node.dealings));
        workers.chain(clients).any(|(at, dealings)| at == end && self.now < dealings.cut_until)
    }

    pub(super) fn host_is_cut(&mut self, host: Host) -> bool {
        let now = self.now;
        now < self.dealings(host).cut_until
    }

    /// The operating system says that nobody listens at the switch: half the time.
    pub(super) fn refused_by_switch(&mut self, from: Endpoint) {
        if self.dice.chance(500) {
            return;
        }
        let outcome = match self.host_at(from) {
            Some(Host::Worker(worker)) => self.on_worker(worker, Worker::refused),
            Some(Host::Client(client)) => self.on_client(client, Client::refused),
            Some(Host::Server(_)) | None => Ok(()),
        };
        debug_assert!(outcome.is_ok(), "asking for a renewal breaks no promise");
    }

    pub(super) fn wake(&mut self, host: Host) -> Result<(), String> {
        let now = self.now;
        match host {
            Host::Worker(worker) if self.workers[worker].wakeup.comes(now) => {
                if now < self.workers[worker].stalled_until {
                    // Behind the packets that were received meanwhile.
                    let goes_on = self.workers[worker].stalled_until + Nanos(1);
                    self.workers[worker].wakeup.by(goes_on);
                    self.agenda.add(goes_on, Event::Wake(host));
                    return Ok(());
                }
                self.on_worker(worker, Worker::tick)?;
                let next = self.worker_due(worker);
                nothing_is_due("a worker", next, now)
            }
            Host::Client(client) if self.clients[client].wakeup.comes(now) => {
                let thaws = self.clients[client].dealings.frozen_until;
                if now < thaws {
                    self.clients[client].wakeup.by(thaws);
                    self.agenda.add(thaws, Event::Wake(host));
                    return Ok(());
                }
                self.on_client(client, Client::tick)?;
                nothing_is_due("a client", self.clients[client].machine.deadline(), now)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn arm(&mut self, host: Host, due: Option<Nanos>) {
        let Some(due) = due.map(|due| due.max(self.now + Nanos(1))) else { return };
        let wakeup = match host {
            Host::Worker(worker) => &mut self.workers[worker].wakeup,
            Host::Client(client) => &mut self.clients[client].wakeup,
            // It has no timers but its renewals.
            Host::Server(_) => return,
        };
        if wakeup.by(due) {
            self.agenda.add(due, Event::Wake(host));
        }
    }
}
