//! How often what happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_control::Note;
use sluice_log::LogEvent;
use sluice_metrics::{MetricFamily, MetricSample};

use super::note_events::event;

/// The events that notes are.
const KINDS: [LogEvent; 27] = [
    LogEvent::WorkerJoined,
    LogEvent::WorkerDied,
    LogEvent::WorkerLeft,
    LogEvent::WorkerMoved,
    LogEvent::WorkerLent,
    LogEvent::DepthsEvened,
    LogEvent::ClientJoined,
    LogEvent::ClientLeft,
    LogEvent::ClientDied,
    LogEvent::ClientMoved,
    LogEvent::ServerJoined,
    LogEvent::ServerLeft,
    LogEvent::ServerDied,
    LogEvent::SliceOpened,
    LogEvent::SliceClosed,
    LogEvent::ClassOpened,
    LogEvent::ClassClosed,
    LogEvent::SwitchUp,
    LogEvent::SwitchRestarted,
    LogEvent::SwitchDown,
    LogEvent::ReadBack,
    LogEvent::SwitchConfused,
    LogEvent::SwitchTooSmall,
    LogEvent::Superseded,
    LogEvent::Stalled,
    LogEvent::Leads,
    LogEvent::StandsBy,
];

/// One word that names a note's kind, for programs.
pub(super) const fn kind(note: &Note) -> &'static str {
    event(note).name()
}

/// How often each kind of note was made; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct NoteCounts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl NoteCounts {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(KINDS.into_iter().map(|kind| (kind.name(), 0)).collect())))
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
