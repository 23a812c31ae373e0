//! Flows arrive whole, in the time that theory gives.

use std::thread;

use sluice_fabric::{FabricSettings, FrameSizes, Idle, LinkSpeed, Pfc, PortId, Topology};
use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

use crate::{fat_tree, flow, hadoop, run};

#[test]
fn a_flow_alone_takes_what_the_closed_form_says() {
    let speed = |gbps, delay| LinkSpeed { gbps, delay: Nanos(delay) };
    let unlike = Topology::leaf_spine(2, 2, 2, speed(25.0, 700), speed(100.0, 1_300)).expect("it is one");
    let faster = Topology::leaf_spine(2, 2, 2, speed(400.0, 700), speed(100.0, 1_300)).expect("it is one");
    let settings = FabricSettings { dcqcn: None, ..FabricSettings::default() };
    for (topology, to) in [(fat_tree(4), [1, 2, 15]), (unlike, [1, 2, 3]), (faster, [1, 2, 3])] {
        let idle = Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other");
        for to in to {
            for bytes in [0, 1, 1_000, 1_001, 1_999, 2_000, 37_123, 150_000] {
                let flow = flow(5, 0, to, bytes);
                let took = run(&topology, &settings, [flow]).finished[0].took;
                let expected = idle.flow_time(&flow);
                // Each arrival is rounded up to a nanosecond.
                let rounding = 2 * idle.hops(&flow) as u64;
                assert!(
                    took.0.abs_diff(expected.0) <= rounding,
                    "{bytes} to {to}: {took:?} and not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn dcqcn_leaves_a_flow_alone_its_link() {
    let (topology, flow) = (fat_tree(4), flow(0, 0, 15, 5_000_000));
    let idle =
        Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other").flow_time(&flow);
    let took = run(&topology, &FabricSettings::default(), [flow]).finished[0].took;
    assert!(took.0.abs_diff(idle.0) <= 12, "{took:?} and not {idle:?}");
}

#[test]
fn each_byte_that_leaves_a_port_comes_to_the_other_end_and_is_passed_on_or_lost_there() {
    let topology = fat_tree(4);
    let small = FabricSettings { buffer_bytes: 150_000, pfc: None, ..FabricSettings::default() };
    let flows = hadoop(&topology, 2_000);
    let run = run(&topology, &small, flows.clone());
    assert!(run.counts.lost > 0, "so that losses are counted, too");
    let ports: Vec<_> = run.fabric.ports().collect();
    for (port, peer, counts) in &ports {
        assert_eq!(counts.bytes, ports[peer.index()].2.bytes_in, "{port:?} to {peer:?}");
    }
    // Each of the 20 switches has four ports, after those of the 16 hosts.
    for switch in ports[16..].chunks(4) {
        let sum = |of: fn(&sluice_fabric::PortCounts) -> u64| {
            switch.iter().map(|(.., counts)| of(counts)).sum::<u64>()
        };
        let (came, lost, left) =
            (sum(|port| port.bytes_in), sum(|port| port.bytes_lost), sum(|port| port.bytes));
        assert_eq!(came, lost + left, "{:?}", switch[0].0);
    }
    assert_eq!(run.finished.len(), flows.len(), "go-back-N brings what was lost");
}

#[test]
fn under_pfc_each_byte_that_leaves_a_port_comes_to_the_other_end() {
    let topology = fat_tree(4);
    let tight = FabricSettings { buffer_bytes: 400_000, ..FabricSettings::default() };
    let run = run(&topology, &tight, hadoop(&topology, 2_000));
    let ports: Vec<_> = run.fabric.ports().collect();
    for (port, peer, counts) in &ports {
        assert_eq!(counts.bytes, ports[peer.index()].2.bytes_in, "{port:?} to {peer:?}");
    }
    let paused: u64 = ports.iter().map(|(.., counts)| counts.paused).sum();
    assert!(run.counts.pauses > 0 && paused == run.counts.pauses, "each pause comes to somebody who sends");
    assert_eq!(ports[0].0, PortId(0));
}

#[test]
fn one_seed_gives_one_run_on_any_thread() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 1_000);
    let once = || {
        let run = run(&topology, &FabricSettings::default(), flows.clone());
        (run.finished, run.counts)
    };
    let here = once();
    let there = thread::scope(|scope| {
        let threads = [scope.spawn(once), scope.spawn(once)];
        threads.map(|thread| thread.join().expect("it does not panic"))
    });
    assert!(there.iter().all(|other| *other == here));
}

#[test]
fn a_pacer_that_holds_nothing_changes_nothing() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 1_000);
    let without = run(&topology, &FabricSettings::default(), flows.clone());
    let learning = PacerSettings { training_gaps: 10_000_000, ..PacerSettings::new(Nanos(25_000)) };
    let with = run(&topology, &FabricSettings { pacer: Some(learning), ..FabricSettings::default() }, flows);
    assert_eq!(with.finished, without.finished);
    assert_eq!((with.counts.hops, with.counts.hosts), (without.counts.hops, without.counts.hosts));
    assert!(with.counts.pacers.gaps > 0 && with.counts.pacers.holds == 0 && with.counts.gaps_to_learn > 0);
}

#[test]
fn a_pacer_holds_packets_and_every_flow_still_ends() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 3_000);
    let pacer = PacerSettings { training_gaps: 1_000, ..PacerSettings::new(Nanos(25_000)) };
    let run = run(&topology, &FabricSettings { pacer: Some(pacer), ..FabricSettings::default() }, flows);
    let counts = run.counts.pacers;
    assert!(counts.holds > 0 && counts.held > Nanos(0), "{counts:?}");
    assert!(counts.held.0 <= counts.holds * 25_000, "none is held past the threshold");
    assert_eq!(run.finished.len(), 3_000);
}

#[test]
fn a_pfc_that_has_room_for_everything_changes_nothing() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 500);
    let roomy = FabricSettings { buffer_bytes: 1_000_000_000, ..FabricSettings::default() };
    let with = run(&topology, &FabricSettings { pfc: Some(Pfc::default()), ..roomy }, flows.clone());
    let without = run(&topology, &FabricSettings { pfc: None, ..roomy }, flows);
    assert_eq!(with.finished, without.finished);
}
