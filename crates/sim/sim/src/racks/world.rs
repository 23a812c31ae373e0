//! Everybody in one world: one rack alone, or racks below spines, with the clients and workers of all pools,
//! joined by links.

use sluice_events::{Address, LaneId, Mail, PacketId, WorldEvent};
use sluice_fabric::FabricError;
use sluice_host::client::still_counts;
use sluice_nodes::PacketSource;
use sluice_stats::{Counts, Gauges, SliceDepths};
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_testbed::{SwitchTimes, Testbed};
use sluice_wire::{Nanos, Packet, TaskType};

use super::clients::{Clients, PoolRequests, machine_of};
use super::control::Control;
use super::controller::ControllerNode;
use super::imbalance::Imbalance;
use super::intervals::Intervals;
use super::meter::Meter;
use super::places::{CLIENTS, LEAVES, RackWorld, SPINES, Scheduled, WORKERS, pool_of};
use super::rack_fabric::RackFabric;
use super::setup::RackSetup;
use super::switch::SwitchNode;
use super::task_places::TaskPlaces;
use super::watch::TaskObserver;
use super::workers::Workers;
use crate::error::SimError;
use crate::software::ServerCore;

/// Of racks below spines, events between two looks at whether all tasks have ended: there are many machines
/// to ask. A power of two.
const EVENTS_BETWEEN_ENDS: u32 = 1 << 6;

/// The switch's place where a server that schedules behind it takes packets.
const CORE: u32 = 1;

/// A pool's requests, and what is measured of them.
#[derive(Debug)]
pub(super) struct PoolRun<O> {
    pub(super) arrivals: PoolRequests,
    pub(super) meter: Meter<O>,
    pub(super) imbalance: Option<Imbalance>,
    pub(super) intervals: Option<Intervals>,
}

/// Who lets hosts in.
#[derive(Debug)]
pub(super) enum HostAdmission {
    /// A rack's own controller.
    Rack(Box<RackLead>),
    /// The one above spines.
    Spines(Box<Control>),
}

/// The controller of a rack that is alone.
#[derive(Debug)]
pub(super) struct RackLead {
    pub(super) plan: RackSetup,
    pub(super) controller: ControllerNode,
    /// What the workers hold.
    pub(super) registrations: Vec<sluice_wire::registrations::WorkerRegistration>,
}

/// What a run came to.
pub(crate) struct RackRunResult<O> {
    pub(crate) observer: O,
    pub(crate) counts: Counts,
    pub(crate) gauges: Gauges,
    /// What became of depths, where they are found at run time, or of tasks, interval by interval.
    pub(crate) depths: Vec<SliceDepths>,
}

/// Racks in a world of their own.
#[derive(Debug)]
pub(super) struct SimulatedRacks<O> {
    pub(super) world: RackWorld,
    /// The fabric that packets cross, if there is one.
    pub(super) below: Option<Box<RackFabric>>,
    pub(super) task_places: TaskPlaces,
    pub(super) times: SwitchTimes,
    /// Where what goes round is on its way.
    pub(super) round: LaneId,
    /// None, where a rack is alone.
    pub(super) spines: Vec<SwitchNode>,
    pub(super) leaves: Vec<SwitchNode>,
    /// Of the server that schedules behind the only switch, if one does.
    pub(super) core: Option<ServerCore>,
    /// Whether each task that a worker gets answers a poll.
    pub(super) is_polled: bool,
    /// Who has what tasks need, where something is said of labels.
    pub(super) suits: Option<LabelCompatibility>,
    pub(super) workers: Workers,
    pub(super) clients: Clients,
    pub(super) pools: Vec<PoolRun<O>>,
    /// Task types of each pool.
    pub(super) types: u16,
    pub(super) lead: HostAdmission,
}

impl<O: TaskObserver> SimulatedRacks<O> {
    /// Lets so many events happen; says whether the run is over.
    pub(super) fn run(&mut self, events: u32) -> Result<bool, SimError> {
        let (is_above, has_spines) = (self.below.is_some(), !self.spines.is_empty());
        let between = if has_spines { EVENTS_BETWEEN_ENDS - 1 } else { 0 };
        for event in 0..events {
            // Who polls, probes, adapts or looks goes on for ever.
            if self.is_complete() || event & between == 0 && self.has_ended() {
                return Ok(true);
            }
            if is_above {
                self.catch_up().map_err(|why| SimError::Point(why.to_string()))?;
            }
            let Some((at, what)) = self.world.next() else { return Ok(true) };
            self.on_event(at, what);
            if cfg!(debug_assertions) && self.spines.is_empty() {
                let waiting = self.leaves[0].program().waiting();
                self.task_places.check(self.clients.outstanding(), self.clients.held_back(), waiting);
            }
        }
        Ok(false)
    }

