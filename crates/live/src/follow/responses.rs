//! p99 responses over time where some workers are slow for a while: their means before, during and
//! afterwards.
//!
//! The number is the one that plans call `response_p99`: for each interval the 99th percentile of waits in
//! switch and worker and service, of the tasks that workers ended in it; for a window the mean of its
//! intervals. What is left out of it is the ways to and from the rack.

use serde::Serialize;
use sluice_outcome::study::Depths;
use sluice_wire::Nanos;

use super::band::{INTERVAL_NS, Range, in_intervals};

/// How far the live runs' mean may be from the simulated one where it is outside the band: what a live sweep
/// allows too.
const ALLOWED: f64 = 0.10;

/// A case's p99 responses, simulated and live.
#[derive(Debug, Serialize)]
pub(super) struct Responses {
    /// The simulator's band, interval by interval: 95 % of its runs lie inside in all of them.
    pub(super) least_ns: Vec<f64>,
    pub(super) most_ns: Vec<f64>,
    pub(super) windows: Vec<Window>,
    /// From when to when some workers are slow.
    #[serde(skip)]
    pub(super) slow: (Nanos, Nanos),
    /// Each live run, interval by interval.
    #[serde(skip)]
    pub(super) live_ns: Vec<Vec<f64>>,
}

/// The mean over some intervals.
#[derive(Debug, Serialize)]
pub(super) struct Window {
    /// Whether this is `before`, `during` or `after` the slow time.
    pub(super) name: &'static str,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The mean of all simulated runs.
    pub(super) simulated_ns: f64,
    /// 95 % of them lie in between, in every window.
    pub(super) least_ns: f64,
    pub(super) most_ns: f64,
    /// Each live run.
    pub(super) live_ns: Vec<f64>,
}

/// The p99 of each interval.
pub(super) fn of_run(depths: &[Depths], intervals: usize) -> Vec<f64> {
    in_intervals(depths, INTERVAL_NS, intervals, 0.0, |of| of.response_p99_ns)
}

impl Responses {
    /// Holds live runs against simulated ones; a row has a number for each interval.
    pub(super) fn of(slow: (Nanos, Nanos), simulated: &[Vec<f64>], live_ns: Vec<Vec<f64>>) -> Self {
        let Range { least: least_ns, most: most_ns, .. } = Range::of(simulated);
        let windows = windows(slow, least_ns.len());
        let means = |row: &Vec<f64>| windows.iter().map(|window| mean(&row[window.1..window.2])).collect();
        let of_simulated: Vec<Vec<f64>> = simulated.iter().map(means).collect();
        let of_live: Vec<Vec<f64>> = live_ns.iter().map(means).collect();
        let range = Range::of(&of_simulated);
        let column =
            |rows: &[Vec<f64>], place: usize| rows.iter().map(|row| row[place]).collect::<Vec<f64>>();
        let window = |(place, (name, from, to)): (usize, &(&'static str, usize, usize))| Window {
            name,
            from_ns: *from as u64 * INTERVAL_NS,
            to_ns: *to as u64 * INTERVAL_NS,
            simulated_ns: mean(&column(&of_simulated, place)),
            least_ns: range.least[place],
            most_ns: range.most[place],
            live_ns: column(&of_live, place),
        };
        let windows = windows.iter().enumerate().map(window).collect();
        Self { least_ns, most_ns, windows, slow, live_ns }
    }

    /// Whether the live means are what was simulated.
    pub(super) fn hold(&self) -> bool {
        self.windows.iter().all(Window::holds)
    }
}

impl Window {
    /// The mean of the live runs over the simulated one, less 1.
    pub(super) fn off(&self) -> f64 {
        mean(&self.live_ns) / self.simulated_ns.max(1.0) - 1.0
    }

    /// How many live runs lie where 95 % of the simulated ones do.
    pub(super) fn inside(&self) -> usize {
        self.live_ns.iter().filter(|ns| (self.least_ns..=self.most_ns).contains(ns)).count()
    }

    /// Whether the mean of the live runs lies there, or as near as is allowed.
    pub(super) fn holds(&self) -> bool {
        (self.least_ns..=self.most_ns).contains(&mean(&self.live_ns)) || self.off().abs() <= ALLOWED
    }
}

/// The windows that have intervals: name, first interval, the one behind the last.
fn windows((from, until): (Nanos, Nanos), intervals: usize) -> Vec<(&'static str, usize, usize)> {
    let place = |at: Nanos| ((at.0 / INTERVAL_NS) as usize).min(intervals);
    let (from, until) = (place(from), place(until));
    let all = [("before", 0, from), ("during", from, until), ("after", until, intervals)];
    all.into_iter().filter(|(_, from, to)| from < to).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: (Nanos, Nanos) = (Nanos::from_millis(20), Nanos::from_millis(30));

    fn rows(scale: f64) -> Vec<Vec<f64>> {
        (0..20)
            .map(|seed| [100.0, 102.0, 300.0, 110.0].map(|p99| scale * p99 + f64::from(seed)).to_vec())
            .collect()
    }

    #[test]
    fn windows_are_the_intervals_before_during_and_after_the_slow_time() {
        let responses = Responses::of(SLOW, &rows(1.0), vec![vec![100.0, 104.0, 310.0, 500.0]]);
        let told = |window: &Window| (window.name, window.from_ns / 1_000_000, window.to_ns / 1_000_000);
        let names: Vec<_> = responses.windows.iter().map(told).collect();
        assert_eq!(names, [("before", 0, 20), ("during", 20, 30), ("after", 30, 40)]);
        assert!((responses.windows[0].live_ns[0] - 102.0).abs() < 1e-9);
        assert!((responses.windows[1].simulated_ns - 309.5).abs() < 1e-9);
        assert_eq!(responses.windows.iter().map(Window::inside).collect::<Vec<_>>(), [1, 1, 0]);
        assert!(!responses.hold());
    }

    #[test]
    fn a_run_that_ends_before_the_slow_time_has_one_window() {
        let short = |rows: Vec<Vec<f64>>| rows.into_iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>();
        let responses = Responses::of(SLOW, &short(rows(1.0)), short(rows(1.05)));
        assert_eq!(responses.windows.len(), 1);
        assert!(responses.hold());
    }

    #[test]
    fn a_mean_outside_the_band_is_allowed_to_be_a_tenth_off() {
        let holds = |scale| Responses::of(SLOW, &rows(1.0), rows(scale)).hold();
        assert!(holds(1.0) && holds(1.09) && holds(0.92));
        assert!(!holds(1.2) && !holds(0.8));
    }
}
