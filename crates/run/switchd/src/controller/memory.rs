//! What a controller remembers beside its state machine, for its status: hosts that it lost, how the rack
//! was, and how its process is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sluice_control::Note;
use sluice_rpc::v1;
use tokio::time::sleep;

use super::handle::RunnerHandle;
use super::history::{LOOK_EVERY, StatusHistory};
use super::link::Source;
use super::lost_hosts::LostHosts;
use super::service::status_of;
use crate::health::ProcessWatch;
use crate::rpc::refused::Refused;

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

    /// Adds to a status what is remembered, and how this process finds itself if it is not the switch's.
    pub(super) fn add_to(&self, status: &mut v1::StatusResponse, source: &Source) {
        status.lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).told();
        status.earlier = self.history.lock().unwrap_or_else(PoisonError::into_inner).told(Instant::now());
        if matches!(source, Source::There(_)) {
            status.processes.push(self.process.health("controller", None));
        }
    }

    /// Looks at the rack from time to time, as long as it is polled.
    pub(super) async fn keep(self, handle: RunnerHandle, mut source: Source, refused: Arc<Refused>) {
        loop {
            self.process.look();
            // A busy controller is looked at the next time.
            if let Ok(seen) = handle.look().await {
                let counted = source.count(seen.view.link).await;
                let status = status_of(&seen, counted, &refused);
                let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
                history.record(Instant::now(), &status);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
