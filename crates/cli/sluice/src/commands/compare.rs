//! `sluice compare`: simulates two policies on the same tasks, and tests whether they differ.

use sluice_experiment::RequestedStudy;
use sluice_support::fail::Outcome;

use crate::study::args::CurvesCommand;
use crate::study::run_requested;

/// Runs both and prints the result.
pub(crate) fn run(args: &CurvesCommand) -> Outcome<()> {
    run_requested(&RequestedStudy::compare(&args.asked)?, &args.how, &args.export)
}
