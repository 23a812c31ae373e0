//! Early tokens in fault runs: in some seeds services say how long they will take, more or less, and their
//! workers may have N + 1 tasks granted or held within the lead before that.

use sluice_host::worker::{EarlySettings, Outlook};
use sluice_wire::Nanos;

use super::oracle::Life;
use super::rack::{Event, Rack};
use crate::dice::Dice;
use crate::nodes::WorkerSide;

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

    /// The running task ended.
    pub(super) const fn ended(&mut self) {
        self.from = None;
    }
}

impl Rack<'_> {
    /// A service that starts says how long it will take; that may be wrong.
    pub(super) fn service_says(&mut self, worker: usize, span: Nanos) -> Option<Outlook> {
        let early = self.scenario.early?;
        let error = early.error_per_mille;
        let factor = self.estimates.between(1_000 - error, 1_000 + error);
        let left = Nanos(span.0 * factor / 1_000);
        self.workers[worker].early.from = Some(self.world.now + left - early.settings.lead_max);
        Some(Outlook::Left(left))
    }

    /// A running service lets the machine send its early token.
    pub(super) fn early(&mut self, worker: usize, life: Life) -> Result<(), String> {
        let (now, process) = (self.world.now, &mut self.workers[worker]);
        if process.life != life {
            return Ok(());
        }
        let goes_on = process.core.stalled_until;
        if now >= goes_on {
            return self.worker_sends_early(worker);
        }
        if process.core.early.comes(now) && process.core.early.by(goes_on) {
            self.remind(goes_on, Event::Early { worker, life });
        }
        Ok(())
    }
}
