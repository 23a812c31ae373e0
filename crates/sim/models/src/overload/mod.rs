//! Overload control beside Rain's target: a rack's cores behind one queue in a server, which refuses.
//!
//! `codel` drops at the queue's head by a control law (RFC 8289); `breakwater` gives clients credits
//! (Breakwater, OSDI 2020). Both have the best dispatching that there is: one queue for all cores, and no
//! time for a decision. So they differ from each other, and from a switch, by their control alone. The queue
//! is as far from clients as a rack's workers are; receiving and replying cost a core what they cost a
//! worker. Left out: losses, slices, classes, and the cost of refusals and control messages.

mod breakwater;
mod codel;
mod request;
mod run;
mod settings;

use std::sync::atomic::AtomicBool;

pub use settings::OverloadControl;

use breakwater::Credits;
use codel::CoDel;
use run::{OverloadRun, QueueControl};
use sluice_stats::{Distribution, Measured, Recorder};
use sluice_testbed::Testbed;
use sluice_workload::Request;

impl OverloadControl {
    /// Runs one replication; `None` if it was stopped.
    pub fn run(
        self,
        testbed: &Testbed,
        requests: impl Iterator<Item = Request>,
        mut recorder: Recorder,
        stop: &AtomicBool,
    ) -> Option<Measured> {
        let control = match self {
            Self::CoDel { target, interval } => QueueControl::CoDel(CoDel::new(target, interval)),
            Self::Breakwater { target, wait } => {
                QueueControl::Credits(Credits::new(testbed.workers, testbed.clients.into(), (target, wait)))
            }
        };
        let waits = recorder.counts_goodput().then(Distribution::new);
        let mut run = OverloadRun::new(testbed, control, waits, &mut recorder);
        let (counts, gauges) = run.drive(requests.peekable(), stop)?;
        Some(recorder.finish(counts, gauges))
    }
}
