//! A fabric over which hosts send flows: one replication of it (HF²T §5).
//!
//! The fabric is that of `sluice-fabric`. This module begins a point's flows on it, and records flows as
//! tasks. A flow's service is its time in an idle fabric, so its slowdown is relative to that. After the
//! measured span no new flow begins and those under way end, as in the public set-up: a flow whose rate was
//! lowered takes many times the span.

mod gauges;
mod joined;
mod scheme;
mod settings;
mod transport;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_fabric::{Fabric, FabricCounts, FabricError, FabricStep, FinishedFlow, Idle};
use sluice_fabric::{Topology, Traffic};
use sluice_wire::Nanos;

use gauges::fabric_gauges;
pub(crate) use joined::{JoinedFabric, write_bytes};
pub use scheme::Scheme;
use settings::settings_of;
pub(crate) use transport::{FabricTransport, PacketEnds};

use crate::error::SimError;
use sluice_stats::{Backlog, Counts, Gauges, Mark, Measured, Recorder, Replied};
use sluice_testbed::FabricTestbed;
use sluice_workload::Flows;

/// The stop flag is read after so many events.
const EVENTS_A_LOOK: u32 = 1 << 14;

/// A fabric, its scheme, and the flows that cross it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRun<'p> {
    pub(crate) scheme: Scheme,
    pub(crate) fabric: &'p FabricTestbed,
    pub(crate) flows: &'p Flows,
    /// Flows that begin per second.
    pub(crate) rate_per_s: f64,
}

impl FlowRun<'_> {
    /// Why it cannot be simulated, in one line; `None` if it can.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.build(1, 0).map(|_| ()).err()
    }

    /// The most flows per second that the links between switches can carry.
    pub(crate) fn rate_max_per_s(&self) -> f64 {
        let Ok(topology) = self.fabric.topology() else { return 0.0 };
        let most = Traffic::most(&topology).unwrap_or(0.0).min(1.0);
        most * self.rate_per_s / self.load(&topology)
    }

    /// Runs one replication.
    pub(crate) fn run(
        &self,
        recorder: Recorder,
        (seed, replication): (u64, u32),
        stop: &AtomicBool,
    ) -> Result<Measured, SimError> {
        let mut built = self.build(seed, replication).map_err(SimError::Point)?;
        let failed = |why: FabricError| SimError::Point(why.to_string());
        let mut arrivals = built.traffic.arrivals(&built.topology, seed, replication).map_err(failed)?;
        let mut watch = FlowRecorder::new(recorder, built.round_trip);
        let (mut events, bounds) = (0_u32, self.bounds());
        built.fabric.expect(arrivals.next()).map_err(failed)?;
        while let Some(step) = built.fabric.step().map_err(failed)? {
            match step {
                FabricStep::Due(flow) => {
                    watch.begins(&mut built.fabric, flow.at);
                    let next = arrivals.next().filter(|_| watch.gauges.is_none());
                    built.fabric.expect(next).map_err(failed)?;
                    built.fabric.begin(flow);
                }
                FabricStep::Ended(finished) => watch.ended(&finished, &built.idle, &bounds),
                FabricStep::Came(_) | FabricStep::Lost(_) | FabricStep::Other => {}
            }
            events = events.wrapping_add(1);
            if watch.recorder.is_complete() {
                break;
            }
            if events.is_multiple_of(EVENTS_A_LOOK) && stop.load(Ordering::Relaxed) {
                return Err(SimError::Stopped);
            }
        }
        Ok(watch.finish(&built.fabric))
    }

    /// The largest flow of each class.
    fn bounds(&self) -> Vec<u64> {
        self.flows.sizes().parts().into_iter().map(|(most, ..)| most).collect()
    }

    /// The share of its hosts' links that the flows take.
    fn load(&self, topology: &Topology) -> f64 {
        let bytes_per_s = self.rate_per_s * self.flows.sizes().mean();
        bytes_per_s * 8.0 / (f64::from(topology.hosts) * self.fabric.gbps * 1e9)
    }

    fn build(&self, seed: u64, replication: u32) -> Result<Built, String> {
        let topology = self.fabric.topology()?;
        let told = |why: FabricError| why.to_string();
        let traffic =
            Traffic { sizes: self.flows.sizes().clone(), load: self.load(&topology), flows: u64::MAX };
        traffic.arrivals(&topology, seed, replication).map_err(told)?;
        let (settings, round_trip) = settings_of(self.fabric, self.scheme, &topology)?;
        let idle = Idle::new(&topology, settings.frames).map_err(told)?;
        let fabric = Fabric::new(&topology, &settings, seed, replication).map_err(told)?;
        Ok(Built { topology, traffic, idle, round_trip, fabric })
    }
}

/// The parts of a replication before it begins.
struct Built {
    topology: Topology,
    traffic: Traffic,
    idle: Idle,
    round_trip: Nanos,
    fabric: Fabric,
}

/// Records the flows of a replication.
struct FlowRecorder {
    recorder: Recorder,
    round_trip: Nanos,
    /// The fabric's counts when the measured span began.
    opened: FabricCounts,
    gauges: Option<Gauges>,
}

impl FlowRecorder {
    fn new(recorder: Recorder, round_trip: Nanos) -> Self {
        Self { recorder, round_trip, opened: FabricCounts::default(), gauges: None }
    }

    fn begins(&mut self, fabric: &mut Fabric, at: Nanos) {
        match self.recorder.sent(at) {
            Mark::None => {}
            Mark::Opened => {
                self.opened = fabric.counts();
                fabric.forget_gaps();
            }
            Mark::Closed => self.gauges = Some(self.read(fabric)),
        }
    }

    fn ended(&mut self, finished: &FinishedFlow, idle: &Idle, bounds: &[u64]) {
        let service = idle.flow_time(&finished.flow);
        let class = bounds.partition_point(|most| *most < finished.flow.bytes).min(bounds.len() - 1);
        self.recorder.done(&Replied {
            class: class as u8,
            intended: finished.flow.at,
            at: finished.flow.at + finished.took,
            service,
            served: service,
            waited: Nanos(finished.took.0.saturating_sub(service.0)),
        });
    }

    fn finish(self, fabric: &Fabric) -> Measured {
        let gauges = self.gauges.unwrap_or_else(|| self.read(fabric));
        let measured = self.recorder.finish(Counts::default(), gauges);
        // The longest flows outlast the span, and all flows have ended: a backlog would mean nothing.
        let backlog = Backlog { replies: measured.counts.sent, ..Backlog::default() };
        Measured { backlog, ..measured }
    }

    /// The gauges since the measured span began.
    fn read(&self, fabric: &Fabric) -> Gauges {
        fabric_gauges(&fabric.counts(), &self.opened, fabric.gaps(), self.round_trip)
    }
}
