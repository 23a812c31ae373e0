//! Searches for the highest rate that keeps a limit, at and between known points.
//!
//! The search itself is [`throughput_at_slo`]; this module looks up its measurements and requests missing
//! ones. So searches share points with each other and with the plan, and run side by side.

use sluice_stats::{Estimate, SloFound, SloSearch, Summary, throughput_at_slo};

use super::known_points::{Evaluation, KnownPoints, PointId};

/// Where to search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    /// The lower end of the search.
    pub floor: u64,
    /// The upper end of the search: no higher rate can be sustained.
    pub ceiling: u64,
    /// Rates that run anyway, ascending: the search begins between two of them.
    pub grid: Vec<u64>,
    /// The width of the bracket at which the search ends, as a share of the rate.
    pub precision: f64,
}

/// Two rates between which the limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bracket {
    /// At this rate the limit is surely kept, or it is the floor.
    pub low: u64,
    /// At this rate the limit is surely broken, or it is the ceiling.
    pub high: u64,
}

/// The bracket from the grid's points. A load with a growing backlog breaks every limit.
pub(super) fn bracket(
    known: &KnownPoints,
    series: &PointId,
    range: &Range,
    limit: f64,
    number: impl Fn(&Summary) -> Estimate,
) -> Bracket {
    let at = |rate: &u64| known.get(&PointId { rate: *rate, ..series.clone() });
    let grid: Vec<(u64, &Summary)> = range.grid.iter().filter_map(|rate| Some((*rate, at(rate)?))).collect();
    let surely_keeps = |summary: &Summary| summary.sustained.holds && number(summary).most() <= limit;
    let surely_breaks = |summary: &Summary| !summary.sustained.holds || number(summary).low > limit;
    let high = grid.iter().find(|(_, summary)| surely_breaks(summary)).map(|(rate, _)| *rate);
    let low = grid.iter().take_while(|(_, summary)| surely_keeps(summary)).last().map(|(rate, _)| *rate);
    Bracket { low: low.unwrap_or(range.floor), high: high.unwrap_or(range.ceiling) }
}

/// The highest rate of a series within a bracket at which `number` keeps `limit`.
pub(super) fn seek(
    known: &KnownPoints,
    series: &PointId,
    bracket: Bracket,
    precision: f64,
    limit: f64,
    number: impl Fn(&Summary) -> Estimate,
) -> Evaluation<SloFound> {
    let search = SloSearch {
        low_per_s: bracket.low as f64,
        high_per_s: bracket.high as f64,
        limit,
        tolerance: precision,
    };
    let measure = |rate: f64| {
        let id = PointId { rate: libm::round(rate) as u64, ..series.clone() };
        known.get(&id).cloned().ok_or(id)
    };
    match throughput_at_slo(&search, &number, measure) {
        Ok(found) => Evaluation::Known(found),
        Err(missing) => Evaluation::Wants([missing].into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::PolicySetup;
    use super::*;
    use sluice_outcome::study::{Metric, Sustained};
    use sluice_stats::{Method, summarize};

    fn id(rate: u64) -> PointId {
        PointId { case: 0, run: PolicySetup::shared("central"), rate, change: None }
    }

    /// The p99 of an M/M/1 queue in units of its mean service time, ± 5 %.
    fn mm1(rate: u64) -> Summary {
        let mut summary = summarize(&[]);
        let value = 4.605 / (1.0 - rate as f64 / 1e6);
        summary.overall.latency_ns.p99 =
            Estimate::between(value, value * 0.95, value * 1.05, Method::Replications);
        summary.sustained = Sustained { holds: rate < 950_000, why: String::new() };
        summary
    }

    /// Runs the requested points until the answer is known. Also returns how many points were needed.
    fn search(grid: &[u64], limit: f64) -> (SloFound, usize) {
        let range = Range { floor: 10_000, ceiling: 990_000, grid: grid.to_vec(), precision: 0.01 };
        let mut known = KnownPoints::default();
        for rate in grid {
            known.set(id(*rate), mm1(*rate));
        }
        let mut run = 0;
        loop {
            let number = |summary: &Summary| summary.overall.get(Metric::P99);
            let bracket = bracket(&known, &id(0), &range, limit, number);
            match seek(&known, &id(0), bracket, range.precision, limit, number) {
                Evaluation::Known(found) => return (found, run),
                Evaluation::Wants(points) => {
                    for point in points {
                        run += 1;
                        let summary = mm1(point.rate);
                        known.set(point, summary);
                    }
                }
            }
        }
    }

    #[test]
    fn an_mm1_queues_limit_is_found_within_the_precision() {
        let (SloFound::Rate(found), run) = search(&[], 20.0) else { panic!() };
        assert!((found.value / 769_750.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.low < found.value && found.value < found.high, "{found:?}");
        assert!(run < 25, "{run} points");
    }

    #[test]
    fn points_that_are_known_save_most_of_the_search() {
        let grid: Vec<u64> = (1..=9).map(|tenth| tenth * 100_000).collect();
        let (SloFound::Rate(found), run) = search(&grid, 20.0) else { panic!() };
        assert!((found.value / 769_750.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!(run < 12, "{run} points");
    }

    #[test]
    fn a_load_that_is_not_sustained_keeps_no_limit() {
        let (SloFound::Rate(found), _) = search(&[], 1e9) else { panic!() };
        assert!((found.value / 950_000.0 - 1.0).abs() < 0.011, "{found:?}");
    }

    #[test]
    fn a_limit_that_is_never_kept_ends_the_search() {
        assert_eq!(search(&[], 1.0).0, SloFound::Never);
    }
}
