//! Tests of a fabric with all kinds of traffic.

mod balancing;
mod conga;
mod deadlock;
mod delivery;
mod golden;
mod input;
mod parcels;
mod pausing;
mod repeating;
mod sharing;
mod theory;
mod topologies;
mod windows;

use sluice_fabric::{
    Fabric, FabricCounts, FabricSettings, FinishedFlow, FlowSizes, FlowSpec, HostId, LinkSpeed, Topology,
    Traffic,
};
use sluice_wire::Nanos;

/// The result of a run.
struct Run {
    finished: Vec<FinishedFlow>,
    counts: FabricCounts,
    fabric: Fabric,
}

fn run(topology: &Topology, settings: &FabricSettings, flows: impl IntoIterator<Item = FlowSpec>) -> Run {
    let mut fabric = Fabric::new(topology, settings, 1, 0).expect("the settings make sense");
    let mut finished = Vec::new();
    fabric.run(flows, |flow| finished.push(flow)).expect("all flows end");
    Run { finished, counts: fabric.counts(), fabric }
}

fn fat_tree(k: u32) -> Topology {
    Topology::fat_tree(k, LinkSpeed::default()).expect("k is even")
}

/// So many flows of Meta's Hadoop sizes at 70 % load.
fn hadoop(topology: &Topology, flows: u64) -> Vec<FlowSpec> {
    let traffic = Traffic { sizes: FlowSizes::hadoop(), load: 0.7, flows };
    traffic.arrivals(topology, 1, 0).expect("there is room for it").collect()
}

/// A flow from each other host to the first host, at once.
fn incast(hosts: u32, bytes: u64) -> Vec<FlowSpec> {
    (1..hosts).map(|from| flow(0, from, 0, bytes)).collect()
}

fn flow(at: u64, from: u32, to: u32, bytes: u64) -> FlowSpec {
    FlowSpec { at: Nanos(at), from: HostId(from), to: HostId(to), bytes }
}
