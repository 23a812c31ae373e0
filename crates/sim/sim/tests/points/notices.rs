//! Horus' figure 18a: how many leaves the controller tells when a spine fails. It is computed from pools
//! that share switches ([`crate::pools`]), without a run.

use std::collections::{BTreeMap, BTreeSet};

use sluice_events::dice::Dice;

use crate::pools::{WORKERS, full_scale, pools};

/// How many spine failures the paper has.
const FAILURES: usize = 30;
/// How often the pools are drawn; three in a hundred pools are so large that one draw says little.
const DRAWS: u32 = 10;

/// The mean and the maximum number of leaves that are told in one draw's failures: the leaves of all pools
/// that have the spine, each once.
fn told(draw: u32, share: usize, ratio: usize) -> (usize, usize) {
    let mut dice = Dice::named(1, "notices", draw);
    let pools = pools(&mut dice, share, ratio);
    let used: BTreeSet<usize> = pools.iter().flat_map(|pool| pool.spines.clone()).collect();
    let used: Vec<usize> = used.into_iter().collect();
    let failed = (0..FAILURES).map(|_| {
        let spine = dice.pick(&used);
        let of = pools.iter().filter(|pool| pool.spines.contains(&spine));
        of.flat_map(|pool| &pool.leaves).collect::<BTreeSet<_>>().len()
    });
    let failed: Vec<usize> = failed.collect();
    (failed.iter().sum::<usize>() / FAILURES, *failed.iter().max().expect("some"))
}

/// Over several draws of the pools: the smallest and the largest mean, and the smallest and the largest
/// maximum.
fn over_draws(share: usize, ratio: usize) -> [usize; 4] {
    let of: Vec<(usize, usize)> = (0..DRAWS).map(|draw| told(draw, share, ratio)).collect();
    let (mut means, mut most): (Vec<usize>, Vec<usize>) = of.into_iter().unzip();
    means.sort_unstable();
    most.sort_unstable();
    [means[0], means[means.len() - 1], most[0], most[most.len() - 1]]
}

/// The paper gives a mean of 306 and a maximum of 624 for ten leaves per spine. docs/manual/horus.md has
/// these numbers.
#[test]
fn a_spines_failure_is_told_to_fewer_leaves_the_more_leaves_a_spine_has() {
    let of = |share| [10, 20, 40].map(|ratio| over_draws(share, ratio));
    let by_server = [[386, 605, 768, 1_138], [235, 434, 742, 984], [117, 384, 719, 1_069]];
    assert_eq!(of(24), by_server, "a worker of each server");
    let by_leaf = [[279, 455, 626, 992], [136, 289, 562, 902], [124, 221, 527, 772]];
    assert_eq!(of(32), by_leaf, "32 of a leaf");
}

#[test]
fn the_pools_of_full_scale_have_as_many_workers_as_the_papers_and_fit_below_their_leaves() {
    let pools = full_scale();
    let workers: u32 = pools.iter().flat_map(|pool| &pool.racks).sum();
    assert!((665_000..=705_000).contains(&workers), "{workers} workers, and the paper has 685 K");
    let mut taken = BTreeMap::<usize, u32>::new();
    for (leaf, workers) in pools.iter().flat_map(|pool| pool.leaves.iter().zip(&pool.racks)) {
        *taken.entry(*leaf).or_default() += workers;
    }
    assert!(taken.values().all(|taken| *taken as usize <= WORKERS), "{taken:?}");
}
