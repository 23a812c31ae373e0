//! 95 % intervals hold the true value as often as they claim, at any load, from 50,000 tasks up.
//!
//! Each cell is run many times as users run a point: five replications, with a detected warm-up. An
//! interval near saturation may be open above, because the data do not bound it; with enough tasks it must
//! be closed. The closed intervals alone must have the claimed coverage too: a run that was quiet by chance
//! must not claim to be known well.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{Estimate, Measured, PARTS, Recorder, Recording, Spread, Summary, Warmup, summarize};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use crate::formulas::{Theory, md1_response, mg1_mean_response, mmk_response};
use crate::grid::allowed;

/// Fixed before the first run, and never changed since; each trial adds its number.
const SEED: u64 = 90_000;
/// The seed of the long run that stands for theory if there is no formula.
const TRUTH_SEED: u64 = 89_999;
const TRUTH_TASKS: u64 = 200_000_000;
const REPLICATIONS: u32 = 5;
const MEAN_NS: f64 = 10_000.0;
/// The largest share of intervals that may miss.
const MISS_MAX: f64 = 0.07;
/// The probability that a cell of such intervals has more misses than are allowed.
const CHANCE: f64 = 0.001;
/// A number that is read, and how it is read; the mean is the last.
type Read = (&'static str, fn(&Spread) -> Estimate);
const READ: [Read; 5] = [
    ("p50", |spread| spread.p50),
    ("p90", |spread| spread.p90),
    ("p99", |spread| spread.p99),
    ("p99.9", |spread| spread.p999),
    ("mean", |spread| spread.mean),
];
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A rack that is run many times.
#[derive(Clone, Copy, Debug)]
struct Cell {
    service: &'static str,
    workers: u32,
    load: f64,
    /// The tasks of all replications together.
    tasks: u64,
    trials: u64,
    /// For each number the share of intervals that may be open above.
    open_max: [f64; 5],
}

const BOUNDED: [f64; 5] = [0.0; 5];
const P999_OPEN: [f64; 5] = [0.0, 0.0, 0.0, 1.0, 0.0];
const TAIL_OPEN: [f64; 5] = [0.1, 0.1, 1.0, 1.0, 0.1];
/// Near saturation a run of 50,000 tasks holds so few busy times that even the ninth decile may be
/// unbounded.
const MOST_OPEN: [f64; 5] = [0.2, 0.5, 1.0, 1.0, 0.3];

const fn cell(
    service: &'static str,
    workers: u32,
    load: f64,
    tasks: u64,
    trials: u64,
    open_max: [f64; 5],
) -> Cell {
    Cell { service, workers, load, tasks, trials, open_max }
}

const QUICK: &[Cell] = &[
    cell(EXP, 1, 0.5, 50_000, 200, P999_OPEN),
    cell(EXP, 1, 0.9, 50_000, 200, TAIL_OPEN),
    cell(EXP, 23, 0.8, 50_000, 200, BOUNDED),
    // More trials than other cells: fewer of its intervals are closed.
    cell(EXP, 23, 0.95, 50_000, 800, MOST_OPEN),
    cell(CONST, 1, 0.8, 50_000, 200, TAIL_OPEN),
];

const EXP: &str = "exp:10us";
const CONST: &str = "const:10us";
const BIMODAL: &str = "bimodal:5263ns:52630ns:0.9";

#[test]
fn intervals_hold_the_right_value_as_often_as_they_say() {
    hold(QUICK);
}

/// Takes minutes: all loads and services, up to a million tasks. Prints the table of
/// docs/results/statistics.md.
#[test]
#[ignore = "takes long: make soak"]
fn intervals_hold_the_right_value_over_the_whole_grid() {
    let racks = [
        (EXP, 23, 0.95),
        (EXP, 23, 0.9),
        (EXP, 23, 0.8),
        (EXP, 23, 0.5),
        (EXP, 1, 0.95),
        (EXP, 1, 0.9),
        (EXP, 1, 0.8),
        (EXP, 1, 0.5),
        (CONST, 23, 0.95),
        (CONST, 23, 0.9),
        (BIMODAL, 23, 0.95),
        (BIMODAL, 23, 0.9),
    ];
    let sizes = [(50_000, 400), (200_000, 200), (1_000_000, 100)];
    let cells: Vec<Cell> = racks
        .iter()
        .flat_map(|(service, workers, load)| {
            sizes.map(|(tasks, trials)| cell(service, *workers, *load, tasks, trials, [1.0; 5]))
        })
        .collect();
    hold(&cells);
}

fn hold(cells: &[Cell]) {
    let mut wrong = Vec::new();
    let mut rights = HashMap::new();
    for cell in cells {
        let rack = (cell.service, cell.workers, cell.load.to_bits());
        let right = *rights.entry(rack).or_insert_with(|| cell.right());
        let counts = cell.run(right);
        println!("{}", cell.row(&counts));
        for ((count, (name, _)), open_max) in counts.iter().zip(READ).zip(cell.open_max) {
            let missed = cell.trials - count.held;
            if missed > allowed(cell.trials, MISS_MAX, CHANCE) {
                wrong.push(format!("{name} of {cell:?}: {missed} of {} intervals miss", cell.trials));
            }
            let (closed, missed) = (cell.trials - count.open, missed - count.open_missed);
            if missed > allowed(closed, MISS_MAX, CHANCE) {
                wrong.push(format!("{name} of {cell:?}: {missed} of {closed} closed intervals miss"));
            }
            if count.open as f64 > open_max * cell.trials as f64 {
                wrong.push(format!("{name} of {cell:?}: {} of {} are open above", count.open, cell.trials));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What became of the intervals of one number.
#[derive(Clone, Debug, Default)]
struct Count {
    held: u64,
    open: u64,
    /// How many open intervals miss, which is only possible below.
    open_missed: u64,
    /// The widths of closed intervals, as shares of the true value.
    widths: Vec<f64>,
}

impl Cell {
    fn run(&self, right: [f64; 5]) -> [Count; 5] {
        let mut counts: [Count; 5] = Default::default();
        for trial in 0..self.trials {
            let summary = self.point(SEED + trial, self.tasks / u64::from(REPLICATIONS), REPLICATIONS);
            for ((count, (name, of)), right) in counts.iter_mut().zip(READ).zip(right) {
                let found = of(&summary.overall.latency_ns);
                self.check(name, &found, &summary);
                let holds = found.low <= right && right <= found.most();
                count.held += u64::from(holds);
                count.open_missed += u64::from(found.open_above && !holds);
                count.open += u64::from(found.open_above);
                count.widths.extend((!found.open_above).then(|| (found.high - found.low) / right));
            }
        }
        counts
    }

    /// Checks what holds for every interval, wherever the true value lies.
    fn check(&self, name: &str, found: &Estimate, summary: &Summary) {
        let told = || format!("{name} of {self:?}: {found:?}");
        assert!(found.low <= found.value && found.value <= found.high, "{}", told());
        assert!(found.low > 0.0 && found.has_interval() && found.high.is_finite(), "{}", told());
        // A point that seems not to be sustained says so instead.
        let must_say = found.open_above && name != "mean" && summary.sustained.holds;
        assert!(!must_say || summary.caveat.contains(name_in_words(name)), "{}", told());
    }

    fn right(&self) -> [f64; 5] {
        let theory = match (self.service, self.workers) {
            (EXP, workers) => mmk_response(workers, self.load),
            (CONST, 1) => md1_response(self.load),
            _ => return self.long_run(),
        };
        let [p50, p90, p99, p999] = QUANTILES.map(|quantile| theory.quantile(quantile) * MEAN_NS);
        [p50, p90, p99, p999, self.mean(&theory)]
    }

    fn mean(&self, theory: &Theory) -> f64 {
        if self.workers == 1 {
            let squared_variation = if self.service == EXP { 1.0 } else { 0.0 };
            return mg1_mean_response(self.load, squared_variation) * MEAN_NS;
        }
        // The integral of the tail, by the midpoint rule.
        let step = 1.0 / 256.0;
        (0..256 * 200).map(|n| (theory.tail)((f64::from(n) + 0.5) * step) * step).sum::<f64>() * MEAN_NS
    }

    /// The numbers of a run that is long enough to stand for theory.
    fn long_run(&self) -> [f64; 5] {
        let summary = self.point(TRUTH_SEED, TRUTH_TASKS, 1);
        READ.map(|(_, of)| of(&summary.overall.latency_ns).value)
    }

    fn point(&self, seed: u64, tasks: u64, replications: u32) -> Summary {
        let workload = Workload::parse(self.service).expect("it is right");
        let rate_per_s = self.load * f64::from(self.workers) * 1e9 / MEAN_NS;
        let recording = Recording {
            mean_services_ns: vec![MEAN_NS],
            tasks,
            warmup: Warmup::Detect,
            parts: PARTS,
            way_home: Nanos(0),
            passed_over_at_random: None,
            within: Vec::new(),
        };
        let rack =
            Ideal { reference: Reference::Central, workers: self.workers as usize, distance: Nanos(0) };
        let replicate = |replication| {
            let requests = Requests::new(&workload, rate_per_s, seed, replication);
            let recorder = Recorder::new(recording.clone());
            rack.run(requests, recorder, (seed, replication), &AtomicBool::new(false))
                .expect("nobody stops it")
        };
        summarize(&(0..replications).map(replicate).collect::<Vec<Measured>>())
    }

    /// A row of the table in docs/results/statistics.md: for each number the coverage in per cent, the
    /// median width, and the share of intervals that were open above.
    fn row(&self, counts: &[Count; 5]) -> String {
        let share = |count: u64| 100.0 * count as f64 / self.trials as f64;
        let told = |count: &Count| {
            let mut widths = count.widths.clone();
            widths.sort_by(f64::total_cmp);
            let middle = widths
                .get(widths.len() / 2)
                .map_or("–".to_owned(), |width| format!("{:.1} %", width * 100.0));
            let open =
                if count.open == 0 { String::new() } else { format!(", {:.0} % open", share(count.open)) };
            let closed = self.trials - count.open;
            let closed_held = closed - (self.trials - count.held - count.open_missed);
            let closed = match (count.open, closed) {
                (0, _) | (_, 0) => String::new(),
                _ => format!(", closed {:.1} of {closed}", 100.0 * closed_held as f64 / closed as f64),
            };
            format!("{:.1} ({middle}{open}{closed})", share(count.held))
        };
        let cells: Vec<String> = counts.iter().map(told).collect();
        format!(
            "| {} × {}, {} | {} | {} |",
            self.workers,
            self.service,
            self.load,
            self.tasks,
            cells.join(" | ")
        )
    }
}

/// The name of a number in [`Summary::caveat`].
fn name_in_words(name: &str) -> &str {
    if name == "p50" { "the median" } else { name }
}
