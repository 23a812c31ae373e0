//! `sluice move` and `sluice map`: which slice a worker serves, and which slice takes a type. No task is lost: what waits
//! stays where it is, and a slice that takes tasks keeps a worker.

use sluice_net::rpc::v1::{MoveWorkerRequest, SetTypeRequest};

use crate::args::{Map, Move};
use crate::fail::{Failure, Outcome};
use crate::hint;
use crate::plan::default_types;
use crate::print;
use crate::rack::ask::Asker;

/// Moves a worker; done once the switch feeds it from there.
pub(crate) fn moves(args: &Move) -> Outcome<()> {
    let asker = Asker::new(args.controller.remote()?)?;
    let request = MoveWorkerRequest { worker: args.worker.clone(), slice: args.slice.clone() };
    asker.ask(async |mut controller| controller.move_worker(request.clone()).await.map(|_| ()))?;
    print::line(format_args!("worker {} serves slice {}", args.worker, args.slice))
}

/// Maps a type.
pub(crate) fn map(args: &Map) -> Outcome<()> {
    let asker = Asker::new(args.controller.remote()?)?;
    let request = SetTypeRequest { task_type: number(&args.task_type)?.into(), slice: args.slice.clone() };
    asker.ask(async |mut controller| controller.set_type(request.clone()).await.map(|_| ()))?;
    match &args.slice {
        Some(slice) => print::line(format_args!("tasks of type {} go to slice {slice}", args.task_type)),
        None => print::line(format_args!("tasks of type {} are refused", args.task_type)),
    }
}

/// A type's number, or the number of one of ours.
fn number(text: &str) -> Outcome<u16> {
    let known = default_types();
    let named = known.iter().find(|(name, _)| name == text).map(|(_, number)| *number);
    named.or_else(|| text.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        Failure::bad_input(format!("{}; or give its number", hint::unknown("type", text, &names)))
    })
}
