//! What an agent is told at its start.

use sluice_units::{Adaptive, AdaptiveRule};
use sluice_wire::Nanos;
use thiserror::Error;

use super::replay::Way;
use crate::worker::QUOTA_MAX;

/// Whether an agent's judgements are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    #[default]
    On,
    /// They are only told.
    Advise,
}

/// How a depth follows from what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// One up or down an interval, by where the wait is (Rain §3.3).
    #[default]
    Steps,
    /// Ours: the depth under which what was measured would have gone best.
    Replay(Way),
}

/// The settings of an agent. All times scale with dilation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentSettings {
    /// Whether its judgements are carried out.
    pub mode: Mode,
    /// By which rule depths are found.
    pub rule: Rule,
    /// Whether idleness is told, so that a slice may lend a worker.
    pub lends: bool,
    /// The p99 slowdown that is wished for (S_max).
    pub slowdown_max: f64,
    /// The share of the wait that may be spent at the worker (θ).
    pub theta: f64,
    /// The largest depth.
    pub depth_max: u8,
    /// How often each worker is sampled (δ).
    pub sample_every: Nanos,
    /// How often it judges.
    pub interval: Nanos,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            mode: Mode::On,
            rule: Rule::Steps,
            lends: true,
            slowdown_max: 10.0,
            theta: 0.3,
            depth_max: QUOTA_MAX,
            sample_every: Nanos::from_micros(10),
            interval: Nanos::from_millis(10),
        }
    }
}

impl AgentSettings {
    /// What an agent is told, undilated, from the words of a policy; `way` is what lies between two services.
    pub fn asked(asked: Adaptive, way: Way) -> Self {
        Self {
            mode: if asked.advises { Mode::Advise } else { Mode::On },
            theta: f64::from(asked.theta_milli) / 1_000.0,
            slowdown_max: asked.slowdown_max.into(),
            lends: !asked.stays,
            rule: match asked.rule {
                AdaptiveRule::Steps => Rule::Steps,
                AdaptiveRule::Replay => Rule::Replay(way),
            },
            ..Self::default()
        }
    }

    /// Whether the settings make sense.
    ///
    /// # Errors
    /// [`AgentError`], one line that says what to change.
    pub fn check(&self) -> Result<(), AgentError> {
        if !(self.slowdown_max > 1.0 && self.slowdown_max.is_finite()) {
            return Err(AgentError::SlowdownMax { given: self.slowdown_max });
        }
        if !(0.0..=1.0).contains(&self.theta) {
            return Err(AgentError::Theta { given: self.theta });
        }
        if !(1..=QUOTA_MAX).contains(&self.depth_max) {
            return Err(AgentError::DepthMax { given: self.depth_max });
        }
        if self.sample_every == Nanos(0) || self.interval < self.sample_every {
            return Err(AgentError::Interval { sample: self.sample_every.0, interval: self.interval.0 });
        }
        Ok(())
    }
}

/// Why an agent cannot start.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AgentError {
    /// No task is faster than its own service.
    #[error("a slowdown limit (S_max) of {given} cannot be kept: give a number above 1; the paper's is 10")]
    SlowdownMax { given: f64 },
    /// It is a share.
    #[error("θ = {given} is no share: give a number from 0 to 1; the paper's is 0.3")]
    Theta { given: f64 },
    /// Workers have 1 to 8 tokens.
    #[error("a largest depth of {given} is outside 1 to {QUOTA_MAX}: give one of those")]
    DepthMax { given: u8 },
    /// An interval has to hold samples.
    #[error("an interval of {interval} ns holds no samples that are {sample} ns apart: make it longer")]
    Interval {
        /// Between two samples.
        sample: u64,
        /// Between two judgements.
        interval: u64,
    },
}
