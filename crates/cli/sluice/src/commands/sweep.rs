//! `sluice sweep`: simulates several policies under several loads, each on the same tasks.

use sluice_support::fail::Outcome;

use crate::study::Asked;
use crate::study::args::Curves;

/// Runs the simulations and prints the results.
pub(crate) fn run(args: &Curves) -> Outcome<()> {
    let asked = Asked {
        command: "sweep",
        policies: args.policies.some("sweep")?,
        offered: Some(&args.offered),
        setting: &args.setting,
        slo: None,
        compared: false,
    };
    asked.run(&args.how)
}
