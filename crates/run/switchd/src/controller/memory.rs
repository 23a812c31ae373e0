//! What a controller remembers beside its state machine, for its status: hosts that it lost, how the rack
//! was, and how its process is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sluice_control::Note;
use sluice_rpc::v1;

use super::history::StatusHistory;
use super::lost_hosts::LostHosts;
use crate::health::ProcessWatch;

/// Clones share the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct RackMemory {
    lost: Arc<Mutex<LostHosts>>,
    history: Arc<Mutex<StatusHistory>>,
    process: Arc<ProcessWatch>,
}

impl RackMemory {
    pub(super) fn on_note(&self, note: &Note) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).on_note(note);
    }

    /// Adds to a status what is remembered, and how this process finds itself if it is apart from the
    /// switch's.
    pub(super) fn add_to(&self, status: &mut v1::StatusResponse, is_apart: bool) {
        status.lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).told();
        status.earlier = self.history.lock().unwrap_or_else(PoisonError::into_inner).told(Instant::now());
        if is_apart {
            status.processes.push(self.process.health("controller", None));
        }
    }

    /// Remembers how the rack is, and looks at the clock.
    pub(super) fn record(&self, status: Option<&v1::StatusResponse>) {
        self.process.look();
        if let Some(status) = status {
            self.history.lock().unwrap_or_else(PoisonError::into_inner).record(Instant::now(), status);
        }
    }
}
