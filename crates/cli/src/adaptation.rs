//! From the words of a policy (`rain:adaptive,theta=0.2`) to an agent's settings.

use sluice_host::agent::{self, AgentSettings, Mode, Way};
use sluice_net::agent::dilated;
use sluice_sim::testbed::Testbed;
use sluice_switch::registry::{Adaptive, Rule};
use sluice_wire::Nanos;

/// What two packets take over a loopback, with the wake-ups at their ends, and what a worker's calls for a task take:
/// orders of magnitude, for racks that stand for no testbed.
const LOOPBACK: Way = Way { round_trip: Nanos::from_micros(60), busy: Nanos::from_micros(10) };

/// What an agent is told, dilated.
pub(crate) fn settings(asked: Adaptive, way: Way, dilation: u32) -> AgentSettings {
    let settings = AgentSettings {
        mode: if asked.advises { Mode::Advise } else { Mode::On },
        theta: f64::from(asked.theta_milli) / 1_000.0,
        slowdown_max: asked.slowdown_max.into(),
        rule: match asked.rule {
            Rule::Steps => agent::Rule::Steps,
            Rule::Replay => agent::Rule::Replay(way),
        },
        ..AgentSettings::default()
    };
    dilated(settings, dilation)
}

/// The same over the loopback, whose packets no dilation holds back.
pub(crate) fn way_of_loopback(dilation: u32) -> Way {
    let of = |span: Nanos| Nanos(span.0 / u64::from(dilation.max(1)));
    Way { round_trip: of(LOOPBACK.round_trip), busy: of(LOOPBACK.busy) }
}

/// What lies between two services of a worker with one token: what the core spends, and the rest.
pub(crate) fn way(testbed: &Testbed) -> Way {
    let busy = testbed.worker.receive + testbed.worker.send.times(2);
    Way { round_trip: testbed.refill() - busy, busy }
}
