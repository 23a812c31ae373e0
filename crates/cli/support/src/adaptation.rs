//! From the words of a policy (`rain:adaptive,theta=0.2`) to an agent's settings.

use sluice_host::agent::{AgentSettings, Way};
use sluice_net::agent::dilated;
use sluice_switchd::switch::Delays;
use sluice_units::Adaptive;
use sluice_wire::Nanos;

/// What two packets take over a loopback, with the wake-ups at their ends, and what a worker's calls for a
/// task take: orders of magnitude, for racks that stand for no testbed.
const LOOPBACK: Way = Way { round_trip: Nanos::from_micros(60), busy: Nanos::from_micros(10) };

/// What a worker of the Rain paper's testbed spends on the packets of a task.
const TESTBED_BUSY: Nanos = Nanos(600);

/// What an agent is told, dilated.
pub fn settings(asked: Adaptive, way: Way, dilation: u32) -> AgentSettings {
    dilated(AgentSettings::asked(asked, way), dilation)
}

/// What lies between two services over the loopback, whose packets no dilation holds back.
pub fn way_of_loopback(dilation: u32) -> Way {
    let of = |span: Nanos| Nanos(span.0 / u64::from(dilation.max(1)));
    Way { round_trip: of(LOOPBACK.round_trip), busy: of(LOOPBACK.busy) }
}

/// What lies between two services in the Rain paper's testbed, undilated: what the switch holds packets for
/// (`testbed_delays`), and what its workers spend.
pub fn way_of_testbed() -> Way {
    let delays = Delays::testbed(1);
    Way { round_trip: delays.worker.times(2) + delays.pass, busy: TESTBED_BUSY }
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
