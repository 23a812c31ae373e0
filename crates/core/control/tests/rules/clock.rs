//! The controller's clock: a call that only looks, and a tick that comes late, must not change the next
//! deadline.

use crate::rack::{LEASE, RENEW, Rack, client, server, worker};
use sluice_control::{Event, Note};
use sluice_wire::Nanos;

/// A watch that a busy machine ticks so late that it is over.
fn looked_at_and_slipped() -> Rack {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.feed(Event::Watch);
    rack.renew_for(Nanos::from_millis(1_850), &[&worker("w", 1)]);
    rack.tick(rack.now + Nanos::from_millis(200));
    rack
}

#[test]
fn a_tick_that_slips_past_the_end_of_a_look_leaves_nothing_due() {
    let rack = looked_at_and_slipped();
    let next = rack.controller.deadline().expect("a lease is running");
    assert!(next > rack.now, "{} ns past", rack.now.since(next).0);
}

#[test]
fn after_a_look_and_a_slip_a_killed_worker_is_found() {
    let mut rack = looked_at_and_slipped();
    let end = rack.now + LEASE.times(2);
    while rack.now < end {
        rack.tick(rack.now + Nanos::from_millis(1));
        rack.flush();
    }
    let died = |note: &Note| matches!(note, Note::WorkerDied { name, .. } if name == "w");
    assert!(rack.notes.iter().any(died), "{:?}", rack.notes);
    assert!(!rack.notes.iter().any(|note| matches!(note, Note::Stalled { .. })), "{:?}", rack.notes);
}

#[test]
fn a_newcomers_lease_is_looked_at_when_it_ends() {
    let mut racks = [Rack::up(), Rack::up(), Rack::up()];
    racks[0].join(&worker("w", 1));
    racks[1].join_client(&client("c", 2));
    racks[2].server_hello(&server("s", 3));
    for rack in racks {
        assert_eq!(rack.controller.deadline(), Some(rack.now + LEASE));
    }
}

#[test]
fn after_its_own_sleep_a_controller_waits_for_two_renewals_more() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.tick(rack.now + LEASE.times(5));
    let late_ms = LEASE.times(4).0 / 1_000_000;
    assert!(rack.notes.contains(&Note::Stalled { late_ms }), "{:?}", rack.notes);
    assert_eq!(rack.controller.deadline(), Some(rack.now + RENEW.times(2)));
}

/// The switch's process is stopped, and goes on in the same life; hosts renew with the controller
/// meanwhile.
#[test]
fn a_switch_that_was_stopped_is_not_the_controllers_own_sleep() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.join(&worker("silent", 2));
    rack.disconnect(0);
    let end = rack.now + LEASE.times(5);
    while rack.now < end {
        rack.now = rack.now + RENEW;
        rack.ask(&worker("w", 1));
    }
    rack.connect();
    rack.renew_for(LEASE.times(2), &[&worker("w", 1)]);
    assert!(!rack.notes.iter().any(|note| matches!(note, Note::Stalled { .. })), "{:?}", rack.notes);
    assert!(rack.notes.contains(&Note::SwitchDown), "{:?}", rack.notes);
    let died = |who: &str| {
        rack.notes.iter().any(|note| matches!(note, Note::WorkerDied { name, .. } if name == who))
    };
    assert!(died("silent") && !died("w"), "{:?}", rack.notes);
}
