//! The quotient and the difference of two policies on the same tasks: their intervals hold the right value as
//! often as they say, and are narrower than what both policies' own intervals come to.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{
    Estimate, Measure, Measured, Metric, NumberInParts, PARTS, Part, Recorder, Recording, Warmup,
};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use crate::grid::allowed;

/// Fixed before the first run; each trial has a seed of its own behind it.
const SEED: u64 = 70_000;
/// That of the long run which stands for theory.
const TRUTH_SEED: u64 = 69_999;
const REPLICATIONS: u32 = 5;
const WORKERS: usize = 16;
const MEAN_NS: f64 = 10_000.0;
/// Intervals may miss so often …
const MISS_MAX: f64 = 0.07;
/// … and a cell of such intervals has more misses than are allowed so often.
const CHANCE: f64 = 0.001;
const READ: [Part; 5] = [Part::Mean, Part::P50, Part::P90, Part::P99, Part::P999];

/// Two policies that are run again and again, at one load.
struct Cell {
    policies: [&'static str; 2],
    load: f64,
    /// In all replications together.
    tasks: u64,
    trials: u64,
    /// Of the run that stands for theory.
    truth_tasks: u64,
}

#[test]
fn pairs_hold_the_right_value_as_often_as_they_say() {
    hold(&Cell {
        policies: ["central", "jbsq:2"],
        load: 0.8,
        tasks: 25_000,
        trials: 120,
        truth_tasks: 4_000_000,
    });
}

/// A minute. Prints the table of docs/results/statistics.md.
#[test]
#[ignore = "takes long: make soak"]
fn pairs_hold_the_right_value_near_saturation_too() {
    for (policies, load, tasks, trials) in [
        (["central", "jbsq:2"], 0.8, 50_000, 300),
        (["central", "jbsq:2"], 0.95, 50_000, 300),
        (["jbsq:2", "po2"], 0.95, 50_000, 300),
        (["jbsq:2", "po2"], 0.95, 200_000, 100),
    ] {
        hold(&Cell { policies, load, tasks, trials, truth_tasks: 20_000_000 });
    }
}

fn hold(cell: &Cell) {
    let right = cell.numbers(TRUTH_SEED, cell.truth_tasks, 1);
    let mut counts: [Count; 5] = Default::default();
    for trial in 0..cell.trials {
        let found = cell.numbers(SEED + trial, cell.tasks / u64::from(REPLICATIONS), REPLICATIONS);
        for at in 0..READ.len() {
            counts[at].add(&found[at], &right[at]);
        }
    }
    let rows: Vec<String> = counts.iter_mut().map(|count| count.told(cell.trials)).collect();
    let Cell { policies: [a, b], load, tasks, .. } = cell;
    println!("| `{a}` and `{b}`, {load} | {tasks} | {} |", rows.join(" | "));
    for (part, count) in READ.iter().zip(&counts) {
        let most = allowed(cell.trials, MISS_MAX, CHANCE);
        let [by_pairs, apart] = count.middles();
        assert!(cell.trials - count.quotients <= most, "{part:?} over each other: {}", count.quotients);
        assert!(cell.trials - count.differences <= most, "{part:?} less each other: {}", count.differences);
        assert!(
            by_pairs < apart || apart.is_infinite(),
            "{part:?}: {by_pairs} wide by pairs and {apart} apart"
        );
    }
}

/// What became of the intervals of one number.
#[derive(Default)]
struct Count {
    /// How many hold the right quotient.
    quotients: u64,
    /// How many hold the right difference.
    differences: u64,
    /// The quotients' widths on the scale of logarithms: by pairs, and from both numbers' own intervals.
    widths: [Vec<f64>; 2],
}

impl Count {
    fn add(&mut self, [a, b]: &[NumberInParts; 2], [right_a, right_b]: &[NumberInParts; 2]) {
        let (right_a, right_b) = (right_a.estimate().value, right_b.estimate().value);
        let holds = |of: &Estimate, right: f64| u64::from(of.low <= right && right <= of.most());
        // Where chance may double it, both numbers' own intervals are used.
        let quotient = a.over(b);
        self.quotients += quotient.map_or(1, |quotient| holds(&quotient, right_a / right_b));
        self.differences += holds(&a.less(b).expect("there are pairs"), right_a - right_b);
        let width = |of: Estimate| libm::log(of.most() / of.low);
        self.widths[0].push(quotient.map_or(f64::INFINITY, width));
        self.widths[1].push(libm::hypot(width(a.estimate()), width(b.estimate())));
    }

    fn middles(&self) -> [f64; 2] {
        [0, 1].map(|at| {
            let mut widths = self.widths[at].clone();
            widths.sort_by(f64::total_cmp);
            widths[widths.len() / 2]
        })
    }

    fn told(&self, trials: u64) -> String {
        let share = |count: u64| 100.0 * count as f64 / trials as f64;
        let [by_pairs, apart] = self.middles().map(|width| {
            if width.is_finite() { format!("{:.1} %", 100.0 * width) } else { "open".to_owned() }
        });
        format!("{:.1}, {:.1} ({by_pairs}, {apart})", share(self.quotients), share(self.differences))
    }
}

impl Cell {
    /// Each of what is read, under both policies.
    fn numbers(&self, seed: u64, tasks: u64, replications: u32) -> [[NumberInParts; 2]; 5] {
        let measured = self.policies.map(|policy| self.measured(policy, seed, tasks, replications));
        READ.map(|part| {
            let metric = Metric { measure: Measure::LatencyNs, part };
            [0, 1].map(|policy| NumberInParts::of(&measured[policy], Some(metric), None))
        })
    }

    fn measured(&self, policy: &str, seed: u64, tasks: u64, replications: u32) -> Vec<Measured> {
        let workload = Workload::parse("exp:10us").expect("it is right");
        let rate_per_s = self.load * WORKERS as f64 * 1e9 / MEAN_NS;
        let recording = Recording {
            mean_services_ns: vec![MEAN_NS],
            tasks,
            warmup: Warmup::Tasks(5_000),
            parts: PARTS,
            way_home: Nanos(0),
            passed_over_at_random: None,
            within: Vec::new(),
        };
        let reference = Reference::parse(policy).expect("it is one");
        let rack = Ideal { reference, workers: WORKERS, distance: Nanos(0) };
        let replicate = |replication| {
            let requests = Requests::new(&workload, rate_per_s, seed, replication);
            let recorder = Recorder::new(recording.clone());
            rack.run(requests, recorder, (seed, replication), &AtomicBool::new(false))
                .expect("nobody stops it")
        };
        (0..replications).map(replicate).collect()
    }
}
