//! The settings of a pacer.

use sluice_wire::Nanos;
use thiserror::Error;

use super::alpha::Alpha;
use super::training::{GAPS_MAX, GapShare, TAIL_MIN};

/// The settings of a pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacerSettings {
    /// The gap that starts a new flowlet at a switch: a held packet leaves when its gap has this length.
    pub threshold: Nanos,
    /// Which percentile of the host's gaps T is: 97.5 to 99 % (HF²T §4.2).
    pub percentile: GapShare,
    /// How many gaps the host learns before T is known. No packet is held before.
    pub training_gaps: u32,
    /// How α depends on the flowlet's length; `None` fixes α at 1 (the paper's "No Dynamic T").
    pub alpha: Option<Alpha>,
}

impl PacerSettings {
    /// The paper's settings for a flowlet threshold: T at the 99th percentile, α with 20 and 80 (§5.1). The
    /// paper does not say how long the training lasts: 10,000 gaps leave a hundred above T.
    pub const fn new(threshold: Nanos) -> Self {
        Self {
            threshold,
            percentile: GapShare::P99,
            training_gaps: 10_000,
            alpha: Some(Alpha { short: 20, long: 80 }),
        }
    }

    /// Checks that the settings make sense on a link where a packet of full size takes `packet`.
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
    /// The threshold is so short that every packet would start a flowlet.
    #[error(
        "a flowlet threshold of {threshold} ns is no longer than a packet, which takes {packet} ns: \
         give one of at least a round trip"
    )]
    Threshold {
        /// The threshold, in nanoseconds.
        threshold: u64,
        /// The time of a full-size packet, in nanoseconds.
        packet: u64,
    },
    /// T must lie in the tail of the gaps.
    #[error("percentile {percentile} of the gaps: give one from 97.5 to 99")]
    Percentile { percentile: GapShare },
    /// The training has so few gaps that T would be noise, or so many that they need too much memory.
    #[error(
        "training on {gaps} gaps: give {gaps_min} to {GAPS_MAX}, so that {TAIL_MIN} lie above percentile \
         {percentile}"
    )]
    Training {
        gaps: u32,
        /// The smallest number of gaps that is allowed.
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
        /// The bound of long flowlets.
        long: u32,
    },
}
