//! DCQCN shares a link.

use sluice_fabric::{FabricEnd, FabricLink, FabricSettings, HostId, LinkSpeed, SwitchId, Topology};

use crate::{flow, run};

/// Hosts on two switches, with one link between the switches.
fn dumbbell(each_side: u32) -> Topology {
    let speed = LinkSpeed::default();
    let host = |host| FabricLink {
        ends: [FabricEnd::Host(HostId(host)), FabricEnd::Switch(SwitchId(host / each_side))],
        speed,
    };
    let between =
        FabricLink { ends: [FabricEnd::Switch(SwitchId(0)), FabricEnd::Switch(SwitchId(1))], speed };
    let links = (0..2 * each_side).map(host).chain([between]).collect();
    Topology::listed(2 * each_side, 2, links).expect("it is a graph")
}

#[test]
fn flows_over_one_link_get_like_shares_of_all_of_it() {
    let (flows, bytes) = (4, 25_000_000);
    let topology = dumbbell(flows);
    let specs = (0..flows).map(|from| flow(u64::from(from) * 50_000, from, from + flows, bytes));
    let run = run(&topology, &FabricSettings::default(), specs);
    let rates: Vec<f64> = run.finished.iter().map(|flow| bytes as f64 / flow.took.0 as f64).collect();
    let (sum, squares) =
        rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    let fairness = sum * sum / (squares * rates.len() as f64);
    assert!(fairness > 0.95, "Jain's index is {fairness}: {rates:?}");
    assert!(run.counts.hosts.cnps > 0 && run.counts.lost == 0);
    // 100 MB with their headers take 8.4 ms of the link.
    let last = run.finished.iter().map(|flow| (flow.flow.at + flow.took).0).max().expect("they ended");
    assert!(last < 11_000_000, "the link was idle: {last} ns");
}

#[test]
fn congestion_keeps_queues_from_pausing_anybody() {
    let topology = dumbbell(2);
    let specs = [flow(0, 0, 2, 10_000_000), flow(0, 1, 3, 10_000_000)];
    let with = run(&topology, &FabricSettings::default(), specs);
    let without = run(&topology, &FabricSettings { dcqcn: None, ..FabricSettings::default() }, specs);
    assert!(with.counts.marked > 0);
    assert!(with.counts.paused_for < without.counts.paused_for, "{:?} {:?}", with.counts, without.counts);
}
