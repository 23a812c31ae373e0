//! Estimates of how long a task will take.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

/// Estimates of drawn times. Each is off by a factor of its own, which is normal around 1.
#[derive(Debug)]
pub(super) struct Guesses {
    error: f64,
    dice: Dice,
}

impl Guesses {
    /// Estimates from a replication's stream of this name, with this standard deviation in percent.
    pub(super) fn new(name: &str, error_percent: u8, seed: u64, replication: u32) -> Self {
        Self { error: f64::from(error_percent) / 100.0, dice: Dice::named(seed, name, replication) }
    }

    pub(super) fn of(&mut self, time: Nanos) -> Nanos {
        let factor = 1.0 + self.error * self.dice.normal();
        Nanos((time.0 as f64 * factor.max(0.0)) as u64)
    }
}
