//! A slice with a target, when more tasks come than it can serve.

use std::sync::atomic::AtomicBool;

use sluice_sim::Within;
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_wire::Nanos;
use sluice_workload::Workload;

/// What 32 workers can serve of tasks of 10 µs, a second.
const CAPACITY: f64 = 3.2e6;

/// Clients that send in these proportions, all together so many times what can be served, for so long.
fn run(weights: &[u32], load: f64, millis: u64) -> Measured {
    let testbed =
        Testbed { clients: weights.len() as u16, client_weights: weights.to_vec(), ..Testbed::rain() };
    let rate_per_s = CAPACITY * load;
    let point = Point {
        tasks: (rate_per_s * millis as f64 / 1e3) as u64,
        warmup: Warmup::TimeNs(10_000_000),
        transient: true,
        ..Point::new(
            Policy::parse("rain:2,target=50us").expect("a policy"),
            testbed,
            Workload::parse("exp:10us").expect("a workload"),
            rate_per_s,
        )
    };
    point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{why}"))
}

fn share_min(measured: &Measured) -> f64 {
    measured.gauges.client_share_min.expect("clients have weights")
}

#[test]
fn a_greedy_client_takes_from_nobody() {
    let other_offers_its_share = [4, 1].as_slice();
    for (weights, load) in [(other_offers_its_share, 2.5), (&[4, 1], 5.0), (&[10, 10, 1], 2.0)] {
        let measured = run(weights, load, 20);
        let share = share_min(&measured);
        assert!(share > 0.95, "{weights:?} at {load}: {share}");
        assert!(measured.throughput_per_s() > 0.97 * 2.95e6, "{}", measured.throughput_per_s());
    }
}

#[test]
fn among_many_clients_who_offers_little_is_hardly_refused() {
    let mut weights = [40; 16];
    weights[0] = 1;
    let share = share_min(&run(&weights, 2.0, 40));
    assert!(share > 0.95, "{share}");
}

/// A fifth of the tasks is of the first class, under twice and three times what can be served.
#[test]
fn the_first_class_is_served_whole_and_only_tasks_of_the_last_are_refused() {
    for (load, clients) in [(2.0, 1), (3.0, 1), (3.0, 16)] {
        let classes = "first=0.2@exp:10us,priority=0+last=0.8@exp:10us,priority=1";
        let rate_per_s = CAPACITY * load;
        let point = Point {
            tasks: 60_000,
            warmup: Warmup::Tasks(20_000),
            transient: true,
            within: Some(Within::All(Nanos::from_micros(200))),
            ..Point::new(
                Policy::parse("rain:2,classes=2,target=50us").expect("a policy"),
                Testbed { clients, ..Testbed::rain() },
                Workload::parse(classes).expect("a workload"),
                rate_per_s,
            )
        };
        let found = point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{why}"));
        let first = found.goodput_per_s(0).expect("it was asked for") / (rate_per_s * 0.2);
        assert!(first > 0.97, "{load} of {clients}: {first} of the first class; chance is 1 %");
        assert!(found.throughput_per_s() > 0.97 * 2.95e6, "{load}: {}", found.throughput_per_s());
    }
}

#[test]
fn one_client_or_256_get_as_much_together() {
    for (clients, least) in [(1, 0.999), (256, 0.8)] {
        let measured = run(&vec![1; clients], 2.0, 20);
        assert!(measured.throughput_per_s() > 0.97 * 2.95e6, "{}", measured.throughput_per_s());
        assert!(share_min(&measured) > least, "{clients}: {}", share_min(&measured));
    }
}

#[test]
fn a_load_that_can_be_served_is_not_refused() {
    let measured = run(&[4, 1], 0.8, 40);
    let refused = measured.counts.refused as f64 / measured.counts.sent as f64;
    assert!(refused < 0.001 && share_min(&measured) > 0.999, "{refused}");
}
