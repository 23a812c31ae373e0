//! `sluice compare`: simulates two policies on the same tasks, and tests whether they differ.

use sluice_support::fail::{Failure, Outcome};

use crate::study::RequestedStudy;
use crate::study::args::CurvesArgs;

/// Runs both and prints the result.
pub(crate) fn run(args: &CurvesArgs) -> Outcome<()> {
    if args.setting.length.replications < 2 {
        return Err(Failure::bad_input("a comparison needs at least 2 replications: give --replications 5"));
    }
    let asked = RequestedStudy {
        command: "compare",
        policies: args.policies.exactly::<2>("compare")?.into(),
        offered: Some(&args.offered),
        setting: &args.setting,
        slo: None,
        compared: true,
    };
    asked.run(&args.how)
}
