//! No frame is lost under PFC, and some are lost without it.

use sluice_fabric::{FabricSettings, LinkSpeed, Pfc};

use crate::{fat_tree, incast, run};

#[test]
fn nothing_is_lost_under_pfc_with_its_headroom_and_something_is_without() {
    let topology = fat_tree(4);
    // Hosts send as fast as they can, so that only pauses prevent losses.
    let greedy = FabricSettings { buffer_bytes: 300_000, dcqcn: None, ..FabricSettings::default() };
    let with = run(&topology, &greedy, incast(16, 400_000));
    let least = Pfc::least(LinkSpeed::default(), &greedy.frames);
    assert_eq!(with.counts.lost, 0);
    assert!(with.counts.pauses > 0);
    assert!((1..=least).contains(&with.counts.headroom_peak), "{} of {least}", with.counts.headroom_peak);
    let without = run(&topology, &FabricSettings { pfc: None, ..greedy }, incast(16, 400_000));
    assert!(without.counts.lost > 0);
    assert_eq!((with.finished.len(), without.finished.len()), (15, 15));
}

#[test]
fn all_headroom_may_be_needed() {
    let topology = fat_tree(4);
    let greedy = FabricSettings { buffer_bytes: 160_000, dcqcn: None, ..FabricSettings::default() };
    let run = run(&topology, &greedy, incast(16, 400_000));
    let least = Pfc::least(LinkSpeed::default(), &greedy.frames);
    // At most one frame of headroom stays unused, since only whole frames arrived.
    assert!(run.counts.headroom_peak + 2 * 1_048 > least, "{} of {least}", run.counts.headroom_peak);
    assert_eq!(run.counts.lost, 0);
}
