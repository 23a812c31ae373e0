//! From the words of a policy (`rain:adaptive,theta=0.2`) to an agent's settings.

use sluice_host::agent::{AgentSettings, Way};
use sluice_net::agent::dilated;
use sluice_switch::registry::Adaptive;
use sluice_testbed::agents;
use sluice_wire::Nanos;

/// What two packets take over a loopback, with the wake-ups at their ends, and what a worker's calls for a
/// task take: orders of magnitude, for racks that stand for no testbed.
const LOOPBACK: Way = Way { round_trip: Nanos::from_micros(60), busy: Nanos::from_micros(10) };

/// What an agent is told, dilated.
pub fn settings(asked: Adaptive, way: Way, dilation: u32) -> AgentSettings {
    dilated(agents::settings(asked, way), dilation)
}

/// What lies between two services over the loopback, whose packets no dilation holds back.
pub fn way_of_loopback(dilation: u32) -> Way {
    let of = |span: Nanos| Nanos(span.0 / u64::from(dilation.max(1)));
    Way { round_trip: of(LOOPBACK.round_trip), busy: of(LOOPBACK.busy) }
}
