//! The result of following a plan.

use serde::Serialize;
use sluice_outcome::study::{SliceDepths, Verdict};

use super::band::{Band, Sequence};
use super::responses::Responses;

/// The share of live runs that must lie inside the band: four of five.
const INSIDE: f64 = 0.8;

/// The result of one case under one policy.
#[derive(Debug, Serialize)]
pub(super) struct CaseResult {
    pub(super) case: String,
    pub(super) title: String,
    pub(super) policy: String,
    pub(super) band: Band,
    /// The simulator's sequences, and how often each occurred.
    pub(super) sequences: Vec<(String, usize)>,
    /// The response times, for cases in which workers are slow for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) responses: Option<Responses>,
    pub(super) live: Vec<LiveRun>,
    /// The first seed's.
    #[serde(skip)]
    pub(super) simulated: Vec<SliceDepths>,
}

#[derive(Debug, Serialize)]
pub(super) struct LiveRun {
    pub(super) sequence: Sequence,
    pub(super) words: String,
    /// The first interval outside the band, from 1; null if there is none.
    pub(super) outside: Option<usize>,
    pub(super) depths: Vec<SliceDepths>,
    /// The 99th percentile of the sender's lateness, in nanoseconds of the emulated rack.
    pub(super) behind_p99_ns: u64,
    pub(super) unknown: usize,
}

impl CaseResult {
    pub(super) fn inside(&self) -> usize {
        self.live.iter().filter(|lived| lived.outside.is_none()).count()
    }

    pub(super) fn holds(&self) -> bool {
        self.inside() as f64 >= INSIDE * self.live.len() as f64
    }

    pub(super) fn responds(&self, verdict: Verdict) -> bool {
        self.responses.as_ref().is_some_and(|responses| responses.has(verdict))
    }
}
