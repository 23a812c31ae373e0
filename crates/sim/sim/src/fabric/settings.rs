//! The settings of a testbed's fabric under a scheme.

use sluice_fabric::{FabricSettings, FlowSpec, HostId, Idle, Topology};
use sluice_testbed::FabricTestbed;
use sluice_wire::Nanos;

use super::scheme::Scheme;

/// The settings of hosts and switches under a scheme, and a frame's round trip over the longest path; an
/// error is one line that says what to change.
pub(super) fn settings_of(
    fabric: &FabricTestbed,
    scheme: Scheme,
    topology: &Topology,
) -> Result<(FabricSettings, Nanos), String> {
    let given = fabric.settings();
    let idle = Idle::new(topology, given.frames).map_err(|why| why.to_string())?;
    let round_trip = longest(&idle, topology, given.frames.payload.into());
    let (balancer, pacer) = (scheme.balancer(fabric, round_trip), scheme.pacer(fabric, round_trip));
    Ok((FabricSettings { balancer, pacer, ..given }, round_trip))
}

/// The round trip of a frame over the longest path.
fn longest(idle: &Idle, topology: &Topology, payload: u64) -> Nanos {
    let from = HostId(0);
    let others = (1..topology.hosts).map(HostId);
    let took = others.map(|to| idle.flow_time(&FlowSpec { at: Nanos(0), from, to, bytes: payload }));
    took.max().unwrap_or_default()
}
