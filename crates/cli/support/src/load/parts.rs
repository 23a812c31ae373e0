//! Counts in equal, consecutive parts of a span of the load. How far the parts differ says how far chance
//! moves the whole.

use std::ops::Range;

use hdrhistogram::Histogram;
use sluice_wire::Nanos;

/// Into how many parts a span is divided.
const PARTS: usize = 10;

/// A span of the load in parts.
#[derive(Clone, Debug)]
pub struct SpanParts {
    start: Nanos,
    /// The length of a part.
    length: Nanos,
    parts: Vec<PartTally>,
}

/// The tasks that are due in one part.
#[derive(Clone, Debug, Default)]
pub struct PartTally {
    pub sent: u64,
    /// Replies within the part, including replies to earlier tasks.
    pub replied_in_time: u64,
    pub failed: u64,
    pub refused: u64,
    pub unknown: u64,
    /// The latency of successful replies, in ns; none before the first.
    pub latency: Option<Histogram<u64>>,
}

impl SpanParts {
    pub(super) fn of(span: &Range<Nanos>) -> Self {
        let length = Nanos((span.end.since(span.start).0 / PARTS as u64).max(1));
        Self { start: span.start, length, parts: vec![PartTally::default(); PARTS] }
    }

    /// The part in which a time of the span lies.
    pub(super) fn at(&mut self, at: Nanos) -> &mut PartTally {
        let place = at.since(self.start).0 / self.length.0;
        &mut self.parts[(place as usize).min(PARTS - 1)]
    }

    /// The parts that ended before the load did, and the length of each.
    pub fn whole_before(&self, end: Nanos) -> (Nanos, &[PartTally]) {
        let whole = end.since(self.start).0 / self.length.0;
        (self.length, &self.parts[..PARTS.min(whole as usize)])
    }
}
