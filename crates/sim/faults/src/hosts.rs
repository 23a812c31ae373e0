//! The state that all hosts' processes share: their addresses in the network, and their session with the
//! controller.

use sluice_events::Address;
use sluice_wire::Nanos;

/// The addresses. `NOBODY` is the address in a packet whose address was never filled in.
pub(super) const NOBODY: Address = Address::node(0);
pub(super) const SWITCH: Address = Address::node(1);
pub(super) const WORKERS: Address = Address::node(2);
pub(super) const CLIENTS: Address = Address::node(3);
/// The address of the scenario, for all events that are no packets.
pub(super) const SCENE: Address = Address::node(4);

/// Each start of a host's process has an address of its own; a host has so many.
const STARTS: u32 = 100;

/// A host that registers with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Worker(usize),
    Client(usize),
    Server(usize),
}

impl Host {
    /// The host whose address this is, in whichever life.
    pub(super) fn at(address: Address) -> Option<Self> {
        let index = (address.place() / STARTS) as usize;
        match address.at(0) {
            WORKERS => Some(Self::Worker(index)),
            CLIENTS => Some(Self::Client(index)),
            _ => None,
        }
    }
}

/// The address of a worker's process.
pub(super) const fn worker_at(index: u16, starts: u16) -> Address {
    WORKERS.at(index as u32 * STARTS + starts as u32)
}

/// The address of a client's process.
pub(super) const fn client_at(index: u16, starts: u16) -> Address {
    CLIENTS.at(index as u32 * STARTS + starts as u32)
}

/// A host's session with the controller.
#[derive(Debug, Default)]
pub(super) struct ControllerSession {
    /// When the call under way was made.
    pub(super) asked: Option<Nanos>,
    /// Until this time the whole process stands still, with all its threads.
    pub(super) frozen_until: Nanos,
}
