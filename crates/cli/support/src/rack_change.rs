//! Changes of a running rack: which slice a worker serves, and which slice takes a type. No task is lost:
//! waiting tasks stay where they are. The last worker of a slice stays while types go there and clients are
//! registered, and else until nothing waits in the slice; then it may leave, and the slice has none.
//!
//! All functions must be called inside a tokio runtime.

use sluice_rpc::Remote;
use sluice_rpc::v1::{MoveWorkerRequest, SetTypeRequest, StatusRequest};

use crate::controller_caller::{ask, types_of};
use crate::fail::{Failure, Outcome};

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDone {
    /// What holds now, in a sentence.
    pub text: String,
    /// What the caller should know beside it.
    pub warning: Option<String>,
}

/// Moves a worker; returns once the switch gives it tasks of the new slice.
pub async fn move_worker(remote: &Remote, worker: &str, slice: &str) -> Outcome<ChangeDone> {
    let request = MoveWorkerRequest { worker: worker.to_owned(), slice: slice.to_owned() };
    ask(remote, async |mut controller| controller.move_worker(request.clone()).await.map(drop)).await?;
    Ok(ChangeDone { text: format!("worker {worker} serves slice {slice}"), warning: None })
}

/// Maps a type, by its name or number; without a slice its tasks are refused. The slice may have no workers
/// yet.
pub async fn map_type(remote: &Remote, task_type: &str, slice: Option<&str>) -> Outcome<ChangeDone> {
    let status = ask(remote, async |mut controller| controller.status(StatusRequest {}).await).await?;
    let status = status.into_inner().shown();
    let mut types = types_of(&status);
    let name = types.called(task_type).map_err(Failure::bad_input)?;
    let number = types.number(&name).unwrap_or_default().into();
    let request = SetTypeRequest { task_type: number, slice: slice.map(str::to_owned) };
    ask(remote, async |mut controller| controller.set_type(request.clone()).await.map(drop)).await?;
    let known = status.slices.iter().find(|known| Some(known.name.as_str()) == slice);
    let warning = known.filter(|slice| slice.workers == 0).map(|slice| {
        format!(
            "slice {0} has no workers, so that tasks of type {task_type} are refused until one joins it: \
             start one with --slice {0}, or `sluice move WORKER {0}`",
            slice.name
        )
    });
    let text = match slice {
        Some(slice) => format!("tasks of type {task_type} go to slice {slice}"),
        None => format!("tasks of type {task_type} are refused"),
    };
    Ok(ChangeDone { text, warning })
}
