//! `sluice throughput`: searches for the highest rate at which policies keep a limit.

use sluice_support::fail::Outcome;

use crate::study::RequestedStudy;
use crate::study::args::ThroughputArgs;

/// Searches for the highest rate within the limit, and prints it.
pub(crate) fn run(args: &ThroughputArgs) -> Outcome<()> {
    let asked = RequestedStudy {
        command: "throughput",
        policies: args.policies.some("throughput")?,
        offered: None,
        setting: &args.setting,
        slo: Some(&args.slo),
        compared: false,
    };
    asked.run(&args.how)
}
