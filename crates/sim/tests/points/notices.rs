//! Horus' figure 18a: how many leaves the controller tells when a spine fails. It is a count over pools that
//! lie on the same switches, and no run: where 1,000 pools are and which spines they have is drawn here.
//!
//! The paper says what the datacenter is (48 pods of 24 leaves and 24 spines, 24 servers of 32 workers a
//! leaf) and how large pools are (50 to 20,000 workers, 685 in the mean). Where they are it leaves open: here
//! they fill pod after pod, with so many workers of a leaf as a share, and have a spine for each r of their
//! leaves, drawn from those pods'.

use std::collections::BTreeSet;

use sluice_world::dice::Dice;

const PODS: usize = 48;
const LEAVES: usize = 24;
const SPINES: usize = 24;
const WORKERS: usize = 24 * 32;
const POOLS: usize = 1_000;
/// As often as the paper has a spine fail.
const FAILURES: usize = 30;
/// How often the pools are drawn: three in a hundred are so large that one draw says little.
const DRAWS: u32 = 10;

/// One pool's leaves and spines, by their numbers in the datacenter.
struct Pool {
    leaves: Vec<usize>,
    spines: Vec<usize>,
}

/// An exponential distribution alone has no pool of 20,000 among 1,000: three in a hundred are drawn
/// evenly.
fn size(dice: &mut Dice) -> usize {
    if dice.happens(0.03) {
        return dice.between(50, 20_000) as usize;
    }
    (50.0 + 346.0 * dice.exponential()).min(20_000.0) as usize
}

/// The pools that take a share of each leaf and have a spine for each so many leaves.
fn pools(dice: &mut Dice, share: usize, ratio: usize) -> Vec<Pool> {
    let mut free = [WORKERS; PODS * LEAVES];
    let mut pool = |_| {
        let mut wanted = size(dice);
        let mut leaves = Vec::new();
        for (leaf, free) in free.iter_mut().enumerate() {
            let takes = wanted.min(share).min(*free);
            if takes > 0 {
                leaves.push(leaf);
            }
            *free -= takes;
            wanted -= takes;
        }
        let pods: BTreeSet<usize> = leaves.iter().map(|leaf| leaf / LEAVES).collect();
        let spines_of = |pod| (0..SPINES).map(move |spine| pod * SPINES + spine);
        let mut near: Vec<usize> = pods.into_iter().flat_map(spines_of).collect();
        let mut spine = |_| near.swap_remove(dice.below(near.len() as u64) as usize);
        let spines = (0..leaves.len().div_ceil(ratio)).map(&mut spine).collect();
        Pool { leaves, spines }
    };
    (0..POOLS).map(&mut pool).collect()
}

/// How many leaves are told in the mean of one draw's failures, and at most: those of all pools that have the
/// spine, each once.
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

/// Over draws of the pools: the least and the largest of their means, and both of their most.
fn over_draws(share: usize, ratio: usize) -> [usize; 4] {
    let of: Vec<(usize, usize)> = (0..DRAWS).map(|draw| told(draw, share, ratio)).collect();
    let (mut means, mut most): (Vec<usize>, Vec<usize>) = of.into_iter().unzip();
    means.sort_unstable();
    most.sort_unstable();
    [means[0], means[means.len() - 1], most[0], most[most.len() - 1]]
}

/// The paper has 306 in the mean and 624 at most for ten leaves a spine. docs/horus.md has these numbers.
#[test]
fn a_spines_failure_is_told_to_fewer_leaves_the_more_leaves_a_spine_has() {
    let of = |share| [10, 20, 40].map(|ratio| over_draws(share, ratio));
    let by_server = [[386, 605, 768, 1_138], [235, 434, 742, 984], [117, 384, 719, 1_069]];
    assert_eq!(of(24), by_server, "a worker of each server");
    let by_leaf = [[279, 455, 626, 992], [136, 289, 562, 902], [124, 221, 527, 772]];
    assert_eq!(of(32), by_leaf, "32 of a leaf");
}
