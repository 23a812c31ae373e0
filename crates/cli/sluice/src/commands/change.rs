//! `sluice move` and `sluice map`: change which slice a worker serves, and which slice takes a type. No
//! task is lost: waiting tasks stay where they are, and a slice that takes tasks keeps at least one worker.

use sluice_rpc::v1::{MoveWorkerRequest, SetTypeRequest};
use sluice_support::controller_caller::{ControllerCaller, types_of};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;

use crate::args::{MapArgs, MoveArgs};

/// Moves a worker; returns once the switch gives it tasks of the new slice.
pub(crate) fn run_move(args: &MoveArgs) -> Outcome<()> {
    let caller = ControllerCaller::new(args.rack.remote()?)?;
    let request = MoveWorkerRequest { worker: args.worker.clone(), slice: args.slice.clone() };
    caller.ask(async |mut controller| controller.move_worker(request.clone()).await.map(|_| ()))?;
    print::line(format_args!("worker {} serves slice {}", args.worker, args.slice))
}

/// Maps a type. The slice may have no workers yet.
pub(crate) fn run_map(args: &MapArgs) -> Outcome<()> {
    let caller = ControllerCaller::new(args.rack.remote()?)?;
    let status = caller.status()?;
    let mut types = types_of(&status);
    let name = types.called(&args.task_type).map_err(Failure::bad_input)?;
    let task_type = types.number(&name).unwrap_or_default().into();
    let request = SetTypeRequest { task_type, slice: args.slice.clone() };
    caller.ask(async |mut controller| controller.set_type(request.clone()).await.map(|_| ()))?;
    if let Some(slice) = status.slices.iter().find(|slice| Some(&slice.name) == args.slice.as_ref())
        && slice.workers == 0
    {
        print::to_stderr(format_args!(
            "slice {0} has no workers, so that tasks of type {1} are refused until one joins it: start one \
             with --slice {0}, or `sluice move WORKER {0}`",
            slice.name, args.task_type
        ));
    }
    match &args.slice {
        Some(slice) => print::line(format_args!("tasks of type {} go to slice {slice}", args.task_type)),
        None => print::line(format_args!("tasks of type {} are refused", args.task_type)),
    }
}
