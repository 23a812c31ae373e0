//! `sluice status`: the state of a rack, or of each of several spines, as its controller reports it; once,
//! or repeatedly.

mod shown;
mod snapshot;
mod watch;
mod wrong;

use sluice_support::fail::Outcome;
use sluice_support::print;

use crate::args::StatusArgs;
use snapshot::ControllerCallers;

/// Asks and prints the answer.
pub(crate) fn run(args: &StatusArgs) -> Outcome<()> {
    let askers = ControllerCallers::of(args.rack.remotes()?)?;
    if args.watch {
        return watch::run(args, &askers);
    }
    let look = askers.first_look()?;
    if args.json { print::line(look.to_json()) } else { print::text(look.text()) }
}
