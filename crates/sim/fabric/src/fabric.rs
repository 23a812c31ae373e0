//! A fabric in virtual time: hosts, switches and the links between them, from the first flow to the last.

use sluice_events::dice::Dice;
use sluice_events::{ClockId, WorldEvent};
use sluice_host::pacer::{Pacer, PacerCounts};
use sluice_wire::Nanos;

use crate::error::{FabricError, require};
use crate::flow::{FinishedFlow, FlowSpec};
use crate::flowlets::FlowletCounts;
use crate::frame::Parcel;
use crate::gaps::Gaps;
use crate::hosts::{HostCounts, Hosts, sum};
use crate::ids::{HostId, PortId};
use crate::settings::FabricSettings;
use crate::switches::Switches;
use crate::topology::Topology;
use crate::wires::{Arriving, FABRIC, HostEvent, PortCounts, Wires};
use crate::wiring::Wiring;

/// If no frame reaches any host for so many times the retransmission time, none ever will.
const STUCK_AFTER: u64 = 10;

/// A fabric, with its flows and frames.
#[derive(Debug)]
pub struct Fabric {
    wires: Wires,
    hosts: Hosts,
    switches: Switches,
    clock: ClockId,
    expected: Option<FlowSpec>,
    retransmit_after: Nanos,
    payload: u64,
    longest: u32,
    host_count: u32,
}

/// One event in a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricStep {
    /// The expected flow is due to begin.
    Due(FlowSpec),
    Ended(FinishedFlow),
    /// A parcel arrived at its host.
    Came(Parcel),
    /// A parcel was lost for lack of room, which happens without PFC only.
    Lost(Parcel),
    /// Any other event.
    Other,
}

/// Counts of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricCounts {
    /// Frames that left a port, including answers and PFC frames.
    pub hops: u64,
    pub hosts: HostCounts,
    /// The counts of the flowlet tables.
    pub flowlets: FlowletCounts,
    pub pacers: PacerCounts,
    /// How many gaps a pacer has yet to learn before it holds frames; the most of any pacer.
    pub gaps_to_learn: u32,
    /// Data that switches marked.
    pub marked: u64,
    /// Pauses that switches asked for.
    pub pauses: u64,
    /// The sum of the times for which ports were paused.
    pub paused_for: Nanos,
    /// Frames that were lost for lack of room.
    pub lost: u64,
    /// The most headroom that a port used, in bytes.
    pub headroom_peak: u64,
}

impl Fabric {
    /// A fabric without frames. One seed and replication give one run.
    pub fn new(
        topology: &Topology,
        settings: &FabricSettings,
        seed: u64,
        replication: u32,
    ) -> Result<Self, FabricError> {
        let plan = Wiring::new(topology)?;
        settings.check(&plan)?;
        let mut wires = Wires::new(&plan, &settings.frames);
        let hosts = Hosts::new(&plan, settings, &mut wires)?;
        let clock = wires.engine.clock(FABRIC);
        let dice = |name: &str| Dice::named(seed, name, replication);
        Ok(Self {
            hosts,
            switches: Switches::new(plan, settings, dice),
            clock,
            expected: None,
            wires,
            retransmit_after: settings.recovery.retransmit_after,
            payload: settings.frames.payload.into(),
            longest: settings.frames.full(),
            host_count: topology.hosts,
        })
    }

    /// Runs these flows, which must be in order of their begin, until all have ended.
    pub fn run(
        &mut self,
        flows: impl IntoIterator<Item = FlowSpec>,
        mut ended: impl FnMut(FinishedFlow),
    ) -> Result<(), FabricError> {
        let mut flows = flows.into_iter();
        self.expect(flows.next())?;
        while let Some(step) = self.step()? {
            match step {
                FabricStep::Due(flow) => {
                    self.expect(flows.next())?;
                    self.begin(flow);
                }
                FabricStep::Ended(finished) => ended(finished),
                FabricStep::Came(_) | FabricStep::Lost(_) | FabricStep::Other => {}
            }
        }
        Ok(())
    }

    /// Sets the flow that begins next, or none. At its time [`Self::step`] returns [`FabricStep::Due`]. A
    /// flow that was expected before and is not due yet is forgotten.
    pub fn expect(&mut self, flow: Option<FlowSpec>) -> Result<(), FabricError> {
        if let Some(flow) = &flow {
            self.check_flow(flow)?;
        }
        self.expected = flow;
        self.wires.engine.set(self.clock, flow.map_or(Nanos(u64::MAX), |flow| flow.at));
        Ok(())
    }

    /// A flow begins now.
    pub fn begin(&mut self, flow: FlowSpec) {
        self.hosts.begin(&mut self.wires, flow);
    }

    /// A parcel leaves its host at `at`, or when the link has room; never before now.
    ///
    /// # Panics If the parcel goes to its own host, or if it is longer than a full frame, for which
    /// switches keep room.
    pub fn carry(&mut self, at: Nanos, parcel: Parcel) {
        let Parcel { from, to, bytes, .. } = parcel;
        assert!(bytes <= self.longest, "a parcel of {bytes} bytes, and frames have {} at most", self.longest);
        assert!(from != to && from.0.max(to.0) < self.host_count, "a parcel from {from:?} to {to:?}");
        let id = self.wires.frames.make(|room| *room = parcel.frame());
        self.wires.engine.schedule(at, FABRIC.at(from.0), HostEvent::Leaves(id));
    }

