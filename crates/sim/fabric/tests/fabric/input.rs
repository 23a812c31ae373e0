//! Settings that make no sense are refused, in one line that says which ones would.

use sluice_fabric::{
    AckSettings, Conga, Drill, Ecn, Fabric, FabricEnd, FabricError, FabricLink, FabricSettings, FlowSizes,
    FrameSizes, HostId, LetFlow, LinkSpeed, PathBalancer, Pfc, Recovery, Retransmission, SwitchId, Topology,
    Traffic, WindowSettings,
};
use sluice_host::pacer::{Alpha, GapShare, PacerSettings};
use sluice_wire::Nanos;

use crate::{fat_tree, flow};

fn assert_says(error: &FabricError, says: &str) {
    let line = error.to_string();
    assert!(line.contains(says) && !line.contains('\n'), "{line:?} does not say {says:?}");
}

#[test]
fn topologies_that_are_none_are_refused() {
    let speed = LinkSpeed::default();
    for k in [0, 3, 34] {
        let error = Topology::fat_tree(k, speed).expect_err("it is none");
        assert_says(&error, &format!("a fat-tree of {k}-port switches: give an even number from 2 to 32"));
    }
    let error = Topology::leaf_spine(2, 0, 2, speed, speed).expect_err("it is none");
    assert_says(&error, "spines of a leaf-spine: give at least 1");
    let slow = LinkSpeed { gbps: 0.0, ..speed };
    let error = Topology::leaf_spine(2, 1, 1, speed, slow).expect_err("it is none");
    assert_says(&error, "link 2 has rate 0 Gb/s");
    let link = |a, b| FabricLink { ends: [a, b], speed };
    let (host, switch) = (|host| FabricEnd::Host(HostId(host)), |switch| FabricEnd::Switch(SwitchId(switch)));
    let both = [link(host(0), switch(0)), link(host(1), switch(1))];
    for (hosts, switches, links, says) in [
        (1, 1, vec![link(host(0), switch(0))], "a fabric of 1 hosts: give at least 2"),
        (2, 1, both.to_vec(), "link 1 leads to switch 1"),
        (2, 2, vec![both[0]], "host 1 has 0 links"),
        (2, 2, vec![both[0], both[0], both[1]], "host 0 has 2 links"),
    ] {
        assert_says(&Topology::listed(hosts, switches, links).expect_err("it is none"), says);
    }
    let apart = Topology::listed(2, 2, both.to_vec()).expect("each host has its link");
    let error = Fabric::new(&apart, &FabricSettings::default(), 1, 0).expect_err("no path");
    assert_says(&error, "no path leads from switch");
}

fn assert_refused<const N: usize>(cases: [(FabricSettings, &str); N]) {
    for (settings, says) in cases {
        let error = Fabric::new(&fat_tree(4), &settings, 1, 0).expect_err(says);
        assert_says(&error, says);
    }
}

#[test]
fn buffers_marks_and_frames_that_make_no_sense_are_refused() {
    let given = FabricSettings::default();
    assert_refused([
        (FabricSettings { pfc: Some(Pfc { headroom: Some(27_000) }), ..given }, "loses frames under PFC"),
        (FabricSettings { buffer_bytes: 100_000, ..given }, "a buffer of 100000 bytes"),
        (FabricSettings { ecn: Ecn { k_min: 5, k_max: 4, p_max: 0.1 }, ..given }, "the bounds of ECN"),
        (FabricSettings { ecn: Ecn { p_max: 1.5, ..given.ecn }, ..given }, "the share of ECN is 1.5"),
        (FabricSettings { ingress_alpha: 0.0, ..given }, "the ingress alpha is 0"),
        (
            FabricSettings { frames: FrameSizes { payload: 0, ..given.frames }, ..given },
            "the payload of a frame is 0 bytes",
        ),
    ]);
}

#[test]
fn load_balancers_that_make_no_sense_are_refused() {
    let given = FabricSettings::default();
    let letflow = LetFlow::new(Nanos(25_000));
    assert_refused([
        (
            FabricSettings {
                balancer: PathBalancer::LetFlow(LetFlow { threshold: Nanos(84), ..letflow }),
                ..given
            },
            "the flowlet threshold is 84 ns: give more than a frame of 1048 bytes takes, 84 ns",
        ),
        (
            FabricSettings {
                balancer: PathBalancer::LetFlow(LetFlow { entries: 1_000, ..letflow }),
                ..given
            },
            "the entries of a flowlet table is 1000",
        ),
        (
            FabricSettings { balancer: PathBalancer::Drill(Drill { samples: 0 }), ..given },
            "the samples of DRILL",
        ),
        (
            FabricSettings {
                balancer: PathBalancer::Conga(Conga { bits: 0, ..Conga::new(Nanos(100_000)) }),
                ..given
            },
            "the bits of CONGA's levels is 0: give 1 to 8",
        ),
    ]);
}

