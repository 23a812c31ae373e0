//! The caveat of a point: whether its runs are long enough for the quantiles that are read from them. The
//! runs themselves show it.

use sluice_outcome::study::Part;

use super::pool::{PooledValues, QUANTILES};

/// How many independent events a quantile's tail should contain.
const EVENTS_MIN: f64 = 10.0;

/// Names the quantiles that rest on too few independent events, and how many tasks would be enough; empty
/// if there are none.
pub(super) fn caveat(latencies: &PooledValues) -> String {
    if latencies.is_one_trace() {
        return "one trace, no interval: its replications have the same tasks".into();
    }
    let few: Vec<(Part, f64)> = latencies
        .quantiles()
        .iter()
        .zip(QUANTILES)
        .filter(|(quantile, _)| quantile.events < EVENTS_MIN || quantile.estimate.open_above)
        .map(|(quantile, (part, _))| (part, quantile.events))
        .collect();
    let Some(fewest) = few.iter().map(|(_, events)| *events).reduce(f64::min) else { return String::new() };
    let named: Vec<&str> = few.iter().map(|(part, _)| name(*part)).collect();
    // Rounded down: rounded up it could read as enough.
    let seen = libm::floor(fewest * 10.0) / 10.0;
    let why = if fewest < EVENTS_MIN {
        format!("about {seen:.1} independent ones were seen, {EVENTS_MIN} are needed")
    } else {
        "those that were seen bound nothing above".to_owned()
    };
    let times = libm::ceil(EVENTS_MIN / fewest.max(EVENTS_MIN / 1_000.0)).max(2.0);
    format!(
        "too few tasks for {}: what is slow comes in bursts, and {why}; ask for {times} times as many tasks",
        named.join(", ")
    )
}

const fn name(part: Part) -> &'static str {
    match part {
        Part::Mean => "the mean",
        Part::P50 => "the median",
        Part::P90 => "p90",
        Part::P95 => "p95",
        Part::P99 => "p99",
        Part::P999 => "p99.9",
    }
}
