//! The settings of the adaptive agents: the part `adaptive,theta=0.1` of `rain:adaptive,theta=0.1`. The
//! policy itself uses nothing of them; the agents take their settings from them.

use core::fmt;

/// Thousandths of one.
const MILLI: f64 = 1_000.0;

/// How workers' depths are found at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// Whether agents only tell the depths that they find, and change nothing.
    pub advises: bool,
    /// The share of a task's wait that may be spent at the worker (θ), in thousandths.
    pub theta_milli: u16,
    /// The largest acceptable p99 slowdown (S_max).
    pub slowdown_max: u8,
    pub rule: AdaptiveRule,
    /// Whether workers stay in their slices.
    pub stays: bool,
}

/// How a depth follows from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdaptiveRule {
    /// One step up or down per interval, depending on where tasks wait (Rain §3.3).
    #[default]
    Steps,
    /// Ours: the depth under which the measured tasks would have had the best slowdown.
    Replay,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { advises: false, theta_milli: 300, slowdown_max: 10, rule: AdaptiveRule::Steps, stays: false }
    }
}

impl Adaptive {
    /// Adds one argument to the settings read so far, if there are any; `None` if the argument is unknown.
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

/// Reads a share, to three decimals, as thousandths.
fn milli(text: &str) -> Option<u16> {
    let share: f64 = text.parse().ok().filter(|share| (0.0..=1.0).contains(share))?;
    Some((share * MILLI + 0.5) as u16)
}
