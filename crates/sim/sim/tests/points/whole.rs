//! A whole datacenter of Horus' paper under one load, pool after pool. Each pool is a run of its own,
//! because pools that share switches do what each does alone.
//!
//! From the paper: Horus, hops of 5 µs, a load of 80 % and a loss of 1e-5 on each link. A pool gets tasks
//! for a hundred mean services: 10 ms of Exp(100 µs), and as many tasks under every other workload. A task
//! without an answer is sent again after twenty mean services, so that few tasks are sent again that only
//! wait.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::run_jobs;
use sluice_stats::{Counts, Distribution};
use sluice_testbed::{Faults, Rates, Retries, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use crate::pools::Pool;
use crate::timing::timed;

const LOAD: f64 = 0.8;
/// For how many mean services a pool gets tasks.
const SPAN: f64 = 100.0;
/// The timeout of a task, in mean services.
const TIMEOUT: f64 = 20.0;

/// The load of all pools, and the losses of the network.
pub(crate) struct Whole {
    pub(crate) workload: Workload,
    /// The share of packets that are lost on each link.
    pub(crate) loss: f64,
}

/// The results of all pools together.
pub(crate) struct Came {
    pub(crate) latencies: Distribution,
    pub(crate) counts: Counts,
}

/// The cost of one pool's run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) pools: u32,
    pub(crate) workers: u32,
    pub(crate) tasks: u64,
    /// Nanoseconds on a processor.
    pub(crate) ns: f64,
}

impl Whole {
    /// Runs these pools, given with their numbers in the datacenter, on so many threads.
    pub(crate) fn run(
        &self,
        pools: &[(u32, Pool)],
        threads: usize,
        mut took: impl FnMut(&Pool, Took),
    ) -> Came {
        let came = Mutex::new(Came { latencies: Distribution::new(), counts: Counts::default() });
        let run_pool = |(replication, pool): &(u32, Pool)| {
            let (point, stop) = (self.point(pool), AtomicBool::new(false));
            let (ns, measured) = timed(|| point.replicate(*replication, &stop).expect("nobody stops it"));
            let mut all = came.lock().expect("nobody panics with it");
            measured.classes.iter().for_each(|class| all.latencies.merge(&class.latency));
            all.counts = all.counts.and(&measured.counts);
            Took { pools: 1, workers: pool.workers(), tasks: point.tasks, ns }
        };
        run_jobs(pools, threads, &AtomicBool::new(false), run_pool, |at, of| took(&pools[at].1, of));
        came.into_inner().expect("nobody panics with it")
    }

    fn point(&self, pool: &Pool) -> Point {
        let workers = pool.workers();
        let testbed = format!(
            "workers = {workers}\nclients = 4\nlinks = {{ client = \"5us\", worker = \"5us\" }}\n\
             racks = {{ spines = {}, workers = {:?}, hop = \"5us\" }}",
            pool.spines.len(),
            pool.racks,
        );
        let mean_ns = self.workload.mean_service_ns();
        let timeout = Nanos((TIMEOUT * mean_ns) as u64);
        let lossy = Rates { loss: self.loss, ..Rates::default() };
        let testbed = Testbed {
            faults: Faults {
                submit: lossy,
                dispatch: lossy,
                reply: lossy,
                update: lossy,
                ..Faults::default()
            },
            retries: Retries {
                first_timeout: timeout,
                timeout_max: timeout.times(2),
                deadline: timeout.times(50),
            },
            ..Testbed::parse(&testbed).expect("it is one")
        };
        let policy = Policy::parse("dc-horus").expect("it is one");
        let busy = LOAD * f64::from(workers);
        let point = Point::new(policy, testbed, self.workload.clone(), busy * 1e9 / mean_ns);
        Point { tasks: (busy * SPAN) as u64, ..point }
    }
}

impl Took {
    pub(crate) const fn and(self, more: Self) -> Self {
        Self {
            pools: self.pools + more.pools,
            workers: self.workers + more.workers,
            tasks: self.tasks + more.tasks,
            ns: self.ns + more.ns,
        }
    }
}
