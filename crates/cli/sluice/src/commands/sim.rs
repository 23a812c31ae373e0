//! `sluice sim`: one policy under one load, or under some.

use sluice_support::fail::Outcome;
use sluice_support::plan::POLICY_DEFAULT;

use crate::study::Asked;
use crate::study::args::Curves;

/// Runs it and shows what came of it.
pub(crate) fn run(args: &Curves) -> Outcome<()> {
    let asked = Asked {
        command: "sim",
        policies: vec![args.policies.one("sim", POLICY_DEFAULT)?],
        offered: Some(&args.offered),
        setting: &args.setting,
        slo: None,
        compared: false,
    };
    asked.run(&args.how)
}
