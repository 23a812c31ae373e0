//! The services of a server of many cores, as flags and plans name them, and how many workers the server
//! appears as.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sluice_host::orchestrator::{Balancing, CORES_MAX, CoreBalancer, Lambda, Priority};
use sluice_host::worker::QUOTA_MAX;

/// The largest number of cores of a server.
pub const LANE_CORES_MAX: usize = CORES_MAX;
/// The default depth: how many requests of a priority a core has room for (RingLeader §7.1).
pub const LANE_DEPTH: u32 = 4;
/// The largest depth.
pub const LANE_DEPTH_MAX: u32 = 64;
/// The default λ: how much a less important request counts when a core is chosen (RingLeader §7.1).
pub const LANE_LAMBDA: (u32, u32) = (1, 5);

/// How many lanes each service needs on a server with this many cores of this depth: enough to carry all
/// tasks that the cores may hold.
pub const fn lanes_of_service(cores: usize, depth: u32) -> usize {
    (cores * depth as usize).div_ceil(QUOTA_MAX as usize)
}

/// Checks that a server can balance over this many cores with this depth and λ.
///
/// # Errors
/// The error of [`CoreBalancer::new`], in one line.
pub fn check_balance(cores: usize, depth: u32, lambda: Lambda) -> Result<(), String> {
    let balancer = CoreBalancer::new(Balancing::Jbsrq(lambda), depth, cores);
    balancer.map(drop).map_err(|why| why.to_string())
}

/// A slice that a server of many cores serves, and the priority of its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServedSlice {
    pub slice: String,
    /// 0 to 7; a larger number goes first.
    pub priority: u8,
    /// The slice's share among slices of the same priority whose tasks wait for a core.
    pub weight: NonZeroU32,
}

impl ServedSlice {
    /// A slice with the default weight.
    pub const fn new(slice: String, priority: u8) -> Self {
        Self { slice, priority, weight: NonZeroU32::MIN }
    }
}

impl FromStr for ServedSlice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((slice, priority)) = text.split_once('=').filter(|(slice, _)| !slice.is_empty()) else {
            return Err(format!("`{}` is no SLICE=PRIORITY, such as get=1", text.escape_debug()));
        };
        let (priority, weight) = priority.split_once('*').unwrap_or((priority, "1"));
        let weight = weight.parse().map_err(|_| {
            let weight = weight.escape_debug();
            format!("`{weight}` is no weight: write a whole number from 1, such as {slice}={priority}*3")
        })?;
        let known = priority.parse().ok().filter(|known| Priority::new(*known).is_ok());
        let wrong =
            || format!("`{}` is no priority: write 0 to 7, a larger one first", priority.escape_debug());
        Ok(Self { slice: slice.to_owned(), priority: known.ok_or_else(wrong)?, weight })
    }
}

impl TryFrom<String> for ServedSlice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ServedSlice> for String {
    fn from(served: ServedSlice) -> Self {
        served.to_string()
    }
}

impl fmt::Display for ServedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.slice, self.priority)?;
        if self.weight == NonZeroU32::MIN { Ok(()) } else { write!(f, "*{}", self.weight) }
    }
}
