//! The time between two services of a worker in a testbed, for the agents of simulated racks and of live
//! ones that imitate the testbed.

use sluice_host::agent::WorkerOverhead;

use crate::Testbed;

/// The time between two services of a worker with one token: the core's part, and the rest.
pub fn way(testbed: &Testbed) -> WorkerOverhead {
    let busy = testbed.worker.receive + testbed.worker.send.times(2);
    WorkerOverhead { round_trip: testbed.refill() - busy, busy }
}
