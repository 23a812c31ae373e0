//! The counts of a fabric as gauges.

use sluice_fabric::{FabricCounts, Gaps};
use sluice_stats::Gauges;
use sluice_wire::Nanos;

/// The counts of a fabric between two moments, and the pauses of its flows.
pub(crate) fn fabric_gauges(
    now: &FabricCounts,
    then: &FabricCounts,
    gaps: &Gaps,
    round_trip: Nanos,
) -> Gauges {
    let since = |of: fn(&FabricCounts) -> u64| Some((of(now) - of(then)) as f64);
    let share = |times| Some(gaps.share_from(round_trip.times(times)));
    Gauges {
        flowlets: since(|counts| counts.flowlets.flowlets()),
        flowlet_firsts: since(|counts| counts.flowlets.firsts),
        flowlet_expiries: since(|counts| counts.flowlets.expiries),
        flowlet_collisions: since(|counts| counts.flowlets.collisions),
        holds: since(|counts| counts.pacers.holds),
        pauses: since(|counts| counts.pauses),
        early_frames: since(|counts| counts.hosts.early),
        frames_again: since(|counts| counts.hosts.again),
        frames_lost: since(|counts| counts.lost),
        congestion_notices: since(|counts| counts.hosts.cnps),
        frames: since(|counts| counts.hosts.data),
        gaps: Some(gaps.count() as f64),
        gaps_from_1_rtt: share(1),
        gaps_from_2_rtt: share(2),
        gaps_from_3_rtt: share(3),
        ..Gauges::default()
    }
}
