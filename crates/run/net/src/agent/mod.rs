//! The adaptive agent of a server, in real time (Rain §3.3). It reads what its workers measured of their
//! tasks, judges each worker at the end of every interval, gives the workers their depths, and reports to
//! the controller.
//!
//! Workers write into a file that they share with the agent ([`Lines`]). Depths go back the same way and
//! hold from the worker's next step on. The controller decides about several servers, that is evening out
//! depths and moving workers, from all agents' reports. If the controller cannot be reached, the agent
//! continues alone.
//!
//! The agent's thread sleeps most of the time: it computes samples from what workers wrote about each task,
//! instead of looking every [`AgentSettings::sample_every`]. Intervals of all agents end together, at
//! multiples of their length since 1970, unless an option says otherwise.

mod lines;
pub mod messages;
mod server_agent;
mod slowdowns;
mod thread;

use sluice_host::agent::AgentSettings;
use sluice_rpc::Remote;
use sluice_wire::Nanos;

pub use lines::{LINES, LINES_FILE, Line, LineRegistration, Lines, RING, Reader};
pub use messages::lines as judgement_lines;
pub use server_agent::{Interval, ServerAgent};
pub use slowdowns::Slowdowns;
pub use thread::{RunningAgent, start_agent};

/// The settings of a server's agent.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The controller that gets the reports.
    pub controller: Remote,
    pub server: String,
    /// The file into which the workers write.
    pub lines: Lines,
    /// The settings of the state machine, with dilated times.
    pub settings: AgentSettings,
    /// When the first interval begins; `None` for a multiple of its length.
    pub begins: Option<Nanos>,
}

/// The settings with all times multiplied by `factor`.
pub fn dilated(settings: AgentSettings, factor: u32) -> AgentSettings {
    let factor = u64::from(factor.max(1));
    AgentSettings {
        sample_every: settings.sample_every.times(factor),
        interval: settings.interval.times(factor),
        rule: match settings.rule {
            sluice_host::agent::Rule::Steps => sluice_host::agent::Rule::Steps,
            sluice_host::agent::Rule::Replay(way) => {
                sluice_host::agent::Rule::Replay(sluice_host::agent::WorkerOverhead {
                    round_trip: way.round_trip.times(factor),
                    busy: way.busy.times(factor),
                })
            }
        },
        ..settings
    }
}
