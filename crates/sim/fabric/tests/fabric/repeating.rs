//! Selective repeat sends missing frames again, and no others.

use sluice_fabric::{FabricSettings, LetFlow, PathBalancer, Recovery, Retransmission};
use sluice_wire::Nanos;

use crate::{fat_tree, flow, hadoop, run};

fn repeat(repeat: Retransmission, given: &FabricSettings) -> FabricSettings {
    FabricSettings { recovery: Recovery { repeat, ..given.recovery }, ..*given }
}

const SELECTIVE: Retransmission = Retransmission::Selective { under_way: 256 };

#[test]
fn a_flow_whose_frames_overtake_each_other_sends_fewer_again_than_by_going_back() {
    let topology = fat_tree(4);
    let hasty = LetFlow::new(Nanos(90));
    let given = FabricSettings { balancer: PathBalancer::LetFlow(hasty), ..FabricSettings::default() };
    let flows = hadoop(&topology, 2_000);
    let [back, selective] =
        [Retransmission::GoBackN, SELECTIVE].map(|of| run(&topology, &repeat(of, &given), flows.clone()));
    assert_eq!((back.finished.len(), selective.finished.len()), (2_000, 2_000));
    let (back, selective) = (back.counts.hosts, selective.counts.hosts);
    assert!(selective.early > 0 && selective.again < back.again / 2, "{selective:?} and {back:?}");
}

#[test]
fn what_was_lost_arrives_and_a_flow_never_has_more_under_way_than_it_may() {
    let topology = fat_tree(4);
    let lossy = FabricSettings { buffer_bytes: 150_000, pfc: None, ..FabricSettings::default() };
    let flows = hadoop(&topology, 2_000);
    let lost = run(&topology, &repeat(SELECTIVE, &lossy), flows.clone());
    assert!(lost.counts.lost > 0);
    assert_eq!(lost.finished.len(), flows.len());
    let one = |under_way| {
        let settings = FabricSettings { dcqcn: None, ..FabricSettings::default() };
        let settings = repeat(Retransmission::Selective { under_way }, &settings);
        run(&topology, &settings, [flow(0, 0, 15, 1_000_000)]).finished[0].took.0
    };
    // A round trip of six links takes 12.5 µs; with ten frames under way the flow needs 100 of them.
    let (few, many) = (one(10), one(200));
    assert!((1_200_000..1_300_000).contains(&few), "{few} ns");
    assert!(many < 100_000, "{many} ns");
}

#[test]
fn frames_in_their_order_make_no_difference() {
    let topology = fat_tree(4);
    let given = FabricSettings::default();
    let flows = hadoop(&topology, 500);
    let back = run(&topology, &given, flows.clone());
    let selective = run(&topology, &repeat(Retransmission::Selective { under_way: 1_024 }, &given), flows);
    assert_eq!(selective.counts.hosts.again, 0);
    let sums = [back, selective].map(|run| run.finished.iter().map(|flow| flow.took.0).sum::<u64>() as f64);
    assert!((sums[0] / sums[1] - 1.0).abs() < 0.1, "{sums:?}");
}
