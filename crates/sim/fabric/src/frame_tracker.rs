//! Selective repeat: only missing frames are sent again, and frames that arrived early are kept (as in IRN,
//! Mittal et al., SIGCOMM 2018, §3).
//!
//! Each answer names the frame that arrived, so the sender knows which frames the receiver has. It sends
//! the missing frames below the highest of them again, once. A frame that is lost a second time waits for
//! the timeout. The number of frames under way is bounded by a setting, which bounds what both sides keep.

use crate::flow::FlowSender;
use crate::frame::UNDER_WAY_MAX;

const WORDS: usize = UNDER_WAY_MAX as usize / 64;

/// Which frames arrived, from the first missing one on.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedFrames {
    first: u32,
    bits: [u64; WORDS],
}

impl ReceivedFrames {
    const NONE: Self = Self { first: 0, bits: [0; WORDS] };

    /// Whether a frame arrived.
    pub(crate) const fn has(&self, frame: u32) -> bool {
        let at = frame % UNDER_WAY_MAX;
        frame < self.first
            || frame - self.first < UNDER_WAY_MAX && self.bits[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Notes a frame that arrived; a frame too far ahead is not kept. Returns the first missing frame.
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

    /// Notes that all frames before this one arrived.
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
pub(crate) struct FrameTracker {
    /// The frames that the receiver has.
    pub(crate) received: ReceivedFrames,
    /// The frames that the sender was told of.
    told: ReceivedFrames,
    /// The sender has looked for missing frames before `again`; it looks up to `lost_before`.
    again: u32,
    lost_before: u32,
}

impl FrameTracker {
    pub(crate) const NEW: Self =
        Self { received: ReceivedFrames::NONE, told: ReceivedFrames::NONE, again: 0, lost_before: 0 };

    /// An answer says that all frames before `expected` arrived, and that `came` did.
    pub(crate) fn answered(&mut self, expected: u32, came: u32) {
        self.told.all_before(expected);
        self.told.add(came);
        self.lost_before = self.lost_before.max(came);
    }

    /// No answer came for long: every frame that is not known to have arrived is sent again.
    pub(crate) const fn unanswered(&mut self, sender: &FlowSender) {
        self.again = sender.acked;
        self.lost_before = sender.next;
    }

    /// The frame to send again, if there is one.
    pub(crate) fn missing(&self, sender: &FlowSender) -> Option<u32> {
        (self.again.max(sender.acked)..self.lost_before.min(sender.next)).find(|frame| !self.told.has(*frame))
    }

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
        let mut repeats = FrameTracker::NEW;
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
