//! `sluice sweep`: simulates several policies under several loads, each on the same tasks.

use sluice_experiment::RequestedStudy;
use sluice_support::fail::Outcome;

use crate::study::run_ready;
use crate::study::slurm::SweepCommand;

/// Runs the simulations and prints the results, or has other machines run them.
pub(crate) fn run(args: &SweepCommand) -> Outcome<()> {
    let (asked, how) = (RequestedStudy::sweep(&args.curves.asked)?, &args.curves.how);
    let ready = asked.ready()?;
    if args.spread.run(&ready, how)? { run_ready(&asked, &ready, how, &args.curves.export) } else { Ok(()) }
}
