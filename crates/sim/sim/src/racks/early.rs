//! Early tokens in a simulated rack: the service time that a service tells, and the token that leaves while
//! it runs.
//!
//! A worker never gets the drawn service time, only an estimate of it with the stated error, which stays
//! the same until the task ends. (Services that count the rest of their work do better: their estimate
//! improves towards the end.) A token that leaves early costs the core time of the service.

use sluice_host::worker::RemainingTime;
use sluice_switch::early::Early;
use sluice_wire::Nanos;

use super::guess::Guesses;

/// The estimates that services tell.
#[derive(Debug)]
pub(super) struct Estimates {
    early: Early,
    guesses: Guesses,
}

impl Estimates {
    pub(super) fn new(early: Early, seed: u64, replication: u32) -> Self {
        let off = match early {
            Early::Told { error_percent } => error_percent,
            Early::Learned => 0,
        };
        Self { early, guesses: Guesses::new("estimates", off, seed, replication) }
    }

    /// The estimate that a service of this length tells at its start.
    pub(super) fn outlook(&mut self, service: Nanos) -> RemainingTime {
        match self.early {
            Early::Told { .. } => RemainingTime::Left(self.guesses.of(service)),
            Early::Learned => RemainingTime::Units(1),
        }
    }
}
