//! A run from its beginning to its end.

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_fabric::FabricError;
use sluice_host::client::still_counts;
use sluice_wire::{Epoch, Nanos};

use super::below::TiersBelow;
use super::clients::{PoolRequests, Submitter};
use super::control::{Control, Runs, WorkerSeat};
use super::downtime::outage_steps;
use super::imbalance::Imbalance;
use super::intervals::Intervals;
use super::packet_loss::PoolLoss;
use super::placement::Placement;
use super::places::{CLIENTS, LEAVES, SPINES, WORKERS, clock_of, pool_of};
use super::system::System;
use super::watch::TaskWatch;
use super::workers::DatacenterWorkers;
use super::world::{Datacenter, DatacenterWorld, PoolRun, Reminder, addressee, join};
use crate::dice::Dice;
use crate::error::SimError;
use crate::events::{Address, Mail, PacketId, WorldEvent};
use crate::point::Point;
use crate::rack::meter::Meter;
use crate::rack::setup::client_settings;
use crate::stats::{Counts, Depths, Gauges};
use crate::testbed::Testbed;

/// The first life of all switches.
pub(super) const FIRST: Epoch = Epoch(1);
/// Events between two looks at whether the run is to stop.
const EVENTS_A_LOOK: u32 = 1 << 14;
/// Events between two looks at whether all tasks have ended: there are many machines to ask.
const EVENTS_BETWEEN_ENDS: u32 = 1 << 6;

/// What a run came to.
pub(crate) struct PoolEnd<O> {
    pub(crate) observer: O,
    pub(crate) counts: Counts,
    pub(crate) gauges: Gauges,
    pub(crate) depths: Vec<Depths>,
}

