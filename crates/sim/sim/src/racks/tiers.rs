//! Racks below spines: the controller above registers all hosts before the first request.

use sluice_events::dice::Dice;
use sluice_stats::Distribution;
use sluice_wire::{Epoch, Nanos};

use super::clients::{Clients, PoolRequests, Submitter};
use super::control::Control;
use super::effects::SwitchPass;
use super::imbalance::Imbalance;
use super::intervals::Intervals;
use super::meter::Meter;
use super::packet_loss::PoolLoss;
use super::placement::Placement;
use super::places::{LEAVES, RackWorld, SPINES, Scheduled, clock_of};
use super::rack_fabric::RackFabric;
use super::setup::client_settings;
use super::task_places::TaskPlaces;
use super::watch::TaskObserver;
use super::workers::Workers;
use super::world::{HostAdmission, PoolRun, SimulatedRacks, join};
use crate::point::Point;
use crate::system::System;

/// The first epoch of all switches.
pub(super) const FIRST: Epoch = Epoch(1);

impl<O: TaskObserver> SimulatedRacks<O> {
    /// Pools with their tasks and places, on the network of the first pool's testbed.
    pub(super) fn below_spines(system: System, replication: u32, pools: Vec<(&Point, Placement, O)>) -> Self {
        let (testbed, seed) = (&pools[0].0.testbed, pools[0].0.seed);
        let below = RackFabric::of(testbed, seed, replication).expect("the point was checked");
        Self::begun(below, system, replication, pools, |_| {})
    }

    /// A pool whose switches have the controllers that run live; no host is registered before these have
    /// done it.
    pub(super) fn led(system: System, pool: (&Point, Placement, O)) -> Self {
        Self::begun(None, system, 0, vec![pool], Control::is_replaced_by_real_ones)
    }

    /// Pools with this fabric below them.
    pub(super) fn begun(
        below: Option<RackFabric>,
        system: System,
        replication: u32,
        pools: Vec<(&Point, Placement, O)>,
        instruct: impl FnOnce(&mut Control),
    ) -> Self {
        let (testbed, seed) = (&pools[0].0.testbed, pools[0].0.seed);
        let types = pools
            .iter()
            .flat_map(|(point, ..)| point.workload.classes.iter().map(|class| class.task_type.0 + 1));
        let types = types.max().unwrap_or(1);
        let layouts = pools.iter().map(|(_, layout, _)| layout.clone()).collect();
        let mut control = Control::new(system, layouts, testbed, types, (seed, replication));
        instruct(&mut control);
        let seeds = pools.iter().map(|(point, ..)| point.seed);
        let mut world = RackWorld::new(PoolLoss::new(&testbed.faults, seeds, replication));
        join(&mut world, testbed);
        let workers = Workers::below_spines(&mut world, &control, testbed);
        let mut machines = Vec::new();
        let pools = pools.into_iter().enumerate();
        let pools =
            pools.map(|(at, pool)| pool_of_run(&mut world, &control, &mut machines, (at, replication), pool));
        let pools = pools.collect();
        let mut racks = Self {
            task_places: TaskPlaces::new(true),
            times: testbed.switch,
            round: world.engine.lane(testbed.switch.pass + testbed.switch.recirculation),
            spines: (0..control.spines).map(|spine| control.spine(spine, FIRST, &testbed.switch)).collect(),
            leaves: (0..control.leaves).map(|leaf| control.leaf(leaf, FIRST, &testbed.switch)).collect(),
            core: None,
            is_polled: false,
            suits: None,
            workers,
            clients: Clients::new(machines, client_settings(testbed), testbed.has_faults()),
            world,
            below: below.map(Box::new),
            pools,
            types,
            lead: HostAdmission::Spines(Box::new(control)),
        };
        racks.begin();
        racks
    }

    /// Registers all hosts, links racks with spines, and draws the first requests.
    fn begin(&mut self) {
        if !self.control().is_replaced {
            self.all_come_in();
        }
        let Control { watch, interval, .. } = *self.control();
        if watch > Nanos(0) {
            self.schedule(watch, SPINES, Scheduled::Look);
        }
        if interval > Nanos(0) {
            self.schedule(interval, SPINES, Scheduled::Interval);
        }
        for (at, _) in self.control().outages.clone() {
            self.schedule(at, SPINES, Scheduled::Outage);
        }
        (0..self.pools.len()).for_each(|pool| self.draw(pool));
    }

