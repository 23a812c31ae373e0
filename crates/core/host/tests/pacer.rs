//! The pacer holds the packets that HF²T names, no longer than HF²T says, and no packet of another flow.

use proptest::prelude::*;
use sluice_host::pacer::{Alpha, GapShare, PacedFlow, Pacer, PacerError, PacerSettings};
use sluice_wire::Nanos;

const THRESHOLD: Nanos = Nanos(25_000);
const PACKET: Nanos = Nanos(84);
const TRAINING: u32 = 1_000;
/// T in these tests: the 990th of 1,000 gaps.
const TAIL: Nanos = Nanos(990);

fn settings() -> PacerSettings {
    PacerSettings { training_gaps: TRAINING, ..PacerSettings::new(THRESHOLD) }
}

/// A host that has learnt gaps of 1 to 1,000 ns, and the time at which it knew them.
fn trained(settings: PacerSettings) -> (Pacer, Nanos) {
    let mut pacer = Pacer::new(settings, PACKET).expect("the settings make sense");
    let (mut flow, mut now) = (PacedFlow::default(), Nanos(0));
    for gap in 0..=u64::from(TRAINING) {
        now = now + Nanos(gap);
        assert_eq!(pacer.ready(&mut flow, now), now, "none is held before T is known");
        pacer.left(&mut flow, now);
    }
    assert_eq!(pacer.tail(), Some(TAIL));
    (pacer, now)
}

/// Sends `packets` packets of a flow, `PACKET` apart.
fn send(pacer: &mut Pacer, flow: &mut PacedFlow, from: Nanos, packets: u32) -> Nanos {
    let mut now = from;
    for _ in 0..packets {
        now = now + PACKET;
        pacer.left(flow, now);
    }
    now
}

#[test]
fn alpha_is_the_papers_at_each_bound_and_beyond() {
    let expected = [(1, 20.0), (20, 1.0), (21, 1.0), (79, 1.0), (80, 1.0), (160, 0.5)];
    for (packets, alpha) in expected {
        let factor = Alpha::default().factor(packets).get();
        assert!((factor - alpha).abs() < 1e-12, "{factor} for {packets} packets, and not {alpha}");
    }
}

#[test]
fn a_gap_is_held_from_t_times_alpha_on_and_no_sooner() {
    let (trained, start) = trained(settings());
    for (packets, least) in
        [(1, 20 * TAIL.0), (10, 2 * TAIL.0), (20, TAIL.0), (50, TAIL.0), (80, TAIL.0), (160, TAIL.0 / 2)]
    {
        let mut flow = PacedFlow::default();
        let mut pacer = trained.clone();
        let last = send(&mut pacer, &mut flow, start, packets);
        let at = |gap: u64| pacer.ready(&mut { flow }, last + Nanos(gap));
        assert_eq!(at(least - 1), last + Nanos(least - 1), "{packets} packets");
        assert_eq!(at(least), last + THRESHOLD, "{packets} packets");
        assert_eq!(at(THRESHOLD.0 - 1), last + THRESHOLD);
        assert_eq!(at(THRESHOLD.0), last + THRESHOLD, "it is a flowlet as it is");
        assert_eq!(at(THRESHOLD.0 + 7), last + THRESHOLD + Nanos(7));
    }
}

#[test]
fn without_alpha_t_alone_decides() {
    let (mut pacer, start) = trained(PacerSettings { alpha: None, ..settings() });
    let mut flow = PacedFlow::default();
    let last = send(&mut pacer, &mut flow, start, 1);
    assert_eq!(pacer.ready(&mut flow, last + Nanos(TAIL.0 - 1)), last + Nanos(TAIL.0 - 1));
    assert_eq!(pacer.ready(&mut flow, last + TAIL), last + THRESHOLD);
}

#[test]
fn the_first_packet_of_a_flow_is_never_held() {
    let (pacer, start) = trained(settings());
    let now = start + TAIL;
    assert_eq!(pacer.ready(&mut PacedFlow::default(), now), now);
}

#[test]
fn a_held_packet_begins_a_flowlet_of_one_and_is_counted_with_its_time() {
    let (mut pacer, start) = trained(settings());
    let mut flow = PacedFlow::default();
    let last = send(&mut pacer, &mut flow, start, 30);
    let (before, now) = (pacer.counts(), last + Nanos(5_000));
    let until = pacer.ready(&mut flow, now);
    assert_eq!(pacer.ready(&mut flow, now + Nanos(1)), until, "asked again, it says the same");
    pacer.left(&mut flow, until + Nanos(12));
    let counts = pacer.counts();
    assert_eq!((counts.holds, counts.held, counts.late), (1, Nanos(20_000), Nanos(12)));
    assert_eq!(counts.natural, before.natural, "a gap that was made is not a natural one");
    // x is 1 again, so only a gap of twenty times T is long.
    let soon = until + Nanos(12) + Nanos(20 * TAIL.0 - 1);
    assert_eq!(pacer.ready(&mut flow, soon), soon);
}

