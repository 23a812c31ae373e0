//! What is wrong with a rack, in words: a pure function over what its controller's status says.
//!
//! Everything is read from one [`StatusResponse`], which also tells how the rack was some time ago. What a
//! status does not tell (an older controller or switch) counts as not known, never as wrong. The bounds
//! stand in [`bounds`]; the alerts of `docs/manual/prometheus/rules.yml` have the same.

pub mod bounds;
mod finding;
mod hosts;
mod kind;
mod lookback;
mod processes;
mod slices;
mod switch;
#[cfg(test)]
mod tests;
mod utc;

use std::time::SystemTime;

use sluice_rpc::v1::{LinkState, StatusResponse, SwitchStatus};

pub use finding::{FindingSubject, RackFinding, SubjectKind};
pub use kind::{FindingKind, FindingSeverity};

/// All that is wrong at `now`, the worst first. An empty answer says that nothing is, as far as the status
/// tells.
pub fn findings(status: &StatusResponse, now: SystemTime) -> Vec<RackFinding> {
    let link = status.switch.as_ref().map_or(LinkState::Unspecified, SwitchStatus::link);
    let mut found = switch::of_link(status, link);
    found.extend(switch::of_etcd(status));
    found.extend(processes::of_processes(status));
    found.extend(processes::of_certificates(status, now));
    found.extend(processes::of_calls(status));
    // Whoever has lost the switch to another does not hear of hosts any more, and its slices are old news.
    if link != LinkState::Superseded {
        found.extend(hosts::lost(status));
    }
    if link == LinkState::Up {
        found.extend(hosts::slow(status));
        found.extend(hosts::off_their_way(status));
        found.extend(slices::of_slices(status));
        found.extend(switch::of_counters(status));
        found.extend(switch::of_controllers(status));
    }
    found.sort_by_key(|finding| (finding.severity, finding.kind));
    found
}
