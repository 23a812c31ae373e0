//! Numbers of depths and slices over time that a statement may use: their values between two moments, how
//! often they change, and how soon slowdowns are good again.

use serde::Deserialize;
use sluice_outcome::study::{SliceDepths, Unit};
use sluice_stats::{Estimate, Method, ReplicationSummary, estimate};

use super::{hint, limit};

/// The largest good slowdown (Rain §3.3, S_max).
const SLOWDOWN_MAX: f64 = 10.0;

/// A number of one slice between two moments of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeCourse {
    of: CourseQuantity,
    slice: u32,
    from_ns: u64,
    to_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CourseQuantity {
    /// The mean of the workers' mean depth at the intervals' ends.
    Depth,
    /// The largest of the workers' mean depths.
    DepthMost,
    /// The mean number of workers.
    Workers,
    /// The largest number of workers.
    WorkersMost,
    /// The mean number of workers minus the slice's initial number.
    Borrowed,
    /// The mean of the intervals' p99 slowdowns.
    Slowdown,
    /// The mean of the intervals' p99 responses.
    Response,
    /// How many intervals per second have another mean depth than the previous one.
    Changes,
    /// The number of intervals until the p99 slowdown stays at most 10; the median over all runs.
    Recovery,
}

const NAMES: [(&str, CourseQuantity); 9] = [
    ("depth", CourseQuantity::Depth),
    ("depth_most", CourseQuantity::DepthMost),
    ("workers", CourseQuantity::Workers),
    ("workers_most", CourseQuantity::WorkersMost),
    ("borrowed", CourseQuantity::Borrowed),
    ("slowdown_p99", CourseQuantity::Slowdown),
    ("response_p99", CourseQuantity::Response),
    ("changes", CourseQuantity::Changes),
    ("recovery", CourseQuantity::Recovery),
];

/// The keys of a course in a plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCourse {
    of: String,
    #[serde(default)]
    slice: u32,
    from: String,
    to: String,
}

impl RawCourse {
    pub(super) fn read(&self) -> Result<TimeCourse, String> {
        let known = NAMES.iter().find(|(name, _)| *name == self.of);
        let (_, of) =
            known.ok_or_else(|| hint::unknown("course", &self.of, NAMES.iter().map(|(name, _)| *name)))?;
        let (from_ns, to_ns) = (moment(&self.from)?, moment(&self.to)?);
        if from_ns >= to_ns {
            return Err(format!("a course from {} to {} has no time: turn them round", self.from, self.to));
        }
        Ok(TimeCourse { of: *of, slice: self.slice, from_ns, to_ns })
    }
}

fn moment(text: &str) -> Result<u64, String> {
    let span = if text == "0" { Some(0.0) } else { limit::value_of(text, Unit::Ns) };
    span.map(|ns| ns as u64).ok_or_else(|| format!("`{text}` is no moment: write a span such as 50ms, or 0"))
}

impl TimeCourse {
    /// The unit of the course's numbers.
    pub const fn unit(&self) -> Unit {
        match self.of {
            CourseQuantity::Response => Unit::Ns,
            CourseQuantity::Recovery | CourseQuantity::Borrowed => Unit::Count,
            _ => Unit::Ratio,
        }
    }

    /// The number of each replication.
    pub(super) fn values(&self, each: &[ReplicationSummary]) -> Vec<f64> {
        each.iter().map(|one| self.of_one(&one.depths)).collect()
    }

    /// The mean over all replications, or their median.
    pub(super) fn of(&self, values: &[f64]) -> (Estimate, String) {
        if self.of == CourseQuantity::Recovery {
            let never = values.iter().filter(|value| value.is_infinite()).count();
            let note =
                if never > 0 { format!("{never} of {} runs never", values.len()) } else { String::new() };
            return (median(values.to_vec()), note);
        }
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        (estimate(mean, values, Method::Replications), String::new())
    }