/// Runs one replication of a point, until `observer` has seen enough or no request is left.
pub(crate) fn replicate<O: TaskWatch>(
    point: &Point,
    system: System,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<PoolEnd<O>, SimError> {
    let pool = (point, Placement::of(point), observer);
    let ran = run(Datacenter::new(Runs::Datacenter(system), replication, vec![pool]), stop)?;
    Ok(ran.into_iter().next().expect("one pool ran"))
}

/// The same for one rack's program without a spine.
#[cfg(test)]
pub(crate) fn replicate_alone<O: TaskWatch>(
    point: &Point,
    choice: &sluice_switch::registry::Choice,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<PoolEnd<O>, SimError> {
    let layout = Placement::new(&[(0, point.testbed.workers)], &[]);
    let ran = run(Datacenter::new(Runs::Alone(*choice), replication, vec![(point, layout, observer)]), stop)?;
    Ok(ran.into_iter().next().expect("one pool ran"))
}

pub(super) fn run<O: TaskWatch>(
    mut datacenter: Datacenter<O>,
    stop: &AtomicBool,
) -> Result<Vec<PoolEnd<O>>, SimError> {
    while !datacenter.run(EVENTS_A_LOOK)? {
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
    }
    let now = datacenter.world.now;
    let crossed = datacenter.below.as_ref().map(|below| below.gauges());
    let ended = |pool: PoolRun<O>| {
        let (observer, counts, gauges) = pool.meter.finish(now);
        let [imbalance_p50, imbalance_p99] =
            pool.imbalance.and_then(|imbalance| imbalance.told()).map_or([None; 2], |told| told.map(Some));
        let depths = pool.intervals.map(Intervals::ended).unwrap_or_default();
        let gauges = Gauges { imbalance_p50, imbalance_p99, ..gauges };
        let gauges = crossed.map_or(gauges, |crossed| gauges.or(&crossed));
        PoolEnd { observer, counts, gauges, depths }
    };
    Ok(datacenter.pools.into_iter().map(ended).collect())
}

impl<O: TaskWatch> Datacenter<O> {
    /// Pools with their tasks and places; the network is the first one's.
    pub(super) fn new(runs: Runs, replication: u32, pools: Vec<(&Point, Placement, O)>) -> Self {
        let (testbed, seed) = (&pools[0].0.testbed, pools[0].0.seed);
        let below = TiersBelow::of(testbed, seed, replication).expect("the point was checked");
        Self::over(below, runs, replication, pools)
    }

    /// A pool whose switches have the controllers that run live, and nobody before these have let them in.
    pub(super) fn led(runs: Runs, pool: (&Point, Placement, O)) -> Self {
        Self::begun(None, runs, 0, vec![pool], Control::is_replaced_by_real_ones)
    }

    /// The same with this fabric below them.
    pub(super) fn over(
        below: Option<TiersBelow>,
        runs: Runs,
        replication: u32,
        pools: Vec<(&Point, Placement, O)>,
    ) -> Self {
        Self::begun(below, runs, replication, pools, |_| {})
    }

    fn begun(
        below: Option<TiersBelow>,
        runs: Runs,
        replication: u32,
        pools: Vec<(&Point, Placement, O)>,
        instruct: impl FnOnce(&mut Control),
    ) -> Self {
        let (testbed, seed) = (&pools[0].0.testbed, pools[0].0.seed);
        let types = pools
            .iter()
            .flat_map(|(point, ..)| point.workload.classes.iter().map(|class| class.task_type.0 + 1));
        let layouts = pools.iter().map(|(_, layout, _)| layout.clone()).collect();
        let mut control = Control::new(runs, layouts, testbed, types.max().unwrap_or(1), (seed, replication));
        instruct(&mut control);
        let seeds = pools.iter().map(|(point, ..)| point.seed);
        let mut world = DatacenterWorld::new(PoolLoss::new(&testbed.faults, seeds, replication));
        join(&mut world, testbed);
        let timers = world.engine.timers(WORKERS, control.seats.len() as u32);
        let mut machines = Vec::new();
        let pools = pools.into_iter().enumerate();
        let pools =
            pools.map(|(at, pool)| pool_of_run(&mut world, &control, &mut machines, (at, replication), pool));
        let pools = pools.collect();
        let mut datacenter = Self {
            round: world.engine.lane(testbed.switch.pass + testbed.switch.recirculation),
            times: testbed.switch,
            spines: (0..control.spines).map(|spine| control.spine(spine, FIRST, testbed)).collect(),
            leaves: (0..control.leaves).map(|leaf| control.leaf(leaf, FIRST, testbed)).collect(),
            workers: DatacenterWorkers::new(timers, &control.seats, control.runs.feed(), testbed),
            world,
            below: below.map(Box::new),
            control,
            pools,
            machines,
            client_settings: client_settings(testbed),
            clients_say: Vec::new(),
            watch: testbed.racks.watch,
            testbed: testbed.clone(),
            turns: outage_steps(&testbed.racks),
            turned: 0,
            has_faults: testbed.has_faults(),
            at: LEAVES,
            pool: 0,
        };
        datacenter.begin(testbed);
        datacenter
    }

    /// Everybody is registered, racks are linked with spines, and the first requests are drawn.
    fn begin(&mut self, testbed: &Testbed) {
        if !self.control.is_replaced {
            self.all_come_in();
        }
        if testbed.racks.watch > Nanos(0) {
            self.world.engine.schedule(testbed.racks.watch, SPINES, Reminder::Look);
        }
        if testbed.racks.interval > Nanos(0) {
            self.world.engine.schedule(testbed.racks.interval, SPINES, Reminder::Interval);
        }
        for (at, _) in &self.turns {
            self.world.engine.schedule(*at, SPINES, Reminder::Turn);
        }
        (0..self.pools.len()).for_each(|pool| self.draw(pool));
    }

    fn all_come_in(&mut self) {
        for worker in 0..self.control.seats.len() {
            let leaf = &self.leaves[self.control.seats[worker].leaf as usize];
            let grant = self.control.worker_registration(worker, leaf);
            self.grant_worker(worker, grant);
        }
        for pool in 0..self.pools.len() {
            let layout = &self.control.pools[pool];
            let below = layout.racks.iter().map(|rack| layout.spines.get(rack.spine).copied());
            for (rack, spine) in below.collect::<Vec<_>>().into_iter().enumerate() {
                if let Some(spine) = spine {
                    self.link(pool, rack, spine);
                }
            }
        }
    }

    /// A pool's rack goes below a spine, which hears from its leaf.
    pub(super) fn link(&mut self, pool: usize, rack: usize, spine: u32) {
        let leaf = self.control.pools[pool].racks[rack].leaf;
        let (above, below) = (&mut self.spines[spine as usize], &mut self.leaves[leaf as usize]);
        let told = self.control.link((pool, rack), (spine, above), below);
        self.pool = pool;
        if let Some(told) = told {
            self.tell(LEAVES.at(leaf), &told);
        }
    }

    /// Lets so many events happen; says whether the run is over.
    pub(super) fn run(&mut self, events: u32) -> Result<bool, SimError> {
        for event in 0..events {
            if self.is_complete() || event.is_multiple_of(EVENTS_BETWEEN_ENDS) && self.has_ended() {
                return Ok(true);
            }
            if self.below.is_some() {
                self.catch_up().map_err(|why| SimError::Point(why.to_string()))?;
            }
            let Some((at, what)) = self.world.next() else { return Ok(true) };
            self.happens(at, what);
        }
        Ok(false)
    }

    /// Whether no request is due any more and all tasks have ended: looks at queues and intervals go on for
    /// ever.
    fn has_ended(&self) -> bool {
        !self.pools.iter().any(|pool| pool.arrivals.has_more())
            && self.machines.iter().all(Submitter::is_idle)
    }

    /// What happens in the fabric before the datacenter's next event.
    #[cold]
    fn catch_up(&mut self) -> Result<(), FabricError> {
        let (Some(below), meter) = (&mut self.below, &mut self.pools[0].meter) else { return Ok(()) };
        meter.counts.lost_packets += below.catch_up(&mut self.world, meter.is_open)?;
        Ok(())
    }

    /// Something happens somewhere.
    #[inline]
    pub(super) fn happens(&mut self, at: Address, what: WorldEvent<Reminder>) {
        match what {
            WorldEvent::Mail(mail) => self.mail(at, mail),
            WorldEvent::Timer => self.timer(at.place()),
            WorldEvent::Clock => self.request(pool_of(at)),
            WorldEvent::Scheduled(Reminder::Client(machine)) => self.wake(machine as usize),
            WorldEvent::Scheduled(Reminder::Worker) => self.worker_ticks(at.place() as usize),
            WorldEvent::Scheduled(Reminder::Look) => self.look(),
            WorldEvent::Scheduled(Reminder::Interval) => self.interval_ends(),
            WorldEvent::Scheduled(Reminder::Turn) => self.next_turn(),
        }
    }

    #[inline]
    fn mail(&mut self, to: Address, mail: Mail) {
        match mail {
            Mail::Packet { packet, .. } if to.at(0) == WORKERS => self.at_worker(to.place(), packet),
            Mail::Packet { packet, from } if to.at(0) == CLIENTS => {
                match addressee(self.world.packets.get(packet)) {
                    Some(machine) if self.is_at(machine, to) && self.counts(machine, from, packet) => {
                        self.at_client(machine, packet);
                    }
                    _ => self.world.packets.free(packet),
                }
            }
            _ => self.at_switch(to, mail),
        }
    }

    /// Whether a client's machine is there: a spine may take another client for the one that is meant.
    #[inline]
    fn is_at(&self, machine: usize, at: Address) -> bool {
        self.machines.get(machine).is_some_and(|machine| machine.node.at == at)
    }

    /// Whether what a client is told counts, where it may be from a spine that it was at before.
    #[inline]
    fn counts(&mut self, machine: usize, from: Address, packet: PacketId) -> bool {
        from.at(0) != SPINES
            || from == self.machines[machine].front
            || still_counts(self.world.packets.get_mut(packet))
    }

    #[cold]
    fn next_turn(&mut self) {
        let (_, turn) = self.turns[self.turned];
        self.turned += 1;
        let testbed = self.testbed.clone();
        self.takes(turn, &testbed);
    }

    /// An interval ends for all pools, and the next one begins.
    #[cold]
    fn interval_ends(&mut self) {
        let now = self.world.now;
        for (at, pool) in self.pools.iter_mut().enumerate() {
            let lives =
                |seat: &&WorkerSeat| usize::from(seat.pool) == at && self.leaves[seat.leaf as usize].lives;
            let workers = self.workers.seats.iter().filter(lives).count() as u32;
            if let Some(intervals) = &mut pool.intervals {
                intervals.end(now, workers);
            }
        }
        self.world.engine.schedule(now + self.testbed.racks.interval, SPINES, Reminder::Interval);
    }

    /// The queues are looked at, and again after a while.
    fn look(&mut self) {
        let seats = &self.workers.seats;
        for (at, pool) in self.pools.iter_mut().enumerate().filter(|(_, pool)| pool.meter.is_open) {
            let held = seats.iter().zip(&self.workers.held).filter(|(seat, _)| usize::from(seat.pool) == at);
            if let Some(imbalance) = &mut pool.imbalance {
                imbalance.look(held.map(|(_, held)| *held));
            }
        }
        self.world.engine.schedule(self.world.now + self.watch, SPINES, Reminder::Look);
    }
}

/// A pool's machines, registered, and its requests.
fn pool_of_run<O: TaskWatch>(
    world: &mut DatacenterWorld,
    control: &Control,
    machines: &mut Vec<Submitter>,
    (at, replication): (usize, u32),
    (point, layout, observer): (&Point, Placement, O),
) -> PoolRun<O> {
    let first = machines.len();
    let mut dice = Dice::named(point.seed, "clients", replication);
    let settings = client_settings(&point.testbed);
    for client in 0..control.clients() {
        for spine in 0..layout.spines.len().max(1) {
            let front = layout.spines.get(spine).map_or(LEAVES, |spine| SPINES.at(*spine));
            let id = control.client_id(at, client).0;
            let mut machine = Submitter::new(&mut dice, machines.len(), at, id, front);
            if !control.is_replaced {
                let grant = control.client_registration(at, client, spine, FIRST);
                machine.node.machine.grant(Nanos(0), &settings, grant, &mut Vec::new());
            }
            machines.push(machine);
        }
    }
    let weights = layout.weights(control.runs.system());
    let bytes = point.workload.classes.iter().map(|class| class.bytes).collect();
    let first_type = control.task_type(at, sluice_wire::TaskType(0)).0;
    let arrivals = PoolRequests::new(
        world.engine.clock(clock_of(at)),
        point.requests(replication),
        (first, control.clients().into()),
        weights,
        Dice::named(point.seed, "spines of tasks", replication),
        (bytes, first_type),
    );
    let watched = point.testbed.racks.watch > Nanos(0);
    let mut meter = Meter::new(observer, layout.workers());
    meter.sees_waits = point.testbed.racks.outages.is_empty();
    PoolRun {
        arrivals,
        meter,
        imbalance: watched.then(Imbalance::new),
        intervals: (point.testbed.racks.interval > Nanos(0)).then(Intervals::default),
    }
}
