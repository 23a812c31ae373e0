//! Looks back: how the rack was, and what happened since.

use std::time::Duration;

use sluice_rpc::v1::{Counter, EarlierStatus, StatusResponse};

use super::bounds::COUNTED_MIN;

/// How much longer ago a look may be than was asked for: looks are some seconds apart.
const SLACK: Duration = Duration::from_secs(15);

/// Looks back from a status.
#[derive(Clone, Copy)]
pub(super) struct Lookback<'a>(&'a StatusResponse);

impl<'a> Lookback<'a> {
    pub(super) const fn of(status: &'a StatusResponse) -> Self {
        Self(status)
    }

    /// Whether this held in all looks back to one that is at least `age` old.
    pub(super) fn held_for(self, age: Duration, holds: impl Fn(&EarlierStatus) -> bool) -> bool {
        let first = self.0.earlier.iter().position(|look| ago(look) >= age);
        first.is_some_and(|first| self.0.earlier[..=first].iter().all(holds))
    }

    /// What the switch counted over the last `span`, or since the first look if that is less.
    pub(super) fn counted(self, span: Duration) -> Option<CountedSpan<'a>> {
        let switch = self.0.switch.as_ref()?;
        let usable = |look: &&EarlierStatus| look.epoch == switch.epoch && !look.counters.is_empty();
        let before = self.oldest(span, usable)?;
        Some(CountedSpan { lasted: ago(before), before: &before.counters, now: &switch.counters })
    }

    /// The calls that the controller refused over the last `span`.
    pub(super) fn refused_calls(self, span: Duration) -> Option<CountedSpan<'a>> {
        let before = self.oldest(span, |look| !look.refused.is_empty())?;
        Some(CountedSpan { lasted: ago(before), before: &before.refused, now: &self.0.refused })
    }

    fn oldest(self, span: Duration, usable: impl Fn(&&EarlierStatus) -> bool) -> Option<&'a EarlierStatus> {
        let within = |look: &&EarlierStatus| (COUNTED_MIN..=span + SLACK).contains(&ago(look));
        self.0.earlier.iter().filter(within).filter(usable).max_by_key(|look| look.ago_ns)
    }
}

/// How long ago a look was.
pub(super) const fn ago(look: &EarlierStatus) -> Duration {
    Duration::from_nanos(look.ago_ns)
}

/// Counters at the beginning and the end of a time.
pub(super) struct CountedSpan<'a> {
    pub(super) lasted: Duration,
    before: &'a [Counter],
    pub(super) now: &'a [Counter],
}

impl CountedSpan<'_> {
    /// By how much a counter grew; 0 if it is not known.
    pub(super) fn more(&self, name: &str) -> u64 {
        let value =
            |counters: &[Counter]| counters.iter().find(|counter| counter.name == name).map(|c| c.value);
        value(self.now).zip(value(self.before)).map_or(0, |(now, before)| now.saturating_sub(before))
    }

    /// The time in words.
    pub(super) fn shown(&self) -> String {
        format!("over the last {} s", self.lasted.as_secs())
    }
}
