//! A finding as a value: what is wrong, on which part of the rack, and what shows it.

use std::fmt;

use serde::Serialize;

use super::kind::{FindingKind, FindingSeverity};

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

impl RackFinding {
    pub(super) fn new(
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
