//! How other threads call a controller's thread.

use std::time::Duration;

use sluice_control::{Answer, CallId, Event};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use super::runner::{Command, ControllerSnapshot};
use super::standing::StandingBoard;

/// How long a process that ends waits until the switch knows that its controller gives the lead up.
const FAREWELL: Duration = Duration::from_millis(500);

/// Sends commands to a controller's thread.
#[derive(Clone)]
pub(super) struct RunnerHandle {
    commands: mpsc::Sender<Command>,
    standing: StandingBoard,
}

impl RunnerHandle {
    pub(super) const fn new(commands: mpsc::Sender<Command>, standing: StandingBoard) -> Self {
        Self { commands, standing }
    }

    /// Whether the controller leads, and who else would.
    pub(super) const fn standing(&self) -> &StandingBoard {
        &self.standing
    }

    /// Lets the controller give the lead up, and waits for that for a while.
    pub(super) fn give_up(&self) {
        let (done, given_up) = std::sync::mpsc::channel();
        if self.send(Command::GiveUp { done }).is_ok() {
            // If the switch does not hear it, the lease ends.
            given_up.recv_timeout(FAREWELL).unwrap_or_default();
        }
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
        self.send(Command::Look { answer })?;
        answered.await.map_err(|_| stopping())
    }

    /// Sends a command of a host or an operator. A standby takes none.
    pub(super) fn command(&self, command: Command) -> Result<(), Status> {
        self.standing.check_leads()?;
        self.send(command)
    }

    fn send(&self, command: Command) -> Result<(), Status> {
        self.commands.try_send(command).map_err(|failed| match failed {
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
