//! What a study costs: a pilot of each policy is timed, and the rest is multiplication.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sluice_sim::stats::Warmup;
use sluice_sim::study::PointId;
use sluice_sim::study::bench::Bench;
use sluice_sim::study::plan::Run;
use sluice_sim::study::run::Job;

/// Tasks of a pilot.
const PILOT_TASKS: u64 = 4_000;
/// A warm-up that is detected takes about this share of what is measured.
const WARM_UP_SHARE: f64 = 0.1;

/// Seconds a task, by case and run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    task_s: BTreeMap<(usize, Run), f64>,
}

impl Costs {
    /// Times a pilot of each run, at the middle of its rates.
    pub(crate) fn measure(bench: &Bench, jobs: &[Job], stop: &AtomicBool) -> Self {
        let mut ids: BTreeMap<(usize, Run), Vec<&PointId>> = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.replication == 0) {
            ids.entry((job.id.case, job.id.run.clone())).or_default().push(&job.id);
        }
        let timed = ids.into_iter().map(|(key, ids)| {
            let point = bench.point(ids[ids.len() / 2]);
            let point = sluice_sim::point::Point { tasks: PILOT_TASKS, warmup: Warmup::Tasks(0), ..point };
            let started = Instant::now();
            // A pilot that fails costs nothing; the run itself says why.
            point.replicate(0, stop).ok();
            (key, started.elapsed().as_secs_f64() / PILOT_TASKS as f64)
        });
        Self { task_s: timed.collect() }
    }

    /// What some jobs cost one thread.
    pub(crate) fn of(&self, bench: &Bench, jobs: &[Job]) -> f64 {
        jobs.iter().map(|job| self.of_one(bench, job)).sum()
    }

    /// What one job costs its thread; of a run without a pilot, as much as the dearest.
    pub(crate) fn of_one(&self, bench: &Bench, job: &Job) -> f64 {
        let dearest = || self.task_s.values().copied().fold(0.0, f64::max);
        let task_s = self.task_s.get(&(job.id.case, job.id.run.clone())).copied().unwrap_or_else(dearest);
        task_s * tasks(bench, job)
    }
}

/// How many tasks a job is, with its warm-up.
pub(crate) fn tasks(bench: &Bench, job: &Job) -> f64 {
    let point = bench.point(&job.id);
    let warm_up = match point.warmup {
        Warmup::Tasks(tasks) => tasks as f64,
        Warmup::TimeNs(ns) => point.rate_per_s * ns as f64 / 1e9,
        Warmup::Detect => point.tasks as f64 * WARM_UP_SHARE,
    };
    point.tasks as f64 + warm_up
}

/// A span as people say it.
pub(crate) fn told(seconds: f64) -> String {
    let span = Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
    match span.as_secs() {
        0..=1 => "a second".into(),
        seconds @ 2..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_unit_that_suits_them() {
        let shown = [0.1, 59.9, 125.0, 7_260.0].map(told);
        assert_eq!(shown, ["a second", "59 s", "2 min 5 s", "2 h 1 min"]);
    }
}
