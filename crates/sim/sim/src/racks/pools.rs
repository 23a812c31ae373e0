//! Tests that a pool which runs with others does what it does alone.

use std::sync::atomic::AtomicBool;

use sluice_stats::{LoggedTask, Observer, TaskLog, Warmup};
use sluice_switch::horus::FabricReading;
use sluice_testbed::{Faults, RackLayout, Rates, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use super::placement::Placement;
use super::run;
use super::watch::CurveObserver;
use super::world::SimulatedRacks;
use crate::point::Point;
use crate::policy::Policy;
use crate::system::System;

const HORUS: System = System::Horus(FabricReading {
    as_published: false,
    resubmit_writes: false,
    idle_uncounted: false,
    idle_from: 1,
    idle_rack: sluice_switch::horus::IdleRack::Newest,
    told: sluice_switch::horus::LoadsTold::ByOne,
    parts: sluice_switch::horus::PolicyParts::Both,
    affinity: None,
});

const END: Nanos = Nanos::from_millis(20);

fn point(policy: &str, testbed: Testbed, rate_per_s: f64) -> Point {
    let workload = Workload::parse("get=0.8@exp:20us+scan=0.2@const:90us").unwrap();
    Point {
        tasks: 20_000,
        warmup: Warmup::Tasks(2_000),
        ..Point::new(Policy::parse(policy).unwrap(), testbed, workload, rate_per_s)
    }
}

fn racks(sizes: &[u32], spines: u16) -> Testbed {
    let racks = RackLayout { spines, workers: sizes.to_vec(), hop: Nanos(5_000), ..RackLayout::default() };
    Testbed { workers: sizes.iter().sum(), clients: 2, racks, ..Testbed::rain() }
}

/// Every task of each pool of a run.
fn diaries(pools: &[(&Point, Placement)]) -> Vec<Vec<LoggedTask>> {
    let watched = pools
        .iter()
        .map(|(point, layout)| (*point, layout.clone(), CurveObserver(TaskLog::until(END))))
        .collect();
    let ran = run(SimulatedRacks::below_spines(HORUS, 0, watched), &AtomicBool::new(false)).unwrap();
    ran.into_iter().map(|ran| ran.observer.0.in_order()).collect()
}

#[test]
fn pools_on_the_same_switches_do_what_each_does_in_a_run_of_its_own() {
    pools_share_nothing(&racks(&[4, 4, 8, 2], 2));
}

#[test]
fn pools_on_the_same_switches_lose_what_each_loses_in_a_run_of_its_own() {
    let lossy = Rates { loss: 0.002, ..Rates::default() };
    let faults = Faults { submit: lossy, dispatch: lossy, reply: lossy, update: lossy, ..Faults::default() };
    pools_share_nothing(&Testbed { faults, ..racks(&[4, 4, 8, 2], 2) });
}

fn pools_share_nothing(testbed: &Testbed) {
    let points = [(1, 350e3), (2, 420e3)]
        .map(|(seed, rate)| Point { seed, ..point("dc-horus", testbed.clone(), rate) });
    let layouts = [
        Placement::new(&[(0, 4), (1, 4), (2, 8), (3, 2)], &[0, 1]),
        Placement::new(&[(1, 6), (2, 6), (3, 6)], &[1]),
    ];
    let both = diaries(&[(&points[0], layouts[0].clone()), (&points[1], layouts[1].clone())]);
    assert!(both.iter().all(|tasks| tasks.len() > 5_000));
    for pool in 0..2 {
        // The other pool keeps its numbers, and has no tasks.
        let quiet = Point { rate_per_s: 1e-6, ..points[1 - pool].clone() };
        let mut alone = [(&points[0], layouts[0].clone()), (&points[1], layouts[1].clone())];
        alone[1 - pool].0 = &quiet;
        let watched = alone
            .iter()
            .map(|(point, layout)| (*point, layout.clone(), CurveObserver(TaskLog::until(END))))
            .collect();
        let mut datacenter = SimulatedRacks::below_spines(HORUS, 0, watched);
        while !datacenter.pools[pool].meter.observer.is_complete() {
            datacenter.run(1).unwrap();
        }
        let found = datacenter.pools.swap_remove(pool).meter.observer.0.in_order();
        assert_eq!(found.iter().zip(&both[pool]).find(|(alone, both)| alone != both), None);
        assert_eq!(found.len(), both[pool].len());
    }
}
