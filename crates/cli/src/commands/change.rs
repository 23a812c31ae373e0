//! `sluice move` and `sluice map`: which slice a worker serves, and which slice takes a type. No task is
//! lost: what waits stays where it is, and a slice that takes tasks keeps a worker.

use sluice_ground::ask::Asker;
use sluice_ground::fail::{Failure, Outcome};
use sluice_ground::plan::Types;
use sluice_ground::print;
use sluice_net::rpc::v1::{MoveWorkerRequest, SetTypeRequest};

use crate::args::{Map, Move};

/// Moves a worker; done once the switch feeds it from there.
pub(crate) fn moves(args: &Move) -> Outcome<()> {
    let asker = Asker::new(args.rack.remote()?)?;
    let request = MoveWorkerRequest { worker: args.worker.clone(), slice: args.slice.clone() };
    asker.ask(async |mut controller| controller.move_worker(request.clone()).await.map(|_| ()))?;
    print::line(format_args!("worker {} serves slice {}", args.worker, args.slice))
}

/// Maps a type.
pub(crate) fn map(args: &Map) -> Outcome<()> {
    let asker = Asker::new(args.rack.remote()?)?;
    let mut types = Types::ours();
    let name = types.called(&args.task_type).map_err(Failure::bad_input)?;
    let task_type = types.number(&name).unwrap_or_default().into();
    let request = SetTypeRequest { task_type, slice: args.slice.clone() };
    asker.ask(async |mut controller| controller.set_type(request.clone()).await.map(|_| ()))?;
    match &args.slice {
        Some(slice) => print::line(format_args!("tasks of type {} go to slice {slice}", args.task_type)),
        None => print::line(format_args!("tasks of type {} are refused", args.task_type)),
    }
}
