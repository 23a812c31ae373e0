//! A fabric that is warm allocates nothing, however many flows begin and end.

use sluice_fabric::{
    Fabric, FabricSettings, FlowSizes, FlowSpec, LetFlow, LinkSpeed, PathBalancer, Topology, Traffic,
};
use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

const FLOWS: usize = 4_000;

#[test]
fn flows_that_come_and_go_leave_no_allocation_behind() {
    let topology = Topology::fat_tree(4, LinkSpeed::default()).expect("k is even");
    let traffic = Traffic { sizes: FlowSizes::hadoop(), load: 0.7, flows: FLOWS as u64 };
    let flows: Vec<FlowSpec> = traffic.arrivals(&topology, 1, 0).expect("there is room for it").collect();
    let settings = FabricSettings {
        balancer: PathBalancer::LetFlow(LetFlow::new(Nanos(25_000))),
        pacer: Some(PacerSettings { training_gaps: 1_000, ..PacerSettings::new(Nanos(25_000)) }),
        ..FabricSettings::default()
    };
    let mut fabric = Fabric::new(&topology, &settings, 1, 0).expect("the settings make sense");
    fabric.run(flows.iter().copied(), |_| ()).expect("all flows end");
    let warm = fabric.now();
    // The same flows again, further apart, so that fewer are under way at a time.
    let again = flows.iter().map(|flow| FlowSpec { at: warm + flow.at.times(2), ..*flow });
    let mut ended = 0;
    let allocated = allocation_counter::measure(|| {
        fabric.run(again, |_| ended += 1).expect("all flows end");
    });
    assert_eq!((ended, allocated.count_total), (FLOWS, 0));
}
