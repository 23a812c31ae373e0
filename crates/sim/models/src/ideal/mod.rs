//! The references: policies without a switch's limits, on a network without delay.
//!
//! A [`Discipline`] knows every queue and acts at once. So a [`Reference`] shows what a published policy
//! would achieve with a perfect switch. A fixed distance may be added to each latency. A rack holds only
//! the tasks that wait and run, and allocates only when more tasks wait than ever before. Left out: losses,
//! costs at hosts, and slices; all types share all workers.

mod disciplines;
mod engine;
mod in_time;
mod least;
mod queues;
mod reference;
mod task;
mod tournament;

use core::sync::atomic::{AtomicBool, Ordering};

use disciplines::{Immediate, Jbsq, PowerOfTwo, RandomWorker, RoundRobin, ShortestQueue};
use in_time::{FirstInTime, ShortestInTime};
use sluice_events::dice::Dice;
use sluice_stats::{Counts, Gauges, Measured, Observer, Recorder};
use sluice_wire::Nanos;
use sluice_workload::Request;

pub use disciplines::{Central, Discipline};
pub use engine::Rack;
pub use queues::{Queue, WorkerQueues};
pub use reference::{Reference, ReferenceError};
pub use task::Task;

/// A reference, and the rack that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    pub reference: Reference,
    /// Workers, at least one.
    pub workers: usize,
    /// The time of the ways to and from the rack, which is added to each latency and delays nothing else.
    pub distance: Nanos,
}

impl Ideal {
    /// Runs one replication; `None` if it was stopped. `seed` and `replication` determine the policy's own
    /// randomness.
    pub fn run(
        &self,
        requests: impl IntoIterator<Item = Request>,
        mut recorder: Recorder,
        of: (u64, u32),
        stop: &AtomicBool,
    ) -> Option<Measured> {
        let gauges = self.tell(requests, &mut recorder, of, stop);
        let stopped = stop.load(Ordering::Relaxed);
        (!stopped).then(|| recorder.finish(Counts::default(), gauges))
    }

    /// Runs one replication, and tells an observer about each task.
    pub fn tell(
        &self,
        requests: impl IntoIterator<Item = Request>,
        observer: &mut impl Observer,
        (seed, replication): (u64, u32),
        stop: &AtomicBool,
    ) -> Gauges {
        let workers = self.workers;
        let dice = || Dice::named(seed, "policy", replication);
        match self.reference {
            Reference::Central => self.rack(Central::new(workers)).run(requests, observer, stop),
            Reference::Jbsq(bound) => {
                let bound = bound.map_or(u64::MAX, |bound| u64::from(bound.get()));
                self.rack(Jbsq::new(workers, bound)).run(requests, observer, stop)
            }
            Reference::Jsq => {
                self.rack(Immediate::new(workers, ShortestQueue::new(workers))).run(requests, observer, stop)
            }
            Reference::PowerOfTwo => {
                self.rack(Immediate::new(workers, PowerOfTwo(dice()))).run(requests, observer, stop)
            }
            Reference::Random => {
                self.rack(Immediate::new(workers, RandomWorker(dice()))).run(requests, observer, stop)
            }
            Reference::InTime { limit, shortest: false } => {
                let in_time = FirstInTime::new(workers, limit, self.distance);
                self.rack(in_time).run(requests, observer, stop)
            }
            Reference::InTime { limit, shortest: true } => {
                let in_time = ShortestInTime::new(workers, limit, self.distance);
                self.rack(in_time).run(requests, observer, stop)
            }
            Reference::RoundRobin => {
                self.rack(Immediate::new(workers, RoundRobin(0))).run(requests, observer, stop)
            }
        }
    }

    fn rack<D: Discipline>(&self, discipline: D) -> Rack<D> {
        Rack::new(discipline, self.workers, self.distance)
    }
}
