//! Many racks compared with theory: every interval must be narrow, and almost none may miss.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Discipline, Rack};
use sluice_stats::{Counts, Estimate, Measured, PARTS, Recorder, Recording, Spread, Warmup, summarize};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use crate::formulas::{md1_response, mg1_mean_response, mmk_response};

/// Fixed before the first run, and never changed since: a seed that was searched for proves nothing.
const SEED: u64 = 4;
const REPLICATIONS: u32 = 40;
const MEAN_NS: f64 = 10_000.0;
/// The largest width of an interval, as a share of the true value.
const WIDTH_MAX: f64 = 0.02;
/// The largest width from this load on.
const WIDTH_MAX_NEAR_SATURATION: f64 = 0.05;
const NEAR_SATURATION: f64 = 0.95;
/// The share of 95 % intervals that miss.
const MISS: f64 = 0.05;
/// The probability that a grid of such intervals has more misses than are allowed.
const CHANCE: f64 = 0.001;

/// The distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Service {
    Exp,
    Const,
    /// 90 % short tasks, 10 % ten times as long.
    Bimodal,
    Uniform,
    Lognormal,
}

impl Service {
    fn text(self, factor: f64) -> String {
        let ns = |means: f64| format!("{:.0}ns", means * MEAN_NS * factor);
        match self {
            Self::Exp => format!("exp:{}", ns(1.0)),
            Self::Const => format!("const:{}", ns(1.0)),
            Self::Bimodal => format!("bimodal:{}:{}:0.9", ns(1.0 / 1.9), ns(10.0 / 1.9)),
            Self::Uniform => format!("uniform:{}:{}", ns(0.5), ns(1.5)),
            Self::Lognormal => format!("lognormal:{}:1", ns(1.0)),
        }
    }

    /// The squared coefficient of variation.
    fn squared_variation(self) -> f64 {
        match self {
            Self::Exp => 1.0,
            Self::Const => 0.0,
            Self::Bimodal => (0.9 + 0.1 * 100.0) / (1.9 * 1.9) - 1.0,
            Self::Uniform => 1.0 / 12.0,
            Self::Lognormal => libm::exp(1.0) - 1.0,
        }
    }
}

/// The name of a number, how it is read from a run, and its value in theory, in mean services.
type Known = (&'static str, fn(&Spread) -> Estimate, f64);

/// A rack with one queue, for which theory has formulas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) service: Service,
    pub(crate) workers: u32,
    pub(crate) load: f64,
    /// The tasks of all replications together: as many as narrow intervals need.
    pub(crate) tasks: u64,
}

impl Cell {
    fn theory(&self) -> Vec<Known> {
        let response = match (self.service, self.workers) {
            (Service::Exp, workers) => mmk_response(workers, self.load),
            (Service::Const, 1) => md1_response(self.load),
            _ => {
                let mean = mg1_mean_response(self.load, self.service.squared_variation());
                return vec![("mean", |spread| spread.mean, mean)];
            }
        };
        vec![
            ("p50", |spread| spread.p50, response.quantile(0.5)),
            ("p90", |spread| spread.p90, response.quantile(0.9)),
            ("p99", |spread| spread.p99, response.quantile(0.99)),
        ]
    }

    /// Runs it with services that take `factor` times as long as theory assumes, under a given discipline.
    fn measure<D: Discipline>(&self, factor: f64, discipline: impl Fn(usize) -> D) -> Vec<Measured> {
        let workload = Workload::parse(&self.service.text(factor)).expect("it is right");
        let rate_per_s = self.load * f64::from(self.workers) * 1e9 / MEAN_NS;
        let tasks = self.tasks / u64::from(REPLICATIONS);
        let recording = Recording {
            mean_services_ns: vec![MEAN_NS],
            tasks,
            warmup: Warmup::Tasks(tasks / 10),
            parts: PARTS,
            way_home: Nanos(0),
            passed_over_at_random: None,
            within: Vec::new(),
        };
        let workers = self.workers as usize;
        let replicate = |replication| {
            let requests = Requests::new(&workload, rate_per_s, self.seed(), replication);
            let mut recorder = Recorder::new(recording.clone());
            let mut rack = Rack::new(discipline(workers), workers, Nanos(0));
            let gauges = rack.run(requests, &mut recorder, &AtomicBool::new(false));
            recorder.finish(Counts::default(), gauges)
        };
        (0..REPLICATIONS).map(replicate).collect()
    }

    /// A seed of its own, whatever other cells there are.
    fn seed(&self) -> u64 {
        SEED + 1_000_000 * self.service as u64 + 1_000 * u64::from(self.workers) + (self.load * 100.0) as u64
    }

    fn width_max(&self) -> f64 {
        if self.load < NEAR_SATURATION { WIDTH_MAX } else { WIDTH_MAX_NEAR_SATURATION }
    }
}

/// The result of a grid.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    intervals: usize,
    misses: Vec<String>,
    wide: Vec<String>,
}

impl Outcome {
    /// Whether no interval is too wide, and no more of them miss than are allowed.
    pub(crate) fn holds(&self) -> bool {
        self.wide.is_empty() && !self.misses_too_often()
    }

    /// Whether more intervals miss than chance explains.
    pub(crate) fn misses_too_often(&self) -> bool {
        self.misses.len() > misses_allowed(self.intervals)
    }

    fn judge(&mut self, cell: &Cell, measured: &Spread) {
        for (name, of, right) in cell.theory() {
            let (estimate, right_ns) = (of(measured), right * MEAN_NS);
            let told = format!("{name} of {cell:?}: {estimate:?}, and theory says {right_ns:.0}");
            self.intervals += 1;
            if right_ns < estimate.low || right_ns > estimate.high {
                self.misses.push(told.clone());
            }
            if estimate.high - estimate.low >= cell.width_max() * right_ns {
                self.wide.push(told);
            }
        }
    }
}

/// Runs all cells.
pub(crate) fn run<D: Discipline>(cells: &[Cell], factor: f64, discipline: impl Fn(usize) -> D) -> Outcome {
    let mut outcome = Outcome::default();
    for cell in cells {
        let summary = summarize(&cell.measure(factor, &discipline));
        outcome.judge(cell, &summary.overall.latency_ns);
    }
    outcome
}

/// How many misses so many intervals exceed in one grid of a thousand.
fn misses_allowed(intervals: usize) -> usize {
    allowed(intervals as u64, MISS, CHANCE) as usize
}

/// How many misses so many intervals exceed with probability `chance`, if each misses with probability
/// `miss`.
pub(crate) fn allowed(intervals: u64, miss: f64, chance: f64) -> u64 {
    let mut term = libm::pow(1.0 - miss, intervals as f64);
    let (mut misses, mut so_far) = (0, term);
    while so_far < 1.0 - chance {
        term *= (intervals - misses) as f64 / (misses + 1) as f64 * miss / (1.0 - miss);
        misses += 1;
        so_far += term;
    }
    misses
}

#[test]
fn as_many_misses_are_allowed_as_the_binomial_says() {
    assert_eq!([1, 20, 100].map(misses_allowed), [1, 5, 13]);
}
