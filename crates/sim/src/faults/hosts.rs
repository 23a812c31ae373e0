//! What all hosts' processes share: their places in the network, and when they wake.

use sluice_host::client::Client;
use sluice_host::worker::Worker;
use sluice_wire::Nanos;

use super::network::WAY;
use super::rack::Rack;
use crate::nodes::{ClientSide, WorkerSide};
use crate::world::Address;

/// The nodes, and where nobody is: what an address in a packet is if it was never filled in.
const NOBODY: Address = Address::node(0);
pub(super) const SWITCH: Address = Address::node(1);
const WORKERS: Address = Address::node(2);
const CLIENTS: Address = Address::node(3);
/// The scenario, which all that is not a packet comes to.
pub(super) const SCENE: Address = Address::node(4);

/// Each start of a host's process has a place of its own, and a host has so many.
const STARTS: u32 = 100;

/// A host that registers with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Worker(usize),
    Client(usize),
    Server(usize),
}

impl Host {
    /// Whose place this is, in whichever life.
    pub(super) fn at(address: Address) -> Option<Self> {
        let index = (address.place() / STARTS) as usize;
        match address.at(0) {
            WORKERS => Some(Self::Worker(index)),
            CLIENTS => Some(Self::Client(index)),
            _ => None,
        }
    }
}

/// Where a worker's process is.
pub(super) const fn worker_at(index: u16, starts: u16) -> Address {
    WORKERS.at(index as u32 * STARTS + starts as u32)
}

/// Where a client's process is.
pub(super) const fn client_at(index: u16, starts: u16) -> Address {
    CLIENTS.at(index as u32 * STARTS + starts as u32)
}

impl Rack<'_> {
    /// Joins all places that packets go between.
    pub(super) fn lay_links(&mut self) {
        let ends = [NOBODY, SWITCH, WORKERS, CLIENTS];
        for (from, to) in ends.into_iter().flat_map(|from| ends.map(|to| (from, to))) {
            self.world.join(from, to, WAY, Nanos(0));
        }
    }

    /// Whose process lives at this place now.
    pub(super) fn host_at(&self, to: Address) -> Option<Host> {
        Host::at(to).filter(|host| match host {
            Host::Worker(worker) => self.workers[*worker].node.as_ref().is_some_and(|node| node.at == to),
            Host::Client(client) => self.clients[*client].node.at == to,
            Host::Server(_) => false,
        })
    }

    pub(super) fn host_is_cut(&self, host: Host) -> bool {
        self.world.network.weather.is_cut(host, self.world.now)
    }

    /// The operating system says that nobody listens at the switch: half the time.
    pub(super) fn refused_by_switch(&mut self, from: Address) {
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
        match host {
            Host::Worker(worker) => self.worker_wakes(worker),
            Host::Client(client) => self.wake_or_thaw(client),
            // It has no timers but its renewals.
            Host::Server(_) => Ok(()),
        }
    }
}