    /// What the run came to, pool by pool.
    pub(super) fn finish(mut self) -> Vec<RackRunResult<O>> {
        let (now, servers) = (self.world.now, &self.workers.servers);
        let crossed = self.below.as_ref().map(|below| below.gauges(servers));
        let ring_bytes = servers.ring_bytes().map(|bytes| bytes as f64);
        let mut log = self.workers.adaptation.take().map(|adaptation| adaptation.into_log());
        let ended = |pool: PoolRun<O>| {
            let (observer, counts, gauges) = pool.meter.finish(now);
            let [imbalance_p50, imbalance_p99] = pool
                .imbalance
                .and_then(|imbalance| imbalance.quantiles())
                .map_or([None; 2], |told| told.map(Some));
            let intervals = pool.intervals.map(Intervals::ended);
            let gauges = Gauges { ring_bytes, imbalance_p50, imbalance_p99, ..gauges };
            let gauges = crossed.map_or(gauges, |crossed| gauges.or(&crossed));
            RackRunResult {
                observer,
                counts,
                gauges,
                depths: intervals.or_else(|| log.take()).unwrap_or_default(),
            }
        };
        self.pools.into_iter().map(ended).collect()
    }

    /// Whether everybody has seen enough.
    #[inline]
    fn is_complete(&self) -> bool {
        let [first, others @ ..] = &self.pools[..] else { return true };
        first.meter.observer.is_complete() && others.iter().all(|pool| pool.meter.observer.is_complete())
    }

    /// Whether no request is due any more and all tasks have ended.
    #[inline]
    fn has_ended(&self) -> bool {
        let [first, others @ ..] = &self.pools[..] else { return true };
        let has_more = first.arrivals.has_more() || others.iter().any(|pool| pool.arrivals.has_more());
        !has_more && self.clients.are_idle()
    }

    /// What happens in the fabric before the racks' next event.
    #[cold]
    fn catch_up(&mut self) -> Result<(), FabricError> {
        let Self { world, pools, below, workers, .. } = self;
        let (Some(below), meter) = (below, &mut pools[0].meter) else { return Ok(()) };
        below.looks(meter.is_open, &workers.servers);
        meter.counts.lost_packets += below.catch_up(world, &mut workers.servers)?;
        Ok(())
    }

