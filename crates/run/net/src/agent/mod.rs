//! The adaptive agent of a server, in real time (Rain §3.3): reads what its workers say of their tasks,
//! judges them at the end of each interval, tells them their depths and the controller what it found.
//!
//! Workers write into a file that they share with the agent ([`Lines`]); a depth goes back the same way and
//! holds from the worker's next step on. What concerns several servers, evening out depths and moving
//! workers, the controller decides on all agents' reports. While it cannot be reached, the agent goes on
//! alone.
//!
//! The agent has a thread that sleeps most of the time: samples are taken from what workers noted of each
//! task, not by looking every [`AgentSettings::sample_every`]. Intervals of all agents end together, at
//! multiples of their length since 1970, unless it is said otherwise.

mod desk;
mod lines;
pub mod said;
mod slowdowns;
mod thread;

use sluice_host::agent::AgentSettings;
use sluice_rpc::Remote;
use sluice_wire::Nanos;

pub use desk::{Desk, Interval};
pub use lines::{LINES, LINES_FILE, Line, Lines, RING, Reader, Seat};
pub use said::lines as judgement_lines;
pub use slowdowns::Slowdowns;
pub use thread::{RunningAgent, start_agent};

/// How a server's agent is set up.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Who hears what it found.
    pub controller: Remote,
    pub server: String,
    /// Where its workers write.
    pub lines: Lines,
    /// Its settings; times dilated already.
    pub settings: AgentSettings,
    /// When its first interval begins, if that is not to be at a multiple of its length.
    pub begins: Option<Nanos>,
}

/// Settings whose times are so many times as long.
pub fn dilated(settings: AgentSettings, factor: u32) -> AgentSettings {
    let factor = u64::from(factor.max(1));
    AgentSettings {
        sample_every: settings.sample_every.times(factor),
        interval: settings.interval.times(factor),
        rule: match settings.rule {
            sluice_host::agent::Rule::Steps => sluice_host::agent::Rule::Steps,
            sluice_host::agent::Rule::Replay(way) => {
                sluice_host::agent::Rule::Replay(sluice_host::agent::Way {
                    round_trip: way.round_trip.times(factor),
                    busy: way.busy.times(factor),
                })
            }
        },
        ..settings
    }
}
