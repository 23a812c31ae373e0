//! All constants of a fabric, each with its public source.
//!
//! "Public set-up" is the ns-3 code that the authors of ConWeave published
//! (`conweave-project/conweave-ns3`: its `run.py`, `switch-mmu.cc` and `rdma-hw.cc`), which goes back to
//! HPCC's simulator. HF²T names ns-3 and DCQCN and none of these numbers.

use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

use crate::balance::PathBalancer;
use crate::connections::Connections;
use crate::dcqcn::DcqcnSettings;
use crate::error::{FabricError, require};
use crate::frame::{FrameSizes, UNDER_WAY_MAX};
use crate::topology::LinkSpeed;
use crate::window::WindowSettings;
use crate::wiring::Wiring;

/// The most pairs of hosts, or paths between switches, for which state is kept.
const PAIRS_MAX: u64 = 1 << 22;

/// The settings of a fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FabricSettings {
    /// The sizes of frames and answers.
    pub frames: FrameSizes,
    /// What a switch's memory holds, in bytes (public set-up: 9 MB).
    pub buffer_bytes: u64,
    /// The share of a switch's free memory that the frames from one port may take before that port is
    /// paused (public set-up: 1/16).
    pub ingress_alpha: f64,
    /// Without PFC: the share of the free memory that one port's queue may take before frames are lost
    /// (public set-up: 1).
    pub egress_alpha: f64,
    /// When data are marked.
    pub ecn: Ecn,
    /// Whether frames are held back rather than lost.
    pub pfc: Option<Pfc>,
    /// How fast hosts send; without it each flow sends as fast as its link.
    pub dcqcn: Option<DcqcnSettings>,
    /// Windows like TCP's, in place of DCQCN.
    pub window: Option<WindowSettings>,
    /// How often data are answered.
    pub answers: AckSettings,
    /// Which frames form one flow, as far as pauses matter.
    pub connections: Connections,
    /// How lost and late frames are handled.
    pub recovery: Recovery,
    /// How switches choose among paths.
    pub balancer: PathBalancer,
    /// The pacer that makes flowlets at the hosts (HF²T §4), if there is one.
    pub pacer: Option<PacerSettings>,
}

impl Default for FabricSettings {
    fn default() -> Self {
        Self {
            frames: FrameSizes::default(),
            buffer_bytes: 9_000_000,
            ingress_alpha: 1.0 / 16.0,
            egress_alpha: 1.0,
            ecn: Ecn::default(),
            pfc: Some(Pfc::default()),
            dcqcn: Some(DcqcnSettings::default()),
            window: None,
            answers: AckSettings::default(),
            connections: Connections::default(),
            recovery: Recovery::default(),
            balancer: PathBalancer::Ecmp,
            pacer: None,
        }
    }
}

/// Congestion marks: no frame is marked up to the lower bound of a queue, every frame above the upper
/// bound, and in between a share that grows linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    /// The lower bound, in bytes (public set-up: 100 KB).
    pub k_min: u64,
    /// The upper bound, in bytes (public set-up: 400 KB).
    pub k_max: u64,
    /// The share that is marked just below the upper bound (public set-up: 0.2).
    pub p_max: f64,
}

impl Default for Ecn {
    fn default() -> Self {
        Self { k_min: 100_000, k_max: 400_000, p_max: 0.2 }
    }
}

/// Priority flow control (IEEE 802.1Qbb).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pfc {
    /// How many bytes a port may still take after it has asked for a pause. `None` means what can arrive: 2
    /// · delay · rate + 2 frames (public set-up), plus the PFC frame itself, which the public set-up leaves
    /// out.
    pub headroom: Option<u64>,
}

impl Pfc {
    /// The most bytes that arrive over a link after a pause was asked for. The PFC frame waits for a frame
    /// that has just begun, and the other end finishes a frame that it has just begun.
    pub fn least(speed: LinkSpeed, frames: &FrameSizes) -> u64 {
        let LinkSpeed { gbps, delay } = speed;
        let under_way = if delay.0 == 0 { 0.0 } else { 2.0 * delay.0 as f64 * gbps / 8.0 };
        let whole = 2 * u64::from(frames.full()) + u64::from(frames.pause);
        whole.saturating_add(under_way.ceil() as u64)
    }

    /// The headroom of a port with such a link.
    pub(crate) fn of(self, speed: LinkSpeed, frames: &FrameSizes) -> u64 {
        self.headroom.unwrap_or_else(|| Self::least(speed, frames))
    }
}

/// How often data are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSettings {
    /// So many frames in order are answered together (public set-up: 1; TCP: 2, RFC 5681, or 64 KiB of
    /// frames, as Linux' GRO hands them on).
    pub every: u32,
    /// How long fewer frames wait for their answer. A flow's last frame is answered at once, and so is a
    /// frame that is out of order or met congestion.
    pub after: Nanos,
}

impl Default for AckSettings {
    fn default() -> Self {
        Self { every: 1, after: Nanos::from_micros(40) }
    }
}

/// Which frames are sent again when one is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retransmission {
    /// All from the missing one on: a receiver takes frames in order only (public set-up).
    #[default]
    GoBackN,
    Selective {
        /// The most frames that a flow has under way (IRN §3: as many as fill a round trip of the longest
        /// path).
        under_way: u32,
    },
}

/// How hosts ask for missing frames, and send them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// How long after a NACK it may be repeated for the same frame (public set-up: 4 µs).
    pub nack_interval: Nanos,
    /// How long a host waits for any answer before it sends again (public set-up: 4 ms).
    pub retransmit_after: Nanos,
    /// Whether a NACK reports congestion (public set-up: it does).
    pub nack_is_congestion: bool,
    /// What is sent again.
    pub repeat: Retransmission,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            nack_interval: Nanos::from_micros(4),
            retransmit_after: Nanos::from_millis(4),
            nack_is_congestion: true,
            repeat: Retransmission::GoBackN,
        }
    }
}

