//! Turns the words of a policy (`rain:adaptive,theta=0.2`) into an agent's settings.

use sluice_host::agent::{AgentSettings, WorkerOverhead};
use sluice_net::agent::dilated;
use sluice_switchd::switch::Delays;
use sluice_units::Adaptive;
use sluice_wire::Nanos;

/// The time of two packets over a loopback with the wake-ups at their ends, and a worker's time for a
/// task's calls: orders of magnitude, for racks that emulate no testbed.
const LOOPBACK: WorkerOverhead =
    WorkerOverhead { round_trip: Nanos::from_micros(60), busy: Nanos::from_micros(10) };

/// How long a worker of the Rain paper's testbed works on the packets of a task.
const TESTBED_BUSY: Nanos = Nanos(600);

/// The agent's settings, dilated.
pub fn settings(asked: Adaptive, way: WorkerOverhead, dilation: u32) -> AgentSettings {
    dilated(AgentSettings::asked(asked, way), dilation)
}

/// The costs between two tasks over the loopback, whose packets are not dilated.
pub fn way_of_loopback(dilation: u32) -> WorkerOverhead {
    let of = |span: Nanos| Nanos(span.0 / u64::from(dilation.max(1)));
    WorkerOverhead { round_trip: of(LOOPBACK.round_trip), busy: of(LOOPBACK.busy) }
}

/// The costs between two tasks in the Rain paper's testbed, undilated: the switch's delays
/// (`testbed_delays`), and the workers' time.
pub fn way_of_testbed() -> WorkerOverhead {
    let delays = Delays::testbed(1);
    WorkerOverhead { round_trip: delays.worker.times(2) + delays.pass, busy: TESTBED_BUSY }
}

#[cfg(test)]
mod tests {
    use sluice_testbed::Testbed;
    use sluice_testbed::agents;

    use super::*;

    #[test]
    fn agents_of_a_live_rack_with_a_testbeds_delays_are_told_what_the_simulated_ones_are() {
        assert_eq!(way_of_testbed(), agents::way(&Testbed::rain()));
    }
}
