//! Each shape has the nodes and paths that its name says.

use sluice_fabric::{
    FabricEnd, FabricLink, FabricSettings, FrameSizes, HostId, Idle, LinkSpeed, SwitchId, Topology,
};
use sluice_wire::Nanos;

use crate::{fat_tree, flow, run};

#[test]
fn a_fat_tree_has_a_quarter_of_k_cubed_hosts_two_four_or_six_links_apart() {
    for k in [2, 4, 6, 8] {
        let (topology, half) = (fat_tree(k), k / 2);
        assert_eq!(topology.hosts, k * half * half);
        assert_eq!(topology.switches, 2 * k * half + half * half);
        assert_eq!(topology.links.len() as u32, 3 * k * half * half);
        let idle = Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other");
        for to in 1..topology.hosts {
            let expected = match to {
                to if to < half => 2,
                to if to < half * half => 4,
                _ => 6,
            };
            assert_eq!(idle.hops(&flow(0, 0, to, 1)), expected, "k = {k}, to {to}");
        }
    }
}

#[test]
fn everybody_reaches_everybody() {
    let speed = LinkSpeed::default();
    let leaf_spine = Topology::leaf_spine(3, 2, 4, speed, speed).expect("it is one");
    for topology in [fat_tree(6), leaf_spine] {
        let hosts = topology.hosts;
        let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
        let flows: Vec<_> =
            pairs.filter(|(from, to)| from != to).map(|(from, to)| flow(0, from, to, 100)).collect();
        let run = run(&topology, &FabricSettings::default(), flows.iter().copied());
        assert_eq!(run.finished.len(), flows.len());
    }
}

#[test]
fn more_kinds_of_links_than_the_engine_keeps_apart_are_as_exact() {
    let speed =
        |host: u32| LinkSpeed { gbps: f64::from(10 + host), delay: Nanos(u64::from(500 + 37 * host)) };
    let ends = |host| [FabricEnd::Host(HostId(host)), FabricEnd::Switch(SwitchId(0))];
    let links = (0..60).map(|host| FabricLink { ends: ends(host), speed: speed(host) }).collect();
    let topology = Topology::listed(60, 1, links).expect("it is a graph");
    let idle = Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other");
    let settings = FabricSettings { dcqcn: None, ..FabricSettings::default() };
    // The flows begin one after the other, each alone in the fabric.
    let flows: Vec<_> =
        (0..60).map(|from| flow(u64::from(from) * 1_000_000, from, (from + 7) % 60, 20_500)).collect();
    for finished in run(&topology, &settings, flows).finished {
        let expected = idle.flow_time(&finished.flow);
        assert!(finished.took.0.abs_diff(expected.0) <= 4, "{finished:?} and not {expected:?}");
    }
}
