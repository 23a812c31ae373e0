//! Windows like TCP's, in place of DCQCN's rates: for comparing the gaps of TCP with those of RDMA, as HF²T
//! does (§3).
//!
//! Slow start and congestion avoidance (RFC 5681). A mark (RFC 3168) or a loss halves the window, once per
//! window, and a timeout sets it to one frame. When the window opens, frames leave as fast as the link.
//! Left out: the handshake, estimates of the round trip, pacing.

use crate::error::{FabricError, require};
use crate::frame::UNDER_WAY_MAX;

/// The settings of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSettings {
    /// The first window, in frames (RFC 6928: 10).
    pub first: u32,
    /// The largest, in frames.
    pub most: u32,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self { first: 10, most: UNDER_WAY_MAX }
    }
}

impl WindowSettings {
    pub(crate) fn check(self) -> Result<(), FabricError> {
        let Self { first, most } = self;
        require(
            (1..=UNDER_WAY_MAX).contains(&most),
            "the largest window",
            most,
            format_args!("1 to {UNDER_WAY_MAX}"),
        )?;
        require(
            (1..=most).contains(&first),
            "the first window",
            first,
            format_args!("1 to the largest, {most}"),
        )
    }
}

/// A flow's window, in frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CongestionWindow {
    frames: f64,
    /// Below this window it doubles each round trip.
    slow_below: f64,
    most: f64,
    /// The window is not halved again before this frame is acknowledged.
    halved_at: u32,
}

impl CongestionWindow {
    pub(crate) fn new(settings: WindowSettings) -> Self {
        let most = f64::from(settings.most);
        Self { frames: settings.first.into(), slow_below: most, most, halved_at: 0 }
    }

    /// How many frames may be under way.
    pub(crate) const fn frames(&self) -> u32 {
        self.frames as u32
    }

    /// So many more frames were acknowledged.
    pub(crate) fn grow(&mut self, acked: u32) {
        let more = f64::from(acked);
        let step = if self.frames < self.slow_below { more } else { more / self.frames };
        self.frames = (self.frames + step).min(self.most);
    }

    /// Congestion was met. Frames before `acked` have arrived, those before `next` are under way.
    pub(crate) fn congested(&mut self, acked: u32, next: u32) {
        if acked < self.halved_at {
            return;
        }
        self.halved_at = next;
        self.slow_below = (self.frames / 2.0).max(2.0);
        self.frames = self.slow_below;
    }

    /// No answer came for long.
    pub(crate) const fn timed_out(&mut self) {
        self.slow_below = (self.frames / 2.0).max(2.0);
        self.frames = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_doubles_is_halved_once_a_round_trip_and_then_grows_by_one() {
        let mut window = CongestionWindow::new(WindowSettings { first: 10, most: 100 });
        window.grow(10);
        assert_eq!(window.frames(), 20);
        window.congested(10, 30);
        window.congested(20, 30);
        assert_eq!(window.frames(), 10);
        for _ in 0..11 {
            window.grow(1);
        }
        assert_eq!(window.frames(), 11);
        window.timed_out();
        assert_eq!(window.frames(), 1);
        window.grow(1);
        assert_eq!(window.frames(), 2);
    }
}
