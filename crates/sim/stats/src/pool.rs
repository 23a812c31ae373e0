//! One measure of one set of tasks, over all replications: its mean and quantiles with their intervals.
//!
//! A quantile's interval lies between values that were seen, by rank: as many ranks around the quantile's
//! own as chance moves them. Tasks of one busy time share their fate. So chance moves a rank further than
//! with independent tasks, by a factor (the dispersion) that the runs' parts show at each quantile
//! ([`Total`]). A tail with few busy times shows too little of it. So each quantile's dispersion is moved
//! halfway, on a logarithmic scale, towards that of the quantile before, and is at least a fixed share of
//! that one. Otherwise a run that was quiet by chance would claim to be known well, and its interval would
//! be closed where those of other runs are open.

use sluice_outcome::study::{Estimate, Measure, Method, Part, Spread};

use super::chance::{Chance, Total};
use super::distribution::Distribution;
use super::interval::{events_left, of_mean, ranks};
use super::measured::{ClassMeasured, Measured};
use super::parts::{Parts, cell_of};

/// The quantiles that are reported, rising.
pub(super) const QUANTILES: [(Part, f64); 5] =
    [(Part::P50, 0.5), (Part::P90, 0.9), (Part::P95, 0.95), (Part::P99, 0.99), (Part::P999, 0.999)];
/// The quantile that the next one is not compared with: p99 follows p90, a decade before it.
const ASIDE: Part = Part::P95;
/// The smallest share of the dispersion before that each quantile has. Found by experiment
/// (docs/results/statistics.md); the value for p95 is half the way from p90's to p99's on a logarithmic
/// scale.
const LEAST_OF_BEFORE: [f64; 5] = [0.0, 1.25, 0.63, 0.4, 0.25];
/// Slowdowns are recorded in thousandths.
pub(super) const SLOWDOWN_UNIT: f64 = 1_000.0;

/// All values of a measure.
#[derive(Clone, Debug)]
pub(super) struct PooledValues {
    all: Distribution,
    runs: Vec<Parts>,
    /// How many units of the values make 1.
    unit: f64,
}

/// A quantile with its interval, and the numbers behind the interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantile {
    pub(super) estimate: Estimate,
    /// How many independent events the quantile's rarer side is worth; infinite if there is no interval.
    pub(super) events: f64,
    /// By how much the value rises per share of all tasks that lie below it.
    slope: f64,
    /// The share of all values at or below the quantile.
    share: f64,
    /// By what factor the quantile's variance is taken to be larger than its parts show.
    pub(super) caution: f64,
}

/// By what factor chance moves a quantile's rank further than with independent tasks, and how well the
/// factor is known.
#[derive(Clone, Copy, Debug)]
struct Dispersion {
    factor: f64,
    freedom: usize,
}

impl PooledValues {
    /// A measure of a class, or of all tasks.
    pub(super) fn of(measured: &[Measured], class: Option<usize>, measure: Measure) -> Self {
        let mut pool = Self { all: Distribution::new(), runs: Vec::new(), unit: 1.0 };
        for one in measured {
            let classes = class.map_or(&one.classes[..], |class| &one.classes[class..=class]);
            let mut run: Option<Parts> = None;
            for class in classes {
                let (values, parts, unit) = pool_of(class, measure, classes.len() == 1);
                pool.all.merge(&values);
                pool.unit = unit;
                run = Some(match run {
                    Some(mut run) => {
                        run.add(&parts);
                        run
                    }
                    None => parts,
                });
            }
            pool.runs.extend(run);
        }
        pool
    }

    /// The mean and the quantiles.
    pub(super) fn spread(&self) -> Spread {
        let [p50, p90, p95, p99, p999] = self.quantiles().map(|quantile| quantile.estimate);
        Spread { mean: self.mean(), p50, p90, p95, p99, p999 }
    }

    /// The quantiles, in the order of [`QUANTILES`].
    pub(super) fn quantiles(&self) -> [Quantile; 5] {
        let mut before: Option<Dispersion> = None;
        core::array::from_fn(|at| {
            let (part, quantile) = QUANTILES[at];
            let edge = self.edge_near(quantile);
            let found = self.dispersion(edge);
            let used = found.map(|found| found.after(before, LEAST_OF_BEFORE[at]));
            if part != ASIDE {
                before = used;
            }
            match found.zip(used) {
                Some((found, used)) => self.quantile(quantile, found, used),
                None => self.without_interval(quantile),
            }
        })
    }

