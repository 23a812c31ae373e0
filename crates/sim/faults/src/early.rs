//! Early tokens in fault runs: in some seeds services say how long they will take, more or less, and their
//! workers may have N + 1 tasks granted or held within the lead before that.

use sluice_events::dice::Dice;
use sluice_host::worker::EarlySettings;
use sluice_wire::Nanos;

/// What a seed says of early tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyScenario {
    pub(super) settings: EarlySettings,
    /// By how much the services' words are off at most, in per mille.
    error_per_mille: u64,
}

impl EarlyScenario {
    /// Every third seed has them. The draws are apart, so that the other seeds' runs are what they were.
    pub(super) fn of(seed: u64) -> Option<Self> {
        let dice = &mut Dice::named(seed, "early tokens", 0);
        seed.is_multiple_of(3).then(|| Self {
            settings: EarlySettings { lead_max: Nanos::from_micros(dice.pick(&[3, 8, 50])) },
            error_per_mille: dice.pick(&[0, 100, 300, 900]),
        })
    }

    /// What a service that takes so long says; that may be wrong.
    pub(super) fn word(&self, span: Nanos, estimates: &mut Dice) -> Nanos {
        let error = self.error_per_mille;
        Nanos(span.0 * estimates.between(1_000 - error, 1_000 + error) / 1_000)
    }
}

/// What a worker's process knows of early tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyBook {
    /// From when on the running task may have an early token.
    from: Option<Nanos>,
}

impl EarlyBook {
    /// How many may be granted or held beyond the quota.
    pub(super) fn beyond_quota(&self, now: Nanos) -> u32 {
        u32::from(self.from.is_some_and(|from| from <= now))
    }

    /// The running task may have an early token from then on.
    pub(super) const fn begins(&mut self, from: Nanos) {
        self.from = Some(from);
    }

    /// The running task ended.
    pub(super) const fn ended(&mut self) {
        self.from = None;
    }
}
