//! From the words of a policy (`rain:adaptive,theta=0.2`) and a testbed to an agent's settings, for the
//! simulated rack and for live ones.

use sluice_host::agent::{self, AgentSettings, Mode, Way};
use sluice_switch::registry::{Adaptive, Rule};

use crate::Testbed;

/// What an agent is told, undilated.
pub fn settings(asked: Adaptive, way: Way) -> AgentSettings {
    AgentSettings {
        mode: if asked.advises { Mode::Advise } else { Mode::On },
        theta: f64::from(asked.theta_milli) / 1_000.0,
        slowdown_max: asked.slowdown_max.into(),
        lends: !asked.stays,
        rule: match asked.rule {
            Rule::Steps => agent::Rule::Steps,
            Rule::Replay => agent::Rule::Replay(way),
        },
        ..AgentSettings::default()
    }
}

/// What lies between two services of a worker with one token: what the core spends, and the rest.
pub fn way(testbed: &Testbed) -> Way {
    let busy = testbed.worker.receive + testbed.worker.send.times(2);
    Way { round_trip: testbed.refill() - busy, busy }
}
