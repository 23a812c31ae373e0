//! The turns of a host's flows: flows that may send take turns, and the others wait until they may.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sluice_wire::Nanos;

/// The flows of one host that have frames to send.
#[derive(Debug, Default)]
pub(crate) struct ReadyFlows {
    ready: VecDeque<u32>,
    /// For each of the other flows when it may send, and the order in which they entered.
    later: BinaryHeap<Reverse<(u64, u64, u32)>>,
    entered: u64,
}

impl ReadyFlows {
    /// A flow may send from `at` on.
    #[inline]
    pub(crate) fn enter(&mut self, flow: u32, at: Nanos, now: Nanos) {
        if at <= now {
            self.ready.push_back(flow);
        } else {
            self.entered += 1;
            self.later.push(Reverse((at.0, self.entered, flow)));
        }
    }

    /// Takes the flow that has the turn.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<u32> {
        while let Some(Reverse((at, _, flow))) = self.later.peek() {
            if *at > now.0 {
                break;
            }
            self.ready.push_back(*flow);
            self.later.pop();
        }
        self.ready.pop_front()
    }

    /// When a flow may send next, if none may now.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.later.peek().map_or(Nanos(u64::MAX), |Reverse((at, ..))| Nanos(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_send_takes_turns_and_who_may_not_waits() {
        let mut turns = ReadyFlows::default();
        turns.enter(1, Nanos(0), Nanos(0));
        turns.enter(2, Nanos(50), Nanos(0));
        turns.enter(3, Nanos(40), Nanos(0));
        assert_eq!((turns.take(Nanos(0)), turns.take(Nanos(0))), (Some(1), None));
        assert_eq!(turns.next(), Nanos(40));
        turns.enter(1, Nanos(45), Nanos(45));
        assert_eq!([50, 50, 50].map(|now| turns.take(Nanos(now))), [Some(1), Some(3), Some(2)]);
        assert_eq!(turns.next(), Nanos(u64::MAX));
    }
}
