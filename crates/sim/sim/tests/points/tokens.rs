//! Ranked and early tokens in a simulated rack: where they help, and where they change nothing.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup, summarize};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

const BIMODAL: &str = "bimodal:10us:100us:0.5";
const TYPED: &str = "short=0.5@const:10us+long=0.5@const:100us";

fn run(policy: &str, workload: &str, load: f64) -> Measured {
    let mut point = Point {
        tasks: 60_000,
        warmup: Warmup::Tasks(6_000),
        transient: true,
        ..Point::new(Policy::parse(policy).unwrap(), Testbed::rain(), Workload::parse(workload).unwrap(), 1.0)
    };
    point.rate_per_s = load * point.capacity_per_s();
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn p99_us(policy: &str, workload: &str, load: f64) -> f64 {
    summarize(&[run(policy, workload, load)]).overall.latency_ns.p99.value / 1e3
}

#[test]
fn with_ranks_a_second_token_costs_nothing_while_workers_are_idle() {
    for load in [0.3, 0.5] {
        let [ranked, one, two] =
            ["rain:2,ranked", "rain:1", "rain:2"].map(|policy| p99_us(policy, BIMODAL, load));
        assert!(ranked < one * 1.02, "at {load}: {ranked} us with ranks, {one} with one token");
        assert!(ranked * 1.5 < two, "at {load}: {ranked} us with ranks, {two} without");
    }
}

#[test]
fn with_ranks_a_second_token_is_there_when_all_are_busy() {
    let [ranked, one, two] =
        ["rain:2,ranked", "rain:1", "rain:2"].map(|policy| p99_us(policy, "exp:10us", 0.8));
    assert!(
        ranked <= two && ranked * 2.0 < one,
        "{ranked} us with ranks, {two} without, {one} with one token"
    );
}

#[test]
fn ranks_and_early_tokens_together_gain_more_than_ranks() {
    let [both, ranked] = ["rain:2,ranked,early", "rain:2,ranked"].map(|policy| p99_us(policy, BIMODAL, 0.7));
    assert!(both < 110.0 && both * 1.1 < ranked, "{both} us with both, {ranked} with ranks alone");
}

#[test]
fn patient_workers_have_the_tail_of_one_token_and_the_throughput_of_two() {
    let [patient, one, two] =
        ["rain:2,patient", "rain:1", "rain:2"].map(|policy| p99_us(policy, BIMODAL, 0.8));
    assert!(
        patient < one * 1.05 && patient * 1.4 < two,
        "{patient} us patient, {one} with one, {two} with two"
    );
    let [patient, one, two] =
        ["rain:2,patient", "rain:1", "rain:2"].map(|policy| p99_us(policy, "exp:10us", 0.8));
    assert!(
        patient < two * 1.05 && patient * 2.0 < one,
        "{patient} us patient, {one} with one, {two} with two"
    );
}

#[test]
fn patient_workers_with_early_tokens_do_not_collapse_where_early_tokens_alone_do() {
    let [both, early] =
        ["rain:2,patient,early", "rain:1,early"].map(|policy| p99_us(policy, "exp:10us", 0.92));
    assert!(both * 1.5 < early, "{both} us patient, {early} with one token");
}

#[test]
fn with_early_tokens_one_token_has_the_tail_of_one_and_the_throughput_of_two() {
    for load in [0.7, 0.9] {
        let [early, one, two] =
            ["rain:1,early", "rain:1", "rain:2"].map(|policy| p99_us(policy, BIMODAL, load));
        assert!(early < one && early < two, "at {load}: {early} us early, {one} with one, {two} with two");
    }
    let [early, one] = ["rain:1,early", "rain:1"].map(|policy| p99_us(policy, "exp:10us", 0.8));
    assert!(early * 2.0 < one, "one token alone has collapsed: {early} us early, {one}");
}

#[test]
fn estimates_that_are_off_cost_some_of_it_and_not_all() {
    let [perfect, ten, thirty, one] = ["rain:1,early", "rain:1,early=10%", "rain:1,early=30%", "rain:1"]
        .map(|policy| p99_us(policy, BIMODAL, 0.9));
    assert!(perfect < ten && ten < thirty && thirty < one, "{perfect}, {ten}, {thirty}, {one} us");
}

#[test]
fn estimates_by_type_are_as_good_as_perfect_ones_where_types_tell_services() {
    let [learned, perfect] =
        ["rain:1,early=learned", "rain:1,early"].map(|policy| p99_us(policy, TYPED, 0.8));
    assert!((learned / perfect - 1.0).abs() < 0.03, "{learned} us learned, {perfect} perfect");
}

#[test]
fn without_an_estimate_one_token_stays_one_token() {
    assert_eq!(run("rain:1,early=learned", BIMODAL, 0.7), run("rain:1", BIMODAL, 0.7));
}

#[test]
fn one_seed_repeats_one_run() {
    assert_eq!(run("rain:1,early=30%", BIMODAL, 0.8), run("rain:1,early=30%", BIMODAL, 0.8));
}

/// Services whose times differ by a factor of a thousand.
const KEYS: &str = "get=0.9@keys:800ns:10+scan=0.1@keys:214ns:500";

fn slowdown_p99(policy: &str, load: f64) -> f64 {
    summarize(&[run(policy, KEYS, load)]).overall.slowdown.p99.value
}

#[test]
fn classes_by_size_spare_small_tasks_the_wait_behind_large_ones() {
    let [classes, off, two, without] = [
        "rain:1,early,classes=4",
        "rain:1,early,classes=4,sizes=30%",
        "rain:1,early,classes=2",
        "rain:1,early",
    ]
    .map(|policy| slowdown_p99(policy, 0.85));
    assert!(classes * 2.0 < without, "{classes} with four classes, {without} without");
    assert!(classes < two && two < without, "{classes} with four classes, {two} with two, {without} without");
    assert!(off * 1.5 < without, "{off} with sizes 30 % off, {without} without classes");
}

/// A token that parks takes another pass, for which no task waits.
#[test]
fn where_all_workers_are_alike_labels_change_next_to_nothing() {
    for (workload, load) in [("exp:10us", 0.7), ("const:10us", 0.8)] {
        let [labels, without] = ["rain:2,labels", "rain:2"].map(|policy| p99_us(policy, workload, load));
        assert!(
            (labels / without - 1.0).abs() < 0.05,
            "{workload}: {labels} us with labels, {without} without"
        );
    }
}

#[test]
fn where_sizes_do_not_differ_classes_change_nothing() {
    let [classes, without] = ["rain:2,classes=4", "rain:2"].map(|policy| p99_us(policy, "const:10us", 0.8));
    assert!((classes - without).abs() < 1e-9, "{classes} us with classes, {without} without");
}

#[test]
fn a_tasks_priority_decides_who_waits_where_there_are_classes() {
    let workload = "first=0.5@exp:10us,priority=0+second=0.5@exp:10us,priority=1";
    let waits = |policy: &str| {
        let point = Point {
            tasks: 50_000,
            warmup: Warmup::Tasks(5_000),
            ..Point::new(
                Policy::parse(policy).expect("it is one"),
                Testbed::rain(),
                Workload::parse(workload).expect("it is right"),
                2_100_000.0,
            )
        };
        let measured = point.replicate(0, &AtomicBool::new(false)).expect("it runs");
        [0, 1].map(|class: usize| measured.classes[class].scheduling_delay.mean())
    };
    let [first, second] = waits("rain:1,classes=2");
    assert!(first * 1.5 < second, "{first} and {second} ns");
    let [first, second] = waits("rain:1");
    assert!((first / second - 1.0).abs() < 0.1, "nobody asks: {first} and {second} ns");
}
