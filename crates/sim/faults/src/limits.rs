//! The times and sizes that all runs share.

use sluice_wire::{Nanos, Serial};

pub(super) const FAULTS_END: Nanos = Nanos::from_millis(30);
/// From this time on a rack with one controller must have recovered ([`Scenario::settled`]).
///
/// [`Scenario::settled`]: super::scenario::Scenario::settled
pub(super) const SETTLED: Nanos = Nanos::from_millis(50);
/// When clients submit no more.
pub(super) const SUBMIT_END: Nanos = Nanos::from_millis(58);
/// At this time the last tasks have ended and every worker has had its longest probe interval: all quotas
/// are parked.
pub(super) const REST: Nanos = Nanos::from_millis(63);
/// When the run is over and the final check is made: past every deadline.
pub(super) const END: Nanos = Nanos::from_millis(110);
/// How long a task may take before its client calls it unknown.
pub(super) const DEADLINE: Nanos = Nanos::from_millis(40);
/// The longest time that the network holds a packet.
pub(super) const PACKET_LIFETIME: Nanos = Nanos::from_millis(2);
/// How long a registration lasts without a renewal.
pub(super) const LEASE: Nanos = Nanos::from_millis(4);
/// How often it is renewed.
pub(super) const RENEW_EVERY: Nanos = Nanos::from_millis(1);
/// Types that the switch can map. Tasks have the first types, one for each slice.
pub(super) const TYPES: u16 = 4;
/// Slices that the switch has room for.
pub(super) const SLICES: usize = 2;
/// Room of a worker for late tasks, more than there ever are.
pub(super) const AMPLE: usize = 64;
/// How many replies a worker keeps: enough that each is fetched before it is forgotten.
pub(super) const REPLIES_AMPLE: usize = 4_096;
/// The longest silence of a worker whose tokens are all known to be parked.
pub(super) const PROBE_LONGEST: Nanos = Nanos::from_millis(2);
/// Where all counters start: eight below the wrap.
pub(super) const START: Serial = Serial(u32::MAX - 7);
/// How long after now a machine is woken at the soonest.
pub(super) const SOONEST: Nanos = Nanos(1);
/// The longest time between a pass's look at the clock and its arrival at the queue, while passes on other
/// CPUs overtake it.
pub(super) const PASS: Nanos = Nanos::from_micros(20);
