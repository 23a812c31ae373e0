//! Early tokens in a simulated rack: what services say of the time that they will take, and the token that
//! leaves while one runs.
//!
//! No worker is ever handed a drawn service time, only an estimate of it with the stated error, which holds
//! until the task ends. (Services that count what is left do better: their word gets better as the end comes
//! near.) A token that leaves early takes the core its time from the service.

use sluice_host::worker::Outlook;
use sluice_switch::early::Early;
use sluice_wire::Nanos;

use super::guess::Guesses;

/// What services say of themselves.
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

    /// What a service of this length says when it starts.
    pub(super) fn outlook(&mut self, service: Nanos) -> Outlook {
        match self.early {
            Early::Told { .. } => Outlook::Left(self.guesses.of(service)),
            Early::Learned => Outlook::Units(1),
        }
    }
}