    /// Something happens somewhere.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn on_event(&mut self, at: Address, what: WorldEvent<Scheduled>) {
        match what {
            WorldEvent::Mail(mail) => self.on_mail(at, mail),
            WorldEvent::Timer => self.timer(at.place()),
            WorldEvent::Clock => self.request(pool_of(at)),
            WorldEvent::Scheduled(schedule) => self.scheduled(at, schedule),
        }
    }

    /// Something comes to somebody.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    fn on_mail(&mut self, to: Address, mail: Mail) {
        match mail {
            Mail::Packet { packet, .. } if to.at(0) == WORKERS => self.at_worker(to.place(), packet),
            Mail::Packet { packet, from } if to.at(0) == CLIENTS => {
                if self.spines.is_empty() {
                    self.at_client(to.place() as usize, packet);
                } else {
                    self.on_client_packet(from, to, packet);
                }
            }
            Mail::Packet { from, packet } if self.core.is_some() && to.place() != CORE => {
                self.queue_for_core(from, packet);
            }
            // A server's place is at its switch.
            _ => self.at_switch(if self.core.is_some() { LEAVES } else { to }, mail),
        }
    }

    /// A server schedules: what comes to the switch waits for its core.
    fn queue_for_core(&mut self, from: Address, packet: PacketId) {
        let now = self.world.now;
        if let Some(core) = &mut self.core {
            self.world.engine.send(
                core.lane,
                core.takes(now),
                LEAVES.at(CORE),
                Mail::Packet { from, packet },
            );
        }
    }

    /// A packet comes to a client of racks below spines: one of its machines is meant.
    #[inline]
    fn on_client_packet(&mut self, from: Address, to: Address, packet: PacketId) {
        match addressee(self.world.packets.get(packet)) {
            Some(machine) if self.clients.is_at(machine, to) && self.counts(machine, from, packet) => {
                self.at_client(machine, packet);
            }
            _ => self.world.packets.free(packet),
        }
    }

    /// Whether what a client is told counts, where it may be from a spine that it was at before.
    #[inline]
    fn counts(&mut self, machine: usize, from: Address, packet: PacketId) -> bool {
        from.at(0) != SPINES
            || from == self.clients.all[machine].node.switch
            || still_counts(self.world.packets.get_mut(packet))
    }

    fn scheduled(&mut self, at: Address, schedule: Scheduled) {
        let place = at.place();
        match schedule {
            Scheduled::Start => self.begin_worker(place),
            Scheduled::Early => self.worker_sends_early(place as usize),
            Scheduled::Tick if at.at(0) == WORKERS => self.on_worker_timer(place as usize),
            Scheduled::Tick => self.wake(place as usize),
            Scheduled::Adapts => self.adapt(),
            Scheduled::Controls => self.controls(),
            Scheduled::Step => self.carry_out_step(),
            Scheduled::Descriptor => self.on_core_descriptor(place as usize),
            Scheduled::Ended => self.on_core_reply(place as usize),
            Scheduled::Look => self.look(),
            Scheduled::Interval => self.interval_ends(),
            Scheduled::Outage => self.next_outage(),
        }
    }

    /// Reminds whoever is at this place then.
    pub(super) fn schedule(&mut self, at: Nanos, whom: Address, schedule: Scheduled) {
        self.world.engine.schedule(at, whom, schedule);
    }

    /// A host sends a packet that leaves then, and is made where it lies.
    #[inline]
    pub(super) fn send(
        &mut self,
        from: PacketSource,
        to: Address,
        leaves: Nanos,
        make: impl FnOnce(&mut Packet),
    ) {
        self.transmit(from.pool.into(), (from.at, to), leaves, make);
    }

    /// Sends a pool's packet, which leaves then and is made where it lies until it has been received.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        pool: usize,
        (from, to): (Address, Address),
        leaves: Nanos,
        make: impl FnOnce(&mut Packet),
    ) {
        self.pools[pool].meter.counts.packets += 1;
        let packet = self.world.packets.make(make);
        if self.below.is_some() || self.world.network.injector.is_some() {
            return self.transmit_over_faults(pool, (from, to), leaves, packet);
        }
        let copies = self.world.send(from, to, leaves, packet);
        debug_assert!(copies == 1, "no fault stops it");
    }

    /// A packet crosses the fabric, or links on which packets are lost.
    #[inline(never)]
    fn transmit_over_faults(
        &mut self,
        pool: usize,
        (from, to): (Address, Address),
        leaves: Nanos,
        packet: PacketId,
    ) {
        if let Some(below) = &mut self.below {
            return below.send(&mut self.world, from, to, leaves, packet);
        }
        if let Some(loss) = &mut self.world.network.injector {
            loss.turn_to(pool);
        }
        let copies = self.world.send(from, to, leaves, packet);
        self.pools[pool].meter.counts.lost_packets += u64::from(copies == 0);
    }

    #[inline]
    pub(super) const fn pool_of(&self, task_type: TaskType) -> usize {
        (task_type.0 / self.types) as usize
    }

    /// The controller above spines.
    pub(super) fn control(&self) -> &Control {
        match &self.lead {
            HostAdmission::Spines(control) => control,
            HostAdmission::Rack(_) => unreachable!("nobody asks for it where a rack is alone"),
        }
    }

    /// The controller of a rack that is alone.
    pub(super) fn rack(&mut self) -> &mut RackLead {
        match &mut self.lead {
            HostAdmission::Rack(lead) => lead,
            HostAdmission::Spines(_) => unreachable!("racks below spines have no agents"),
        }
    }
}

/// The machine that something which came to a client is for.
fn addressee(packet: &Packet) -> Option<usize> {
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

/// Links between all nodes, as long as the testbed's; those to servers are laid apart.
pub(super) fn join(world: &mut RackWorld, testbed: &Testbed) {
    let (pass, links, sends) = (testbed.switch.pass, testbed.links, testbed.worker.send);
    // What is for a leaf on a server goes past its rack's switch to it, and what it sends comes back there.
    let detour = testbed.racks.detour;
    world.join(LEAVES, WORKERS, links.worker + detour, pass);
    world.join(WORKERS, LEAVES, links.worker + detour, sends.times(2));
    // Past the switches, for a program that does not look at replies.
    world.join(WORKERS, CLIENTS, testbed.way_back().since(detour.times(2)), sends);
    if testbed.racks.spines == 0 {
        world.join(CLIENTS, LEAVES, links.client, Nanos(0));
        return world.join(LEAVES, CLIENTS, links.client, pass);
    }
    let hop = testbed.racks.hop + detour;
    world.join(CLIENTS, SPINES, links.client, Nanos(0));
    world.join(SPINES, CLIENTS, links.client, pass);
    world.join(SPINES, LEAVES, hop, pass);
    world.join(LEAVES, SPINES, hop, pass);
    // Through a spine that only forwards it.
    world.join(LEAVES, CLIENTS, testbed.above() + links.client + detour, pass);
}
