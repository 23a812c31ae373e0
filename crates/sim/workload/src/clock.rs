//! Draws when the next task arrives.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use super::plan::{Arrivals, Phase, PhasePlan};

/// The arrival times, unless a trace has them.
#[derive(Clone, Debug)]
pub(super) enum ArrivalClock {
    Poisson { gap_ns: f64, at_ns: f64 },
    Even { gap_ns: f64, sent: u64 },
    Plan(Box<PlanClock>),
}

impl ArrivalClock {
    /// `None` for a trace, which has its own times, and for flows, which hosts begin.
    pub(super) fn new(arrivals: &Arrivals, gap_ns: f64) -> Option<Self> {
        match arrivals {
            Arrivals::Poisson => Some(Self::Poisson { gap_ns, at_ns: 0.0 }),
            Arrivals::Even => Some(Self::Even { gap_ns, sent: 0 }),
            Arrivals::Plan(plan) => Some(Self::Plan(Box::new(PlanClock::new(plan, gap_ns)))),
            Arrivals::Trace(_) | Arrivals::Flows(_) => None,
        }
    }

    /// The next arrival; `None` if no further task arrives.
    pub(super) fn next(&mut self, dice: &mut Dice) -> Option<Nanos> {
        match self {
            Self::Poisson { gap_ns, at_ns } => {
                *at_ns += *gap_ns * dice.exponential();
                Some(Nanos(*at_ns as u64))
            }
            Self::Even { gap_ns, sent } => {
                *sent += 1;
                Some(Nanos((*gap_ns * *sent as f64) as u64))
            }
            Self::Plan(plan) => plan.next(dice.exponential()),
        }
    }

    /// The phase of the last arrival; 0 if there is only one.
    pub(super) fn phase(&self) -> usize {
        match self {
            Self::Plan(plan) => plan.phase,
            Self::Poisson { .. } | Self::Even { .. } => 0,
        }
    }
}

/// Arrivals at a changing rate: the integral of the rate between two arrivals is exponential.
#[derive(Clone, Debug)]
pub(super) struct PlanClock {
    phases: Vec<Phase>,
    repeat: bool,
    gap_ns: f64,
    /// The integral of the factor over all phases, and the phases' length.
    round: (f64, f64),
    phase: usize,
    /// When the phase began, and the time since then.
    began_ns: f64,
    offset_ns: f64,
}

impl PlanClock {
    fn new(plan: &PhasePlan, gap_ns: f64) -> Self {
        let integral = plan.phases.iter().map(|phase| lasts(phase) * (phase.from + phase.to) / 2.0).sum();
        let round = (integral, plan.phases.iter().map(lasts).sum());
        let (phases, repeat) = (plan.phases.clone(), plan.repeat);
        Self { phases, repeat, gap_ns, round, phase: 0, began_ns: 0.0, offset_ns: 0.0 }
    }

    fn next(&mut self, exponential: f64) -> Option<Nanos> {
        let mut left = exponential * self.gap_ns;
        loop {
            let phase = &self.phases[self.phase];
            let is_endless = !self.repeat && self.phase + 1 == self.phases.len();
            let slope = if lasts(phase) > 0.0 { (phase.to - phase.from) / lasts(phase) } else { 0.0 };
            if is_endless && self.offset_ns >= lasts(phase) {
                if phase.to <= 0.0 {
                    return None;
                }
                self.offset_ns += left / phase.to;
                return Some(self.at());
            }
            let rest_ns = lasts(phase) - self.offset_ns;
            let factor = (phase.from + slope * self.offset_ns).max(0.0);
            let rest = rest_ns * (factor + phase.to) / 2.0;
            if left < rest {
                self.offset_ns += time_to(left, factor, slope).min(rest_ns);
                return Some(self.at());
            }
            left -= rest;
            self.offset_ns = lasts(phase);
            if !is_endless {
                self.enter_next(&mut left);
            }
        }
    }

    fn enter_next(&mut self, left: &mut f64) {
        self.began_ns += lasts(&self.phases[self.phase]);
        self.offset_ns = 0.0;
        self.phase += 1;
        if self.phase == self.phases.len() {
            self.phase = 0;
            let rounds = libm::floor(*left / self.round.0);
            *left -= rounds * self.round.0;
            self.began_ns += rounds * self.round.1;
        }
    }

    fn at(&self) -> Nanos {
        Nanos((self.began_ns + self.offset_ns) as u64)
    }
}

fn lasts(phase: &Phase) -> f64 {
    phase.lasts.0 as f64
}

/// The time after which the integral of `factor + slope · t` reaches `area`.
fn time_to(area: f64, factor: f64, slope: f64) -> f64 {
    // The argument of the root is the square of the factor at that time.
    let root = libm::sqrt((factor * factor + 2.0 * slope * area).max(0.0));
    if area > 0.0 { 2.0 * area / (factor + root) } else { 0.0 }
}
