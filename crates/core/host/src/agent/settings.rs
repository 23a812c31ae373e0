//! The settings of an agent.

use sluice_units::{Adaptive, AdaptiveRule};
use sluice_wire::Nanos;
use thiserror::Error;

use super::replay::WorkerOverhead;
use crate::worker::QUOTA_MAX;

/// Whether an agent's decisions change depths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Decisions change depths.
    #[default]
    On,
    /// Decisions are only reported.
    Advise,
}

/// The rule that turns measurements into depths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// One step up or down in an interval, depending on where tasks wait (Rain §3.3).
    #[default]
    Steps,
    /// Our rule: the depth under which the measured load would have been served best.
    Replay(WorkerOverhead),
}

/// The settings of an agent. All times scale with dilation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentSettings {
    /// Whether decisions change depths.
    pub mode: Mode,
    /// The rule for depths.
    pub rule: Rule,
    /// Whether the agent reports idle workers, so that the controller may lend them to another slice.
    pub lends: bool,
    /// The wanted upper bound of the p99 slowdown (S_max).
    pub slowdown_max: f64,
    /// The largest share of the wait that tasks may spend at the worker (θ).
    pub theta: f64,
    /// The largest depth.
    pub depth_max: u8,
    /// How often each worker is sampled (δ).
    pub sample_every: Nanos,
    /// The time between two judgements.
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
    /// The settings, undilated, that a policy's words ask for; `way` holds the costs between two tasks.
    pub fn asked(asked: Adaptive, way: WorkerOverhead) -> Self {
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

    /// Checks that the settings make sense.
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
    /// A slowdown cannot be below 1: no task is faster than its own service.
    #[error("a slowdown limit (S_max) of {given} cannot be kept: give a number above 1; the paper's is 10")]
    SlowdownMax { given: f64 },
    /// θ is a share, from 0 to 1.
    #[error("θ = {given} is no share: give a number from 0 to 1; the paper's is 0.3")]
    Theta { given: f64 },
    /// A worker has 1 to 8 tokens.
    #[error("a largest depth of {given} is outside 1 to {QUOTA_MAX}: give one of those")]
    DepthMax { given: u8 },
    /// An interval must be long enough to contain samples.
    #[error("an interval of {interval} ns holds no samples that are {sample} ns apart: make it longer")]
    Interval {
        /// Between two samples.
        sample: u64,
        /// Between two judgements.
        interval: u64,
    },
}
