//! Early tokens in a simulated rack: what services say of the time that they will take, and the token that
//! leaves while one runs.
//!
//! No worker is ever handed a drawn service time, only an estimate of it with the stated error: a factor for
//! each task, normal around 1, that holds until the task ends. (Services that count what is left do better:
//! their word gets better as the end comes near.) A token that leaves early takes the core its time from the
//! service.

use sluice_host::worker::Outlook;
use sluice_switch::early::Early;
use sluice_wire::Nanos;

use crate::dice::Dice;

/// What services say of themselves.
#[derive(Debug)]
pub(super) struct Estimates {
    early: Early,
    dice: Dice,
}

impl Estimates {
    pub(super) fn new(early: Early, seed: u64, replication: u32) -> Self {
        Self { early, dice: Dice::named(seed, "estimates", replication) }
    }

    /// What a service of this length says when it starts.
    pub(super) fn outlook(&mut self, service: Nanos) -> Outlook {
        match self.early {
            Early::Told { error_percent } => {
                let factor = 1.0 + f64::from(error_percent) / 100.0 * self.dice.normal();
                Outlook::Left(Nanos((service.0 as f64 * factor.max(0.0)) as u64))
            }
            Early::Learned => Outlook::Units(1),
        }
    }
}
