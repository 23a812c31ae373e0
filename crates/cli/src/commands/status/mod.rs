//! `sluice status`: how a rack stands, as its controller says; once, or again and again.

mod shown;
mod watch;

use sluice_ground::ask::Asker;
use sluice_ground::fail::Outcome;
use sluice_ground::print;

use crate::args::Status;
use shown::{text, to_json};

/// Asks and prints the answer.
pub(crate) fn run(args: &Status) -> Outcome<()> {
    let controller = args.rack.remote()?;
    let url = controller.url().to_owned();
    let asker = Asker::new(controller)?;
    if args.watch {
        return watch::run(args, &url, &asker);
    }
    let status = asker.status()?;
    if args.json { print::line(to_json(&status)) } else { print::text(text(&url, &status)) }
}
