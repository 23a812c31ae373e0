//! A fabric below a rack: the rack's packets are frames on it, among the flows that hosts send each other.

#[cfg(test)]
use sluice_fabric::{Ecn, FabricSettings};
use sluice_fabric::{Fabric, FabricError, FlowArrivals, Topology, Traffic};
use sluice_testbed::{BackgroundFlows, FabricTestbed, Testbed};
use sluice_wire::roce::write_len;
use sluice_wire::{INLINE_BYTES, JOB_TASKS_MAX, Nanos, Packet, SLOT_HEAD_BYTES, encoded_len, trailer_bytes};
use sluice_workload::{Class, published_sizes};

use super::scheme::Scheme;
use super::settings::settings_of;

/// The headers before a packet (Ethernet, IPv4, UDP), and the bytes around a frame: preamble, checksum,
/// gap.
const AROUND_BYTES: u32 = 14 + 20 + 8 + 24;

/// The bytes of a packet on a link.
#[inline]
pub(crate) const fn frame_bytes(packet: &Packet) -> u32 {
    AROUND_BYTES + encoded_len(packet) as u32
}

/// The bytes on a link of the WRITE of a task with so many bytes.
pub(crate) fn write_bytes(bytes: u16) -> u32 {
    AROUND_BYTES + write_len(SLOT_HEAD_BYTES + usize::from(bytes)) as u32
}

/// A fabric, and the flows that cross it beside a rack's packets.
#[derive(Debug)]
pub(crate) struct JoinedFabric {
    pub(crate) fabric: Fabric,
    pub(crate) flows: Option<FlowArrivals>,
    /// The round trip of a full frame over the longest path.
    pub(crate) round_trip: Nanos,
}

impl JoinedFabric {
    /// The fabric of a testbed that has one below its rack, with all these nodes and links; an error is one
    /// line that says what to change.
    pub(crate) fn over(
        topology: &Topology,
        testbed: &Testbed,
        seed: u64,
        replication: u32,
    ) -> Result<Option<Self>, String> {
        let Some((fabric, background)) = testbed.background() else { return Ok(None) };
        let scheme = scheme(&background.scheme).map_err(|why| format!("fabric.background.scheme{why}"))?;
        let told = |why: FabricError| why.to_string();
        let mut flows = flows(fabric, background, seed, replication)?;
        let (settings, round_trip) = settings_of(fabric, scheme, &fabric.topology()?)?;
        let mut fabric = Fabric::new(topology, &settings, seed, replication).map_err(told)?;
        fabric.expect(flows.as_mut().and_then(Iterator::next)).map_err(told)?;
        Ok(Some(Self { fabric, flows, round_trip }))
    }

    /// A fabric of delays only: no marks, no pauses, unlimited room, no flows.
    #[cfg(test)]
    pub(crate) fn without_limits(topology: &Topology) -> Self {
        let settings = FabricSettings {
            pfc: None,
            buffer_bytes: 1 << 40,
            ecn: Ecn { k_min: u64::MAX, k_max: u64::MAX, p_max: 0.0 },
            ..FabricSettings::default()
        };
        let fabric = Fabric::new(topology, &settings, 1, 0).expect("its links are legal");
        Self { fabric, flows: None, round_trip: Nanos(1) }
    }

    /// Why a testbed's fabric cannot carry a rack with such tasks, in one line; `None` if it can.
    pub(crate) fn complaint(testbed: &Testbed, classes: &[Class]) -> Option<String> {
        let (fabric, _) = testbed.background()?;
        let large = classes.iter().filter(|class| class.large > 0.0);
        let bytes = large.map(|class| class.bytes).max().unwrap_or(0);
        let (small, large) = (JOB_TASKS_MAX * INLINE_BYTES, usize::from(bytes));
        let behind = small.max(large + trailer_bytes(large));
        let packet = frame_bytes(&Packet::Token(<_>::default())) + behind as u32;
        let (longest, most) = (packet.max(write_bytes(bytes)), fabric.settings().frames.full());
        if longest <= most {
            let topology = testbed.joined_topology()?;
            return topology.and_then(|topology| Self::over(&topology, testbed, 1, 0)).err();
        }
        let payload = fabric.payload + longest - most;
        Some(format!(
            "tasks of {bytes} bytes take frames of {longest} on the fabric, whose frames have {most}: write \
             fabric.payload = {payload}"
        ))
    }
}

fn scheme(text: &str) -> Result<Scheme, String> {
    let unknown = || format!(" = `{}`: write one such as letflow:paced", text.escape_debug());
    Scheme::parse(text).ok_or_else(unknown)?.map_err(|why| format!(": {why}"))
}

/// The flows that the hosts send each other, if there are any.
fn flows(
    fabric: &FabricTestbed,
    background: &BackgroundFlows,
    seed: u64,
    replication: u32,
) -> Result<Option<FlowArrivals>, String> {
    if background.load <= 0.0 {
        return Ok(None);
    }
    let sizes =
        published_sizes(&background.flows).map_err(|why| format!("fabric.background.flows: {why}"))?;
    let traffic = Traffic { sizes, load: background.load, flows: u64::MAX };
    let arrivals = traffic.arrivals(&fabric.topology()?, seed, replication);
    arrivals.map(Some).map_err(|why| format!("fabric.background.load: {why}"))
}