    /// The mean with its interval.
    ///
    /// Large values come in a few busy times, and the ninth decile shows these better than the mean itself.
    pub(super) fn mean(&self) -> Estimate {
        let value = self.all.mean() / self.unit;
        let Some(chance) = self.mean_parts(value).chance() else { return Estimate::exact(value) };
        let count = self.all.count() as f64;
        let spread = self.variance();
        let at = |quantile| {
            let none = Dispersion { factor: 1.0, freedom: usize::MAX };
            self.dispersion(self.edge_near(quantile)).unwrap_or(none)
        };
        let (middle, ninth) = (at(0.5), at(0.9));
        let events = 0.1 * count / ninth.factor;
        let caution = events / events_left(events).min(events);
        let variance = chance.variance.max(spread / count * ninth.factor.max(middle.factor)) * caution;
        let freedom = chance.freedom.min(ninth.freedom);
        let least = self.all.min() as f64 / self.unit;
        of_mean(value, least, Chance { variance, freedom }, self.method())
    }

    /// How many independent events the values above the ninth decile are worth. They decide how well the
    /// mean is known. Infinite if the runs cannot show it.
    pub(super) fn tail_events(&self) -> f64 {
        let ninth = self.dispersion(self.edge_near(0.9));
        ninth.map_or(f64::INFINITY, |ninth| 0.1 * self.all.count() as f64 / ninth.factor)
    }

    /// The mean's deviation from the true mean, part by part.
    pub(super) fn mean_parts(&self, mean: f64) -> Total {
        let count = self.all.count() as f64;
        self.total(|parts, part| {
            (parts.sum(part) as f64 / self.unit - mean * parts.count(part) as f64) / count
        })
    }

    /// A quantile's deviation from the true quantile, part by part.
    ///
    /// The share below it is interpolated between the two edges of its coarse cell. So close quantiles of two
    /// policies have close deviations, even at different edges.
    pub(super) fn quantile_parts(&self, of: &Quantile) -> Total {
        let cell = cell_of(self.all.quantile(of.share));
        let (below, above) = (self.share_below(cell), self.share_below(cell + 1));
        let into = if above > below { ((of.share - below) / (above - below)).clamp(0.0, 1.0) } else { 0.0 };
        let between = |below: f64, above: f64| below + into * (above - below);
        let (share, slope) = (between(below, above), of.slope / self.all.count() as f64);
        self.total(|parts, part| {
            let at = |edge| parts.below(part, edge) as f64;
            slope * (share * parts.count(part) as f64 - between(at(cell), at(cell + 1)))
        })
    }

    /// Whether replications cannot show chance, because all have the same tasks.
    pub(super) fn is_one_trace(&self) -> bool {
        self.runs.first().is_some_and(|run| run.len() == 0)
    }

    /// The width of the histogram's cell that holds a value.
    pub(super) fn cell_width(&self, value: f64) -> f64 {
        let (least, most) = Distribution::cell_of((value * self.unit) as u64);
        (most - least) as f64 / self.unit
    }

    /// How the intervals are found.
    pub(super) fn method(&self) -> Method {
        match self.runs.first().map_or(0, Parts::len) {
            0 => Method::None,
            1 if self.runs.len() < 2 => Method::None,
            1 => Method::Replications,
            _ => Method::Batches,
        }
    }

    fn quantile(&self, quantile: f64, found: Dispersion, used: Dispersion) -> Quantile {
        let rarer = quantile.min(1.0 - quantile) * self.all.count() as f64;
        let (low, high) = ranks(quantile, rarer / used.factor, used.freedom);
        // An upper rank beyond the last value leaves the interval open.
        let top = 1.0 - 1.0 / self.all.count() as f64;
        let high = high.filter(|high| *high <= top);
        let (least, most) = (self.all.cell_at(low).0, self.all.cell_at(high.unwrap_or(1.0)).1);
        let between = |rank: f64| self.all.quantile(rank) as f64 / self.unit;
        let value = between(quantile);
        let steps = high.unwrap_or(top.max(quantile)) - low;
        Quantile {
            estimate: Estimate {
                open_above: high.is_none(),
                ..Estimate::between(value, least as f64 / self.unit, most as f64 / self.unit, self.method())
            },
            events: rarer / used.factor,
            slope: if steps > 0.0 { (between(low + steps) - between(low)) / steps } else { 0.0 },
            share: quantile,
            caution: used.factor / found.factor,
        }
    }

