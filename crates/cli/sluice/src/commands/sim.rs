//! `sluice sim`: simulates one policy under one or several loads.

use sluice_support::fail::Outcome;
use sluice_support::plan::POLICY_DEFAULT;

use crate::study::RequestedStudy;
use crate::study::args::CurvesArgs;

/// Runs the simulation and prints the result.
pub(crate) fn run(args: &CurvesArgs) -> Outcome<()> {
    let asked = RequestedStudy {
        command: "sim",
        policies: vec![args.policies.one("sim", POLICY_DEFAULT)?],
        offered: Some(&args.offered),
        setting: &args.setting,
        slo: None,
        compared: false,
    };
    asked.run(&args.how)
}
