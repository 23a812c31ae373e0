//! Hosts with windows like TCP's fill a link, share it, and pause.

use sluice_fabric::{
    AckSettings, Connections, FabricSettings, FrameSizes, Idle, Recovery, Retransmission, WindowSettings,
};
use sluice_wire::Nanos;

use crate::{fat_tree, flow, hadoop, run};

/// Settings like TCP's: windows, selective repeat, one answer for 64 KiB (Linux' GRO), and no PFC.
fn tcp() -> FabricSettings {
    let given = FabricSettings::default();
    FabricSettings {
        dcqcn: None,
        window: Some(WindowSettings::default()),
        answers: AckSettings { every: 64, ..AckSettings::default() },
        pfc: None,
        recovery: Recovery { repeat: Retransmission::Selective { under_way: 1_024 }, ..given.recovery },
        ..given
    }
}

#[test]
fn a_window_grows_until_a_flow_alone_has_its_link() {
    let (topology, flow) = (fat_tree(4), flow(0, 0, 15, 20_000_000));
    let idle =
        Idle::new(&topology, FrameSizes::default()).expect("all hosts reach each other").flow_time(&flow);
    let run = run(&topology, &tcp(), [flow]);
    let slower = run.finished[0].took.0 as f64 / idle.0 as f64;
    assert!((1.0..1.1).contains(&slower), "{slower}");
    assert_eq!(run.counts.hosts.timeouts, 0);
}

#[test]
fn flows_with_windows_pause_where_rates_do_not() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 2_000);
    let paused = |settings: &FabricSettings| {
        let run = run(&topology, settings, flows.clone());
        assert_eq!(run.finished.len(), flows.len());
        run.fabric.gaps().share_from(Nanos(12_500))
    };
    let (windows, rates) = (paused(&tcp()), paused(&FabricSettings::default()));
    assert!(windows > 2.0 * rates, "{windows} and {rates} of the gaps are a round trip or more");
}

#[test]
fn fewer_answers_leave_hosts_and_every_flow_still_ends() {
    let topology = fat_tree(4);
    let flows = hadoop(&topology, 1_000);
    let every = |every| {
        let answers = AckSettings { every, ..AckSettings::default() };
        let run = run(&topology, &FabricSettings { answers, ..FabricSettings::default() }, flows.clone());
        assert_eq!((run.finished.len(), run.counts.hosts.timeouts), (flows.len(), 0));
        run.counts.hops
    };
    assert!((every(4) as f64) < 0.7 * every(1) as f64);
}

#[test]
fn pauses_between_flows_count_where_they_share_a_connection() {
    let topology = fat_tree(4);
    let flows: Vec<_> = (0..50).map(|at| flow(at * 100_000, 0, 15, 5_000)).collect();
    let gaps = |connections| {
        let settings = FabricSettings { connections, ..FabricSettings::default() };
        let run = run(&topology, &settings, flows.clone());
        (run.fabric.gaps().count(), run.fabric.gaps().share_from(Nanos(90_000)))
    };
    assert_eq!(gaps(Connections::EachFlow), (200, 0.0));
    let (count, long) = gaps(Connections::EachPair);
    assert!(count == 249 && (long - 49.0 / 249.0).abs() < 1e-9, "{long} of {count}");
}
