//! How often what happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_control::Note;
use sluice_metrics::{MetricFamily, MetricSample};

/// The kinds of notes.
const KINDS: [&str; 26] = [
    "worker-joined",
    "worker-died",
    "worker-left",
    "worker-moved",
    "worker-lent",
    "depths-evened",
    "client-joined",
    "client-left",
    "client-died",
    "server-joined",
    "server-left",
    "server-died",
    "slice-opened",
    "slice-closed",
    "class-opened",
    "class-closed",
    "switch-up",
    "switch-restarted",
    "switch-down",
    "read-back",
    "switch-confused",
    "switch-too-small",
    "superseded",
    "stalled",
    "leads",
    "stands-by",
];

/// One word that names a note's kind, for programs.
pub(super) const fn kind(note: &Note) -> &'static str {
    let kind = match note {
        Note::WorkerJoined { .. } => 0,
        Note::WorkerDied { .. } => 1,
        Note::WorkerLeft { .. } => 2,
        Note::WorkerMoved { .. } => 3,
        Note::WorkerLent { .. } => 4,
        Note::DepthsEvened { .. } => 5,
        Note::ClientJoined { .. } => 6,
        Note::ClientLeft { .. } => 7,
        Note::ClientDied { .. } => 8,
        Note::ServerJoined { .. } => 9,
        Note::ServerLeft { .. } => 10,
        Note::ServerDied { .. } => 11,
        Note::SliceOpened { .. } => 12,
        Note::SliceClosed { .. } => 13,
        Note::ClassOpened { .. } => 14,
        Note::ClassClosed { .. } => 15,
        Note::SwitchUp { .. } => 16,
        Note::SwitchRestarted { .. } => 17,
        Note::SwitchDown => 18,
        Note::ReadBack { .. } => 19,
        Note::SwitchConfused => 20,
        Note::SwitchTooSmall => 21,
        Note::Superseded { .. } => 22,
        Note::Stalled { .. } => 23,
        Note::Leads => 24,
        Note::StandsBy => 25,
    };
    KINDS[kind]
}

/// How often each kind of note was made; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct NoteCounts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl NoteCounts {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(KINDS.into_iter().map(|kind| (kind, 0)).collect())))
    }

    pub(super) fn count(&self, note: &Note) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind(note)).or_default() += 1;
    }

    pub(super) fn measured(&self) -> Vec<MetricSample> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let event = |(kind, count): (&&'static str, &u64)| {
            MetricSample::count(MetricFamily::Events, *count).with("event", *kind)
        };
        counts.iter().map(event).collect()
    }
}
