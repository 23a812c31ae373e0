//! The time of a flow that has the fabric to itself, in closed form: slowdown is measured against it.

use sluice_wire::Nanos;

use crate::error::FabricError;
use crate::flow::FlowSpec;
use crate::frame::{FrameSizes, Parcel};
use crate::ids::{PortId, SwitchId};
use crate::topology::{FabricEnd, Topology};
use crate::wires::fs_a_byte;
use crate::wiring::{PortSpec, Wiring};

/// An idle fabric.
#[derive(Clone, Debug)]
pub struct Idle {
    plan: Wiring,
    sizes: FrameSizes,
}

impl Idle {
    /// The idle fabric of a topology.
    pub fn new(topology: &Topology, sizes: FrameSizes) -> Result<Self, FabricError> {
        Ok(Self { plan: Wiring::new(topology)?, sizes })
    }

    /// The time from a flow's begin to its last ACK, over the first of its shortest paths. Frames follow
    /// each other at the rate of the slowest link so far. The last frame, which may be shorter, waits for
    /// the one before it, and so do the ACKs. The result is exact except for fractions of a nanosecond, one
    /// per hop, by which arrivals are rounded up. It assumes that ACKs are short and wait only for the ACK
    /// before.
    pub fn flow_time(&self, flow: &FlowSpec) -> Nanos {
        let frames = self.sizes.count(flow.bytes);
        let [full, last, answer] =
            [self.sizes.full(), self.sizes.last(flow.bytes), self.sizes.answer].map(u64::from);
        let path: Vec<_> =
            self.path(flow).map(|socket| (fs_a_byte(socket.speed.gbps), socket.speed.delay)).collect();
        let span = |bytes, fs| bytes * fs / 1_000;
        let (mut first, mut slowest, mut before, mut end) = (0, 0, 0, 0);
        for (fs, delay) in path.iter().map(|(fs, delay)| (*fs, delay.0 * 1_000)) {
            first += span(full, fs);
            slowest = slowest.max(span(full, fs));
            // When the frame before the last has left this port: all frames before it have passed the
            // slowest link.
            before = if frames > 1 { first + (frames - 2) * slowest } else { 0 };
            end = before.max(end) + span(last, fs) + delay;
            (first, before) = (first + delay, before + delay);
        }
        for (fs, delay) in path.iter().rev().map(|(fs, delay)| (*fs, delay.0 * 1_000)) {
            before += if frames > 1 { span(answer, fs) } else { 0 };
            end = before.max(end) + span(answer, fs) + delay;
            before += delay;
        }
        Nanos(end / 1_000)
    }

    /// The time of a parcel from its host to the other, over the first of the shortest paths. Each arrival
    /// is rounded up to a nanosecond.
    pub fn parcel_time(&self, parcel: &Parcel) -> Nanos {
        let Parcel { from, to, bytes, .. } = *parcel;
        let link = |socket: &PortSpec| {
            let span_ps = u64::from(bytes) * fs_a_byte(socket.speed.gbps) / 1_000;
            span_ps.div_ceil(1_000) + socket.speed.delay.0
        };
        Nanos(self.path(&FlowSpec { at: Nanos(0), from, to, bytes: 0 }).map(link).sum())
    }

    /// How many links a flow's shortest paths have.
    pub fn hops(&self, flow: &FlowSpec) -> usize {
        self.path(flow).count()
    }

    /// The ports by which the first of a flow's shortest paths leaves.
    fn path(&self, flow: &FlowSpec) -> impl Iterator<Item = &PortSpec> {
        let mut port = Some(PortId(flow.from.0));
        std::iter::from_fn(move || {
            let socket = &self.plan.sockets[port?.index()];
            port = match self.plan.sockets[socket.peer.index()].owner {
                FabricEnd::Host(_) => None,
                FabricEnd::Switch(switch) => self.first_way(switch, flow),
            };
            Some(socket)
        })
    }

    fn first_way(&self, from: SwitchId, flow: &FlowSpec) -> Option<PortId> {
        self.plan.ways(from, flow.to).first().copied()
    }
}
