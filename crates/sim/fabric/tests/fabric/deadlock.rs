//! A run reports paths that wait for each other in a circle.

use sluice_fabric::{
    Fabric, FabricEnd, FabricError, FabricLink, FabricSettings, HostId, LinkSpeed, SwitchId, Topology,
};

use crate::flow;

#[test]
fn a_ring_whose_paths_wait_for_each_other_is_stuck_and_says_so() {
    let speed = LinkSpeed::default();
    let host =
        |host| FabricLink { ends: [FabricEnd::Host(HostId(host)), FabricEnd::Switch(SwitchId(host))], speed };
    let next = |switch| FabricLink {
        ends: [FabricEnd::Switch(SwitchId(switch)), FabricEnd::Switch(SwitchId((switch + 1) % 5))],
        speed,
    };
    let topology =
        Topology::listed(5, 5, (0..5).map(host).chain((0..5).map(next)).collect()).expect("it is a graph");
    let settings = FabricSettings { buffer_bytes: 120_000, dcqcn: None, ..FabricSettings::default() };
    let mut fabric = Fabric::new(&topology, &settings, 1, 0).expect("the settings make sense");
    // Each flow goes two switches on, so that each link between switches carries two flows.
    let flows = (0..5).map(|from| flow(0, from, (from + 2) % 5, 50_000_000));
    let error = fabric.run(flows, |_| ()).expect_err("it cannot end");
    assert!(matches!(error, FabricError::Stuck { flows: 1..=5, .. }), "{error}");
    let line = error.to_string();
    assert!(line.contains("PFC deadlock") && !line.contains('\n'), "{line}");
}
