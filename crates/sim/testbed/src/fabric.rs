//! A fabric as a testbed: its switches and links, and all constants of its hosts and switches.

use core::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_fabric::{
    AckSettings, Connections, DcqcnSettings, Ecn, FabricError, FabricSettings, FrameSizes, LinkSpeed, Pfc,
    Recovery, Retransmission, Topology, WindowSettings,
};
use sluice_units as text;
use sluice_wire::Nanos;

use super::background::{BackgroundFlows, RackHosts};
use super::tiers::{LeafSpine, TierHosts, Tiers};
use super::toml_text::span;

/// A fabric below hosts. Each key has the default of the crate `sluice-fabric`, which names its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FabricTestbed {
    /// `fat-tree:K`, or `leaf-spine:LEAVES:SPINES:HOSTS` with so many hosts at each leaf.
    pub topology: String,
    /// The rate of all links, in Gb/s.
    pub gbps: f64,
    #[serde(with = "span")]
    pub delay: Nanos,
    /// The part of a flow in one frame, in bytes.
    pub payload: u32,
    pub buffer_bytes: u64,
    /// The share of a switch's free memory at which a port is paused.
    pub ingress_alpha: f64,
    /// Without PFC: the share of the free memory that a queue may take.
    pub egress_alpha: f64,
    /// The bounds of a queue, in bytes, from which on some data are marked and all data are marked.
    pub ecn: [u64; 2],
    /// The share of data that is marked just below the second bound.
    pub ecn_most: f64,
    /// Whether frames are held back rather than lost.
    pub pfc: bool,
    /// How many bytes a port may still take after it has asked for a pause; without it, as many as can
    /// arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<u64>,
    /// How hosts choose their rates: by DCQCN, by windows like TCP's, or as fast as their links.
    pub rates: HostRates,
    /// DCQCN's constants.
    #[serde(with = "DcqcnTable")]
    pub dcqcn: DcqcnSettings,
    /// How many frames are answered together.
    pub answer_every: u32,
    /// How long after a NACK it may be repeated for the same frame.
    #[serde(with = "span")]
    pub nack_interval: Nanos,
    /// Whether a NACK reports congestion.
    pub nack_is_congestion: bool,
    /// How long a host waits for any answer before it sends again.
    #[serde(with = "span")]
    pub retransmit_after: Nanos,
    /// With selective repeat, the most frames that a flow has under way; without it, hosts use go-back-N.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selective: Option<u32>,
    /// The pause that begins a flowlet, for policies that give none: `2rtt`, or a span such as `100us`.
    pub threshold: FlowletThreshold,
    /// Whether each switch chooses a flowlet's next hop, in place of the first switch the whole path.
    pub each_hop: bool,
    /// Whether all flows from one host to another share a connection, whose pauses make flowlets.
    pub shared_connections: bool,
    /// How many gaps a host learns before it holds frames.
    pub training_gaps: u32,
    /// Flows that begin earlier are not counted: hosts still learn their gaps, and the fabric fills.
    #[serde(with = "span")]
    pub settles: Nanos,
    /// The traffic beside the packets of a rack. A testbed with this key is a rack on a fabric, and its
    /// `[links]` follow from the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundFlows>,
}

/// The pause that begins a flowlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowletThreshold {
    /// So many round trips of the longest path.
    RoundTrips(u32),
    Span(Nanos),
}

/// The largest number of round trips.
const ROUND_TRIPS_MAX: u32 = 100;

impl FlowletThreshold {
    /// Reads `2rtt` or `100us`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("rtt") {
            Some(times) => {
                let times = times.parse().ok().filter(|times| (1..=ROUND_TRIPS_MAX).contains(times));
                times.map(Self::RoundTrips)
            }
            None => text::span(text).ok().map(Self::Span),
        }
    }

    /// The threshold as a span, for a given round trip.
    pub const fn of(self, round_trip: Nanos) -> Nanos {
        match self {
            Self::RoundTrips(times) => Nanos(round_trip.0 * times as u64),
            Self::Span(span) => span,
        }
    }
}

impl fmt::Display for FlowletThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundTrips(times) => write!(f, "{times}rtt"),
            Self::Span(span) => f.write_str(&text::show_span(*span)),
        }
    }
}

impl Serialize for FlowletThreshold {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FlowletThreshold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong =
            || D::Error::custom(format!("`{text}` is no threshold: write 2rtt, or a span such as 100us"));
        Self::parse(&text).ok_or_else(wrong)
    }
}

/// The parsed text of a topology.
enum Shape {
    FatTree(u32),
    LeafSpine(LeafSpine),
}

/// How hosts choose their rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostRates {
    #[default]
    Dcqcn,
    /// By windows like TCP's.
    Windows,
    /// As fast as their links.
    Line,
}

/// The written form of [`DcqcnSettings`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "DcqcnSettings", deny_unknown_fields, default = "DcqcnSettings::default")]
struct DcqcnTable {
    gain: f64,
    #[serde(with = "span")]
    alpha_interval: Nanos,
    #[serde(with = "span")]
    decrease_interval: Nanos,
    #[serde(with = "span")]
    increase_interval: Nanos,
    recovery_stages: u32,
    additive_mbps: f64,
    hyper_mbps: f64,
    least_mbps: f64,
    clamps_target: bool,
    #[serde(with = "span")]
    cnp_interval: Nanos,
}

