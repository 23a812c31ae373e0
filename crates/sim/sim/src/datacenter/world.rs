//! Everybody in one world: spines, leaves, workers and clients of all pools, joined by links.

use std::convert::Infallible;

use sluice_host::client::{Action, ClientSettings};
use sluice_wire::{Nanos, Packet};

use super::below::TiersBelow;
use super::clients::{PoolRequests, Submitter, machine_of};
use super::control::Control;
use super::downtime::OutageStep;
use super::imbalance::Imbalance;
use super::intervals::Intervals;
use super::packet_loss::PoolLoss;
use super::places::{CLIENTS, LEAVES, SPINES, WORKERS};
use super::switches::DatacenterSwitch;
use super::watch::TaskWatch;
use super::workers::DatacenterWorkers;
use crate::events::{Address, LaneId, World};
use crate::nodes::{PacketPool, Scene};
use crate::rack::meter::Meter;
use crate::testbed::{SwitchTimes, Testbed};

/// What somebody wants to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reminder {
    /// A client's machine has something to do.
    Client(u32),
    /// A worker's has.
    Worker,
    /// Queues are looked at.
    Look,
    /// An interval ends.
    Interval,
    /// The next of the outages' turns is due.
    Turn,
}

/// The world of a datacenter: packets are lost where the testbed says so.
pub(super) type DatacenterWorld = World<Reminder, Option<Box<PoolLoss>>>;

/// A pool's requests, and what is measured of them.
#[derive(Debug)]
pub(super) struct PoolRun<O> {
    pub(super) arrivals: PoolRequests,
    pub(super) meter: Meter<O>,
    pub(super) imbalance: Option<Imbalance>,
    pub(super) intervals: Option<Intervals>,
}

/// A datacenter in a world of its own.
#[derive(Debug)]
pub(super) struct Datacenter<O> {
    pub(super) world: DatacenterWorld,
    /// The fabric that packets cross, if there is one.
    pub(super) below: Option<Box<TiersBelow>>,
    pub(super) control: Control,
    pub(super) times: SwitchTimes,
    pub(super) spines: Vec<DatacenterSwitch>,
    pub(super) leaves: Vec<DatacenterSwitch>,
    /// Where what goes round is on its way.
    pub(super) round: LaneId,
    pub(super) workers: DatacenterWorkers,
    pub(super) pools: Vec<PoolRun<O>>,
    pub(super) machines: Vec<Submitter>,
    pub(super) client_settings: ClientSettings,
    pub(super) clients_say: Vec<Action>,
    /// How often queues are looked at; never, if zero.
    pub(super) watch: Nanos,
    pub(super) testbed: Testbed,
    /// What happens to switches, and how much of it has.
    pub(super) turns: Vec<(Nanos, OutageStep)>,
    pub(super) turned: usize,
    /// Whether packets, or who sends them, can be lost.
    pub(super) has_faults: bool,
    /// The switch whose pass it is.
    pub(super) at: Address,
    /// Whose tasks are being dealt with.
    pub(super) pool: usize,
}

impl<O: TaskWatch> Datacenter<O> {
    /// Whether everybody has seen enough.
    pub(super) fn is_complete(&self) -> bool {
        self.pools.iter().all(|pool| pool.meter.observer.is_complete())
    }
}

impl<O: TaskWatch> Scene for Datacenter<O> {
    type Broken = Infallible;
    const SOONEST: Nanos = Nanos(0);

    fn now(&self) -> Nanos {
        self.world.now
    }

    /// The switch whose pass it is.
    fn switch_at(&self) -> Address {
        self.at
    }

    fn packets(&mut self) -> &mut PacketPool {
        &mut self.world.packets
    }

    #[inline]
    fn send(&mut self, from: Address, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet)) {
        let counts = &mut self.pools[self.pool].meter.counts;
        counts.packets += 1;
        let packet = self.world.packets.make(make);
        if let Some(below) = &mut self.below {
            return below.send(&mut self.world, from, to, leaves, packet);
        }
        if let Some(packet_loss) = &mut self.world.network.injector {
            packet_loss.turn_to(self.pool);
        }
        let copies = self.world.send(from, to, leaves, packet);
        counts.lost_packets += u64::from(copies == 0);
    }
}

/// Links between all nodes, as long as the testbed's.
pub(super) fn join(world: &mut DatacenterWorld, testbed: &Testbed) {
    let (pass, links, sends) = (testbed.switch.pass, testbed.links, testbed.worker.send);
    // What is for a leaf on a server goes past its rack's switch to it, and what it sends comes back there.
    let detour = testbed.racks.detour;
    world.join(LEAVES, WORKERS, links.worker + detour, pass);
    world.join(WORKERS, LEAVES, links.worker + detour, sends.times(2));
    // Past the switches, for a program that does not look at replies.
    world.join(WORKERS, CLIENTS, testbed.way_back().since(detour.times(2)), sends);
    if testbed.racks.spines == 0 {
        world.join(CLIENTS, LEAVES, links.client + detour, Nanos(0));
        return world.join(LEAVES, CLIENTS, links.client + detour, pass);
    }
    let hop = testbed.racks.hop + detour;
    world.join(CLIENTS, SPINES, links.client, Nanos(0));
    world.join(SPINES, CLIENTS, links.client, pass);
    world.join(SPINES, LEAVES, hop, pass);
    world.join(LEAVES, SPINES, hop, pass);
    // Through a spine that only forwards it.
    world.join(LEAVES, CLIENTS, testbed.above() + links.client + detour, pass);
}

/// The machine that something which came to a client is for.
pub(super) fn addressee(packet: &Packet) -> Option<usize> {
    let task = match packet {
        Packet::Reply(of) => of.task,
        Packet::Reject(of) => of.task,
        Packet::Notice(of) => of.task,
        Packet::Need(of) => of.task,
        Packet::Part(of) => of.task,
        _ => return None,
    };
    Some(machine_of(task.incarnation))
}
