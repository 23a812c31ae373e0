//! The failures of switches in a testbed's outages.

use sluice_testbed::RackLayout;
use sluice_wire::Nanos;

/// A switch that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FabricSwitch {
    Leaf(u32),
    Spine(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutageStep {
    Dies(FabricSwitch),
    /// The controller learns that the switch has failed.
    Out(FabricSwitch),
    /// The switch is back, and the controller learns it.
    Back(FabricSwitch),
}

/// The steps of a testbed's outages, in order of time.
pub(super) fn outage_steps(racks: &RackLayout) -> Vec<(Nanos, OutageStep)> {
    let mut outage_steps: Vec<_> = racks
        .outages
        .iter()
        .filter_map(|outage| {
            let who = outage.leaf.map(FabricSwitch::Leaf).or(outage.spine.map(FabricSwitch::Spine))?;
            let back = (outage.lasts > Nanos(0)).then(|| (outage.at + outage.lasts, OutageStep::Back(who)));
            let out =
                [(outage.at, OutageStep::Dies(who)), (outage.at + outage.heard_after, OutageStep::Out(who))];
            Some(out.into_iter().chain(back))
        })
        .flatten()
        .collect();
    outage_steps.sort_by_key(|(at, _)| *at);
    outage_steps
}
