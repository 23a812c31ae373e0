//! The times at which a flow's WRITEs are ready.

use std::time::Duration;

use sluice_events::dice::Dice;
use sluice_support::load;
use sluice_wire::Nanos;

use crate::args::ArrivalsArg;

/// Times from the start, as long as the run lasts.
pub(super) struct SpacedStarts {
    /// `None` for a constant distance.
    dice: Option<Dice>,
    gap_ns: f64,
    at_ns: f64,
    end: Nanos,
}

impl SpacedStarts {
    /// Times with a mean distance of `gap_ns`, drawn by the dice of this seed and flow.
    pub(super) fn new(how: ArrivalsArg, gap_ns: f64, length: Duration, (seed, flow): (u64, u16)) -> Self {
        let dice = (how == ArrivalsArg::Poisson).then(|| Dice::new(seed, flow.into()));
        // Flows with a constant distance do not all start at once.
        let at_ns = if dice.is_some() { 0.0 } else { Dice::new(seed, flow.into()).unit() * gap_ns - gap_ns };
        Self { dice, gap_ns, at_ns, end: load::nanos(length) }
    }
}

impl Iterator for SpacedStarts {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        self.at_ns += self.gap_ns * self.dice.as_mut().map_or(1.0, Dice::exponential);
        Some(Nanos(self.at_ns as u64)).filter(|at| *at < self.end)
    }
}
