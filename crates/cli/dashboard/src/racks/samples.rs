//! The last minutes of a rack, one sample for each time that it was asked. The oldest give way.

use std::collections::VecDeque;

use sluice_rpc::v1::{StatusResponse, WorkerStatus};
use sluice_support::peers::rate;
use tokio::time::Instant;

use super::limits::SAMPLES_MAX;

/// The samples, oldest first.
#[derive(Default)]
pub(crate) struct Samples(VecDeque<RackSample>);

/// A rack at one moment; without slices if it did not answer.
pub(crate) struct RackSample {
    pub(crate) at: Instant,
    pub(crate) slices: Option<Vec<SliceSample>>,
}

/// A slice at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SliceSample {
    pub(crate) name: String,
    /// Tokens parked, or minus tasks waiting.
    pub(crate) balance: Option<i32>,
    /// Tasks that its workers ended a second.
    pub(crate) tasks_per_s: Option<f64>,
    /// How long a task waited at its worker, and was served, on average.
    pub(crate) wait_ns: Option<f64>,
    pub(crate) service_ns: Option<f64>,
}

impl Samples {
    /// Adds what a rack said, or that it said nothing.
    pub(crate) fn add(&mut self, at: Instant, status: Option<&StatusResponse>) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(RackSample { at, slices: status.map(slices) });
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &RackSample> {
        self.0.iter()
    }

    pub(crate) fn last(&self) -> Option<&RackSample> {
        self.0.back()
    }

    /// The names of all slices, in the order in which they came.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for slice in self.0.iter().filter_map(|sample| sample.slices.as_ref()).flatten() {
            if !names.contains(&slice.name.as_str()) {
                names.push(&slice.name);
            }
        }
        names
    }
}

/// All slices of a rack.
pub(crate) fn slices(status: &StatusResponse) -> Vec<SliceSample> {
    let of = |slice: &sluice_rpc::v1::SliceStatus| {
        let workers = || status.workers.iter().filter(|worker| worker.slice == slice.slice);
        SliceSample {
            name: slice.name.clone(),
            balance: slice.balance,
            tasks_per_s: tasks_per_s(workers()),
            wait_ns: mean(workers(), |recent| recent.wait_ns),
            service_ns: mean(workers(), |recent| recent.service_ns),
        }
    };
    status.slices.iter().map(of).collect()
}

/// What these workers do a second together; `None` if nothing is known of any.
fn tasks_per_s<'w>(workers: impl Iterator<Item = &'w WorkerStatus>) -> Option<f64> {
    let rates = workers.filter_map(|worker| worker.recent.as_ref().and_then(rate));
    rates.reduce(|one, other| one + other)
}

/// The mean over all tasks of these workers.
fn mean<'w>(
    workers: impl Iterator<Item = &'w WorkerStatus>,
    of: fn(&sluice_rpc::v1::RecentWork) -> u64,
) -> Option<f64> {
    let recent = workers.filter_map(|worker| worker.recent.as_ref());
    let (tasks, sum) = recent.fold((0.0, 0.0), |(tasks, sum), recent| {
        let own = f64::from(recent.tasks);
        (tasks + own, sum + own * of(recent) as f64)
    });
    (tasks > 0.0).then(|| sum / tasks)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluice_rpc::v1::{RecentWork, SliceStatus};

    use super::*;

    fn status(name: &str, tasks: u32) -> StatusResponse {
        let worker = |tasks, wait_ns| WorkerStatus {
            recent: Some(RecentWork { span_ns: 2_000_000_000, tasks, wait_ns, ..RecentWork::default() }),
            ..WorkerStatus::default()
        };
        let slice = SliceStatus { name: name.to_owned(), balance: Some(-3), ..SliceStatus::default() };
        StatusResponse {
            slices: vec![slice],
            workers: vec![worker(tasks, 1_000), worker(3 * tasks, 2_000)],
            ..StatusResponse::default()
        }
    }

    #[test]
    fn a_slices_numbers_are_those_of_its_workers_together() {
        let all = slices(&status("get", 10));
        assert_eq!((all[0].balance, all[0].tasks_per_s), (Some(-3), Some(20.0)));
        assert_eq!(all[0].wait_ns, Some(1_750.0), "weighted by tasks");
        let idle = slices(&status("get", 0));
        assert_eq!((idle[0].tasks_per_s, idle[0].wait_ns), (Some(0.0), None));
    }

    #[test]
    fn the_oldest_give_way_and_silence_is_kept() {
        let (mut samples, began) = (Samples::default(), Instant::now());
        for second in 0..2 * SAMPLES_MAX as u64 {
            let said = status(if second == 0 { "first" } else { "get" }, 1);
            samples.add(began + Duration::from_secs(second), (second % 2 == 1).then_some(&said));
        }
        assert_eq!((samples.iter().count(), samples.names()), (SAMPLES_MAX, vec!["get"]));
        assert_eq!(samples.iter().filter(|sample| sample.slices.is_none()).count(), SAMPLES_MAX / 2);
    }
}
