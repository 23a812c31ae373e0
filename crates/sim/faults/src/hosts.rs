//! What all hosts' processes share: their places in the network, and how they stand with the controller.

use sluice_events::Address;
use sluice_wire::Nanos;

/// The nodes, and where nobody is: what an address in a packet is if it was never filled in.
pub(super) const NOBODY: Address = Address::node(0);
pub(super) const SWITCH: Address = Address::node(1);
pub(super) const WORKERS: Address = Address::node(2);
pub(super) const CLIENTS: Address = Address::node(3);
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

/// What a host knows of its session with the controller.
#[derive(Debug, Default)]
pub(super) struct ControllerSession {
    /// When the call under way was made.
    pub(super) asked: Option<Nanos>,
    /// The whole process stands still until then, with all its threads.
    pub(super) frozen_until: Nanos,
}