    fn of_one(&self, depths: &[SliceDepths]) -> f64 {
        let window = self.from_ns + 1..=self.to_ns;
        let within = || depths.iter().filter(|d| d.slice == self.slice && window.contains(&d.at_ns));
        let mean =
            |of: fn(&SliceDepths) -> f64| within().map(of).sum::<f64>() / within().count().max(1) as f64;
        let most = |of: fn(&SliceDepths) -> f64| within().map(of).fold(0.0, f64::max);
        match self.of {
            CourseQuantity::Depth => mean(|d| d.depth_mean),
            CourseQuantity::DepthMost => most(|d| d.depth_mean),
            CourseQuantity::Workers => mean(|d| d.workers.into()),
            CourseQuantity::WorkersMost => most(|d| d.workers.into()),
            CourseQuantity::Borrowed => {
                let first = depths.iter().find(|d| d.slice == self.slice).map_or(0, |d| d.workers);
                most(|d| d.workers.into()) - f64::from(first)
            }
            CourseQuantity::Slowdown => mean(|d| d.slowdown_p99),
            CourseQuantity::Response => mean(|d| d.response_p99_ns),
            CourseQuantity::Changes => {
                let means: Vec<f64> = within().map(|d| d.depth_mean).collect();
                let changes = means.windows(2).filter(|pair| (pair[0] - pair[1]).abs() > 1e-9).count();
                changes as f64 * 1e9 / (self.to_ns - self.from_ns) as f64
            }
            CourseQuantity::Recovery => {
                let slow = |d: &&SliceDepths| d.slowdown_p99 > SLOWDOWN_MAX;
                let all = within().count();
                let last_slow = within().enumerate().filter(|(_, d)| slow(d)).map(|(at, _)| at + 1).last();
                match last_slow {
                    Some(at) if at == all => f64::INFINITY,
                    at => at.unwrap_or(0) as f64,
                }
            }
        }
    }
}

/// The median, with the 95 % interval from order statistics.
fn median(mut values: Vec<f64>) -> Estimate {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    if count == 0 {
        return Estimate::exact(0.0);
    }
    let value = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
    let reach = libm::ceil(0.98 * libm::sqrt(count as f64)) as usize;
    let low = (count / 2).saturating_sub(reach);
    let high = (count.div_ceil(2) - 1 + reach).min(count - 1);
    Estimate::between(value, values[low], values[high], Method::OrderStatistics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(interval: u64, slowdown_p99: f64, depth_mean: f64) -> SliceDepths {
        SliceDepths {
            at_ns: interval * 10_000_000,
            slowdown_p99,
            depth_mean,
            workers: 16,
            ..SliceDepths::default()
        }
    }

    fn course(of: &str, from: &str, to: &str) -> TimeCourse {
        RawCourse { of: of.into(), slice: 0, from: from.into(), to: to.into() }.read().expect("legal")
    }

    #[test]
    fn recovery_counts_intervals_until_no_slow_one_follows() {
        let depths = [at(1, 50.0, 1.0), at(2, 20.0, 1.0), at(3, 5.0, 2.0), at(4, 11.0, 2.0), at(5, 9.0, 2.0)];
        assert!((course("recovery", "0", "50ms").of_one(&depths) - 4.0).abs() < 1e-9);
        assert!(course("recovery", "0", "40ms").of_one(&depths).is_infinite());
        assert!(course("recovery", "40ms", "50ms").of_one(&depths).abs() < 1e-9);
    }

    #[test]
    fn depths_and_changes_are_those_between_the_two_moments() {
        let depths = [at(1, 1.0, 1.0), at(2, 1.0, 1.0), at(3, 1.0, 2.0), at(4, 1.0, 1.0)];
        assert!((course("depth", "10ms", "30ms").of_one(&depths) - 1.5).abs() < 1e-9);
        assert!((course("changes", "0", "40ms").of_one(&depths) - 50.0).abs() < 1e-9);
        assert!((course("depth_most", "0", "40ms").of_one(&depths) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_medians_interval_leaves_five_runs_of_twenty_at_each_side() {
        let found = median((1..=20).map(f64::from).collect());
        assert!((found.value - 10.5).abs() < 1e-9);
        assert_eq!((found.low, found.high), (6.0, 15.0));
    }

    #[test]
    fn a_course_without_time_or_name_is_refused() {
        let raw =
            |of: &str, to: &str| RawCourse { of: of.into(), slice: 0, from: "5ms".into(), to: to.into() };
        assert!(raw("depth", "5ms").read().is_err());
        assert!(raw("depht", "9ms").read().expect_err("misspelt").contains("`depth`"));
    }
}
