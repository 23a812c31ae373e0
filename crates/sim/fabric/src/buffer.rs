//! A switch's memory: which frames it takes, and when it asks for a pause.
//!
//! Under PFC, frames count for the port that they arrived by. They take the shared part while the port has
//! no more than its share of the free memory (Choudhury and Hahne's dynamic thresholds). Beyond, they take
//! the port's headroom, and the port is paused. One full frame per port is kept free, since the frame that
//! crosses the threshold is taken whole. Without PFC, frames count for the queue in which they wait.

/// A switch's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// The size of the shared part, in bytes.
    size: u64,
    used: u64,
}

/// The frames that arrived by one port and are still in the switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ingress {
    shared: u64,
    headroom: u64,
    headroom_size: u64,
    /// The most headroom that was ever used, in bytes.
    pub(crate) headroom_peak: u64,
    /// Whether the other end was asked to pause.
    pub(crate) is_paused: bool,
}

impl Ingress {
    /// With so many bytes of headroom.
    pub(crate) fn new(headroom_size: u64) -> Self {
        Self { headroom_size, ..Self::default() }
    }
}

/// The decision on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The frame is lost.
    Lost,
    /// The frame is taken.
    Taken,
    /// The frame is taken, and the port has to be paused.
    Pause,
}

impl Buffer {
    pub(crate) const fn new(size: u64) -> Self {
        Self { size, used: 0 }
    }

    /// A frame arrives by this port, under PFC.
    #[inline]
    pub(crate) fn admit(&mut self, ingress: &mut Ingress, bytes: u64, alpha: f64) -> Admission {
        if ingress.headroom == 0 && ingress.shared <= self.threshold(alpha) {
            ingress.shared += bytes;
            self.used += bytes;
        } else if ingress.headroom + bytes <= ingress.headroom_size {
            ingress.headroom += bytes;
            ingress.headroom_peak = ingress.headroom_peak.max(ingress.headroom);
        } else {
            return Admission::Lost;
        }
        if !ingress.is_paused && (ingress.headroom > 0 || ingress.shared > self.threshold(alpha)) {
            ingress.is_paused = true;
            return Admission::Pause;
        }
        Admission::Taken
    }

    /// A frame that arrived by this port leaves. Returns whether the other end may send again: when the
    /// port is `below` bytes under its share, or holds no bytes.
    #[inline]
    pub(crate) fn release(&mut self, ingress: &mut Ingress, bytes: u64, alpha: f64, below: u64) -> bool {
        let from_headroom = ingress.headroom.min(bytes);
        ingress.headroom -= from_headroom;
        ingress.shared -= bytes - from_headroom;
        self.used -= bytes - from_headroom;
        let resumes = ingress.is_paused
            && ingress.headroom == 0
            && (ingress.shared == 0 || ingress.shared + below <= self.threshold(alpha));
        ingress.is_paused &= !resumes;
        resumes
    }

    /// Without PFC: a frame arrives for a queue that holds `queued` bytes. Returns whether there is room.
    #[inline]
    pub(crate) fn admit_queued(&mut self, queued: u64, bytes: u64, alpha: f64) -> bool {
        let has_room = self.used + bytes <= self.size && queued + bytes <= self.threshold(alpha);
        self.used += if has_room { bytes } else { 0 };
        has_room
    }

    /// Without PFC: a frame leaves.
    #[inline]
    pub(crate) const fn release_queued(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    #[inline]
    fn threshold(&self, alpha: f64) -> u64 {
        (alpha * self.size.saturating_sub(self.used) as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 1_000;

    #[test]
    fn a_port_is_paused_at_its_share_of_what_is_free_and_resumed_below_it() {
        let mut buffer = Buffer::new(170_000);
        let mut port = Ingress::new(5_000);
        // 10,000 bytes are 1/16 of the 160,000 that are free then.
        for frame in 1..=10 {
            assert_eq!(buffer.admit(&mut port, FRAME, 1.0 / 16.0), Admission::Taken, "frame {frame}");
        }
        assert_eq!(buffer.admit(&mut port, FRAME, 1.0 / 16.0), Admission::Pause);
        for _ in 0..5 {
            assert_eq!(buffer.admit(&mut port, FRAME, 1.0 / 16.0), Admission::Taken);
        }
        assert_eq!(buffer.admit(&mut port, FRAME, 1.0 / 16.0), Admission::Lost);
        assert_eq!(port.headroom_peak, 5_000);
        let resumed = (1..=16).find(|_| buffer.release(&mut port, FRAME, 1.0 / 16.0, 2_000));
        assert_eq!(resumed, Some(5 + 3), "headroom first, then down to two frames below the share");
        assert!(!port.is_paused);
    }

    #[test]
    fn a_paused_port_with_nothing_here_is_resumed_however_full_the_rest_is() {
        let mut buffer = Buffer::new(10_000);
        let (mut full, mut port) = (Ingress::new(0), Ingress::new(FRAME));
        while buffer.admit(&mut full, FRAME, 8.0) != Admission::Lost {}
        assert_eq!(buffer.admit(&mut port, FRAME, 0.01), Admission::Pause);
        assert!(buffer.release(&mut port, FRAME, 0.01, 2_000));
    }

    #[test]
    fn without_pfc_a_frame_that_is_lost_takes_no_room() {
        let mut buffer = Buffer::new(10 * FRAME);
        assert!((0..10).all(|_| buffer.admit_queued(0, FRAME, 8.0)));
        assert!((0..10).all(|_| !buffer.admit_queued(0, FRAME, 8.0)));
        buffer.release_queued(FRAME);
        assert!(buffer.admit_queued(0, FRAME, 8.0));
    }
}