#[test]
fn a_pause_after_the_decision_counts_in_the_next_gap_only_from_the_actual_departure() {
    let (mut pacer, start) = trained(settings());
    let mut flow = PacedFlow::default();
    let last = send(&mut pacer, &mut flow, start, 30);
    // The link was paused between the packet's turn and its departure.
    let departed = last + Nanos(900) + Nanos(10_000);
    pacer.left(&mut flow, departed);
    assert_eq!(pacer.ready(&mut flow, departed + Nanos(TAIL.0 - 1)), departed + Nanos(TAIL.0 - 1));
    assert_eq!(pacer.ready(&mut flow, departed + TAIL), departed + THRESHOLD);
}

#[test]
fn settings_that_make_no_sense_are_refused_in_one_line() {
    let cases = [
        (PacerSettings { threshold: PACKET, ..settings() }, "no longer than a packet"),
        (PacerSettings { percentile: GapShare::of_hundredths(9_749), ..settings() }, "97.49 of the gaps"),
        (PacerSettings { percentile: GapShare::of_hundredths(9_901), ..settings() }, "99.01 of the gaps"),
        (PacerSettings { training_gaps: 999, ..settings() }, "training on 999 gaps: give 1000 to"),
        (PacerSettings { training_gaps: u32::MAX, ..settings() }, "to 16777216"),
        (PacerSettings { alpha: Some(Alpha { short: 80, long: 20 }), ..settings() }, "bounds 80 and 20"),
        (PacerSettings { alpha: Some(Alpha { short: 0, long: 20 }), ..settings() }, "bounds 0 and 20"),
    ];
    for (settings, says) in cases {
        let error: PacerError = Pacer::new(settings, PACKET).expect_err("it makes no sense");
        let line = error.to_string();
        assert!(line.contains(says) && !line.contains('\n'), "{line}");
    }
    let fewest = PacerSettings { percentile: GapShare::P97_5, training_gaps: 400, ..settings() };
    assert!(Pacer::new(fewest, PACKET).is_ok());
}

/// For each packet: its flow, the time from the flow's last departure until the packet is ready, and how
/// much later than allowed it leaves.
fn packets() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    prop::collection::vec((0..4_usize, 0..40_000_u64, 0..300_u64), 1..300)
}

proptest! {
    #[test]
    fn no_packet_is_held_past_the_threshold_and_a_flows_packets_leave_in_order(packets in packets()) {
        let (mut pacer, start) = trained(settings());
        let mut flows = [(PacedFlow::default(), None); 4];
        for (flow, gap, late) in packets {
            let (state, last) = &mut flows[flow];
            let ready = last.unwrap_or(start) + Nanos(gap);
            let leaves = pacer.ready(state, ready);
            prop_assert!(leaves >= ready);
            if leaves > ready {
                prop_assert_eq!(Some(leaves), last.map(|last: Nanos| last + THRESHOLD));
            }
            *last = Some(leaves + Nanos(late));
            pacer.left(state, leaves + Nanos(late));
        }
    }

    #[test]
    fn a_flow_never_delays_another(packets in packets()) {
        let (together, start) = trained(settings());
        let departures = |only: Option<usize>| {
            let mut pacer = together.clone();
            let mut flows = [(PacedFlow::default(), start); 4];
            let mut departures = vec![Vec::new(); 4];
            let is_meant = |packet: &(usize, u64, u64)| only.is_none_or(|of| of == packet.0);
            for (flow, gap, late) in packets.iter().copied().filter(is_meant) {
                let (state, last) = &mut flows[flow];
                *last = pacer.ready(state, *last + Nanos(gap)) + Nanos(late);
                pacer.left(state, *last);
                departures[flow].push(*last);
            }
            departures
        };
        let all = departures(None);
        for (flow, departures_of_all) in all.iter().enumerate() {
            prop_assert_eq!(&departures(Some(flow))[flow], departures_of_all);
        }
    }

    #[test]
    fn t_is_the_gap_of_its_rank(
        gaps in prop::collection::vec(0..5_000_u64, 1_000),
        hundredths in 9_750..=9_900_u16,
    ) {
        let settings = PacerSettings { percentile: GapShare::of_hundredths(hundredths), ..settings() };
        let mut pacer = Pacer::new(settings, PACKET).expect("the settings make sense");
        let (mut flow, mut now) = (PacedFlow::default(), Nanos(0));
        pacer.left(&mut flow, now);
        for gap in &gaps {
            prop_assert_eq!(pacer.tail(), None);
            now = now + Nanos(*gap);
            pacer.left(&mut flow, now);
        }
        let mut sorted = gaps.clone();
        sorted.sort_unstable();
        let rank = (u64::from(hundredths) * 1_000).div_ceil(10_000) as usize;
        prop_assert_eq!(pacer.tail(), Some(Nanos(sorted[rank - 1])));
        prop_assert_eq!(pacer.gaps_to_learn(), 0);
    }
}
