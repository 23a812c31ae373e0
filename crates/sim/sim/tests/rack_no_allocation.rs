//! A simulated rack that is warm allocates nothing, however many tasks it runs.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::Warmup;
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fn allocations(policy: &str, tasks: u64) -> u64 {
    let point = Point {
        tasks,
        warmup: Warmup::Tasks(10_000),
        ..Point::new(
            Policy::parse(policy).unwrap(),
            Testbed::rain(),
            Workload::parse("exp:10us").unwrap(),
            2.0e6,
        )
    };
    let run = || point.replicate(0, &AtomicBool::new(false)).unwrap();
    allocation_counter::measure(|| drop(run())).count_total
}

#[test]
fn a_hundred_thousand_tasks_more_cost_no_allocation() {
    for policy in [
        "rain:1",
        "rain:2",
        "rain:4,ranked",
        "rain:2,classes=4",
        "rain:2,labels",
        "r2p2:2",
        "racksched:2",
        "racksched:2,tracked",
        "draconis",
        "pallas",
        "horus",
    ] {
        // A queue grows when more tasks wait than ever before: that may happen late, but rarely.
        let (few, many) = (allocations(policy, 20_000), allocations(policy, 120_000));
        assert!(many <= few + 40, "{policy}: {few} and {many}");
    }
}
