//! The bounds of all findings. Alerts in `docs/manual/prometheus/rules.yml` speak of the same bounds, and a
//! test compares them.

use std::time::Duration;

/// How long a host that stopped, and a clock that was set, are told of.
pub const LATELY: Duration = Duration::from_mins(5);
/// How long a switch may be out of reach.
pub const SWITCH_LOST: Duration = Duration::from_secs(5);
/// How long a slice may be closed.
pub const SLICE_CLOSED: Duration = Duration::from_secs(30);
/// The time over which tasks and packets are counted, and for which a queue must be long.
pub const COUNTED: Duration = Duration::from_mins(1);
/// The time over which refused calls are counted.
pub const CALLS_COUNTED: Duration = Duration::from_mins(5);
/// So many refused calls are no accident any more.
pub const CALLS_REFUSED: u64 = 10;
/// The share of a slice's limit from which its queue is long.
pub const QUEUE_LONG: f64 = 0.8;
/// The share of tasks whose refusal is told.
pub const TASKS_REFUSED: f64 = 0.01;
/// The fewest refused tasks that are told, however few there are in all.
pub const TASKS_REFUSED_MIN: u64 = 10;
/// The shortest time over which anything is counted: a rack that has just started is not judged.
pub const COUNTED_MIN: Duration = Duration::from_secs(5);
/// How long the switch may not answer a worker.
pub const UNANSWERED: Duration = Duration::from_secs(5);
/// The share of a worker's tokens whose loss is told.
pub const TOKENS_LOST: f64 = 0.01;
/// The fewest lost tokens of a worker's last seconds that are told.
pub const TOKENS_LOST_MIN: u32 = 10;
/// So many packets of another version are no accident any more.
pub const OTHER_VERSION: u64 = 10;
/// How lately a superseded controller must have called.
pub const CALLED_LATELY: Duration = Duration::from_secs(3);
