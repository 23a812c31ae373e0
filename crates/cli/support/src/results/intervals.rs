//! The 95 % intervals of the numbers of a type, or of a stage, in one run: its time is divided into equal
//! parts, and how far the parts differ says how far chance moves the whole (Student's t, as for
//! replications). A time in which the rate changes has no intervals, since its parts differ by design.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use sluice_outcome::study::Method;
use sluice_stats::estimate;

use sluice_wire::Nanos;

use crate::load::{Counts, PartTally, SpanParts};

/// The fewest whole parts that say how far chance goes.
const PARTS_MIN: usize = 5;
/// Half the width of a histogram's cell, as a share of the value.
const CELL: f64 = 0.0005;
/// A share of which no case was seen among so many tasks is at most this over their number, at 95 %.
const UNSEEN: f64 = 3.69;

/// A count of one part.
type OfPart = fn(&PartTally) -> u64;

/// What was counted at one rate.
pub(super) struct AtOneRate<'t> {
    pub(super) counts: &'t Counts,
    pub(super) replied_in_time: u64,
    pub(super) latency: &'t Histogram<u64>,
    pub(super) parts: &'t SpanParts,
    /// How long it was measured, and when the load ended.
    pub(super) seconds: f64,
    pub(super) end: Nanos,
}

/// Numbers by name, each with both ends of its interval; those without an interval are left out.
pub(super) fn intervals(of: &AtOneRate<'_>) -> BTreeMap<&'static str, [f64; 2]> {
    let AtOneRate { counts, replied_in_time, latency, seconds, .. } = *of;
    let (part, parts) = of.parts.whole_before(of.end);
    let mut found = BTreeMap::new();
    if parts.len() < PARTS_MIN || parts.iter().any(|part| part.sent == 0) {
        return found;
    }
    let part_s = part.0 as f64 / 1e9;
    let per_s: Vec<f64> = parts.iter().map(|part| part.replied_in_time as f64 / part_s).collect();
    let replied = estimate(replied_in_time as f64 / seconds, &per_s, Method::Batches);
    found.insert("replied_per_s", [replied.low, replied.high]);
    let shares: [(_, u64, OfPart); 3] = [
        ("failed", counts.failed, |part| part.failed),
        ("refused", counts.refused(), |part| part.refused),
        ("unknown", counts.unknown(), |part| part.unknown),
    ];
    for (name, tasks, of) in shares {
        let samples: Vec<f64> = parts.iter().map(|part| of(part) as f64 / part.sent as f64).collect();
        let share = estimate(tasks as f64 / counts.sent as f64, &samples, Method::Batches);
        let most = if tasks == 0 { UNSEEN / counts.sent as f64 } else { share.high };
        found.insert(name, [share.low, most.min(1.0)]);
    }
    let latencies: Option<Vec<&Histogram<u64>>> = parts.iter().map(|part| part.latency.as_ref()).collect();
    for (name, quantile) in QUANTILES {
        let value = |of: &Histogram<u64>| match quantile {
            Some(quantile) => of.value_at_quantile(quantile) as f64,
            None => of.mean(),
        };
        // A part needs a task in its tail.
        let is_told = |of: &&Histogram<u64>| of.len() as f64 * (1.0 - quantile.unwrap_or(0.0)) >= 1.0;
        let Some(latencies) = latencies.as_ref().filter(|all| all.iter().all(is_told)) else { continue };
        let samples: Vec<f64> = latencies.iter().map(|of| value(of)).collect();
        let of = estimate(value(latency), &samples, Method::Batches);
        found.insert(name, [of.low.min(of.value * (1.0 - CELL)), of.high.max(of.value * (1.0 + CELL))]);
    }
    // Parts may differ so much that they bound nothing.
    found.retain(|_, ends| ends.iter().all(|end| end.is_finite()));
    found
}

/// The names of latencies, and the quantile of each; the mean has none.
const QUANTILES: [(&str, Option<f64>); 6] = [
    ("latency_ns_mean", None),
    ("latency_ns_p50", Some(0.5)),
    ("latency_ns_p90", Some(0.9)),
    ("latency_ns_p95", Some(0.95)),
    ("latency_ns_p99", Some(0.99)),
    ("latency_ns_p999", Some(0.999)),
];
