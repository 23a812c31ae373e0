//! How long a task will take, as far as somebody knows.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

/// Guesses of drawn times, each off by a factor of its own, normal around 1.
#[derive(Debug)]
pub(super) struct Guesses {
    error: f64,
    dice: Dice,
}

impl Guesses {
    /// Of a replication's stream of this name, off by so many hundredths.
    pub(super) fn new(name: &str, error_percent: u8, seed: u64, replication: u32) -> Self {
        Self { error: f64::from(error_percent) / 100.0, dice: Dice::named(seed, name, replication) }
    }

    pub(super) fn of(&mut self, time: Nanos) -> Nanos {
        let factor = 1.0 + self.error * self.dice.normal();
        Nanos((time.0 as f64 * factor.max(0.0)) as u64)
    }
}
