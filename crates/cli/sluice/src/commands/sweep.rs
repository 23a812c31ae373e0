//! `sluice sweep`: simulates several policies under several loads, each on the same tasks.

use sluice_support::fail::Outcome;

use crate::study::RequestedStudy;
use crate::study::args::CurvesArgs;

/// Runs the simulations and prints the results.
pub(crate) fn run(args: &CurvesArgs) -> Outcome<()> {
    let asked = RequestedStudy {
        command: "sweep",
        policies: args.policies.some("sweep")?,
        offered: Some(&args.offered),
        setting: &args.setting,
        slo: None,
        compared: false,
    };
    asked.run(&args.how)
}
