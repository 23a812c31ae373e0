//! Sparrow in virtual time: its scheduler and its workers (`machines`) behind a testbed's links, each message
//! with the time that it takes.
//!
//! Schedulers are programs of servers as far from the switch as workers are, each with one core that takes
//! one message after the other. Tasks that are due in the same instant are one job. A worker has one core: it
//! receives what has come, asks for the task whose reservation is next, and waits for the answer. It is
//! simulated only: live workers know no reservations.

mod machines;
mod run;
mod settings;

use std::sync::atomic::AtomicBool;

pub use settings::Sparrow;

use run::SparrowRun;
use sluice_events::dice::Dice;
use sluice_stats::{Measured, Recorder};
use sluice_testbed::Testbed;
use sluice_workload::Request;

impl Sparrow {
    /// One replication; none if it was stopped.
    pub fn run(
        self,
        testbed: &Testbed,
        requests: impl Iterator<Item = Request>,
        mut recorder: Recorder,
        (seed, replication): (u64, u32),
        stop: &AtomicBool,
    ) -> Option<Measured> {
        let dice = Dice::named(seed, "policy", replication);
        let mut run = SparrowRun::new(self, testbed, dice, &mut recorder);
        let (counts, gauges) = run.drive(requests.peekable(), stop)?;
        Some(recorder.finish(counts, gauges))
    }
}
