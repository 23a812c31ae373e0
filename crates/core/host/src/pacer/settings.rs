//! What a pacer is told at its start.

use sluice_wire::Nanos;
use thiserror::Error;

use super::alpha::Alpha;
use super::training::{GAPS_MAX, GapShare, TAIL_MIN};

/// The settings of a pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacerSettings {
    /// The gap that makes a flowlet at the switch: held packets leave when theirs is as long.
    pub threshold: Nanos,
    /// Which of the host's gaps is T: 97.5 to 99 % of them are at most as long (HF²T §4.2).
    pub percentile: GapShare,
    /// After how many gaps T is known. None before is made longer.
    pub training_gaps: u32,
    /// How T follows the flowlet's length; without it T is what it is ("No Dynamic T").
    pub alpha: Option<Alpha>,
}

impl PacerSettings {
    /// The paper's, for a flowlet threshold: T at the 99th percentile, α with 20 and 80 (§5.1). It does not
    /// say how long it trains: 10,000 gaps leave a hundred above T.
    pub const fn new(threshold: Nanos) -> Self {
        Self {
            threshold,
            percentile: GapShare::P99,
            training_gaps: 10_000,
            alpha: Some(Alpha { short: 20, long: 80 }),
        }
    }

    /// Whether the settings make sense where a packet of full size takes so long.
    ///
    /// # Errors
    /// [`PacerError`], one line that says what to change.
    pub fn check(&self, packet: Nanos) -> Result<(), PacerError> {
        let Self { threshold, percentile, training_gaps: gaps, alpha } = *self;
        if threshold <= packet {
            return Err(PacerError::Threshold { threshold: threshold.0, packet: packet.0 });
        }
        if !(GapShare::P97_5..=GapShare::P99).contains(&percentile) {
            return Err(PacerError::Percentile { percentile });
        }
        let gaps_min = percentile.gaps_with_above(TAIL_MIN);
        if !(gaps_min..=GAPS_MAX).contains(&gaps) {
            return Err(PacerError::Training { gaps, gaps_min, percentile });
        }
        match alpha {
            Some(Alpha { short, long }) if short == 0 || long < short => {
                Err(PacerError::Alpha { short, long })
            }
            _ => Ok(()),
        }
    }
}

/// Settings that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacerError {
    /// Every packet would begin a flowlet.
    #[error(
        "a flowlet threshold of {threshold} ns is no longer than a packet, which takes {packet} ns: \
         give one of at least a round trip"
    )]
    Threshold {
        /// The threshold, in nanoseconds.
        threshold: u64,
        /// What a packet takes, in nanoseconds.
        packet: u64,
    },
    /// T is to be in the tail of the gaps, and not beyond it.
    #[error("percentile {percentile} of the gaps: give one from 97.5 to 99")]
    Percentile { percentile: GapShare },
    /// T would rest on a handful of gaps, or take too much memory.
    #[error(
        "training on {gaps} gaps: give {gaps_min} to {GAPS_MAX}, so that {TAIL_MIN} lie above percentile \
         {percentile}"
    )]
    Training {
        gaps: u32,
        /// The fewest that do.
        gaps_min: u32,
        percentile: GapShare,
    },
    /// The bounds of α are out of order.
    #[error(
        "alpha's bounds {short} and {long}: give a first one of at least 1, and a second one not below it"
    )]
    Alpha {
        /// The bound of short flowlets.
        short: u32,
        /// That of long ones.
        long: u32,
    },
}
