//! Racks below spines as points of a study.

use std::sync::atomic::AtomicBool;
use std::thread;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Counts, Measured, Warmup};
use sluice_testbed::{RackLayout, Rates, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

fn testbed() -> Testbed {
    let racks =
        RackLayout { spines: 2, workers: vec![4, 4, 8, 16], hop: Nanos(5_000), ..RackLayout::default() };
    Testbed { racks, clients: 2, ..Testbed::rain() }
}

fn point(policy: &str, load: f64) -> Point {
    let workload = Workload::parse("bimodal:20us:200us:0.5").expect("a workload");
    let policy = Policy::parse(policy).expect("a policy");
    let mut point =
        Point { tasks: 40_000, warmup: Warmup::Tasks(4_000), ..Point::new(policy, testbed(), workload, 1.0) };
    point.rate_per_s = load * point.capacity_per_s();
    point
}

fn measure(point: &Point, replication: u32) -> Measured {
    point.replicate(replication, &AtomicBool::new(false)).expect("nobody stopped it")
}

fn p99(measured: &Measured) -> u64 {
    measured.classes[0].latency.quantile(0.99)
}

const ALL: [&str; 7] = [
    "dc-horus",
    "dc-horus:only=idle",
    "dc-horus:only=loads",
    "dc-rs-h",
    "dc-rs-lb",
    "dc-rain:1",
    "dc-rain:2,only=loads",
];

#[test]
fn one_seed_gives_the_same_bytes_on_any_thread() {
    for policy in ALL {
        let point = &point(policy, 0.7);
        let here: Vec<_> = (0..3).map(|replication| measure(point, replication)).collect();
        let there: Vec<_> = thread::scope(|scope| {
            let runs: Vec<_> =
                (0..3).map(|replication| scope.spawn(move || measure(point, replication))).collect();
            runs.into_iter().map(|run| run.join().expect("a run")).collect()
        });
        assert!(here == there, "{policy}");
        assert!(here[0] != here[1], "{policy}: replications are others");
    }
}

#[test]
fn every_task_is_replied_to_and_none_sooner_than_two_hops_take() {
    for policy in ALL {
        let measured = measure(&point(policy, 0.6), 0);
        let Counts { replied, refused, unknown, .. } = measured.counts;
        assert_eq!((replied, refused, unknown), (40_000, 0, 0), "{policy}");
        let least = testbed().zero_load().0 + 20_000;
        assert!(measured.classes[0].latency.quantile(0.0) + 20 >= least, "{policy}: a thousandth is rounded");
    }
}

#[test]
fn a_leaf_on_a_server_of_its_rack_costs_a_task_and_its_reply_a_round_trip_each() {
    let detour = Nanos(1_300);
    let at_server = Testbed { racks: RackLayout { detour, ..testbed().racks }, ..testbed() };
    for policy in ["dc-horus", "dc-rs-h", "dc-rs-lb"] {
        let in_switch = point(policy, 0.3);
        let at_server = Point { testbed: at_server.clone(), ..in_switch.clone() };
        let [here, there] =
            [in_switch, at_server].map(|point| measure(&point, 0).classes[0].latency.quantile(0.0));
        let more = there - here;
        assert!(more.abs_diff(4 * detour.0) < 100, "{policy}: {more} ns, a thousandth is rounded");
    }
    let said = Point { testbed: at_server, ..point("dc-rain:2", 0.3) }.check().expect_err("refused");
    assert!(said.to_string().contains("leave racks.detour out"), "{said}");
}

/// At light load there are idle racks, and Horus knows them.
#[test]
fn with_light_load_horus_finds_idle_racks_and_workers_and_who_looks_at_means_does_not() {
    let [horus, hierarchy, any] =
        ["dc-horus", "dc-rs-h", "dc-rs-lb"].map(|policy| measure(&point(policy, 0.3), 0));
    assert!(p99(&any) > p99(&horus) + 20_000, "{} against {}", p99(&any), p99(&horus));
    assert!(p99(&hierarchy) > p99(&horus), "{} against {}", p99(&hierarchy), p99(&horus));
    let told = horus.counts.load_updates + horus.counts.idle_updates;
    assert!(hierarchy.counts.load_updates > 39_000 && told < 39_000, "{told} against one for each reply");
}

/// Horus' figure 19(a): ten racks of 12 workers below one spine, ten of 35 or 36 below the other. A spine
/// that gets half of all tasks for a quarter of the workers is overloaded.
#[test]
fn who_draws_spines_evenly_fills_the_one_with_small_racks_whatever_it_knows_of_them() {
    let workers = [[12; 10], [35, 35, 35, 35, 35, 36, 36, 36, 36, 36]].concat();
    let racks = RackLayout { spines: 2, workers, hop: Nanos(5_000), ..RackLayout::default() };
    let testbed = Testbed { racks, workers: 475, clients: 4, ..Testbed::rain() };
    let [horus, by_workers, evenly] = ["dc-horus", "dc-rs-h", "dc-rs-h:spines=even"].map(|policy| {
        let workload = Workload::parse("exp:100us").expect("a workload");
        let policy = Policy::parse(policy).expect("a policy");
        let point = Point {
            tasks: 100_000,
            warmup: Warmup::Tasks(10_000),
            ..Point::new(policy, testbed.clone(), workload, 4_275e3)
        };
        p99(&measure(&point, 0))
    });
    println!("p99 in ns: {horus}, {by_workers}, {evenly}");
    assert!(evenly > 10 * horus && by_workers < 2 * horus, "{horus}, {by_workers}, {evenly}");
}

/// The counts if one packet in a hundred is lost.
fn under_loss(policy: &str) -> Counts {
    let mut point = point(policy, 0.5);
    let loss = Rates { loss: 0.01, ..Rates::default() };
    let faults = &mut point.testbed.faults;
    (faults.submit, faults.dispatch, faults.reply, faults.update) = (loss, loss, loss, loss);
    measure(&point, 0).counts
}

#[test]
fn what_the_network_loses_is_tried_again() {
    for policy in ["dc-horus:told=replies", "dc-rs-h", "dc-rain:2,told=replies"] {
        let counts = under_loss(policy);
        assert_eq!(counts.replied, 40_000, "{policy}: {counts:?}");
        assert!(counts.retries > 1_000 && counts.lost_packets > 1_500, "{policy}: {counts:?}");
    }
}

/// As printed, the spine's count of tasks stays while a rack's mean does not move. A rack whose word that
/// it is idle was lost then looks worse than any other: tasks wait elsewhere for so long that clients send
/// them again. In our reading tasks are sent again almost only after a packet of theirs was lost.
#[test]
fn a_spine_that_is_told_only_what_moved_has_tasks_sent_again_under_loss_and_ours_has_not() {
    let [printed, ours] = ["dc-horus:as-published", "dc-horus"].map(under_loss);
    assert!(printed.retries > 2 * ours.retries && ours.retries < ours.lost_packets, "{printed:?}, {ours:?}");
    assert_eq!(ours.replied, 40_000, "{ours:?}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let rack = Point { testbed: Testbed::rain(), ..point("dc-horus", 0.5) };
    let one_switch = Point { policy: Policy::parse("racksched:2").unwrap(), ..point("dc-horus", 0.5) };
    let mut slow = point("dc-rs-h", 0.5);
    slow.testbed.stalls.per_s = 1.0;
    for (point, named) in [(rack, "[racks]"), (one_switch, "racksched:2"), (slow, "stalls")] {
        let said = point.check().unwrap_err().to_string();
        assert!(said.contains(named) && !said.contains('\n'), "{said}");
    }
}
