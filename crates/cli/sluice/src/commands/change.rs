//! `sluice move` and `sluice map`: change which slice a worker serves, and which slice takes a type.

use sluice_support::controller_caller::ControllerCaller;
use sluice_support::fail::Outcome;
use sluice_support::print;
use sluice_support::rack_change::{ChangeDone, map_type, move_worker};

use crate::args::{MapArgs, MoveArgs};

/// Moves a worker.
pub(crate) fn run_move(args: &MoveArgs) -> Outcome<()> {
    let caller = ControllerCaller::new(args.rack.remote()?)?;
    tell(&caller.change(async |rack| move_worker(rack, &args.worker, &args.slice).await)?)
}

/// Maps a type.
pub(crate) fn run_map(args: &MapArgs) -> Outcome<()> {
    let caller = ControllerCaller::new(args.rack.remote()?)?;
    tell(&caller.change(async |rack| map_type(rack, &args.task_type, args.slice.as_deref()).await)?)
}

fn tell(done: &ChangeDone) -> Outcome<()> {
    if let Some(warning) = &done.warning {
        print::to_stderr(warning);
    }
    print::line(&done.text)
}
