//! Finds workers that differ from their peers, which share their slice and labels: by longer services,
//! longer waits, or fewer tasks.
//!
//! Only the worse worker is named, and only if the difference is more than chance: tasks differ in service
//! time, and a short time on a busy machine says nothing about a worker.

use std::fmt;

use sluice_report::table::{digits, time};
use sluice_rpc::v1::{RecentWork, StatusResponse, WorkerPhase, WorkerStatus};

/// The smallest number of tasks for a reliable mean.
const TASKS_MIN: f64 = 5.0;
/// How many standard errors are more than chance.
const ERRORS_MIN: f64 = 4.0;
/// By what factor a mean service time must be longer.
const SERVICE_FACTOR: f64 = 1.5;
/// From this factor on, a few very long services are enough: they indicate a worker that is stopped from
/// time to time.
const STALLED_FACTOR: f64 = 3.0;
/// By what factor waits must be longer.
const WAIT_FACTOR: f64 = 3.0;
/// How many more tasks must wait or run at any time, on average: rare or short differences do not matter.
const TASKS_MORE: f64 = 0.2;
/// A worker gets few tasks if it gets less than this share of its peers' tasks.
const FEW: f64 = 0.5;

/// How a worker differs from its peers: pairs of its own value and the median of theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerDifference {
    pub peers: usize,
    /// The mean service time, in ns.
    pub service: Option<(f64, f64)>,
    /// The mean wait at the worker, in ns.
    pub wait: Option<(f64, f64)>,
    /// Tasks a second.
    pub rate: Option<(f64, f64)>,
}

