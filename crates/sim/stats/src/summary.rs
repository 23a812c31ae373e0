//! The summary of all replications of a point.

use sluice_outcome::study::{
    Aggregate, Counts, Estimate, Gauges, Measure, Method, Part, SliceDepths, Sustained, Times,
};

use super::caveat::caveat;
use super::chance;
use super::distribution::Distribution;
use super::interval::estimate;
use super::measured::Measured;
use super::pool::{PooledValues, SLOWDOWN_UNIT};
use super::sustained::sustained;
use super::throughput::throughput;

/// A point: its values come from merged distributions, and its intervals from replications and their parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many independent runs the summary covers.
    pub replications: usize,
    /// How the intervals were found.
    pub method: Method,
    pub overall: Times,
    /// Each class, in the workload's order.
    pub classes: Vec<ClassSummary>,
    /// Tasks due per second, as they were drawn.
    pub offered_per_s: f64,
    /// Replies per second.
    pub throughput_per_s: Estimate,
    /// Means over the replications, per task where the replications counted events.
    pub gauges: Gauges,
    /// Events, of all replications together.
    pub counts: Counts,
    /// The counts and averages of each replication.
    pub each: Vec<ReplicationSummary>,
    /// Whether the load can be kept up.
    pub sustained: Sustained,
    /// Whether the warm-up was long enough in all replications that tested it.
    pub settled: bool,
    /// The caveat about the summary's intervals, such as that the runs are too short; empty if there is
    /// none.
    pub caveat: String,
}

/// The counts and averages of one replication, without its tasks' times.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicationSummary {
    /// Events of the measured span.
    pub counts: Counts,
    /// Means over the measured span.
    pub gauges: Gauges,
    /// The length of the measured span.
    pub span_ns: u64,
    /// Depths over time, if they are found at run time.
    pub depths: Vec<SliceDepths>,
    /// Each class's slowdown at the parts of [`Part::ALL`], in the workload's order; `None` for a class
    /// without tasks.
    pub slowdowns: Vec<Option<[f64; 6]>>,
    /// Replies per second, to tasks of any time.
    pub throughput_per_s: f64,
    /// Each class's answers in time, a second; `None` if nobody asks.
    pub goodput_per_s: Vec<Option<f64>>,
}

/// One class of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSummary {
    /// Tasks that got a reply.
    pub tasks: u64,
    pub times: Times,
    /// Answers in time, a second; `None` if nobody asks.
    pub goodput_per_s: Option<Estimate>,
}

/// Summarizes a point's replications; without any, all numbers are zero.
pub fn summarize(measured: &[Measured]) -> Summary {
    let counts = total(measured);
    let of_class = |class: usize| ClassSummary {
        tasks: measured.iter().map(|one| one.classes[class].latency.count()).sum(),
        times: times(measured, Some(class)),
        goodput_per_s: goodput(measured, class),
    };
    let latencies = PooledValues::of(measured, None, Measure::LatencyNs);
    let sustained = sustained(measured);
    Summary {
        replications: measured.len(),
        method: latencies.method(),
        overall: times(measured, None),
        classes: (0..measured.first().map_or(0, |one| one.classes.len())).map(of_class).collect(),
        offered_per_s: mean_of(measured, Measured::offered_per_s),
        throughput_per_s: throughput(measured),
        gauges: gauges(measured, &counts),
        counts,
        each: measured.iter().map(ReplicationSummary::of).collect(),
        caveat: if sustained.holds { caveat(&latencies) } else { String::new() },
        sustained,
        settled: measured.iter().all(|one| one.settled),
    }
}

impl ReplicationSummary {
    fn of(one: &Measured) -> Self {
        let Measured { counts, gauges, span_ns, .. } = *one;
        let slowdowns = one.classes.iter().map(|class| slowdowns(&class.slowdown_own)).collect();
        Self {
            counts,
            gauges,
            span_ns,
            depths: one.depths.clone(),
            slowdowns,
            throughput_per_s: one.throughput_per_s(),
            goodput_per_s: (0..one.classes.len()).map(|class| one.goodput_per_s(class)).collect(),
        }
    }
}

/// A class's answers in time, a second, over all replications; `None` if nobody asks.
fn goodput(measured: &[Measured], class: usize) -> Option<Estimate> {
    let each: Vec<f64> = measured.iter().map(|one| one.goodput_per_s(class)).collect::<Option<_>>()?;
    Some(estimate(chance::mean(&each), &each, Method::Replications))
}

fn slowdowns(of: &Distribution) -> Option<[f64; 6]> {
    let at = |part| match part {
        Part::Mean => of.mean(),
        Part::P50 => of.quantile(0.5) as f64,
        Part::P90 => of.quantile(0.9) as f64,
        Part::P95 => of.quantile(0.95) as f64,
        Part::P99 => of.quantile(0.99) as f64,
        Part::P999 => of.quantile(0.999) as f64,
    };
    (of.count() > 0).then(|| Part::ALL.map(|part| at(part) / SLOWDOWN_UNIT))
}

fn times(measured: &[Measured], class: Option<usize>) -> Times {
    let of = |measure| PooledValues::of(measured, class, measure).spread();
    Times {
        latency_ns: of(Measure::LatencyNs),
        scheduling_delay_ns: of(Measure::SchedulingDelayNs),
        slowdown: of(Measure::Slowdown),
        slowdown_type_mean: of(Measure::SlowdownTypeMean),
        slowdown_server: of(Measure::SlowdownServer),
    }
}

fn total(measured: &[Measured]) -> Counts {
    measured.iter().fold(Counts::default(), |sum, one| sum.and(&one.counts))
}

fn gauges(measured: &[Measured], counts: &Counts) -> Gauges {
    let mut gauges = Gauges::default();
    for gauge in Gauges::ALL {
        let each = measured.iter().map(|one| (gauge.get)(&one.gauges));
        *(gauge.get_mut)(&mut gauges) = match gauge.over {
            Aggregate::Mean => {
                let values = each.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty());
                values.map(|values| chance::mean(&values))
            }
            Aggregate::Most => each.flatten().reduce(f64::max),
            Aggregate::Tasks { events, told_by } => {
                (told_by(counts) > 0).then(|| events(counts) as f64 / counts.sent.max(1) as f64)
            }
        };
    }
    gauges
}

fn mean_of(measured: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    measured.iter().map(of).sum::<f64>() / measured.len().max(1) as f64
}
