//! A task in a whole simulated rack, as in `crates/sim/sim/benches/rack.rs`.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_testbed::Testbed;
use sluice_workload::Workload;

use crate::scale::on_the_scale;

/// Enough that setting the rack up does not show.
pub(super) const TASKS: u32 = 20_000;
/// 0.8 of what the testbed's 32 workers can do.
const RATE_PER_S: f64 = 0.8 * 32.0 * 100_000.0;

pub(super) fn tasks(times: u32) {
    let policy = Policy::parse("rain:2").expect("a policy");
    let workload = Workload::parse("exp:10us").expect("a workload");
    let point = Point::new(policy, Testbed::rain(), workload, RATE_PER_S);
    let point = Point { tasks: times.into(), seed: 1, ..point };
    let measured = on_the_scale(|| point.replicate(0, &AtomicBool::new(false)));
    assert_eq!(measured.expect("nobody stopped it").counts.replied, u64::from(times));
}
