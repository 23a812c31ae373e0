//! Whether one more line of an event may be written.

use std::sync::LazyLock;
use std::time::Instant;

use crate::events::LogEvent;
use crate::limit::Allowance;

impl LogEvent {
    /// Whether its limit has room for one more line; if so, how many lines were left out before.
    #[must_use]
    pub fn admit(self) -> Option<u64> {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        static ALL: [Allowance; LogEvent::ALL.len()] = [const { Allowance::new() }; LogEvent::ALL.len()];
        let now_ns = u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX / 2);
        ALL[self as usize].take(self.limit(), now_ns)
    }
}
