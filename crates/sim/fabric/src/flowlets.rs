//! A switch's table of flowlets: the path that a flow's frames take until they pause.
//!
//! The entries of the table do not name their flows. Two flows that hash to one entry share its path and
//! its pauses, as on the chip (LetFlow §3). Such collisions are counted, and so is whose pause began a
//! flowlet.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use crate::ids::{FlowKey, mix};

/// What happened to frames that were looked up in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowletCounts {
    /// Frames that were looked up.
    pub frames: u64,
    /// First frames of flows, and frames that found another flow in their entry and began a flowlet after
    /// its pause.
    pub firsts: u64,
    /// Frames that came at least the threshold after the frame before of the same flow.
    pub expiries: u64,
    /// Frames that took the path of another flow with the same entry.
    pub collisions: u64,
}

impl FlowletCounts {
    /// How often a path was chosen.
    pub const fn flowlets(&self) -> u64 {
        self.firsts + self.expiries
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            firsts: self.firsts + other.firsts,
            expiries: self.expiries + other.expiries,
            collisions: self.collisions + other.collisions,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    last: Option<Nanos>,
    flow: FlowKey,
    path: u32,
}

#[derive(Debug)]
pub(crate) struct Flowlets {
    entries: Vec<Entry>,
    threshold: Nanos,
    counts: FlowletCounts,
}

impl Flowlets {
    /// A table with so many entries, a power of two.
    pub(crate) fn new(threshold: Nanos, entries: u32) -> Self {
        let entries = vec![Entry::default(); entries as usize];
        Self { entries, threshold, counts: FlowletCounts::default() }
    }

    /// The path of a frame that arrives now: a new random one if the frame begins a flowlet.
    #[inline]
    pub(crate) fn path(&mut self, flow: FlowKey, now: Nanos, dice: &mut Dice) -> u32 {
        self.path_or(flow, now, |_| dice.word() as u32)
    }

    /// The path of a frame that arrives now; `choose` makes a new path of the one before, if the frame
    /// begins a flowlet.
    #[inline]
    pub(crate) fn path_or(&mut self, flow: FlowKey, now: Nanos, choose: impl FnOnce(u32) -> u32) -> u32 {
        let place = mix(flow.slot, flow.life) as usize & (self.entries.len() - 1);
        let entry = &mut self.entries[place];
        let is_same = entry.last.is_some() && entry.flow == flow;
        let is_new = entry.last.is_none_or(|last| now.since(last) >= self.threshold);
        self.counts.frames += 1;
        self.counts.firsts += u64::from(is_new && !is_same);
        self.counts.expiries += u64::from(is_new && is_same);
        self.counts.collisions += u64::from(!is_new && !is_same);
        if is_new {
            entry.path = choose(entry.path);
        }
        (entry.last, entry.flow) = (Some(now), flow);
        entry.path
    }

    pub(crate) const fn counts(&self) -> FlowletCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowKey = FlowKey { slot: 1, life: 1 };
    const OTHER: FlowKey = FlowKey { slot: 2, life: 1 };

    #[test]
    fn a_path_stays_below_the_threshold_and_may_change_at_it() {
        let mut dice = Dice::new(1, 1);
        let mut table = Flowlets::new(Nanos(1_000), 1 << 10);
        let first = table.path(FLOW, Nanos(0), &mut dice);
        assert_eq!(table.path(FLOW, Nanos(999), &mut dice), first);
        assert_eq!(table.path(FLOW, Nanos(1_998), &mut dice), first);
        assert_ne!(table.path(FLOW, Nanos(2_998), &mut dice), first);
        let expected = FlowletCounts { frames: 4, firsts: 1, expiries: 1, collisions: 0 };
        assert_eq!(table.counts(), expected);
    }

    #[test]
    fn flows_with_one_entry_share_its_path_and_its_pauses() {
        let mut dice = Dice::new(1, 1);
        let mut table = Flowlets::new(Nanos(1_000), 1);
        let first = table.path(FLOW, Nanos(0), &mut dice);
        assert_eq!(table.path(OTHER, Nanos(900), &mut dice), first);
        assert_eq!(table.path(FLOW, Nanos(1_800), &mut dice), first, "its own pause was longer");
        table.path(OTHER, Nanos(2_800), &mut dice);
        let expected = FlowletCounts { frames: 4, firsts: 2, expiries: 0, collisions: 2 };
        assert_eq!(table.counts(), expected);
    }
}
