//! What is asked of the adaptive agents: the part `adaptive,theta=0.1` of `rain:adaptive,theta=0.1`. The
//! policy that it stands in knows no more of it, and the agents take their settings from it.

use core::fmt;

/// Thousandths of one.
const MILLI: f64 = 1_000.0;

/// How workers' depths are found at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// Whether what is found is told only, and nothing changed.
    pub advises: bool,
    /// The share of the wait that may be spent at the worker (θ), in thousandths.
    pub theta_milli: u16,
    /// The p99 slowdown that is wished for (S_max).
    pub slowdown_max: u8,
    pub rule: AdaptiveRule,
    /// Whether workers stay in their slices.
    pub stays: bool,
}

/// How a depth follows from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdaptiveRule {
    /// One up or down an interval, by where the wait is (Rain §3.3).
    #[default]
    Steps,
    /// Ours: the depth under which what was measured would have gone best.
    Replay,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { advises: false, theta_milli: 300, slowdown_max: 10, rule: AdaptiveRule::Steps, stays: false }
    }
}

impl Adaptive {
    /// Takes one argument for what may not have been asked for before; `None` if it means nothing.
    pub fn take(before: Option<Self>, argument: &str) -> Option<Self> {
        let so_far = before.unwrap_or_default();
        match argument.split_once('=') {
            None if argument == "adaptive" => Some(so_far),
            None if argument == "advise" => Some(Self { advises: true, ..so_far }),
            None if argument == "replay" => before.map(|_| Self { rule: AdaptiveRule::Replay, ..so_far }),
            None if argument == "stay" => before.map(|_| Self { stays: true, ..so_far }),
            Some(("theta", share)) => {
                before.and_then(|_| Some(Self { theta_milli: milli(share)?, ..so_far }))
            }
            Some(("slowdown", limit)) => before.and_then(|_| {
                Some(Self { slowdown_max: limit.parse().ok().filter(|limit| *limit >= 2)?, ..so_far })
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Self::default();
        f.write_str(if self.advises { "advise" } else { "adaptive" })?;
        if self.theta_milli != plain.theta_milli {
            write!(f, ",theta={}", f64::from(self.theta_milli) / MILLI)?;
        }
        if self.slowdown_max != plain.slowdown_max {
            write!(f, ",slowdown={}", self.slowdown_max)?;
        }
        if self.rule == AdaptiveRule::Replay {
            f.write_str(",replay")?;
        }
        if self.stays { f.write_str(",stay") } else { Ok(()) }
    }
}

/// A share, to three decimals.
fn milli(text: &str) -> Option<u16> {
    let share: f64 = text.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
    Some((share * MILLI + 0.5) as u16)
}
