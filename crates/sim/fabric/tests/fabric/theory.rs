//! Queues are as long as theory predicts.

use sluice_events::dice::Dice;
use sluice_fabric::{
    Ecn, FabricEnd, FabricLink, FabricSettings, FlowSpec, FrameSizes, HostId, Idle, LinkSpeed, SwitchId,
    Topology,
};
use sluice_wire::Nanos;

use crate::run;

const SENDERS: u32 = 32;
const FRAMES: u64 = 40_000;
const REPLICATIONS: u32 = 10;
/// Student's t for nine degrees of freedom at 95 %.
const STUDENT: f64 = 2.262;

/// All times are whole nanoseconds: a frame takes 10 ns at its sender and 80 ns at the receiver's port.
const FRAME_NS: f64 = 80.0;
const SIZES: FrameSizes = FrameSizes { payload: 952, header: 48, answer: 100, pause: 64 };

fn star() -> Topology {
    let speed = |host| LinkSpeed { gbps: if host == 0 { 100.0 } else { 800.0 }, delay: Nanos(1_000) };
    let link = |host| FabricLink {
        ends: [FabricEnd::Host(HostId(host)), FabricEnd::Switch(SwitchId(0))],
        speed: speed(host),
    };
    Topology::listed(SENDERS + 1, 1, (0..=SENDERS).map(link).collect()).expect("it is a graph")
}

/// Single frames to the first host, which together take this share of its link.
fn frames(load: f64, replication: u32) -> impl Iterator<Item = FlowSpec> {
    let mut dice = Dice::named(7, "frames", replication);
    let mut at = 0.0;
    (0..FRAMES).map(move |_| {
        at += dice.exponential() * FRAME_NS / load;
        let from = HostId(1 + dice.below(SENDERS.into()) as u32);
        FlowSpec { at: Nanos(at as u64), from, to: HostId(0), bytes: SIZES.payload.into() }
    })
}

#[test]
fn frames_that_come_by_chance_wait_as_in_m_d_1() {
    let topology = star();
    let idle = Idle::new(&topology, SIZES).expect("all hosts reach each other");
    let settings = FabricSettings {
        frames: SIZES,
        pfc: None,
        dcqcn: None,
        ecn: Ecn { k_min: u64::MAX, k_max: u64::MAX, p_max: 0.0 },
        ..FabricSettings::default()
    };
    for load in [0.5, 0.8] {
        let mean_wait = |replication| {
            let run = run(&topology, &settings, frames(load, replication));
            let wait = |flow: &sluice_fabric::FinishedFlow| flow.took.0 - idle.flow_time(&flow.flow).0;
            run.finished.iter().map(wait).sum::<u64>() as f64 / FRAMES as f64
        };
        let waits: Vec<f64> = (0..REPLICATIONS).map(mean_wait).collect();
        let count = f64::from(REPLICATIONS);
        let mean = waits.iter().sum::<f64>() / count;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let half = STUDENT * (variance / count).sqrt();
        let expected = load * FRAME_NS / (2.0 * (1.0 - load));
        assert!((mean - expected).abs() < half, "load {load}: {mean} ± {half}, and not {expected}");
        assert!(half < 0.05 * expected, "the interval says too little: {half}");
    }
}