impl Default for FabricTestbed {
    fn default() -> Self {
        let FabricSettings { frames, buffer_bytes, ingress_alpha, egress_alpha, ecn, recovery, .. } =
            FabricSettings::default();
        let LinkSpeed { gbps, delay } = LinkSpeed::default();
        Self {
            topology: "fat-tree:4".to_owned(),
            gbps,
            delay,
            payload: frames.payload,
            buffer_bytes,
            ingress_alpha,
            egress_alpha,
            ecn: [ecn.k_min, ecn.k_max],
            ecn_most: ecn.p_max,
            pfc: true,
            headroom: None,
            rates: HostRates::Dcqcn,
            dcqcn: DcqcnSettings::default(),
            answer_every: 1,
            nack_interval: recovery.nack_interval,
            nack_is_congestion: recovery.nack_is_congestion,
            retransmit_after: recovery.retransmit_after,
            selective: None,
            threshold: FlowletThreshold::RoundTrips(2),
            each_hop: false,
            shared_connections: false,
            training_gaps: 10_000,
            settles: Nanos::from_millis(2),
            background: None,
        }
    }
}

impl FabricTestbed {
    /// The nodes and links of the fabric.
    pub fn topology(&self) -> Result<Topology, String> {
        let speed = LinkSpeed { gbps: self.gbps, delay: self.delay };
        let made = match self.shape()? {
            Shape::FatTree(k) => Topology::fat_tree(k, speed),
            Shape::LeafSpine(LeafSpine { leaves, spines, hosts_each }) => {
                Topology::leaf_spine(leaves, spines, hosts_each, speed, speed)
            }
        };
        made.map_err(|why| why.to_string())
    }

    fn shape(&self) -> Result<Shape, String> {
        let wrong = || {
            format!(
                "fabric.topology = `{}`: write fat-tree:K, or leaf-spine:LEAVES:SPINES:HOSTS with the hosts \
                 at each leaf",
                self.topology.escape_debug()
            )
        };
        let mut parts = self.topology.split(':');
        let kind = parts.next();
        let numbers: Vec<u32> = parts.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        match (kind, &numbers[..]) {
            (Some("fat-tree"), &[k]) => Ok(Shape::FatTree(k)),
            (Some("leaf-spine"), &[leaves, spines, hosts_each]) => {
                Ok(Shape::LeafSpine(LeafSpine { leaves, spines, hosts_each }))
            }
            _ => Err(wrong()),
        }
    }

    /// The settings of its hosts and switches, without the balancer and the pacer.
    pub fn settings(&self) -> FabricSettings {
        let given = FabricSettings::default();
        let under_way = self.selective;
        FabricSettings {
            frames: FrameSizes { payload: self.payload, ..given.frames },
            buffer_bytes: self.buffer_bytes,
            ingress_alpha: self.ingress_alpha,
            egress_alpha: self.egress_alpha,
            ecn: Ecn { k_min: self.ecn[0], k_max: self.ecn[1], p_max: self.ecn_most },
            pfc: self.pfc.then_some(Pfc { headroom: self.headroom }),
            dcqcn: (self.rates == HostRates::Dcqcn).then_some(self.dcqcn),
            window: (self.rates == HostRates::Windows).then(WindowSettings::default),
            answers: AckSettings { every: self.answer_every, ..given.answers },
            connections: if self.shared_connections { Connections::EachPair } else { Connections::EachFlow },
            recovery: Recovery {
                nack_interval: self.nack_interval,
                retransmit_after: self.retransmit_after,
                nack_is_congestion: self.nack_is_congestion,
                repeat: under_way
                    .map_or(Retransmission::GoBackN, |under_way| Retransmission::Selective { under_way }),
            },
            ..given
        }
    }

    /// The hosts at which a rack's nodes are.
    pub fn rack(&self, servers: u16, clients: u16) -> Result<RackHosts, String> {
        RackHosts::new(self.topology()?, servers, clients)
    }

    /// The hosts at which the nodes of racks below spines are.
    pub(super) fn tiers(&self, tiers: &Tiers) -> Result<TierHosts, String> {
        match self.shape()? {
            Shape::LeafSpine(shape) => TierHosts::new(self.topology()?, shape, tiers),
            Shape::FatTree(_) => Err(
                "fabric.topology: racks below spines stand on leaves, write leaf-spine:LEAVES:SPINES:HOSTS"
                    .to_owned(),
            ),
        }
    }

    /// Why so many hosts do not fit it, or what else is wrong, in one line; `None` if it is right.
    pub(super) fn complaint(&self, workers: u32) -> Option<String> {
        let topology = match self.topology() {
            Ok(topology) => topology,
            Err(why) => return Some(why),
        };
        let hosts = topology.hosts;
        (hosts != workers && self.background.is_none())
            .then(|| {
                format!("workers = {workers}, and the fabric has {hosts} hosts: write workers = {hosts}")
            })
            .or_else(|| self.built(&topology).err().map(|why| why.to_string()))
    }

    fn built(&self, topology: &Topology) -> Result<(), FabricError> {
        sluice_fabric::Fabric::new(topology, &self.settings(), 1, 0).map(|_| ())
    }
}
