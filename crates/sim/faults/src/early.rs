//! Early tokens in fault runs. In some seeds services tell how long they will take, with an error, and
//! their workers may have N + 1 tasks granted or held within the lead before the end.

use sluice_events::dice::Dice;
use sluice_host::worker::EarlySettings;
use sluice_wire::Nanos;

/// A seed's settings for early tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyScenario {
    pub(super) settings: EarlySettings,
    /// The largest error of the told service time, in per mille.
    error_per_mille: u64,
}

impl EarlyScenario {
    /// Every third seed has early tokens. The draws come from a stream of their own, so that the other
    /// seeds' runs stay unchanged.
    pub(super) fn of(seed: u64) -> Option<Self> {
        let dice = &mut Dice::named(seed, "early tokens", 0);
        seed.is_multiple_of(3).then(|| Self {
            settings: EarlySettings { lead_max: Nanos::from_micros(dice.pick(&[3, 8, 50])) },
            error_per_mille: dice.pick(&[0, 100, 300, 900]),
        })
    }

    /// The time that a service of this length tells, which may be wrong.
    pub(super) fn word(&self, span: Nanos, estimates: &mut Dice) -> Nanos {
        let error = self.error_per_mille;
        Nanos(span.0 * estimates.between(1_000 - error, 1_000 + error) / 1_000)
    }
}

/// What a worker's process knows of its early token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyToken {
    /// From this time on the running task may have an early token.
    from: Option<Nanos>,
}

impl EarlyToken {
    /// How many tasks may be granted or held beyond the quota.
    pub(super) fn beyond_quota(&self, now: Nanos) -> u32 {
        u32::from(self.from.is_some_and(|from| from <= now))
    }

    /// From this time on the running task may have an early token.
    pub(super) const fn set_start(&mut self, from: Nanos) {
        self.from = Some(from);
    }

    /// The running task ended.
    pub(super) const fn ended(&mut self) {
        self.from = None;
    }
}
