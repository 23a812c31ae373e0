//! Looks at the rack from time to time, for the controller's memory.

use std::sync::Arc;

use tokio::time::sleep;

use super::handle::RunnerHandle;
use super::history::LOOK_EVERY;
use super::link::Source;
use super::memory::RackMemory;
use super::status::status_of;
use crate::rpc::refused::Refused;

/// Runs as long as it is polled. A busy controller is looked at the next time.
pub(super) async fn keep(
    memory: RackMemory,
    handle: RunnerHandle,
    mut source: Source,
    refused: Arc<Refused>,
) {
    loop {
        let status = match handle.look().await {
            Ok(seen) => {
                let counted = source.count(seen.view.link).await;
                Some(status_of(&seen.view, seen.at, counted, &refused))
            }
            Err(_) => None,
        };
        memory.record(status.as_ref());
        sleep(LOOK_EVERY).await;
    }
}