    fn all_come_in(&mut self) {
        for worker in 0..self.workers.all.len() {
            let control = self.control();
            let leaf = &self.leaves[control.seats[worker].leaf as usize];
            let grant = control.worker_registration(worker, leaf);
            self.grant_worker(worker, grant);
        }
        for pool in 0..self.pools.len() {
            let layout = &self.control().pools[pool];
            let below: Vec<_> = layout.racks.iter().map(|rack| layout.spines[rack.spine]).collect();
            for (rack, spine) in below.into_iter().enumerate() {
                self.link(pool, rack, spine);
            }
        }
    }

    /// Puts a pool's rack below a spine, which gets the first UPDATE of the leaf.
    pub(super) fn link(&mut self, pool: usize, rack: usize, spine: u32) {
        let Self { spines, leaves, lead: HostAdmission::Spines(control), .. } = self else { return };
        let leaf = control.pools[pool].racks[rack].leaf;
        let (above, below) = (&mut spines[spine as usize], &mut leaves[leaf as usize]);
        if let Some(told) = control.link((pool, rack), (spine, above), below) {
            self.tell_spine(&SwitchPass { at: LEAVES.at(leaf), pool, tasks: 0 }, &told);
        }
    }

    /// An interval ends for all pools, and the next one begins.
    #[cold]
    pub(super) fn interval_ends(&mut self) {
        let now = self.world.now;
        let Self { pools, leaves, lead: HostAdmission::Spines(control), .. } = self else { return };
        for (at, pool) in pools.iter_mut().enumerate() {
            let seats = control.seats.iter().filter(|seat| usize::from(seat.pool) == at);
            let workers = seats.filter(|seat| leaves[seat.leaf as usize].lives).count() as u32;
            if let Some(intervals) = &mut pool.intervals {
                intervals.end(now, workers);
            }
        }
        let next = now + control.interval;
        self.schedule(next, SPINES, Scheduled::Interval);
    }

    /// Looks at the queues, and schedules the next look.
    pub(super) fn look(&mut self) {
        let workers = &self.workers;
        for (at, pool) in self.pools.iter_mut().enumerate().filter(|(_, pool)| pool.meter.is_open) {
            let held = workers.all.iter().zip(&workers.held).filter(|(node, _)| usize::from(node.pool) == at);
            if let Some(imbalance) = &mut pool.imbalance {
                imbalance.sample(held.map(|(_, held)| *held));
            }
        }
        let next = self.world.now + self.control().watch;
        self.schedule(next, SPINES, Scheduled::Look);
    }
}

/// A pool's registered clients, and its requests.
fn pool_of_run<O: TaskObserver>(
    world: &mut RackWorld,
    control: &Control,
    machines: &mut Vec<Submitter>,
    (at, replication): (usize, u32),
    (point, layout, observer): (&Point, Placement, O),
) -> PoolRun<O> {
    let first = machines.len();
    let mut dice = Dice::named(point.seed, "clients", replication);
    let settings = client_settings(&point.testbed);
    for client in 0..control.clients() {
        for (spine, number) in layout.spines.iter().enumerate() {
            let place = control.client_id(at, client).0;
            let mut machine = Submitter::at_spine(&mut dice, machines.len(), (at, place), SPINES.at(*number));
            if !control.is_replaced {
                let grant = control.client_registration(at, client, spine, FIRST);
                machine.node.machine.grant(Nanos(0), &settings, grant, &mut Vec::new());
            }
            machines.push(machine);
        }
    }
    let arrivals = PoolRequests::below_spines(
        world.engine.clock(clock_of(at)),
        point.requests(replication),
        (first, control.clients().into()),
        (layout.weights(control.system), Dice::named(point.seed, "spines of tasks", replication)),
        (&point.workload.classes, control.task_type(at, sluice_wire::TaskType(0)).0),
    );
    let mut meter = Meter::new(observer, layout.workers());
    meter.switch_waits = point.within.as_ref().map(|_| Distribution::new());
    meter.sees_waits = point.testbed.racks.outages.is_empty();
    PoolRun {
        arrivals,
        meter,
        imbalance: (control.watch > Nanos(0)).then(Imbalance::new),
        intervals: (control.interval > Nanos(0)).then(Intervals::default),
    }
}