    /// The time of the next event; the end of time if there is none.
    #[inline]
    pub fn next_at(&self) -> Nanos {
        self.wires.engine.next_at()
    }

    /// Carries out the next event; `None` if there is none.
    #[inline]
    pub fn step(&mut self) -> Result<Option<FabricStep>, FabricError> {
        let Some((now, at, what)) = self.wires.engine.take_next() else { return Ok(None) };
        debug_assert!(now >= self.wires.now, "time goes back");
        self.wires.now = now;
        let port = PortId(at.place());
        match what {
            WorldEvent::Mail(Arriving::Frame(id)) if port.0 >= self.host_count => {
                let lost = self.switches.on_frame(&mut self.wires, port, id);
                return Ok(Some(lost.map_or(FabricStep::Other, FabricStep::Lost)));
            }
            WorldEvent::Mail(Arriving::Frame(id)) => {
                let parcel = self.wires.frames.get(id).parcel();
                let ended = self.hosts.on_frame(&mut self.wires, HostId(port.0), id);
                let ended = ended.map_or(FabricStep::Other, FabricStep::Ended);
                return Ok(Some(parcel.map_or(ended, FabricStep::Came)));
            }
            WorldEvent::Mail(Arriving::Left) if port.0 >= self.host_count => {
                self.switches.on_sent(&mut self.wires, port);
            }
            WorldEvent::Mail(Arriving::Left) => self.hosts.on_sent(&mut self.wires, HostId(port.0)),
            WorldEvent::Timer => self.hosts.on_timer(&mut self.wires, HostId(port.0)),
            WorldEvent::Clock => {
                self.wires.engine.set(self.clock, Nanos(u64::MAX));
                return Ok(Some(self.expected.take().map_or(FabricStep::Other, FabricStep::Due)));
            }
            WorldEvent::Scheduled(HostEvent::Unanswered(flow)) => {
                self.check_progress()?;
                self.hosts.check_answers(&mut self.wires, flow);
            }
            WorldEvent::Scheduled(HostEvent::Answer(flow)) => self.hosts.answer_due(&mut self.wires, flow),
            WorldEvent::Scheduled(HostEvent::Leaves(id)) => {
                self.hosts.send_parcel(&mut self.wires, HostId(port.0), id);
            }
        }
        Ok(Some(FabricStep::Other))
    }

    /// The present time.
    pub const fn now(&self) -> Nanos {
        self.wires.now
    }

    /// The counts so far.
    pub fn counts(&self) -> FabricCounts {
        let ports = || self.wires.ports.iter().map(|port| &port.counts);
        FabricCounts {
            hops: ports().map(|port| port.frames).sum(),
            hosts: self.hosts.counts(),
            flowlets: self.switches.flowlets(),
            pacers: sum(self.hosts.pacers()),
            gaps_to_learn: self.hosts.pacers().map(Pacer::gaps_to_learn).max().unwrap_or_default(),
            marked: self.switches.marked(),
            pauses: ports().map(|port| port.pauses).sum(),
            paused_for: Nanos(ports().map(|port| port.paused_for.0).sum()),
            lost: ports().map(|port| port.frames_lost).sum(),
            headroom_peak: self.switches.headroom_peak(),
        }
    }

    /// The pauses of flows between frames, at their hosts.
    pub const fn gaps(&self) -> &Gaps {
        self.hosts.gaps()
    }

    /// Forgets the pauses so far, to count later ones apart.
    pub fn forget_gaps(&mut self) {
        self.hosts.forget_gaps();
    }

    /// The ports with their peers and counts: hosts' ports first, then those of one switch after the other.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, PortId, PortCounts)> {
        let number = |at: usize| PortId(at as u32);
        self.wires.ports.iter().enumerate().map(move |(at, port)| (number(at), port.peer(), port.counts))
    }

    fn check_flow(&self, flow: &FlowSpec) -> Result<(), FabricError> {
        let FlowSpec { at, from, to, bytes } = *flow;
        let last = self.host_count - 1;
        require(
            from.0 <= last && to.0 <= last && from != to,
            "the ends of a flow",
            format_args!("{} to {}", from.0, to.0),
            format_args!("two different hosts of 0 to {last}"),
        )?;
        let most = u64::from(u32::MAX - 1) * self.payload;
        require(
            bytes <= most,
            "the size of a flow",
            format_args!("{bytes} bytes"),
            format_args!("at most {most}"),
        )?;
        let now = self.wires.now;
        require(
            at >= now,
            "the begin of a flow",
            format_args!("{} ns", at.0),
            format_args!("at least {} ns", now.0),
        )
    }

    fn check_progress(&self) -> Result<(), FabricError> {
        let silence = self.hosts.silence(self.wires.now);
        let HostCounts { begun, ended, .. } = self.hosts.counts();
        let flows = (begun - ended) as usize;
        let paused = self.wires.ports.iter().filter(|port| port.is_paused()).count();
        if flows == 0 || paused == 0 || silence < self.retransmit_after.times(STUCK_AFTER) {
            return Ok(());
        }
        Err(FabricError::Stuck { span_ns: silence.0, flows, paused })
    }
}
