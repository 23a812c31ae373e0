//! p99 responses over time in cases where some workers are slow for a while: their means before, during and
//! after that time.
//!
//! The number is the one that plans call `response_p99`. For each interval it is the 99th percentile of
//! waits in switch and worker plus service, over the tasks that workers ended in the interval; for a window
//! it is the mean of its intervals. The ways to and from the rack are not included.

use serde::Serialize;
use sluice_outcome::study::{Estimate, SliceDepths, Verdict};
use sluice_stats::mean_of_either_sign;
use sluice_wire::Nanos;

use super::band::{INTERVAL_NS, Range, in_intervals};

/// How far the live runs' mean may differ from the simulated one, as a share; the same as in a live sweep.
const ALLOWED: f64 = 0.10;

/// A case's p99 responses, simulated and live.
#[derive(Debug, Serialize)]
pub(super) struct Responses {
    /// The lower end of the simulator's band in each interval; 95 % of its runs lie inside in all
    /// intervals.
    pub(super) least_ns: Vec<f64>,
    pub(super) most_ns: Vec<f64>,
    pub(super) windows: Vec<Window>,
    /// The start and end of the slow time.
    #[serde(skip)]
    pub(super) slow: (Nanos, Nanos),
    /// The p99 in each interval of each live run.
    #[serde(skip)]
    pub(super) live_ns: Vec<Vec<f64>>,
}

/// The mean over the intervals of a window.
#[derive(Debug, Serialize)]
pub(super) struct Window {
    /// The window relative to the slow time: `before`, `during` or `after`.
    pub(super) name: &'static str,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The mean of all simulated runs.
    pub(super) simulated_ns: f64,
    /// The lower end of the range in which 95 % of the simulated runs lie, in all windows.
    pub(super) least_ns: f64,
    pub(super) most_ns: f64,
    /// Each live run.
    pub(super) live_ns: Vec<f64>,
    /// The live mean divided by the simulated one, minus 1, with its interval.
    pub(super) off: Estimate,
    /// Whether the whole interval lies within the allowed difference, none of it, or a part.
    pub(super) verdict: Verdict,
}

pub(super) fn of_run(depths: &[SliceDepths], intervals: usize) -> Vec<f64> {
    in_intervals(depths, INTERVAL_NS, intervals, 0.0, |of| of.response_p99_ns)
}

impl Responses {
    /// Compares live runs with simulated ones; a row has a number for each interval.
    pub(super) fn of(slow: (Nanos, Nanos), simulated: &[Vec<f64>], live_ns: Vec<Vec<f64>>) -> Self {
        let Range { least: least_ns, most: most_ns, .. } = Range::of(simulated);
        let windows = windows(slow, least_ns.len());
        let means = |row: &Vec<f64>| windows.iter().map(|window| mean(&row[window.1..window.2])).collect();
        let of_simulated: Vec<Vec<f64>> = simulated.iter().map(means).collect();
        let of_live: Vec<Vec<f64>> = live_ns.iter().map(means).collect();
        let range = Range::of(&of_simulated);
        let column =
            |rows: &[Vec<f64>], place: usize| rows.iter().map(|row| row[place]).collect::<Vec<f64>>();
        let window = |(place, (name, from, to)): (usize, &(&'static str, usize, usize))| {
            let (simulated_ns, live_ns) = (column(&of_simulated, place), column(&of_live, place));
            let off = off(&simulated_ns, &live_ns);
            Window {
                name,
                from_ns: *from as u64 * INTERVAL_NS,
                to_ns: *to as u64 * INTERVAL_NS,
                simulated_ns: mean(&simulated_ns),
                least_ns: range.least[place],
                most_ns: range.most[place],
                live_ns,
                off,
                verdict: off.verdict_within(ALLOWED),
            }
        };
        let windows = windows.iter().enumerate().map(window).collect();
        Self { least_ns, most_ns, windows, slow, live_ns }
    }

    /// Whether a window's live mean has this verdict.
    pub(super) fn has(&self, verdict: Verdict) -> bool {
        self.windows.iter().any(|window| window.verdict == verdict)
    }
}

impl Window {
    /// How many live runs lie in the range of 95 % of the simulated ones.
    pub(super) fn inside(&self) -> usize {
        self.live_ns.iter().filter(|ns| (self.least_ns..=self.most_ns).contains(ns)).count()
    }
}

/// The live mean divided by the simulated one, minus 1; without an interval if there is only one run of
/// either kind.
fn off(simulated_ns: &[f64], live_ns: &[f64]) -> Estimate {
    let (simulated, live) = (mean_of_either_sign(simulated_ns), mean_of_either_sign(live_ns));
    let half = |of: &Estimate| (of.high - of.low) / 2.0;
    let over = simulated.value.max(1.0);
    let value = live.value / over - 1.0;
    if !simulated.has_interval() || !live.has_interval() {
        return Estimate::exact(value);
    }
    let half = half(&live).hypot(half(&simulated) * live.value / over) / over;
    Estimate::between(value, value - half, value + half, live.method)
}

/// The windows that contain intervals: name, first interval, and the one after the last.
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
        assert!(responses.has(Verdict::Undecided), "one live run has no interval");
    }

    #[test]
    fn a_run_that_ends_before_the_slow_time_has_one_window() {
        let short = |rows: Vec<Vec<f64>>| rows.into_iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>();
        let responses = Responses::of(SLOW, &short(rows(1.0)), short(rows(1.05)));
        assert_eq!(responses.windows.len(), 1);
        assert_eq!(responses.windows[0].verdict, Verdict::Agrees);
    }

    #[test]
    fn live_means_agree_only_if_their_whole_interval_is_within_a_tenth() {
        let verdict = |live: Vec<Vec<f64>>| {
            let responses = Responses::of(SLOW, &rows(1.0), live);
            let verdicts: Vec<Verdict> = responses.windows.iter().map(|window| window.verdict).collect();
            assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:?}");
            verdicts[0]
        };
        assert_eq!(verdict(rows(1.0)), Verdict::Agrees);
        assert_eq!(verdict(rows(1.2)), Verdict::Differs);
        assert_eq!(verdict(rows(0.8)), Verdict::Differs);
        let noisy = |spread: f64| {
            let row = |factor: f64| rows(1.0)[0].iter().map(|p99| p99 * factor).collect();
            [1.0 - spread, 1.0, 1.0 + spread].map(row).to_vec()
        };
        assert_eq!(verdict(noisy(0.4)), Verdict::Undecided, "runs that say nothing agree with nothing");
        assert_eq!(verdict(rows(1.0)[..1].to_vec()), Verdict::Undecided);
    }
}
