//! Fault runs over two hops: racks below spines under losses, repeats and overtaking, with leaves and spines
//! that die and come back with an empty memory (Horus A.3), held to the protocol's promises.
//!
//! One seed is one run. When a leaf is out, the controller takes it from spines' tables; when it is back, it
//! goes below its spine again in another generation. When a spine is out, its racks go below another one, if
//! there is one; when it is back, in another life, it gets them back, and its clients hear of its life.

mod oracle;
mod scenario;

use std::ops::Range;

use sluice_wire::{Epoch, Nanos};

use super::control::{Control, Runs};
use super::placement::Placement;
use super::places::LEAVES;
use super::system::System;
use super::world::{Datacenter, Reminder};
use crate::faults::{Broken, Many, Tally, run_each};
use crate::nodes::ClientSide;
use crate::policy::Policy;
use crate::testbed::Testbed;
use oracle::HopOracle;
use scenario::{Death, END, FAULTS_END, HopScenario, Outage, SETTLED, SUBMIT_END};

/// One run of a system, from its seed to the closing of the books.
///
/// # Errors
/// The first promise that broke.
pub fn run_faults(system: System, seed: u64) -> Result<Tally, Broken> {
    let scenario = HopScenario::of(&Policy::Datacenter(system), seed);
    let point = &scenario.point;
    let watched = vec![(point, Placement::of(point), HopOracle::new(SETTLED))];
    let mut datacenter = Datacenter::new(Runs::Datacenter(system), 0, watched);
    let mut trial =
        Trial { datacenter: &mut datacenter, testbed: &point.testbed, outages: &scenario.outages };
    trial.run().map_err(|(at, what)| Broken { seed, at_ns: at.0, what })
}

/// Runs these seeds on so many threads, until one breaks a promise.
pub fn run_many_faults(system: System, seeds: Range<u64>, threads: usize) -> Many {
    run_each(|seed| run_faults(system, seed), seeds, threads, |_| true)
}

/// What is done to a datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Dies(Death),
    /// The controller hears that it is out.
    Out(Death),
    /// It is back, and the controller hears of it.
    Back(Death),
    FaultsEnd,
    SubmitEnd,
    End,
}

/// A datacenter of one pool, whose racks are numbered as their leaves, and what is done to it.
struct Trial<'t> {
    datacenter: &'t mut Datacenter<HopOracle>,
    testbed: &'t Testbed,
    outages: &'t [Outage],
}

