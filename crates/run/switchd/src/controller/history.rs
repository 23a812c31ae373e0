//! How the rack was over the last minutes, so that one status shows rates and what lasts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sluice_rpc::v1;

/// How often the rack is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a look is remembered.
const KEPT: usize = 61;
/// The ages of which a status tells: each alert's time.
const AGES: [Duration; 4] =
    [LOOK_EVERY, Duration::from_secs(30), Duration::from_mins(1), Duration::from_mins(5)];

/// Looks at the rack, the oldest first.
#[derive(Debug, Default)]
pub(super) struct StatusHistory(VecDeque<(Instant, v1::EarlierStatus)>);

impl StatusHistory {
    /// Remembers what a status says.
    pub(super) fn record(&mut self, at: Instant, status: &v1::StatusResponse) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let switch = status.switch.clone().unwrap_or_default();
        let slices = status.slices.iter().map(|slice| v1::EarlierSlice {
            slice: slice.slice,
            open: slice.open,
            balance: slice.balance,
        });
        self.0.push_back((
            at,
            v1::EarlierStatus {
                ago_ns: 0,
                epoch: switch.epoch,
                link: switch.link,
                counters: switch.counters,
                refused: status.refused.clone(),
                slices: slices.collect(),
            },
        ));
    }

    /// For each age the latest look that is as old, or else the oldest: the latest first, none twice.
    pub(super) fn told(&self, now: Instant) -> Vec<v1::EarlierStatus> {
        let age = |at: &Instant| now.saturating_duration_since(*at);
        let of_age = |wanted: Duration| {
            let old = self.0.iter().rposition(|(at, _)| age(at) >= wanted);
            old.or_else(|| self.0.iter().position(|(_, look)| !look.counters.is_empty())).or(Some(0))
        };
        let mut places: Vec<usize> = AGES.into_iter().filter_map(of_age).collect();
        places.dedup();
        let told = |place: usize| {
            let (at, look) = self.0.get(place)?;
            let ago_ns = u64::try_from(age(at).as_nanos()).unwrap_or(u64::MAX);
            Some(v1::EarlierStatus { ago_ns, ..look.clone() })
        };
        places.into_iter().filter_map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told after looks at these seconds, at the last of them: seconds ago.
    fn told(looks: impl IntoIterator<Item = u64>, now_s: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut history = StatusHistory::default();
        for at in looks {
            history.record(start + Duration::from_secs(at), &v1::StatusResponse::default());
        }
        let told = history.told(start + Duration::from_secs(now_s));
        told.iter().map(|look| look.ago_ns / 1_000_000_000).collect()
    }

    #[test]
    fn a_status_tells_of_the_ages_that_alerts_speak_of() {
        assert_eq!(told((0..=100).map(|look| 5 * look), 502), [7, 32, 62, 302]);
        assert_eq!(told((0..=8).map(|look| 5 * look), 42), [7, 32, 42]);
        assert_eq!(told([0, 5], 7), [7]);
        assert_eq!(told([0], 1), [1]);
        assert_eq!(told([], 1), [0; 0]);
    }
}