#[test]
fn hosts_that_make_no_sense_are_refused() {
    let given = FabricSettings::default();
    let pacer = PacerSettings::new(Nanos(25_000));
    let dcqcn = given.dcqcn.expect("it is on");
    assert_refused([
        (
            FabricSettings { pacer: Some(PacerSettings { threshold: Nanos(80), ..pacer }), ..given },
            "no longer than a packet",
        ),
        (
            FabricSettings { pacer: Some(PacerSettings { training_gaps: 10, ..pacer }), ..given },
            "training on 10 gaps",
        ),
        (
            FabricSettings {
                pacer: Some(PacerSettings { alpha: Some(Alpha { short: 9, long: 8 }), ..pacer }),
                ..given
            },
            "alpha's bounds 9 and 8",
        ),
        (
            FabricSettings { dcqcn: Some(sluice_fabric::DcqcnSettings { gain: 1.0, ..dcqcn }), ..given },
            "the gain of DCQCN is 1",
        ),
        (
            FabricSettings {
                pacer: Some(PacerSettings { percentile: GapShare::of_hundredths(9_950), ..pacer }),
                ..given
            },
            "percentile 99.5 of the gaps: give one from 97.5 to 99",
        ),
        (
            FabricSettings { window: Some(WindowSettings::default()), ..given },
            "who decides how fast hosts send is DCQCN and windows: give one of them",
        ),
        (
            FabricSettings { dcqcn: None, window: Some(WindowSettings { first: 11, most: 10 }), ..given },
            "the first window is 11: give 1 to the largest, 10",
        ),
        (
            FabricSettings {
                recovery: Recovery {
                    repeat: Retransmission::Selective { under_way: 2_000 },
                    ..given.recovery
                },
                ..given
            },
            "the frames under way is 2000: give 1 to 1024",
        ),
        (
            FabricSettings { answers: AckSettings { every: 0, ..given.answers }, ..given },
            "the frames that are answered together is 0",
        ),
        (
            FabricSettings { answers: AckSettings { every: 2, after: Nanos(0) }, ..given },
            "the time to an answer is 0 ns",
        ),
    ]);
}

#[test]
fn flows_that_cannot_be_are_refused() {
    let topology = fat_tree(4);
    for (flow, says) in [
        (flow(0, 3, 3, 1), "the ends of a flow is 3 to 3"),
        (flow(0, 3, 16, 1), "two different hosts of 0 to 15"),
        (flow(0, 3, 4, u64::MAX), "the size of a flow"),
    ] {
        let mut fabric =
            Fabric::new(&topology, &FabricSettings::default(), 1, 0).expect("the settings make sense");
        assert_says(&fabric.run([flow], |_| ()).expect_err(says), says);
    }
}

#[test]
fn more_load_than_links_between_switches_carry_is_refused() {
    let traffic = |load| Traffic { sizes: FlowSizes::storage(), load, flows: 1 };
    assert_says(&traffic(0.0).arrivals(&fat_tree(4), 1, 0).expect_err("no load"), "the load is 0");
    assert_says(&traffic(1.1).arrivals(&fat_tree(4), 1, 0).expect_err("too much"), "the load is 1.1");
    assert!(traffic(1.0).arrivals(&fat_tree(4), 1, 0).is_ok(), "a fat-tree carries all that its hosts send");
    // 16 hosts share 8 links up: 112 of the 127 others are behind them.
    let speed = LinkSpeed::default();
    let oversubscribed = Topology::leaf_spine(8, 8, 16, speed, speed).expect("it is one");
    assert!(traffic(0.5).arrivals(&oversubscribed, 1, 0).is_ok());
    let error = traffic(0.6).arrivals(&oversubscribed, 1, 0).expect_err("too much");
    assert_says(&error, "load 0.6 takes 1.06 of a link between switches: give at most 0.57");
}