impl fmt::Display for PeerDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span =
            |what: &str, (own, others): (f64, f64)| format!("{what} {} against {}", time(own), time(others));
        let service = self.service.map(|both| span("a service takes", both));
        let wait = self.wait.map(|both| span("a task waits there", both));
        let rate = self.rate.map(|(own, others)| {
            format!("it gets {} tasks a second against {}", digits(own), digits(others))
        });
        f.write_str(&[service, wait, rate].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The differences of each worker in a status, in the status's order.
pub fn apart(status: &StatusResponse) -> Vec<Option<PeerDifference>> {
    let of = |(at, worker): (usize, &WorkerStatus)| {
        let own = WorkerActivity::of(worker)?;
        let is_peer = |(other, them): &(usize, &WorkerStatus)| {
            *other != at
                && (them.slice, &them.labels) == (worker.slice, &worker.labels)
                && (them.workers > 0) == (worker.workers > 0)
        };
        let peers = status.workers.iter().enumerate().filter(is_peer);
        compared(&own, &peers.filter_map(|(_, peer)| WorkerActivity::of(peer)).collect::<Vec<_>>())
    };
    status.workers.iter().enumerate().map(of).collect()
}

/// The tasks per second, if they are known.
pub fn rate(recent: &RecentWork) -> Option<f64> {
    (recent.span_ns > 0).then(|| f64::from(recent.tasks) * 1e9 / recent.span_ns as f64)
}

/// The work of a worker over the last seconds; for a leaf, of one of its workers on average.
struct WorkerActivity {
    /// How long ago these seconds ended: with the worker's last renewal.
    ended_ago_ns: f64,
    tasks: f64,
    span_ns: f64,
    service_ns: f64,
    deviation_ns: f64,
    wait_ns: f64,
}

impl WorkerActivity {
    fn of(worker: &WorkerStatus) -> Option<Self> {
        let recent = worker.recent.as_ref().filter(|recent| recent.span_ns > 0)?;
        (worker.phase() == WorkerPhase::Open).then(|| Self {
            ended_ago_ns: worker.renewed_ago_ns as f64,
            tasks: f64::from(recent.tasks) / f64::from(worker.workers.max(1)),
            span_ns: recent.span_ns as f64,
            service_ns: recent.service_ns as f64,
            deviation_ns: recent.deviation_ns as f64,
            wait_ns: recent.wait_ns as f64,
        })
    }

    fn per_s(&self) -> f64 {
        self.tasks * 1e9 / self.span_ns
    }

    /// The tasks per second that this worker certainly had in the time of another one, which renewed earlier
    /// or later: a load may have begun or ended between both, and filled the rest.
    fn per_s_beside(&self, other: &Self) -> f64 {
        let apart_ns = (self.ended_ago_ns - other.ended_ago_ns).abs();
        let elsewhere = if self.service_ns > 0.0 { apart_ns / self.service_ns } else { 0.0 };
        (self.tasks - elsewhere).max(0.0) * 1e9 / self.span_ns
    }

    /// How many tasks are in a phase of this length on average (Little's law).
    fn at_once(&self, each_ns: f64) -> f64 {
        self.tasks * each_ns / self.span_ns
    }
}

fn compared(own: &WorkerActivity, peers: &[WorkerActivity]) -> Option<PeerDifference> {
    let known = || peers.iter().filter(|work| work.tasks >= TASKS_MIN);
    let is_known = own.tasks >= TASKS_MIN;
    let service = median(known().map(|work| work.service_ns));
    let service = service.filter(|others| is_known && is_slow(own, *others));
    let wait = median(known().map(|work| work.wait_ns)).filter(|others| {
        let more = own.at_once(own.wait_ns - others);
        is_known && own.wait_ns >= WAIT_FACTOR * others && more >= TASKS_MORE
    });
    let certain = median(peers.iter().map(|peer| peer.per_s_beside(own))).filter(|others| {
        let expected = others * own.span_ns / 1e9;
        own.tasks <= FEW * expected && expected - own.tasks > ERRORS_MIN * expected.sqrt()
    });
    let rate = certain.and_then(|_| median(peers.iter().map(WorkerActivity::per_s)));
    let apart = PeerDifference {
        peers: peers.len(),
        service: service.map(|others| (own.service_ns, others)),
        wait: wait.map(|others| (own.wait_ns, others)),
        rate: rate.map(|others| (own.per_s(), others)),
    };
    (apart != PeerDifference { peers: peers.len(), ..PeerDifference::default() }).then_some(apart)
}

/// The value in the middle; of two the larger one, since a worker must be worse than both.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn is_slow(own: &WorkerActivity, others_ns: f64) -> bool {
    let more_ns = own.service_ns - others_ns;
    let is_beyond_chance = more_ns >= ERRORS_MIN * own.deviation_ns / own.tasks.sqrt();
    let is_stalled = own.service_ns >= STALLED_FACTOR * others_ns && own.at_once(more_ns) >= TASKS_MORE;
    own.service_ns >= SERVICE_FACTOR * others_ns && (is_beyond_chance || is_stalled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// A worker's status after five seconds of work.
    fn worker(name: &str, tasks: u32, service_ns: u64, deviation_ns: u64, wait_ns: u64) -> WorkerStatus {
        let recent = RecentWork {
            span_ns: 5_000 * MS,
            tasks,
            service_ns,
            deviation_ns,
            wait_ns,
            ..RecentWork::default()
        };
        WorkerStatus {
            name: name.to_owned(),
            phase: WorkerPhase::Open.into(),
            recent: Some(recent),
            ..WorkerStatus::default()
        }
    }

    fn found(workers: Vec<WorkerStatus>) -> Vec<Option<PeerDifference>> {
        apart(&StatusResponse { workers, ..StatusResponse::default() })
    }

    fn usual(name: &str) -> WorkerStatus {
        worker(name, 500, MS, MS, 30 * US)
    }

    #[test]
    fn a_slow_worker_is_named_with_what_its_peers_take() {
        let slow = worker("slow", 490, 4 * MS, 4 * MS, 40 * US);
        let found = found(vec![usual("a"), slow, usual("b"), usual("c")]);
        let apart = found[1].expect("it is slow");
        assert_eq!(
            apart,
            PeerDifference { peers: 3, service: Some((4e6, 1e6)), ..PeerDifference::default() }
        );
        assert_eq!(apart.to_string(), "a service takes 4.00 ms against 1.00 ms");
        assert_eq!([found[0], found[2], found[3]], [None; 3], "its peers are as they were");
    }

    #[test]
    fn one_that_is_stopped_now_and_then_is_named_by_waits_services_or_what_it_gets() {
        // Stopped for 600 of 800 ms: between tasks, or during some of them.
        let between = worker("between", 480, MS, MS, 4 * MS);
        let within = worker("within", 480, 5 * MS, 50 * MS, 40 * US);
        let starved = worker("starved", 120, MS, MS, 30 * US);
        let workers = vec![usual("a"), between, usual("b"), within, usual("c"), starved, usual("d")];
        let found = found(workers);
        assert_eq!(found[1].and_then(|apart| apart.wait), Some((4e6, 30e3)));
        assert_eq!(found[3].and_then(|apart| apart.service), Some((5e6, 1e6)));
        assert_eq!(found[5].and_then(|apart| apart.rate), Some((24.0, 100.0)));
        assert_eq!(found.iter().flatten().count(), 3);
    }

    #[test]
    fn what_chance_makes_is_no_difference() {
        // A few long services, a short wait, slightly fewer tasks.
        let few = worker("few", 6, 3 * MS, 4 * MS, 0);
        let moment = worker("moment", 480, MS, MS, 500 * US);
        let less = worker("less", 440, MS, MS, 30 * US);
        assert_eq!(found(vec![usual("a"), few.clone(), usual("b")])[1].and_then(|apart| apart.service), None);
        assert_eq!(found(vec![usual("a"), moment, usual("b"), less]), [None; 4]);
        assert_eq!(found(vec![worker("a", 6, MS, MS, 0), few]), [None; 2]);
    }

    #[test]
    fn only_who_shares_a_slice_and_labels_and_takes_tasks_is_a_peer() {
        let slow = worker("slow", 500, 9 * MS, MS, 0);
        let other_slice = WorkerStatus { slice: 1, ..usual("other") };
        let other_labels = WorkerStatus { labels: vec!["gpu".to_owned()], ..usual("gpu") };
        let leaving = WorkerStatus { phase: WorkerPhase::Leaving.into(), ..usual("leaving") };
        let unknown = WorkerStatus { recent: None, ..usual("unknown") };
        assert_eq!(found(vec![slow.clone(), other_slice, other_labels, leaving, unknown]), [None; 5]);
        let with_one = found(vec![slow, usual("a")]);
        assert!(with_one[0].is_some_and(|apart| apart.peers == 1) && with_one[1].is_none(), "{with_one:?}");
    }

    #[test]
    fn a_leaf_is_held_against_others_by_what_one_of_its_workers_does() {
        let leaf = |name: &str, workers: u32, each: u32| WorkerStatus {
            workers,
            ..worker(name, workers * each, MS, MS, 0)
        };
        assert_eq!(found(vec![leaf("a", 2, 500), leaf("b", 22, 500), leaf("c", 5, 500)]), [None; 3]);
        let found = found(vec![leaf("a", 2, 500), leaf("b", 22, 50), leaf("c", 5, 500)]);
        assert_eq!(found[1].and_then(|apart| apart.rate), Some((10.0, 100.0)));
    }

    #[test]
    fn who_renewed_before_a_load_began_or_after_it_ended_is_not_slow() {
        // A load of 150 tasks a second and worker; one renewed two seconds before the other.
        let seen = |name: &str, tasks: u32, ago_ms: u64| WorkerStatus {
            renewed_ago_ns: ago_ms * MS,
            ..worker(name, tasks, 3 * MS, MS, 0)
        };
        assert_eq!(found(vec![seen("a", 24, 2_100), seen("b", 314, 100)]), [None; 2], "it began");
        assert_eq!(found(vec![seen("a", 100, 2_100), seen("b", 0, 100)]), [None; 2], "it ended");
        let slow = found(vec![seen("a", 24, 400), seen("b", 750, 100)]);
        assert_eq!(slow[0].and_then(|apart| apart.rate), Some((4.8, 150.0)));
    }

    #[test]
    fn rest_is_no_difference() {
        let idle = |name: &str| worker(name, 0, 0, 0, 0);
        assert_eq!(found(vec![idle("a"), idle("b"), idle("c")]), [None; 3]);
        assert_eq!(rate(&RecentWork::default()), None);
    }
}