impl FabricSettings {
    /// How long a full frame occupies a host's link.
    pub(crate) fn frame_time(&self, gbps: f64) -> Nanos {
        Nanos((f64::from(self.frames.full()) * 8.0 / gbps).ceil() as u64)
    }

    /// Checks that the settings fit this topology.
    pub(crate) fn check(&self, plan: &Wiring) -> Result<(), FabricError> {
        self.check_numbers()?;
        self.balancer.check()?;
        if let Some(dcqcn) = &self.dcqcn {
            dcqcn.check()?;
        }
        self.check_windows()?;
        self.check_tables(plan)?;
        let slowest = plan.sockets[..plan.hosts as usize].iter().map(|socket| socket.speed.gbps);
        let frame = self.frame_time(slowest.fold(f64::INFINITY, f64::min));
        if let Some(threshold) = self.balancer.threshold() {
            let wanted = format!("more than a frame of {} bytes takes, {} ns", self.frames.full(), frame.0);
            require(threshold > frame, "the flowlet threshold", format_args!("{} ns", threshold.0), &wanted)?;
        }
        if let Some(pacer) = &self.pacer {
            pacer.check(frame)?;
        }
        self.check_headroom(plan)
    }

    fn check_numbers(&self) -> Result<(), FabricError> {
        let Self { frames, ecn, recovery, .. } = self;
        let sizes = [
            (frames.payload, "the payload of a frame", 1, 65_535),
            (frames.header, "the header of a frame", 0, 1_000),
            (frames.answer, "an answer", 1, 65_535),
            (frames.pause, "a PFC frame", 1, 65_535),
        ];
        for (bytes, what, least, most) in sizes {
            require(
                (least..=most).contains(&bytes),
                what,
                format_args!("{bytes} bytes"),
                format_args!("{least} to {most}"),
            )?;
        }
        for (alpha, what) in
            [(self.ingress_alpha, "the ingress alpha"), (self.egress_alpha, "the egress alpha")]
        {
            require(alpha > 0.0 && alpha <= 128.0, what, alpha, "more than 0, at most 128")?;
        }
        let bounds = format!("{} and {} bytes", ecn.k_min, ecn.k_max);
        require(ecn.k_min <= ecn.k_max, "the bounds of ECN", &bounds, "the lower one first")?;
        require((0.0..=1.0).contains(&ecn.p_max), "the share of ECN", ecn.p_max, "0 to 1")?;
        let after = recovery.retransmit_after;
        require(after.0 > 0, "the time to send again", format_args!("{} ns", after.0), "more than 0")
    }

    fn check_windows(&self) -> Result<(), FabricError> {
        if let Some(window) = self.window {
            window.check()?;
            require(
                self.dcqcn.is_none(),
                "who decides how fast hosts send",
                "DCQCN and windows",
                "one of them",
            )?;
        }
        if let Retransmission::Selective { under_way } = self.recovery.repeat {
            let wanted = format!("1 to {UNDER_WAY_MAX}");
            require((1..=UNDER_WAY_MAX).contains(&under_way), "the frames under way", under_way, wanted)?;
        }
        let AckSettings { every, after } = self.answers;
        require(every > 0, "the frames that are answered together", every, "at least 1")?;
        let patience = self.recovery.retransmit_after;
        require(
            every == 1 || after.0 > 0 && after < patience,
            "the time to an answer",
            format_args!("{} ns", after.0),
            format_args!("more than 0, less than the {} ns after which a host sends again", patience.0),
        )
    }

    /// Checks that the state per pair of hosts, or per path between two switches, stays within its limit.
    fn check_tables(&self, plan: &Wiring) -> Result<(), FabricError> {
        let pairs = u64::from(plan.hosts).pow(2);
        let hosts = plan.hosts;
        require(
            self.connections == Connections::EachFlow || pairs <= PAIRS_MAX,
            "a connection for each pair of hosts",
            format_args!("{hosts} hosts"),
            "at most 2,048 hosts",
        )?;
        let edges = plan.edges();
        let paths = (1..edges).map(|to| plan.paths(0, to)).max().unwrap_or(1) as u64;
        require(
            !matches!(self.balancer, PathBalancer::Conga(_)) || (edges as u64).pow(2) * paths <= PAIRS_MAX,
            "what CONGA keeps",
            format_args!("{paths} paths between each two of {edges} switches"),
            "a smaller fabric, or another load balancer",
        )
    }

    fn check_headroom(&self, plan: &Wiring) -> Result<(), FabricError> {
        let (Some(pfc), frames) = (self.pfc, &self.frames) else { return Ok(()) };
        for switch in 0..plan.switches {
            let ports = plan.ports_of(crate::ids::SwitchId(switch));
            let mut reserved = 0;
            for socket in &plan.sockets[ports.clone()] {
                let (headroom, least) = (pfc.of(socket.speed, frames), Pfc::least(socket.speed, frames));
                if headroom < least {
                    let LinkSpeed { gbps, delay } = socket.speed;
                    return Err(FabricError::Headroom { headroom, gbps, delay_ns: delay.0, least });
                }
                reserved = u64::saturating_add(reserved, headroom.saturating_add(frames.full().into()));
            }
            if reserved >= self.buffer_bytes {
                let (buffer, ports) = (self.buffer_bytes, ports.len());
                return Err(FabricError::Buffer { buffer, ports, reserved });
            }
        }
        Ok(())
    }
}
