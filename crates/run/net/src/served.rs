//! What a server of many cores serves, as flags and plans say it, and how many workers it is to the switch.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sluice_host::orchestrator::{Balancing, CORES_MAX, CoreBalancer, Lambda, Priority};
use sluice_host::worker::QUOTA_MAX;

/// The most cores that a server may have.
pub const LANE_CORES_MAX: usize = CORES_MAX;
/// Requests of a priority that a core has room for, unless it is said otherwise (RingLeader §7.1).
pub const LANE_DEPTH: u32 = 4;
/// The most that may be said.
pub const LANE_DEPTH_MAX: u32 = 64;
/// What a less important request counts when a core is chosen, unless it is said otherwise (RingLeader
/// §7.1).
pub const LANE_LAMBDA: (u32, u32) = (1, 5);

/// Lanes of each service of a server with so many cores, with room for `depth` of its requests each: as many
/// as carry all tasks that they may hold.
pub const fn lanes_of_service(cores: usize, depth: u32) -> usize {
    (cores * depth as usize).div_ceil(QUOTA_MAX as usize)
}

/// Whether a server can choose among so many cores with this depth and λ; why not, in a line.
///
/// # Errors
/// What [`CoreBalancer::new`] says.
pub fn check_balance(cores: usize, depth: u32, lambda: Lambda) -> Result<(), String> {
    let balancer = CoreBalancer::new(Balancing::Jbsrq(lambda), depth, cores);
    balancer.map(drop).map_err(|why| why.to_string())
}

/// A slice that a server of many cores serves, and how important its tasks are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServedSlice {
    pub slice: String,
    /// 0 to 7, a larger number goes first.
    pub priority: u8,
    /// Its share among the slices of its priority, when several have tasks waiting for a core.
    pub weight: NonZeroU32,
}

impl ServedSlice {
    /// With the weight that all have if nothing is said.
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
