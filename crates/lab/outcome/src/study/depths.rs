//! Depths and slices over time, if they are found at run time.

use serde::{Deserialize, Serialize};

/// A slice at the end of an interval of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceDepths {
    /// When the interval ended.
    pub at_ns: u64,
    pub slice: u32,
    /// Workers that serve the slice after the interval.
    pub workers: u32,
    pub depth_mean: f64,
    /// The smallest.
    pub depth_min: u8,
    /// The largest.
    pub depth_max: u8,
    /// Workers that were judged to need one token more.
    pub deeper: u32,
    /// Workers that were judged to need one token less.
    pub shallower: u32,
    /// Workers that were judged to be overloaded.
    pub overloaded: u32,
    /// Tasks that ended in the interval.
    pub tasks: u64,
    /// The p99 of the slowdowns of these tasks in switch and worker; 0 if there were none.
    pub slowdown_p99: f64,
    /// The p99 of the response times of these tasks in switch and worker, in nanoseconds.
    #[serde(default)]
    pub response_p99_ns: f64,
    /// How many workers were idle, among those without a verdict of overload.
    pub idle_workers: f64,
    /// How many workers of the whole rack have changed their slice since the start of the run.
    pub moves: u32,
}
