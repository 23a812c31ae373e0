//! Parcels cross a fabric beside its flows.

use sluice_fabric::{
    Fabric, FabricSettings, FabricStep, FlowSpec, FrameSizes, HostId, Idle, LetFlow, LinkSpeed, Parcel,
    PathBalancer, Topology,
};
use sluice_wire::Nanos;

use crate::{fat_tree, hadoop, incast};

const BYTES: u32 = 150;

fn parcel(from: u32, to: u32, tag: u32) -> Parcel {
    Parcel { from: HostId(from), to: HostId(to), bytes: BYTES, tag }
}

/// The fates of parcels that leave at their times, among these flows, and the fabric's counts.
fn carried(
    topology: &Topology,
    settings: &FabricSettings,
    parcels: &[(u64, Parcel)],
    flows: Vec<FlowSpec>,
) -> (Vec<(Nanos, FabricStep)>, Fabric) {
    let mut fabric = Fabric::new(topology, settings, 1, 0).expect("the settings make sense");
    for (at, parcel) in parcels {
        fabric.carry(Nanos(*at), *parcel);
    }
    let (mut flows, mut became) = (flows.into_iter(), Vec::new());
    fabric.expect(flows.next()).expect("flows make sense");
    while let Some(step) = fabric.step().expect("nothing is stuck") {
        match step {
            FabricStep::Due(flow) => {
                fabric.expect(flows.next()).expect("flows make sense");
                fabric.begin(flow);
            }
            FabricStep::Came(_) | FabricStep::Lost(_) => became.push((fabric.now(), step)),
            FabricStep::Ended(_) | FabricStep::Other => {}
        }
    }
    (became, fabric)
}

#[test]
fn a_parcel_alone_takes_its_time_on_each_link() {
    for (to, hops) in [(1, 2), (2, 4), (15, 6)] {
        let (became, _) =
            carried(&fat_tree(4), &FabricSettings::default(), &[(700, parcel(0, to, 9))], Vec::new());
        let idle = Idle::new(&fat_tree(4), FrameSizes::default()).expect("all hosts reach each other");
        assert_eq!(idle.parcel_time(&parcel(0, to, 9)), Nanos(hops * 1_012));
        // 150 bytes take 12 ns at 100 Gb/s.
        let expected = (Nanos(700 + hops * 1_012), FabricStep::Came(parcel(0, to, 9)));
        assert_eq!(became, [expected]);
    }
}

#[test]
fn each_parcel_comes_or_is_lost_once_and_under_pfc_none_is_lost() {
    let topology = fat_tree(4);
    let parcels: Vec<_> = (0..3_000).map(|tag| (u64::from(tag) * 20, parcel(1 + tag % 15, 0, tag))).collect();
    let small = FabricSettings { buffer_bytes: 160_000, dcqcn: None, ..FabricSettings::default() };
    let tags = |settings: &FabricSettings, is_meant: fn(&FabricStep) -> bool| {
        let (became, fabric) = carried(&topology, settings, &parcels, incast(16, 200_000));
        let mut tags: Vec<u32> = became
            .iter()
            .filter(|(_, step)| is_meant(step))
            .map(|(_, step)| match step {
                FabricStep::Came(parcel) | FabricStep::Lost(parcel) => parcel.tag,
                other => unreachable!("{other:?}"),
            })
            .collect();
        tags.sort_unstable();
        (tags, fabric.counts().pauses)
    };
    let all: Vec<u32> = (0..3_000).collect();
    let (came, pauses) = tags(&small, |step| matches!(step, FabricStep::Came(_)));
    assert!(came == all && pauses > 0, "{} came, {pauses} pauses", came.len());
    let lossy = FabricSettings { pfc: None, ..small };
    let (either, _) = tags(&lossy, |_| true);
    assert_eq!(either, all);
    let (lost, _) = tags(&lossy, |step| matches!(step, FabricStep::Lost(_)));
    assert!(!lost.is_empty());
}

#[test]
fn parcels_of_one_pair_are_a_flow_to_the_switches_and_pause_as_flows_do() {
    let balancer = PathBalancer::LetFlow(LetFlow::new(Nanos(25_000)));
    let settings = FabricSettings { balancer, ..FabricSettings::default() };
    let parcels: Vec<_> = (0..10).map(|tag| (u64::from(tag) * 30_000, parcel(0, 15, tag))).collect();
    let (_, fabric) = carried(&fat_tree(4), &settings, &parcels, Vec::new());
    let counts = fabric.counts().flowlets;
    assert_eq!((counts.firsts, counts.expiries), (1, 9));
}

#[test]
fn links_without_a_limit_take_their_delay_alone() {
    let fast = LinkSpeed { gbps: f64::INFINITY, delay: Nanos(500) };
    let (topology, inner) = Topology::leaf_spine(1, 1, 3, fast, fast)
        .expect("it is one")
        .and_host(sluice_fabric::SwitchId(0), LinkSpeed { delay: Nanos(0), ..fast })
        .expect("it is a graph");
    let settings = FabricSettings { pfc: None, ..FabricSettings::default() };
    let parcels: Vec<_> = (0..20).map(|tag| (100, parcel(tag % 3, inner.0, tag))).collect();
    let (became, _) = carried(&topology, &settings, &parcels, Vec::new());
    assert_eq!(became.len(), 20);
    assert!(became.iter().all(|(at, _)| *at == Nanos(600)), "{became:?}");
}

#[test]
fn flows_do_not_notice_parcels_that_are_elsewhere() {
    let topology = fat_tree(4);
    let settings = FabricSettings::default();
    let flows: Vec<_> =
        hadoop(&topology, 500).into_iter().filter(|flow| flow.from.0 > 1 && flow.to.0 > 1).collect();
    let (_, without) = carried(&topology, &settings, &[], flows.clone());
    // Hosts 0 and 1 are on one switch.
    let parcels: Vec<_> = (0..200).map(|tag| (u64::from(tag) * 500, parcel(0, 1, tag))).collect();
    let (became, with) = carried(&topology, &settings, &parcels, flows);
    assert_eq!(became.len(), 200);
    assert_eq!(with.counts().hosts, without.counts().hosts);
    assert_eq!(with.counts().hops, without.counts().hops + 400);
}
