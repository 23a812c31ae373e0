//! The paths of frames, and the order in which frames arrive.

use sluice_fabric::{
    Drill, FabricEnd, FabricLink, FabricSettings, FlowSizes, FrameSizes, HostId, Idle, LetFlow, LinkSpeed,
    PathBalancer, Scope, SwitchId, Topology, Traffic,
};
use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

use crate::{fat_tree, flow, hadoop, run};

fn settings(balancer: PathBalancer) -> FabricSettings {
    FabricSettings { balancer, ..FabricSettings::default() }
}

fn letflow(threshold: u64, scope: Scope) -> PathBalancer {
    PathBalancer::LetFlow(LetFlow { scope, ..LetFlow::new(Nanos(threshold)) })
}

#[test]
fn ecmp_never_changes_the_order_of_a_flow() {
    let topology = fat_tree(4);
    let run = run(&topology, &settings(PathBalancer::Ecmp), hadoop(&topology, 3_000));
    assert_eq!((run.counts.hosts.early, run.counts.hosts.nacks), (0, 0));
}

#[test]
fn letflow_changes_it_only_if_flowlets_overtake_each_other() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 3_000);
    for scope in [Scope::WholePath, Scope::EachHop] {
        let patient = run(&topology, &settings(letflow(5_000_000, scope)), flows.clone());
        assert_eq!(patient.counts.hosts.early, 0, "{scope:?}");
        let hasty = run(&topology, &settings(letflow(90, scope)), flows.clone());
        assert!(hasty.counts.hosts.early > 0, "{scope:?}");
        assert!(hasty.counts.flowlets.expiries > patient.counts.flowlets.expiries, "{scope:?}");
        assert_eq!((patient.finished.len(), hasty.finished.len()), (3_000, 3_000));
    }
}

/// Two paths from host 0 to host 1: over switch 2, and over switch 3, which takes 20 µs longer.
fn uneven() -> Topology {
    let speed = |delay| LinkSpeed { delay: Nanos(delay), ..LinkSpeed::default() };
    let link = |a, b, delay| FabricLink { ends: [a, b], speed: speed(delay) };
    let (host, switch) = (|host| FabricEnd::Host(HostId(host)), |switch| FabricEnd::Switch(SwitchId(switch)));
    let to_hosts = (0..2).map(|at| link(host(at), switch(at), 1_000));
    let ways = [(0, 2, 1_000), (2, 1, 1_000), (0, 3, 11_000), (3, 1, 11_000)];
    let links = to_hosts.chain(ways.map(|(a, b, delay)| link(switch(a), switch(b), delay)));
    Topology::listed(2, 4, links.collect()).expect("it is a graph")
}

#[test]
fn letflow_keeps_a_flows_order_from_the_paths_difference_in_delay_on_and_not_below() {
    let early = |threshold: u64| {
        // After the gaps are learnt each frame is held, so that each begins a flowlet.
        let held =
            PacerSettings { training_gaps: 1_000, alpha: None, ..PacerSettings::new(Nanos(threshold)) };
        let settings = FabricSettings {
            dcqcn: None,
            pacer: Some(held),
            ..settings(letflow(threshold, Scope::WholePath))
        };
        let run = run(&uneven(), &settings, [flow(0, 0, 1, 1_500_000)]);
        assert!(run.counts.pacers.holds > 300, "{:?}", run.counts.pacers);
        run.counts.hosts.early
    };
    assert_eq!(early(20_200), 0);
    assert!(early(19_800) > 50);
}

#[test]
fn each_flow_that_has_a_choice_of_paths_begins_one_flowlet_and_each_expiry_another() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 1_000);
    // Hosts 2n and 2n + 1 are on one switch: frames between them have no choice of paths.
    let with_choice = flows.iter().filter(|flow| flow.from.0 / 2 != flow.to.0 / 2).count() as u64;
    let run = run(&topology, &settings(letflow(25_000, Scope::WholePath)), flows);
    let counts = run.counts.flowlets;
    assert!(counts.firsts <= with_choice && counts.firsts + counts.collisions >= with_choice, "{counts:?}");
    assert_eq!(counts.flowlets(), counts.firsts + counts.expiries);
}

#[test]
fn frames_alone_use_all_paths_evenly_when_sprayed_and_one_under_ecmp() {
    let topology = fat_tree(4);
    let shares = |balancer| {
        let settings = FabricSettings { dcqcn: None, ..settings(balancer) };
        let run = run(&topology, &settings, [flow(0, 0, 15, 4_000_000)]);
        // The ports of host 0's switch come right after the 16 hosts' ports: two lead down, two up.
        let up: Vec<u64> = run.fabric.ports().skip(18).take(2).map(|(.., counts)| counts.bytes).collect();
        up[0].min(up[1]) as f64 / (up[0] + up[1]) as f64
    };
    assert!(shares(PathBalancer::Ecmp) < 1e-9);
    assert!(shares(PathBalancer::Spray) > 0.45);
    assert!(shares(PathBalancer::Drill(Drill::default())) > 0.01);
}

#[test]
fn drill_keeps_queues_shorter_than_chance_does() {
    let topology = fat_tree(4);
    // Flows of one frame, whose order does not matter.
    let traffic = Traffic { sizes: FlowSizes::constant(1_000), load: 0.8, flows: 30_000 };
    let flows: Vec<_> = traffic.arrivals(&topology, 1, 0).expect("there is room for it").collect();
    let idle = Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other");
    let waited = |balancer| {
        let finished = run(&topology, &settings(balancer), flows.clone()).finished;
        finished.iter().map(|flow| (flow.took - idle.flow_time(&flow.flow)).0).sum::<u64>() as f64
            / flows.len() as f64
    };
    let [drill, spray] = [PathBalancer::Drill(Drill::default()), PathBalancer::Spray].map(waited);
    assert!(drill < 0.95 * spray, "{drill} ns and {spray} ns");
}
