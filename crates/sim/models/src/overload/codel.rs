//! CoDel's control of a queue (RFC 8289 §5): it watches how long the request at the head has waited.
//!
//! While waits stay above the target for an interval, a request is dropped, then another one after a pause
//! that shrinks with the square root of the number of drops. A wait below the target, or a queue without a
//! second request, ends the dropping. If the next spell begins soon, it resumes near the last rate. Ours:
//! requests have no size, so a queue counts as empty enough when nobody waits behind the head.

use std::collections::VecDeque;

use sluice_wire::Nanos;

use super::request::QueuedRequest;

/// How soon a spell of drops counts as a continuation of the last one, in intervals (RFC 8289 §5.5).
const SOON_INTERVALS: u64 = 16;
/// The fraction bits of a square root.
const ROOT_BITS: u32 = 10;

/// The control's state.
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: Nanos,
    interval: Nanos,
    /// When waits will have been above the target for an interval; `None` while they are below.
    patience_ends: Option<Nanos>,
    /// Whether a spell of drops is on.
    is_dropping: bool,
    next_drop: Nanos,
    /// Drops in this spell, which set the pause, and at the begin of this spell.
    drops: u64,
    drops_before: u64,
}

impl CoDel {
    pub(super) const fn new(target: Nanos, interval: Nanos) -> Self {
        Self {
            target,
            interval,
            patience_ends: None,
            is_dropping: false,
            next_drop: Nanos(0),
            drops: 0,
            drops_before: 0,
        }
    }

    /// A core is free: returns the request that it serves, if one waits. What is dropped goes to `dropped`.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        queue: &mut VecDeque<QueuedRequest>,
        dropped: &mut Vec<QueuedRequest>,
    ) -> Option<QueuedRequest> {
        let (mut head, mut may_drop) = self.head(now, queue);
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.next_drop {
                dropped.extend(head);
                self.drops += 1;
                (head, may_drop) = self.head(now, queue);
                self.is_dropping = may_drop;
                if may_drop {
                    self.next_drop = self.next_drop + self.pause();
                }
            }
        } else if may_drop {
            dropped.extend(head);
            (head, _) = self.head(now, queue);
            self.is_dropping = true;
            let in_last_spell = self.drops - self.drops_before;
            let is_soon = now.since(self.next_drop) < self.interval.times(SOON_INTERVALS);
            self.drops = if in_last_spell > 1 && is_soon { in_last_spell } else { 1 };
            self.drops_before = self.drops;
            self.next_drop = now + self.pause();
        }
        head
    }

    /// The queue's head, and whether it may be dropped.
    fn head(&mut self, now: Nanos, queue: &mut VecDeque<QueuedRequest>) -> (Option<QueuedRequest>, bool) {
        let head = queue.pop_front();
        let is_above = |head: &QueuedRequest| now.since(head.arrived) >= self.target && !queue.is_empty();
        if !head.as_ref().is_some_and(is_above) {
            self.patience_ends = None;
            return (head, false);
        }
        let ends = *self.patience_ends.get_or_insert(now + self.interval);
        (head, now >= ends)
    }

    /// The time to the next drop: the interval over the root of the number of drops.
    fn pause(&self) -> Nanos {
        let root = (self.drops << (2 * ROOT_BITS)).isqrt();
        Nanos((self.interval.0 << ROOT_BITS) / root.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Nanos = Nanos(50);
    const INTERVAL: Nanos = Nanos(1_000);

    /// A queue whose requests have all waited for so long, and how many are dropped at these times.
    fn dropped(waited: u64, times: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        let at = |now: u64| {
            let waiting = QueuedRequest { arrived: Nanos(now - waited), ..QueuedRequest::default() };
            let (mut queue, mut dropped) = (VecDeque::from(vec![waiting; 8]), Vec::new());
            assert!(codel.take(Nanos(now), &mut queue, &mut dropped).is_some());
            dropped.len()
        };
        times.into_iter().map(at).collect()
    }

    #[test]
    fn nothing_is_dropped_before_waits_were_above_the_target_for_an_interval() {
        assert_eq!(dropped(49, [1_000, 3_000, 9_000]), [0, 0, 0]);
        assert_eq!(dropped(50, [1_000, 1_999, 2_000, 2_001]), [0, 0, 1, 0]);
    }

    /// After the first drop at 2,000 the pauses are 1,000, 1,000 / √2 and 1,000 / √3.
    #[test]
    fn pauses_shrink_with_the_root_of_the_number_of_drops() {
        let times = [1_000, 2_000, 2_999, 3_000, 3_706, 3_707, 4_283, 4_284];
        assert_eq!(dropped(60, times), [0, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_short_wait_or_an_empty_queue_ends_the_dropping() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        let mut take = |now: u64, waited: u64, many: usize| {
            let waiting = QueuedRequest { arrived: Nanos(now - waited), ..QueuedRequest::default() };
            let mut dropped = Vec::new();
            codel.take(Nanos(now), &mut VecDeque::from(vec![waiting; many]), &mut dropped);
            dropped.len()
        };
        assert_eq!([take(1_000, 60, 8), take(2_000, 60, 8), take(3_000, 60, 8)], [0, 1, 1]);
        assert_eq!([take(3_700, 10, 8), take(3_900, 60, 8), take(4_800, 60, 8)], [0; 3], "it was short");
        assert_eq!([take(4_900, 60, 8), take(5_000, 60, 1)], [1, 0], "nobody waits behind");
    }

    #[test]
    fn an_empty_queue_has_nobody_to_serve() {
        assert!(CoDel::new(TARGET, INTERVAL).take(Nanos(9), &mut VecDeque::new(), &mut Vec::new()).is_none());
    }
}
