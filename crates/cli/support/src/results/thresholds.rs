//! The gates of thresholds: each bounded number, computed from a load's tally. Measured tasks count, as in
//! all tables; those of the warm-up do not. What was not measured misses its threshold.

use hdrhistogram::Histogram;
use sluice_outcome::run::{Gate, ThresholdResult};
use sluice_report::table::{digits, time};

use crate::load::{Counts, KindTally, SLOWDOWN_SCALE, Tally, histogram};
use crate::plan::{BoundUnit, LoadNumber, LoadShare, LoadTime, SpreadPart, Threshold};

/// A number this near to its bound, as a share of it, might be shown as the bound.
const NEAR: f64 = 0.01;

/// The gate of a threshold; `seconds` is the measured time.
pub(super) fn gate(threshold: &Threshold, tally: &Tally, seconds: f64) -> Gate {
    let measured = measured(threshold, tally, seconds);
    let (name, limit) = (threshold.name(), threshold.limit());
    let unit = threshold.number.unit();
    let says = match measured {
        Some(number) => format!("{name} is {} (must be {limit})", shown(number, threshold.bound, unit)),
        None => format!("{name} was not measured (must be {limit})"),
    };
    Gate {
        name: "threshold",
        passed: measured.is_some_and(|number| threshold.holds(number)),
        says,
        threshold: Some(ThresholdResult {
            text: threshold.to_string(),
            measured,
            bound: threshold.bound,
            unit: match unit {
                BoundUnit::Ns => "ns",
                BoundUnit::Share => "share",
                BoundUnit::PerSecond => "per_s",
                BoundUnit::Quotient => "quotient",
            },
        }),
    }
}

/// The bounded number; `None` if there was nothing to measure.
fn measured(threshold: &Threshold, tally: &Tally, seconds: f64) -> Option<f64> {
    let is_meant = |kind: &&KindTally| threshold.class.as_ref().is_none_or(|class| *class == kind.name);
    let kinds: Vec<&KindTally> = tally.kinds.iter().filter(is_meant).collect();
    let mut counts = Counts::default();
    for kind in &kinds {
        counts.add(&kind.counts);
    }
    let per_s = |count: u64| (counts.sent > 0 && seconds > 0.0).then(|| count as f64 / seconds);
    match threshold.number {
        LoadNumber::Spread(of, part) => spread(&kinds, of, part),
        LoadNumber::Rate => per_s(kinds.iter().map(|kind| kind.replied_in_time).sum()),
        LoadNumber::Goodput => per_s(kinds.iter().map(|kind| kind.in_time).sum()),
        LoadNumber::Share(share) => {
            let (part, whole) = match share {
                LoadShare::Refused => (counts.refused(), counts.sent),
                LoadShare::Unknown => (counts.unknown(), counts.sent),
                LoadShare::Lost => (counts.lost(), counts.sent),
                LoadShare::Late => (counts.late(), counts.sent),
                LoadShare::Failed => (counts.failed, counts.replied),
            };
            (whole > 0).then(|| part as f64 / whole as f64)
        }
    }
}

fn spread(kinds: &[&KindTally], of: LoadTime, part: SpreadPart) -> Option<f64> {
    let mut all = histogram();
    for kind in kinds {
        let times = &kind.times;
        let one: &Histogram<u64> = match of {
            LoadTime::Latency => &times.latency,
            LoadTime::SchedulingDelay => &times.scheduling_delay,
            LoadTime::SwitchWait => &times.switch_wait,
            LoadTime::WorkerWait => &times.worker_wait,
            LoadTime::Service => &times.service,
            LoadTime::Slowdown => &times.slowdown,
            LoadTime::SlowdownServer => &times.slowdown_server,
        };
        all.add(one).expect("a histogram that grows takes any other");
    }
    let scale =
        if matches!(of, LoadTime::Slowdown | LoadTime::SlowdownServer) { SLOWDOWN_SCALE } else { 1.0 };
    let value = match part {
        SpreadPart::Mean => all.mean(),
        SpreadPart::Max => all.max() as f64,
        SpreadPart::Percentile(percent) => all.value_at_percentile(percent) as f64,
    };
    (!all.is_empty()).then(|| value / scale)
}

/// A number as text; near its bound, and beside a bound of zero, in so many digits that it is seen on which
/// side it is.
fn shown(number: f64, bound: f64, unit: BoundUnit) -> String {
    let is_near = (number - bound).abs() <= NEAR * bound || bound <= 0.0;
    if number.total_cmp(&bound).is_ne() && is_near {
        return match unit {
            BoundUnit::Ns => format!("{} ns", number.round()),
            BoundUnit::Share => format!("{:.6} %", number * 100.0),
            BoundUnit::PerSecond => format!("{number:.6}/s"),
            BoundUnit::Quotient => format!("{number:.6}"),
        };
    }
    match unit {
        BoundUnit::Ns => time(number),
        BoundUnit::Share => format!("{} %", digits(number * 100.0)),
        BoundUnit::PerSecond => format!("{}/s", digits(number)),
        BoundUnit::Quotient => digits(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_misses_its_bound_does_not_read_like_it() {
        assert_eq!(shown(1e-6, 0.0, BoundUnit::Share), "0.000100 %");
        assert_eq!(shown(0.0, 0.0, BoundUnit::Share), "0.00 %");
        assert_eq!(shown(0.010_001, 0.01, BoundUnit::Share), "1.000100 %");
        assert_eq!(shown(5_000_001.0, 5e6, BoundUnit::Ns), "5000001 ns");
        assert_eq!(shown(7e6, 5e6, BoundUnit::Ns), "7.00 ms");
    }
}
