//! CONGA avoids congested paths, and keeps each flow's frames in order.

use sluice_fabric::{
    Conga, FabricEnd, FabricLink, FabricSettings, HostId, LinkSpeed, PathBalancer, SwitchId, Topology,
};
use sluice_wire::Nanos;

use crate::{fat_tree, flow, hadoop, run};

fn conga(threshold: u64) -> FabricSettings {
    FabricSettings {
        balancer: PathBalancer::Conga(Conga::new(Nanos(threshold))),
        ..FabricSettings::default()
    }
}

/// Two leaves with four hosts each; the link from the first leaf to the second spine is a tenth as fast.
fn uneven() -> Topology {
    let link = |a, b, gbps| FabricLink { ends: [a, b], speed: LinkSpeed { gbps, ..LinkSpeed::default() } };
    let (host, switch) = (|host| FabricEnd::Host(HostId(host)), |switch| FabricEnd::Switch(SwitchId(switch)));
    let to_hosts = (0..8).map(|at| link(host(at), switch(at / 4), 100.0));
    let up = [(0, 2, 100.0), (0, 3, 10.0), (1, 2, 100.0), (1, 3, 100.0)];
    let links = to_hosts.chain(up.map(|(leaf, spine, gbps)| link(switch(leaf), switch(spine), gbps)));
    Topology::listed(8, 4, links.collect()).expect("it is one")
}

#[test]
fn flowlets_go_round_a_slow_link_that_a_hash_of_the_flow_does_not_see() {
    let topology = uneven();
    let flows: Vec<_> =
        (0..400).map(|at| flow(at * 20_000, at as u32 % 4, 4 + at as u32 % 4, 60_000)).collect();
    let slow_share = |settings| {
        let run = run(&topology, &settings, flows.clone());
        // The first leaf's ports come right after the 8 hosts' ports: four lead down, two up.
        let up: Vec<u64> = run.fabric.ports().skip(12).take(2).map(|(.., counts)| counts.bytes).collect();
        up[1] as f64 / (up[0] + up[1]) as f64
    };
    let ecmp = slow_share(FabricSettings::default());
    let least = slow_share(conga(50_000));
    assert!(ecmp > 0.4 && least < 0.25 * ecmp, "{ecmp} of the bytes by ECMP, {least} by CONGA");
}

#[test]
fn flowlets_that_nobody_overtakes_keep_their_order_and_all_paths_of_a_fat_tree_are_used() {
    let topology = fat_tree(4);
    let run = run(&topology, &conga(5_000_000), hadoop(&topology, 2_000));
    assert_eq!((run.counts.hosts.early, run.finished.len()), (0, 2_000));
    let core: Vec<u64> = run.fabric.ports().skip(16 + 64).map(|(.., counts)| counts.bytes).collect();
    assert!(core.len() == 16 && core.iter().all(|bytes| *bytes > 0), "{core:?}");
}
