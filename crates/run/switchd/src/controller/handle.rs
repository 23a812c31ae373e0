//! How other threads call a controller's thread.

use sluice_control::{Answer, CallId, Event};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use super::runner::{Command, ControllerSnapshot};

/// Sends commands to a controller's thread.
#[derive(Clone)]
pub(super) struct RunnerHandle(mpsc::Sender<Command>);

impl RunnerHandle {
    pub(super) const fn new(commands: mpsc::Sender<Command>) -> Self {
        Self(commands)
    }

    pub(super) async fn call(
        &self,
        event: impl FnOnce(CallId) -> Event + Send + 'static,
    ) -> Result<Answer, Status> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Call { event: Box::new(event), answer })?;
        answered.await.map_err(|_| stopping())
    }

    /// Sends an event without waiting for an answer. The event is dropped if the controller's queue is
    /// full.
    pub(super) fn tell(&self, event: impl FnOnce(CallId) -> Event + Send + 'static) {
        let (answer, _) = oneshot::channel();
        self.command(Command::Call { event: Box::new(event), answer }).unwrap_or_default();
    }

    pub(super) async fn look(&self) -> Result<ControllerSnapshot, Status> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Look { answer })?;
        answered.await.map_err(|_| stopping())
    }

    pub(super) fn command(&self, command: Command) -> Result<(), Status> {
        self.0.try_send(command).map_err(|failed| match failed {
            mpsc::error::TrySendError::Full(_) => {
                Status::resource_exhausted("the controller is busy; call again")
            }
            mpsc::error::TrySendError::Closed(_) => stopping(),
        })
    }
}

fn stopping() -> Status {
    Status::unavailable("the controller is stopping")
}
