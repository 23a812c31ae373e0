//! What is wrong with a rack, in words: a pure function over what its controller's status says.
//!
//! Everything is read from one [`StatusResponse`], which also tells how the rack was some time ago. What a
//! status does not tell (an older controller or switch) counts as not known, never as wrong. The bounds
//! stand in [`bounds`]; the alerts of `docs/manual/prometheus/rules.yml` have the same.

pub mod bounds;
mod hosts;
mod kind;
mod lookback;
mod processes;
mod slices;
mod switch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;
use sluice_rpc::v1::{LinkState, StatusResponse, SwitchStatus};

pub use kind::{FindingKind, FindingSeverity};

/// Something that is wrong with a rack, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RackFinding {
    /// What kind of trouble it is; serialised as its code.
    #[serde(rename = "code")]
    pub kind: FindingKind,
    pub severity: FindingSeverity,
    /// What it is found on.
    pub subject: FindingSubject,
    /// What is wrong, as a sentence without its full stop.
    pub what: String,
    /// What shows it, with figures.
    pub why: String,
    /// What to do.
    pub next: &'static str,
}

/// A part of a rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingSubject {
    pub kind: SubjectKind,
    /// Its name; empty where there is only one.
    pub name: String,
}

/// A kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    Worker,
    Client,
    Server,
    Slice,
    Switch,
    Controller,
    Process,
    Certificate,
}

impl SubjectKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Client => "client",
            Self::Server => "server",
            Self::Slice => "slice",
            Self::Switch => "switch",
            Self::Controller => "controller",
            Self::Process => "process",
            Self::Certificate => "certificate",
        }
    }
}

impl fmt::Display for FindingSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.kind.word();
        if self.name.is_empty() { f.write_str(word) } else { write!(f, "{word} {}", self.name) }
    }
}

/// All that is wrong at `now`, the worst first. An empty answer says that nothing is, as far as the status
/// tells.
pub fn findings(status: &StatusResponse, now: SystemTime) -> Vec<RackFinding> {
    let link = status.switch.as_ref().map_or(LinkState::Unspecified, SwitchStatus::link);
    let mut found = switch::of_link(status, link);
    found.extend(processes::of_processes(status));
    found.extend(processes::of_certificates(status, now));
    found.extend(processes::of_calls(status));
    // Whoever has lost the switch to another does not hear of hosts any more, and its slices are old news.
    if link != LinkState::Superseded {
        found.extend(hosts::lost(status));
    }
    if link == LinkState::Up {
        found.extend(hosts::slow(status));
        found.extend(slices::of_slices(status));
        found.extend(switch::of_counters(status));
        found.extend(switch::of_controllers(status));
    }
    found.sort_by_key(|finding| (finding.severity, finding.kind));
    found
}

impl RackFinding {
    fn new(
        kind: FindingKind,
        (of, name): (SubjectKind, impl Into<String>),
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            subject: FindingSubject { kind: of, name: name.into() },
            what: what.into(),
            why: why.into(),
            next: kind.next(),
        }
    }
}
