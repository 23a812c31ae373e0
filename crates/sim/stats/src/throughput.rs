//! Throughput: all replications' replies per second of all their spans.

use sluice_outcome::study::{Estimate, Method};

use super::chance::Total;
use super::interval::of_mean;
use super::measured::Measured;

/// The throughput, with the interval that whole replications give. Parts of a replication cannot give one:
/// a reply that one part lacks is in the next.
pub(super) fn throughput(measured: &[Measured]) -> Estimate {
    let value = merged(measured);
    let is_sample = measured.iter().flat_map(|one| &one.classes).any(|class| class.parts.latency.len() > 0);
    match throughput_parts(measured, value).chance().filter(|_| is_sample) {
        Some(chance) => of_mean(value, 0.0, chance, Method::Replications),
        None => Estimate::exact(value),
    }
}

/// All replications' replies over the sum of their spans, per second.
pub(super) fn merged(measured: &[Measured]) -> f64 {
    let (replies, span_ns) = both(measured);
    if span_ns > 0.0 { replies * 1e9 / span_ns } else { 0.0 }
}

/// The throughput's deviation from the true one, replication by replication.
pub(super) fn throughput_parts(measured: &[Measured], value: f64) -> Total {
    let span_ns = both(measured).1.max(1.0);
    Total::new(measured.len(), 1, |run, _| {
        (measured[run].backlog.replies as f64 * 1e9 - value * measured[run].span_ns as f64) / span_ns
    })
}

fn both(measured: &[Measured]) -> (f64, f64) {
    let replies: u64 = measured.iter().map(|one| one.backlog.replies).sum();
    let span_ns: u64 = measured.iter().map(|one| one.span_ns).sum();
    (replies as f64, span_ns as f64)
}