impl Trial<'_> {
    fn run(&mut self) -> Result<Tally, (Nanos, String)> {
        for (at, step) in self.steps() {
            self.until(at)?;
            match step {
                Step::Dies(who) => self.dies(who),
                Step::Out(who) => self.is_out(who),
                Step::Back(who) => self.is_back(who),
                Step::FaultsEnd => self.datacenter.world.network.weather = None,
                Step::SubmitEnd => self.datacenter.end_requests(),
                Step::End => {}
            }
        }
        let oracle = &self.datacenter.pools[0].meter.observer;
        oracle.close().map_err(|what| (END, what))
    }

    /// In the order of time; of one time, as they are listed.
    fn steps(&self) -> Vec<(Nanos, Step)> {
        let of = |outage: &Outage| {
            let Outage { who, at, heard_after, lasts } = *outage;
            [(at, Step::Dies(who)), (at + heard_after, Step::Out(who)), (at + lasts, Step::Back(who))]
        };
        let ends = [(FAULTS_END, Step::FaultsEnd), (SUBMIT_END, Step::SubmitEnd), (END, Step::End)];
        let mut steps: Vec<_> = self.outages.iter().flat_map(of).chain(ends).collect();
        steps.sort_by_key(|(at, _)| *at);
        steps
    }

    /// All that happens until then.
    fn until(&mut self, end: Nanos) -> Result<(), (Nanos, String)> {
        self.datacenter.world.engine.cue(end, LEAVES, Reminder::Look);
        loop {
            let Some((at, what)) = self.datacenter.world.next() else { return Ok(()) };
            let now = self.datacenter.world.now;
            self.datacenter.pools[0].meter.observer.goes_on(now);
            if now == end && matches!(what, crate::world::Happens::Cue(Reminder::Look)) {
                return Ok(());
            }
            self.datacenter.happens(at, what);
            if let Some(what) = &self.datacenter.pools[0].meter.observer.broken {
                return Err((now, what.clone()));
            }
        }
    }

    fn dies(&mut self, who: Death) {
        match who {
            Death::Leaf(leaf) => self.datacenter.leaves[leaf as usize].lives = false,
            Death::Spine(spine) => self.datacenter.spines[spine as usize].lives = false,
        }
    }

    /// Tasks go elsewhere from now on.
    fn is_out(&mut self, who: Death) {
        match who {
            Death::Leaf(leaf) => {
                for spine in &mut self.datacenter.spines {
                    Control::forget(leaf, spine);
                }
            }
            Death::Spine(spine) => {
                let lives = self.datacenter.spines.iter().position(|other| other.lives);
                let Some(other) = lives else { return };
                for rack in self.racks_of(spine) {
                    self.goes_below(rack, other as u32);
                }
                self.weigh(|below| below != spine as usize);
            }
        }
    }

    /// It begins with an empty memory, in another life.
    fn is_back(&mut self, who: Death) {
        match who {
            Death::Leaf(leaf) => self.leaf_is_back(leaf),
            Death::Spine(spine) => self.spine_is_back(spine),
        }
    }

    fn leaf_is_back(&mut self, leaf: u32) {
        let Datacenter { control, leaves, .. } = &mut *self.datacenter;
        control.raise(leaf);
        let epoch = Epoch(leaves[leaf as usize].epoch.0 + 1);
        leaves[leaf as usize] = control.leaf(leaf, epoch, self.testbed);
        for worker in 0..self.datacenter.control.seats.len() {
            if self.datacenter.control.seats[worker].leaf == leaf {
                let switch = &self.datacenter.leaves[leaf as usize];
                let grant = self.datacenter.control.worker_registration(worker, switch);
                self.datacenter.grant_worker(worker, grant);
            }
        }
        let spine = self.datacenter.control.pools[0].racks[leaf as usize].spine;
        self.goes_below(leaf as usize, spine as u32);
    }

    fn spine_is_back(&mut self, spine: u32) {
        let Datacenter { control, spines, .. } = &mut *self.datacenter;
        let epoch = Epoch(spines[spine as usize].epoch.0 + 1);
        spines[spine as usize] = control.spine(spine, epoch, self.testbed);
        for rack in self.racks_of(spine) {
            for other in (0..self.datacenter.spines.len()).filter(|other| *other != spine as usize) {
                Control::forget(rack as u32, &mut self.datacenter.spines[other]);
            }
            self.goes_below(rack, spine);
        }
        self.weigh(|_| true);
        self.register_clients(spine, epoch);
    }

    fn goes_below(&mut self, rack: usize, spine: u32) {
        self.datacenter.control.raise_uplink(rack as u32);
        self.datacenter.link(0, rack, spine);
    }

    fn racks_of(&self, spine: u32) -> Vec<usize> {
        let racks = self.datacenter.control.pools[0].racks.iter().enumerate();
        racks.filter(|(_, rack)| rack.spine == spine as usize).map(|(at, _)| at).collect()
    }

    /// Clients draw these spines from now on.
    fn weigh(&mut self, is_in: impl Fn(usize) -> bool) {
        let control = &self.datacenter.control;
        let full = control.pools[0].weights(control.runs.system());
        let own = |spine: usize| full[spine] - if spine == 0 { 0 } else { full[spine - 1] };
        let mut sum = 0;
        let weights = (0..full.len()).map(|spine| {
            sum += if is_in(spine) { own(spine) } else { 0 };
            sum
        });
        self.datacenter.pools[0].arrivals.weights = weights.collect();
    }

    /// Clients hear of a spine's new life.
    fn register_clients(&mut self, spine: u32, epoch: Epoch) {
        let spines = self.datacenter.spines.len();
        for machine in (spine as usize..self.datacenter.machines.len()).step_by(spines) {
            let client = (machine / spines) as u16;
            let grant = self.datacenter.control.client_registration(0, client, spine as usize, epoch);
            let Ok(()) = self.datacenter.on_client(machine, |client, now, settings, out| {
                client.grant(now, settings, grant, out);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(system: &str, seeds: u64) -> Tally {
        let system = System::parse(system).expect("a system").expect("it reads");
        let many = run_many_faults(system, 0..seeds, 2);
        assert!(
            many.broken.is_none(),
            "{system}: {}",
            many.broken.map_or_else(String::new, |b| b.to_string())
        );
        many.tally
    }

    #[test]
    fn seeds_with_dying_leaves_and_spines_keep_their_promises_over_two_hops() {
        for (system, seeds) in
            [("dc-horus:told=replies", 300), ("dc-rs-h", 150), ("dc-rs-lb", 150), ("dc-rain:2", 150)]
        {
            let tally = keeps(system, seeds);
            assert!(
                tally.run_again > 0,
                "{system}: no try ran after another: the faults are too kind; {tally}"
            );
            assert!(tally.unknown + tally.refused > 0, "{system}: the faults are too kind; {tally}");
            assert!(tally.replied * 10 > tally.submitted * 8, "{system}: {tally}");
        }
    }

    #[test]
    fn one_seed_is_one_run() {
        let system = System::Hierarchy;
        assert_eq!(run_faults(system, 7), run_faults(system, 7));
    }
}
