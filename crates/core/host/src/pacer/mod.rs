//! Makes flowlets where RDMA leaves almost none: holds a packet whose gap is long already until the gap is as
//! long as a flowlet switch waits for (HF²T §4).
//!
//! A gap is the time between two departures of one flow as they were, pauses included. The host first only
//! learns: T is a percentile of its own gaps, of all flows together. From then on a packet whose gap is at
//! least T·α, and below the flowlet threshold, waits until the threshold; [`Alpha`] keeps flowlets from
//! becoming too short or too long. What waits is that packet's flow and no other. Nothing is sent here: the
//! driver says when a packet could leave ([`Pacer::ready`]), and that it left ([`Pacer::left`]).
//!
//! Ours, where the paper says nothing: x counts the packets of the flow, not of the host, since it stands for
//! the flowlet's length; training is a number of gaps; T stays once it is known.

mod alpha;
mod settings;
mod training;

use sluice_wire::Nanos;

pub use alpha::{Alpha, AlphaFactor};
pub use settings::{PacerError, PacerSettings};
pub use training::GapShare;

use training::Training;

/// What a host holds back, and what it knows of its gaps.
#[derive(Clone, Debug)]
pub struct Pacer {
    settings: PacerSettings,
    training: Training,
    /// T, once it is known.
    tail: Option<Nanos>,
    counts: PacerCounts,
}

/// What a flow's packets are held by: the driver keeps one beside each flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacedFlow {
    last: Option<Nanos>,
    /// Packets that left since the last hold (x), the one that was held among them.
    since_hold: u32,
    /// The packet that is next waits until then, and since when.
    held: Option<Hold>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    since: Nanos,
    until: Nanos,
}

/// What a host's pacer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacerCounts {
    /// Packets that left.
    pub packets: u64,
    /// Gaps between them: packets without the first of each flow.
    pub gaps: u64,
    /// Gaps that were as long as the threshold without a hold.
    pub natural: u64,
    /// Packets that were held.
    pub holds: u64,
    /// How long those were held, from when they could have left to the threshold.
    pub held: Nanos,
    /// How much later than the threshold those left.
    pub late: Nanos,
}

impl PacerCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            gaps: self.gaps + other.gaps,
            natural: self.natural + other.natural,
            holds: self.holds + other.holds,
            held: self.held + other.held,
            late: self.late + other.late,
        }
    }
}

impl Pacer {
    /// A host that has yet to learn its gaps. A packet of full size takes `packet` on its link.
    pub fn new(settings: PacerSettings, packet: Nanos) -> Result<Self, PacerError> {
        settings.check(packet)?;
        Ok(Self {
            training: Training::new(settings.training_gaps),
            settings,
            tail: None,
            counts: PacerCounts::default(),
        })
    }

    /// The flow's next packet could leave now. Says when it may: now, or at the flowlet threshold if it is
    /// held. Asked again about the same packet, it says the same.
    #[inline]
    pub fn ready(&self, flow: &mut PacedFlow, now: Nanos) -> Nanos {
        if let Some(hold) = flow.held {
            return now.max(hold.until);
        }
        match self.hold(flow, now) {
            Some(until) => {
                flow.held = Some(Hold { since: now, until });
                until
            }
            None => now,
        }
    }

    /// The flow's next packet left then: not before [`Pacer::ready`] allowed it.
    #[inline]
    pub fn left(&mut self, flow: &mut PacedFlow, at: Nanos) {
        self.counts.packets += 1;
        let held = flow.held.take();
        if let Some(last) = flow.last.replace(at) {
            self.gap(at.since(last), held.is_some());
        }
        match held {
            Some(hold) => {
                self.counts.holds += 1;
                self.counts.held = self.counts.held + hold.until.since(hold.since);
                self.counts.late = self.counts.late + at.since(hold.until);
                flow.since_hold = 1;
            }
            None => flow.since_hold = flow.since_hold.saturating_add(1),
        }
    }

    /// T, once the host has learnt it.
    pub const fn tail(&self) -> Option<Nanos> {
        self.tail
    }

    /// What it did so far.
    pub const fn counts(&self) -> PacerCounts {
        self.counts
    }

    /// How many gaps are still to be learnt.
    pub fn gaps_to_learn(&self) -> u32 {
        self.training.missing()
    }

    /// Until when the packet is held, if it is.
    #[inline]
    fn hold(&self, flow: &PacedFlow, now: Nanos) -> Option<Nanos> {
        let (tail, last) = (self.tail?, flow.last?);
        let (gap, threshold) = (now.since(last), self.settings.threshold);
        if gap >= threshold {
            return None;
        }
        let factor = self.settings.alpha.map_or(AlphaFactor::ONE, |alpha| alpha.factor(flow.since_hold));
        factor.times_is_within(tail, gap).then(|| last + threshold)
    }

    #[inline]
    fn gap(&mut self, gap: Nanos, is_held: bool) {
        self.counts.gaps += 1;
        self.counts.natural += u64::from(!is_held && gap >= self.settings.threshold);
        if self.tail.is_none() {
            self.tail = self.training.learn(gap, self.settings.percentile);
        }
    }
}
