//! Where a pool's workers are, and under which spines (Horus §3.2, §4.1).

use crate::point::Point;
use crate::system::System;

/// A rack's workers of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedRack {
    pub(super) leaf: u32,
    pub(super) workers: u32,
    /// Which of the pool's spines it belongs to.
    pub(super) spine: usize,
}

/// One pool: an application's workers, spread over racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(super) racks: Vec<PlacedRack>,
    pub(super) spines: Vec<u32>,
}

impl Placement {
    /// The pool of a point: racks as its testbed says, in blocks below as many spines.
    pub(super) fn of(point: &Point) -> Self {
        let racks = &point.testbed.racks;
        let sizes = racks.sizes(point.testbed.workers);
        let placed = (0..).zip(sizes).collect::<Vec<_>>();
        Self::new(&placed, &(0..u32::from(racks.spines)).collect::<Vec<_>>())
    }

    /// Racks by leaf and workers. Each spine gets a block of them, as equal as can be.
    pub(super) fn new(placed: &[(u32, u32)], spines: &[u32]) -> Self {
        let each = placed.len().div_ceil(spines.len().max(1)).max(1);
        let rack = |(at, (leaf, workers)): (usize, &(u32, u32))| PlacedRack {
            leaf: *leaf,
            workers: *workers,
            spine: (at / each).min(spines.len().saturating_sub(1)),
        };
        Self { racks: placed.iter().enumerate().map(rack).collect(), spines: spines.to_vec() }
    }

    pub(super) fn workers(&self) -> u32 {
        self.racks.iter().map(|rack| rack.workers).sum()
    }

    /// How often each spine gets a task, as shares of the last number: by its workers (Horus §3.2), by its
    /// racks where they are drawn evenly, or all as often. Sums up to each spine.
    pub(super) fn weights(&self, system: System) -> Vec<u64> {
        let of_rack = |rack: &PlacedRack| match system {
            System::Balanced { .. } => 1,
            _ => u64::from(rack.workers),
        };
        let mut sum = 0;
        let below = |spine: usize| match system {
            System::Hierarchy { even_spines: true, .. } => 1,
            _ => self.racks.iter().filter(|rack| rack.spine == spine).map(of_rack).sum::<u64>(),
        };
        let up_to = |spine| {
            sum += below(spine);
            sum
        };
        (0..self.spines.len()).map(up_to).collect()
    }
}

#[cfg(test)]
mod tests {
    use sluice_switch::horus::FabricReading;

    use super::*;

    #[test]
    fn racks_go_below_spines_in_blocks_and_spines_weigh_what_is_below_them() {
        let layout = Placement::new(&[(0, 8), (1, 4), (2, 4), (3, 32), (4, 1)], &[0, 1]);
        assert_eq!(layout.racks.iter().map(|rack| rack.spine).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert_eq!(layout.workers(), 49);
        assert_eq!(layout.weights(System::Horus(FabricReading::default())), [16, 49]);
        assert_eq!(layout.weights(System::Balanced { flows: 0 }), [3, 5]);
        assert_eq!(layout.weights(System::Hierarchy { even_spines: false, by_size: false }), [16, 49]);
        assert_eq!(layout.weights(System::Hierarchy { even_spines: true, by_size: true }), [1, 2]);
    }
}
