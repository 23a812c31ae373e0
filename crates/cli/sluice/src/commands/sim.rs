//! `sluice sim`: simulates one policy under one or several loads.

use sluice_experiment::RequestedStudy;
use sluice_support::fail::Outcome;
use sluice_support::plan::POLICY_DEFAULT;

use crate::study::args::CurvesCommand;
use crate::study::run_requested;

/// Runs the simulation and prints the result.
pub(crate) fn run(args: &CurvesCommand) -> Outcome<()> {
    run_requested(&RequestedStudy::sim(&args.asked, POLICY_DEFAULT)?, &args.how, &args.export)
}
