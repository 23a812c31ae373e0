//! The references: policies without a switch's limits, on a network without delay.
//!
//! A [`Discipline`] sees every queue as it is and acts at once, so that a [`Reference`] is what a published
//! policy would be if its switch could. A fixed distance may be added to each latency. A rack streams: it
//! holds what waits and runs and no task more, and allocates only when more wait than ever did. Left out are
//! losses, the hosts' costs and slices: types share all workers.

mod disciplines;
mod engine;
mod least;
mod queues;
mod reference;
mod task;
mod tournament;

use core::sync::atomic::{AtomicBool, Ordering};

use disciplines::{Anyone, Immediate, InTurn, Jbsq, ShorterOfTwo, Shortest};
use sluice_events::dice::Dice;
use sluice_stats::{Counts, Gauges, Measured, Observer, Recorder};
use sluice_wire::Nanos;
use sluice_workload::Request;

pub use disciplines::{Central, Discipline};
pub use engine::Rack;
pub use queues::{Lines, Queue};
pub use reference::{Reference, ReferenceError};
pub use task::Task;

/// A reference and its rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    pub reference: Reference,
    /// At least one.
    pub workers: usize,
    /// What the way there and back adds to each latency; nothing waits for it.
    pub distance: Nanos,
}

impl Ideal {
    /// One replication; none if it was stopped. `seed` and `replication` give the policy's own randomness.
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

    /// The same, told task by task to whoever wants to see them.
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
                self.rack(Immediate::new(workers, Shortest::new(workers))).run(requests, observer, stop)
            }
            Reference::PowerOfTwo => {
                self.rack(Immediate::new(workers, ShorterOfTwo(dice()))).run(requests, observer, stop)
            }
            Reference::Random => {
                self.rack(Immediate::new(workers, Anyone(dice()))).run(requests, observer, stop)
            }
            Reference::RoundRobin => {
                self.rack(Immediate::new(workers, InTurn(0))).run(requests, observer, stop)
            }
        }
    }

    fn rack<D: Discipline>(&self, discipline: D) -> Rack<D> {
        Rack::new(discipline, self.workers, self.distance)
    }
}