    fn without_interval(&self, quantile: f64) -> Quantile {
        let estimate = Estimate::exact(self.all.quantile(quantile) as f64 / self.unit);
        Quantile { estimate, events: f64::INFINITY, slope: 0.0, share: quantile, caution: 1.0 }
    }

    /// The dispersion at an edge; `None` if the runs cannot show it.
    fn dispersion(&self, edge: usize) -> Option<Dispersion> {
        let (share, count) = (self.share_below(edge), self.all.count() as f64);
        let chance = self
            .total(|parts, part| share * parts.count(part) as f64 - parts.below(part, edge) as f64)
            .chance()
            .filter(|_| count > 0.0)?;
        let independent = share * (1.0 - share) * count;
        let factor = if independent > 0.0 { (chance.variance / independent).max(1.0) } else { 1.0 };
        Some(Dispersion { factor, freedom: chance.freedom })
    }

    /// The edge of coarse cells whose share below is nearest to the quantile's.
    fn edge_near(&self, quantile: f64) -> usize {
        let cell = cell_of(self.all.quantile(quantile));
        let off = |edge: usize| (self.share_below(edge) - quantile).abs();
        if off(cell) <= off(cell + 1) { cell } else { cell + 1 }
    }

    fn share_below(&self, edge: usize) -> f64 {
        let below = |run: &Parts| (0..run.len()).map(|part| run.below(part, edge)).sum::<u64>();
        self.runs.iter().map(below).sum::<u64>() as f64 / self.all.count().max(1) as f64
    }

    fn total(&self, of: impl Fn(&Parts, usize) -> f64) -> Total {
        let parts = self.runs.first().map_or(0, Parts::len);
        Total::new(self.runs.len(), parts, |run, part| of(&self.runs[run], part))
    }

    /// The variance of the values, to a thousandth.
    fn variance(&self) -> f64 {
        let mean = self.all.mean();
        let squares = self.all.cells().map(|(lowest, count)| {
            let off = lowest as f64 - mean;
            off * off * count as f64
        });
        squares.sum::<f64>() / self.all.count().max(1) as f64 / (self.unit * self.unit)
    }
}

impl Dispersion {
    /// The dispersion that is used after that of the quantile before; at least `least` times that one.
    fn after(self, before: Option<Self>, least: f64) -> Self {
        let Some(before) = before else { return self };
        let between = libm::sqrt(before.factor * self.factor).max(self.factor);
        let factor = between.max(least * before.factor);
        let freedom = if factor > self.factor { self.freedom.min(before.freedom) } else { self.freedom };
        Self { factor, freedom }
    }
}

/// A class's values of a measure, and how many units of them make 1.
fn pool_of(class: &ClassMeasured, measure: Measure, alone: bool) -> (Distribution, Parts, f64) {
    match measure {
        Measure::LatencyNs => (class.latency.clone(), class.parts.latency.clone(), 1.0),
        Measure::SchedulingDelayNs => {
            (class.scheduling_delay.clone(), class.parts.scheduling_delay.clone(), 1.0)
        }
        Measure::Slowdown => (class.slowdown_own.clone(), class.parts.slowdown_own.clone(), SLOWDOWN_UNIT),
        Measure::SlowdownServer => {
            (class.slowdown_server.clone(), class.parts.slowdown_server.clone(), SLOWDOWN_UNIT)
        }
        Measure::SlowdownTypeMean if alone => {
            (class.latency.clone(), class.parts.latency.clone(), class.mean_service_ns)
        }
        // Slowdowns against a type's mean have another unit in each class, so each class is scaled before
        // they are merged.
        Measure::SlowdownTypeMean => {
            let factor = SLOWDOWN_UNIT / class.mean_service_ns;
            (class.latency.scaled(factor), class.parts.latency.scaled(factor), SLOWDOWN_UNIT)
        }
    }
}
