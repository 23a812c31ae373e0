//! A reference that is warm allocates nothing, however many tasks it serves.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{Recorder, Recording, Warmup};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

#[test]
fn ten_times_the_tasks_allocate_no_more() {
    for policy in ["central", "jbsq:3", "jsq", "po2", "random", "round-robin"] {
        let reference = Reference::parse(policy).expect("it is one");
        assert_eq!(allocations(reference, 300_000), allocations(reference, 30_000), "{policy}");
    }
}

fn allocations(reference: Reference, tasks: u64) -> u64 {
    let workload = Workload::parse("get=0.9@exp:8us+scan=0.1@exp:80us").expect("it is right");
    let rate_per_s = 0.8 * 16.0 * 1e9 / workload.mean_service_ns();
    let ideal = Ideal { reference, workers: 16, distance: Nanos(5_000) };
    let recording = Recording {
        mean_services_ns: vec![8_000.0, 80_000.0],
        tasks,
        warmup: Warmup::Detect,
        parts: 0,
        way_home: Nanos(0),
        passed_over_at_random: None,
        within: Vec::new(),
    };
    let run = || {
        ideal.run(
            Requests::new(&workload, rate_per_s, 1, 0),
            Recorder::new(recording),
            (1, 0),
            &AtomicBool::new(false),
        )
    };
    allocation_counter::measure(|| drop(run())).count_total
}
