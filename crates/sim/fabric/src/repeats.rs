//! Selective repeat: only what is missing is sent again, and what came early is kept (as in IRN, Mittal et
//! al., SIGCOMM 2018, §3).
//!
//! Each answer names the frame that came, so that the sender knows what is there; what is missing below the
//! highest of them it sends again, once. What is lost a second time waits for the timeout. What may be under
//! way at most is a setting, and so bounds what both sides keep.

use crate::flow::FlowSender;
use crate::frame::UNDER_WAY_MAX;

const WORDS: usize = UNDER_WAY_MAX as usize / 64;

/// Which frames are there, from the first that is not on.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedFrames {
    first: u32,
    bits: [u64; WORDS],
}

impl ReceivedFrames {
    const NONE: Self = Self { first: 0, bits: [0; WORDS] };

    /// Whether a frame is there.
    pub(crate) const fn has(&self, frame: u32) -> bool {
        let at = frame % UNDER_WAY_MAX;
        frame < self.first
            || frame - self.first < UNDER_WAY_MAX && self.bits[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// A frame is there; if it is too far ahead, it is not kept. Gives the first that is not there.
    pub(crate) const fn add(&mut self, frame: u32) -> u32 {
        if frame >= self.first && frame - self.first < UNDER_WAY_MAX {
            let at = frame % UNDER_WAY_MAX;
            self.bits[at as usize / 64] |= 1 << (at % 64);
        }
        while self.bits[self.first as usize % UNDER_WAY_MAX as usize / 64] >> (self.first % 64) & 1 == 1 {
            self.forget();
        }
        self.first
    }

    /// All before this one are there.
    pub(crate) const fn all_before(&mut self, frame: u32) {
        while self.first < frame {
            self.forget();
        }
    }

    const fn forget(&mut self) {
        let at = self.first % UNDER_WAY_MAX;
        self.bits[at as usize / 64] &= !(1 << (at % 64));
        self.first += 1;
    }
}

/// What both sides of a flow know of its frames.
#[derive(Clone, Debug)]
pub(crate) struct Repeats {
    /// At the receiver.
    pub(crate) received: ReceivedFrames,
    /// What the sender was told of.
    told: ReceivedFrames,
    /// The sender has looked at all before this one, and at what came before `lost_before` it looks next.
    again: u32,
    lost_before: u32,
}

impl Repeats {
    pub(crate) const NEW: Self =
        Self { received: ReceivedFrames::NONE, told: ReceivedFrames::NONE, again: 0, lost_before: 0 };

    /// An answer: all before `expected` are there, and `came`.
    pub(crate) fn answered(&mut self, expected: u32, came: u32) {
        self.told.all_before(expected);
        self.told.add(came);
        self.lost_before = self.lost_before.max(came);
    }

    /// Nothing was answered for long: all that is not known to be there is sent again.
    pub(crate) const fn unanswered(&mut self, sender: &FlowSender) {
        self.again = sender.acked;
        self.lost_before = sender.next;
    }

    /// The frame to send again, if there is one.
    pub(crate) fn missing(&self, sender: &FlowSender) -> Option<u32> {
        (self.again.max(sender.acked)..self.lost_before.min(sender.next)).find(|frame| !self.told.has(*frame))
    }

    /// A frame was sent again.
    pub(crate) const fn sent_again(&mut self, frame: u32) {
        self.again = frame + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_wire::Nanos;

    #[test]
    fn what_came_early_is_kept_and_what_is_missing_is_sent_again_once() {
        let mut repeats = Repeats::NEW;
        let mut sender = FlowSender::new(100, 1.0, Nanos(0), None);
        sender.next = 10;
        assert_eq!(repeats.received.add(0), 1);
        for early in [3, 4, 7] {
            assert_eq!(repeats.received.add(early), 1);
            repeats.answered(1, early);
        }
        sender.acked = 1;
        let mut again = Vec::new();
        while let Some(frame) = repeats.missing(&sender) {
            repeats.sent_again(frame);
            again.push(frame);
        }
        assert_eq!(again, [1, 2, 5, 6]);
        assert_eq!((repeats.received.add(1), repeats.received.add(2)), (2, 5));
        repeats.unanswered(&sender);
        assert_eq!(repeats.missing(&sender), Some(1));
    }

    #[test]
    fn numbers_go_round_and_what_is_too_far_ahead_is_not_kept() {
        let mut came = ReceivedFrames::NONE;
        for frame in 0..5_000 {
            assert!(!came.has(frame));
            assert_eq!(came.add(frame), frame + 1);
        }
        assert_eq!(came.add(5_000 + UNDER_WAY_MAX), 5_000);
        assert!(!came.has(5_000 + UNDER_WAY_MAX));
        assert_eq!(came.add(5_001), 5_000);
        assert!(came.has(5_001) && !came.has(5_000));
    }
}
