//! Which plans a switch on BMv2 can run.

use sluice_kernel::spaces::MTU_BYTES;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::Plan;

/// Refuses what the P4 program has not, before anything is created.
///
/// # Errors
/// One line that says what, and what next.
pub fn check(plan: &Plan) -> Outcome<()> {
    let traits = plan.program().traits();
    let mtu = u32::from(plan.rdma.link_mtu);
    let refused = [
        (
            !traits.runs_in_kernel,
            "schedules by rain only, without ranks, sizes, classes or labels: leave the policy out",
        ),
        (traits.takes_targets, "has no targets: leave `target` out of the policy"),
        (plan.racks.is_some(), "is one rack's switch: leave racks out"),
        (plan.switch.testbed_delays, "cannot hold packets for testbed_delays: leave them out"),
        (
            plan.rdma.reliable && !plan.servers().is_empty(),
            "writes by unreliable pairs only: leave `transport` out of [rdma]",
        ),
        (mtu > MTU_BYTES, "has links of 3400 B: lower `link_mtu` in [rdma]"),
    ];
    match refused.iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(Failure::bad_input(format!("--io bmv2 {why}, or take --io udp"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "[[slice]]\nname = \"work\"\ntypes = [\"hold\"]\n";

    fn said(policy: &str, more: &str) -> String {
        let plan = Plan::from_text("here", &format!("policy = \"{policy}\"\n{PLAN}{more}")).expect("a plan");
        check(&plan).err().map_or_else(String::new, |why| why.to_string())
    }

    #[test]
    fn what_the_p4_program_has_not_is_refused_in_one_line() {
        for policy in ["rain", "rain:1", "rain:2,patient,early", "rain:adaptive"] {
            assert_eq!(said(policy, ""), "", "{policy}");
        }
        for (policy, more, why) in [
            ("r2p2:2", "", "rain only"),
            ("rain:2,ranked", "", "ranks"),
            ("rain:2,classes=2", "", "classes"),
            ("rain:2,target=50us", "", "no targets"),
            ("rain:2", "[switch]\ntestbed_delays = true\n", "testbed_delays"),
        ] {
            let said = said(policy, more);
            assert!(said.contains(why) && said.lines().count() == 1, "{policy}: {said}");
        }
    }
}
