//! `sluice throughput`: searches for the highest rate at which policies keep a limit.

use sluice_experiment::RequestedStudy;
use sluice_support::fail::Outcome;

use crate::study::args::ThroughputCommand;
use crate::study::run_requested;

/// Searches for the highest rate within the limit, and prints it.
pub(crate) fn run(args: &ThroughputCommand) -> Outcome<()> {
    run_requested(&RequestedStudy::throughput(&args.asked)?, &args.how, &args.export)
}
