//! The pools of a whole datacenter of Horus' paper, drawn at random: their sizes and places.
//!
//! The paper gives the datacenter (48 pods of 24 leaves and 24 spines, 24 servers of 32 workers per leaf)
//! and the sizes of pools (50 to 20,000 workers, with a mean of 685). It leaves the places of pools open.
//! Here they fill pod after pod, with a fixed number of workers per leaf, and have one spine for every r of
//! their leaves, drawn from the spines of those pods.

use std::collections::BTreeSet;

use sluice_events::dice::Dice;

const PODS: usize = 48;
const LEAVES: usize = 24;
const SPINES: usize = 24;
const SERVERS: usize = 24;
/// Workers of a leaf.
pub(crate) const WORKERS: usize = SERVERS * 32;
const POOLS: usize = 1_000;

/// One pool.
pub(crate) struct Pool {
    /// Its leaves, by their numbers in the datacenter.
    pub(crate) leaves: Vec<usize>,
    /// Its workers below each leaf.
    pub(crate) racks: Vec<u32>,
    /// Its spines, by their numbers in the datacenter.
    pub(crate) spines: Vec<usize>,
}

impl Pool {
    pub(crate) fn workers(&self) -> u32 {
        self.racks.iter().sum()
    }
}

/// A draw that matches the paper's 685,000 workers to 3 %: one worker per server of a leaf, and one spine
/// per 40 leaves, as in its authors' generator.
pub(crate) fn full_scale() -> Vec<Pool> {
    pools(&mut Dice::named(1, "notices", 0), SERVERS, 40)
}

/// Pools that take `share` workers of each leaf and have a spine for every `ratio` leaves.
pub(crate) fn pools(dice: &mut Dice, share: usize, ratio: usize) -> Vec<Pool> {
    let mut free = [WORKERS; PODS * LEAVES];
    let mut pool = |_| {
        let mut wanted = size(dice);
        let (mut leaves, mut racks) = (Vec::new(), Vec::new());
        for (leaf, free) in free.iter_mut().enumerate() {
            let takes = wanted.min(share).min(*free);
            if takes > 0 {
                leaves.push(leaf);
                racks.push(takes as u32);
            }
            *free -= takes;
            wanted -= takes;
        }
        let pods: BTreeSet<usize> = leaves.iter().map(|leaf| leaf / LEAVES).collect();
        let spines_of = |pod| (0..SPINES).map(move |spine| pod * SPINES + spine);
        let mut near: Vec<usize> = pods.into_iter().flat_map(spines_of).collect();
        let mut spine = |_| near.swap_remove(dice.below(near.len() as u64) as usize);
        let spines = (0..leaves.len().div_ceil(ratio)).map(&mut spine).collect();
        Pool { leaves, racks, spines }
    };
    (0..POOLS).map(&mut pool).collect()
}

/// The size of a pool. An exponential distribution alone gives no pool of 20,000 workers among 1,000 pools,
/// so three in a hundred are drawn uniformly.
fn size(dice: &mut Dice) -> usize {
    if dice.happens(0.03) {
        return dice.between(50, 20_000) as usize;
    }
    (50.0 + 346.0 * dice.exponential()).min(20_000.0) as usize
}
