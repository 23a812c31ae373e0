//! Tests for every policy, including one that was just added.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::Warmup;
use sluice_testbed::{RackLayout, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

#[test]
fn every_policy_serves_half_of_what_its_rack_can() {
    let all = Policy::all().map(|about| about.name.replace(":N", ":3"));
    let all = all.map(|name| Policy::parse(&name).expect("a name of the list"));
    for policy in all.filter(|policy| !policy.is_for_flows()) {
        let name = policy.to_string();
        let mut point = Point {
            tasks: 20_000,
            warmup: Warmup::Tasks(2_000),
            ..Point::new(
                policy.clone(),
                testbed_for(&policy),
                Workload::parse("short=0.5@const:10us+long=0.5@const:100us").expect("two classes"),
                1.0,
            )
        };
        point.rate_per_s = point.limit_per_s() / 2.0;
        let measured =
            point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let lowest = measured.classes.iter().map(|class| class.latency.quantile(0.01)).min();
        assert_eq!(measured.counts.replied, 20_000, "{name}: every task is replied to");
        assert!(
            lowest >= Some(point.testbed.zero_load().0 + 9_990),
            "{name}: {lowest:?} is less than the network takes"
        );
    }
}

/// Ten tasks are asked for and only two come. Polls, probes, agents and looks at queues would go on for
/// ever.
#[test]
fn a_run_ends_when_all_its_tasks_have_ended_though_more_were_asked_for() {
    let all = Policy::all().map(|about| about.name.replace(":N", ":3"));
    let with_settings =
        ["draconis:poll=1us", "draconis:labels", "draconis:classes=4", "rain:2,adaptive", "dc-rain:2"];
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/two-tasks.trace");
    let workload = Workload::parse(&format!("trace:{trace}")).expect("two tasks");
    for name in all.chain(with_settings.map(str::to_owned)) {
        let policy = Policy::parse(&name).expect("a policy");
        if policy.is_for_flows() {
            continue;
        }
        let mut probing = testbed_for(&policy);
        probing.faults.reply.reorder = 0.001;
        if let Policy::Datacenter(_) = policy {
            (probing.racks.watch, probing.racks.interval) = (Nanos(1_000), Nanos(1_000));
        }
        for testbed in [testbed_for(&policy), probing] {
            let point = Point {
                tasks: 10,
                warmup: Warmup::Tasks(0),
                ..Point::new(policy.clone(), testbed, workload.clone(), 1_000.0)
            };
            let measured = point.replicate(0, &AtomicBool::new(false));
            let measured = measured.unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(measured.counts.replied, 2, "{name}");
        }
    }
}

/// A testbed for the policy; a datacenter's policies get racks.
fn testbed_for(policy: &Policy) -> Testbed {
    let rain = Testbed::rain();
    let Policy::Datacenter(_) = policy else { return rain };
    let racks = RackLayout { spines: 2, each: 8, hop: Nanos(500), ..RackLayout::default() };
    Testbed { racks, ..rain }
}
