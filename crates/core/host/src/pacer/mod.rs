//! Creates flowlet gaps, of which RDMA leaves almost none: a packet whose gap is already long is held until
//! the gap reaches the flowlet threshold of the switches (HF²T §4).
//!
//! A gap is the time between two actual departures of one flow, including pauses. At first the host only
//! learns: T is a percentile of its own gaps, over all flows. Afterwards a packet whose gap is at least T·α
//! and below the flowlet threshold waits until the threshold; [`Alpha`] keeps flowlets from becoming too
//! short or too long. A hold delays one flow only. The pacer sends nothing: the driver says when a packet
//! could leave ([`Pacer::ready`]) and when it left ([`Pacer::left`]).
//!
//! Three points are our choice, since the paper says nothing about them: x counts the packets of the flow,
//! not of the host, because x stands for the flowlet's length; the training lasts for a number of gaps; T
//! never changes once it is known.

mod alpha;
mod settings;
mod training;

use sluice_wire::Nanos;

pub use alpha::{Alpha, AlphaFactor};
pub use settings::{PacerError, PacerSettings};
pub use training::GapShare;

use training::Training;

/// A host's pacer: its settings, and T once it was learnt.
#[derive(Clone, Debug)]
pub struct Pacer {
    settings: PacerSettings,
    training: Training,
    /// T; `None` until the host has learnt it.
    tail: Option<Nanos>,
    counts: PacerCounts,
}

/// The pacer's state for one flow; the driver keeps one beside each flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacedFlow {
    last: Option<Nanos>,
    /// Packets that left since the last hold (x), including the held packet.
    since_hold: u32,
    /// Until when the next packet is held, and since when.
    held: Option<Hold>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    since: Nanos,
    until: Nanos,
}

/// Counters of a host's pacer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacerCounts {
    /// Packets that left.
    pub packets: u64,
    /// Measured gaps: every packet but the first of each flow.
    pub gaps: u64,
    /// Gaps that reached the threshold without a hold.
    pub natural: u64,
    /// Packets that were held.
    pub holds: u64,
    /// The time for which packets were held, from when each could have left to the threshold.
    pub held: Nanos,
    /// How much later than the threshold the held packets left.
    pub late: Nanos,
}

impl PacerCounts {
    /// The sum of both hosts' counters.
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
    /// A pacer that has yet to learn T. A packet of full size takes `packet` on the host's link.
    pub fn new(settings: PacerSettings, packet: Nanos) -> Result<Self, PacerError> {
        settings.check(packet)?;
        Ok(Self {
            training: Training::new(settings.training_gaps),
            settings,
            tail: None,
            counts: PacerCounts::default(),
        })
    }

    /// The flow's next packet could leave now. Returns when it may leave: now, or at the flowlet threshold
    /// if it is held. Repeated calls for the same packet return the same time.
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

    /// The flow's next packet left at `at`, which is not before the time that [`Pacer::ready`] returned.
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

    /// T, the learnt percentile of the host's gaps; `None` during the training.
    pub const fn tail(&self) -> Option<Nanos> {
        self.tail
    }

    /// The pacer's counters.
    pub const fn counts(&self) -> PacerCounts {
        self.counts
    }

    /// How many gaps are still to be learnt.
    pub fn gaps_to_learn(&self) -> u32 {
        self.training.missing()
    }

    /// The time until which the packet is held; `None` if it may leave.
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
