//! Estimates the cost of a study: times a pilot of each policy, and multiplies.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sluice_stats::Warmup;
use sluice_study::PointId;
use sluice_study::checked_plan::CheckedPlan;
use sluice_study::plan::PolicySetup;
use sluice_study::run::Job;

/// The number of tasks in the first pilot.
const PILOT_TASKS: u64 = 1_000;
const PILOT_SHARE: u64 = 16;
/// The factor between the lengths of two pilots; a pilot is at most one part in this many of the run.
const LONGER: u64 = 4;
/// A pilot that took this long, in seconds, is the last one.
const PILOT_S: f64 = 0.4;

/// Seconds per task, by case and run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    task_s: BTreeMap<(usize, PolicySetup), f64>,
}

impl Costs {
    /// Times pilots of each run, in the middle of its rates.
    pub(crate) fn measure(bench: &CheckedPlan, jobs: &[Job], stop: &AtomicBool) -> Self {
        let mut ids: BTreeMap<(usize, PolicySetup), Vec<&PointId>> = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.replication == 0) {
            ids.entry((job.id.case, job.id.run.clone())).or_default().push(&job.id);
        }
        let timed = ids.into_iter().map(|(key, ids)| {
            let point = bench.point(ids[ids.len() / 2]);
            let took = |tasks| {
                let pilot = sluice_sim::point::Point { tasks, warmup: Warmup::Tasks(0), ..point.clone() };
                let started = Instant::now();
                // A pilot that fails counts as free; the run itself will report the error.
                pilot.replicate(0, stop).ok();
                started.elapsed().as_secs_f64()
            };
            let (tasks, warm_up) = bench.tasks(ids[ids.len() / 2]);
            (key, task_s(took, tasks + warm_up))
        });
        Self { task_s: timed.collect() }
    }

    /// The cost of some jobs on a single thread, in seconds.
    pub(crate) fn of(&self, bench: &CheckedPlan, jobs: &[Job]) -> f64 {
        jobs.iter().map(|job| self.of_one(bench, job)).sum()
    }

    /// The cost of one job in seconds; without a pilot, the highest known cost per task is used.
    pub(crate) fn of_one(&self, bench: &CheckedPlan, job: &Job) -> f64 {
        let dearest = || self.task_s.values().copied().fold(0.0, f64::max);
        let task_s = self.task_s.get(&(job.id.case, job.id.run.clone())).copied().unwrap_or_else(dearest);
        task_s * tasks(bench, job)
    }
}

/// The number of tasks in a job, including its warm-up.
pub(crate) fn tasks(bench: &CheckedPlan, job: &Job) -> f64 {
    let (tasks, warm_up) = bench.tasks(&job.id);
    (tasks + warm_up) as f64
}

/// The cost per task in a run of `all` tasks, from pilots of increasing length. At the beginning queues and
/// fabrics are empty, so a short pilot alone would underestimate the cost. Tasks after the longest pilot
/// are assumed to cost as much as those that this pilot had more than the one before.
fn task_s(mut took: impl FnMut(u64) -> f64, all: u64) -> f64 {
    let mut tasks = PILOT_TASKS.min(all / PILOT_SHARE).max(1);
    let (mut before, mut before_s) = (0, 0.0);
    let mut seconds = took(tasks);
    while seconds < PILOT_S && tasks * LONGER <= all / LONGER {
        (before, before_s) = (tasks, seconds);
        tasks *= LONGER;
        seconds = took(tasks);
    }
    let one_more_s = (seconds - before_s).max(0.0) / (tasks - before) as f64;
    (seconds + one_more_s * all.saturating_sub(tasks) as f64) / all.max(1) as f64
}

/// A time span for people.
pub(crate) fn span_text(seconds: f64) -> String {
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

    /// The cost of `tasks` tasks whose individual cost rises until queues have reached their length.
    fn filling(tasks: u64, fills: f64, times: f64) -> f64 {
        let tasks = tasks as f64;
        let filling = tasks.min(fills);
        let growth = (times - 1.0) / fills;
        1e-6 * (filling + growth * filling * filling / 2.0 + times * (tasks - filling))
    }

    #[test]
    fn a_run_takes_what_its_pilots_say_to_a_factor_of_two() {
        for all in [500, 4_000, 200_000, 2_000_000] {
            for fills in [0.001, 0.01, 0.05].map(|share| share * all as f64) {
                for times in [1.0, 3.0, 10.0] {
                    let mut spent = 0.0;
                    let took = |tasks| {
                        let took = filling(tasks, fills, times);
                        spent += took;
                        took
                    };
                    let said = task_s(took, all) * all as f64;
                    let takes = filling(all, fills, times);
                    assert!(
                        (0.5..2.0).contains(&(said / takes)),
                        "{all} {fills} {times}: {said} for {takes}"
                    );
                    assert!(spent < takes / 2.0, "{all} {fills} {times}: pilots of {spent} s for {takes}");
                }
            }
        }
    }

    #[test]
    fn spans_are_told_in_the_unit_that_suits_them() {
        let shown = [0.1, 59.9, 125.0, 7_260.0].map(span_text);
        assert_eq!(shown, ["a second", "59 s", "2 min 5 s", "2 h 1 min"]);
    }
}
