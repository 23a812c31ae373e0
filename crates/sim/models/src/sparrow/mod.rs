//! Sparrow in virtual time: its scheduler and its workers (`machines`) behind a testbed's links, each
//! message with its delay.
//!
//! Schedulers are programs on servers that are as far from the switch as workers are. Each has one core,
//! which takes one message after the other. Tasks that are due at the same time form one job. A worker has
//! one core. It receives the messages that have arrived, asks for the task of its next reservation, and
//! waits for the answer. Sparrow is simulated only: live workers do not know reservations.

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
    /// Runs one replication; `None` if it was stopped.
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
