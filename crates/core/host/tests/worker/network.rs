//! The worker's promises under loss, duplication, reordering, delay, slice moves, switch restarts, crashes
//! and changing quotas: promise 2 (no task twice in one life), 3 (no more than its quota), 4 (never stuck),
//! and that each handle of a payload or reply comes back exactly once.

use crate::rack::{RTT, Rack, Scene};
use proptest::prelude::*;
use sluice_wire::Nanos;

fn scenes() -> impl Strategy<Value = Scene> {
    let network = (any::<u64>(), 0..300_u64, 0..200_u64, 0..300_u64);
    let events = (0..15_u64, 0..10_u64, 0..10_u64, 0..20_u64, 0..400_u64);
    let load = (1..60_u64, 2..80_u64, 0..40_usize, any::<bool>(), prop::option::of(0..900_u64));
    (network, events, load).prop_map(|(network, events, load)| Scene {
        seed: network.0,
        loss: network.1,
        duplicates: network.2,
        delays: network.3,
        moves: events.0,
        restarts: events.1,
        crashes: events.2,
        quota_changes: events.3,
        repeats: events.4,
        service_max: Nanos::from_micros(load.0),
        between_tasks_max: Nanos::from_micros(load.1),
        replies_max: load.2,
        load_goes_on: load.3,
        early: load.4,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold_whatever_the_network_does(scene in scenes()) {
        Rack::new(scene).run();
    }

    #[test]
    fn the_promises_hold_when_only_the_network_is_at_fault(scene in scenes()) {
        Rack::new(Scene { moves: 0, restarts: 0, crashes: 0, quota_changes: 0, ..scene }).run();
    }
}

#[test]
fn early_tokens_leave_a_round_trip_ahead_in_a_network_without_faults() {
    let scene = Scene {
        seed: 1,
        loss: 0,
        duplicates: 0,
        delays: 0,
        moves: 0,
        restarts: 0,
        crashes: 0,
        quota_changes: 0,
        repeats: 0,
        service_max: Nanos::from_micros(50),
        between_tasks_max: Nanos::from_micros(10),
        replies_max: 40,
        load_goes_on: true,
        early: Some(100),
    };
    let mut rack = Rack::new(scene);
    rack.run();
    let stats = rack.stats();
    assert_eq!(stats.lead, RTT);
    assert!(stats.early_tokens * 2 > stats.finished, "{stats:?}");
}
