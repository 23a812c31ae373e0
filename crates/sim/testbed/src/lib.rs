//! The hardware of a rack: distances between hosts, costs of packets, and faults.
//!
//! A testbed is a TOML file that users copy and change (`experiments/testbeds/`). Every key has a default,
//! which describes a network without delays, costs and faults. Unknown keys are refused.
#![forbid(unsafe_code)]

pub mod agents;
pub mod capacity;
pub mod compatibility;
pub mod control_plan;
pub mod cores_layout;

mod background;
mod checks;
mod cores;
mod error;
mod fabric;
mod labels;
mod racks;
mod tiers;
pub mod toml_text;

use serde::{Deserialize, Serialize};
use sluice_fabric::{FrameSizes, Idle, Topology};
use sluice_host::slow::SlowTime;
use sluice_wire::Nanos;
use sluice_wire::registrations::Sizes;
use sluice_workload::{Class, equal_spans, read_toml};

pub use background::{BackgroundFlows, RackHosts};
pub use cores::CoreTimes;
pub use error::TestbedError;
pub use fabric::{FabricTestbed, FlowletThreshold, HostRates};
pub use labels::{LabelNeed, LabelPlan, LabelledWorkers};
pub use racks::{Outage, RackLayout};
pub use tiers::TierHosts;
use tiers::Tiers;
use toml_text::{sizes, span};

/// The testbed of the Rain paper, as the file that users copy.
const RAIN: &str = include_str!("../../../../experiments/testbeds/rain.toml");
/// The same testbed with its servers' links and memory.
const RAIN_RDMA: &str = include_str!("../../../../experiments/testbeds/rain-rdma.toml");

/// The fabric of the HF²T paper.
const HF2T: &str = include_str!("../../../../experiments/testbeds/hf2t.toml");

/// One server of the RingLeader paper.
const RINGLEADER: &str = include_str!("../../../../experiments/testbeds/ringleader.toml");

/// A rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Testbed {
    /// The name in reports.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Workers, each with a core of its own.
    pub workers: u32,
    /// Clients; they send requests in turn.
    pub clients: u16,
    /// How much each client sends, relative to the others; empty if all send the same, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_weights: Vec<u32>,
    /// How many tasks may wait in each slice (C).
    pub queue: u32,
    /// The classes of tasks by size, if the policy has classes: the largest size of each class but the
    /// last. Without it, each class spans the same factor of the existing sizes.
    #[serde(default, skip_serializing_if = "Sizes::is_none", with = "sizes")]
    pub sizes: Sizes,
    pub links: LinkTimes,
    /// The switch; if there are several, each of them.
    pub switch: SwitchTimes,
    /// The racks that workers are in, and the spines above them.
    #[serde(skip_serializing_if = "RackLayout::are_none")]
    pub racks: RackLayout,
    pub worker: WorkerTimes,
    /// The servers that workers share.
    pub servers: Servers,
    /// The costs of orchestrating the workers as one server's cores.
    #[serde(skip_serializing_if = "CoreTimes::are_none")]
    pub cores: CoreTimes,
    /// Losses, repeats and delays of packets.
    pub faults: Faults,
    /// Times in which a worker's core does something else.
    pub stalls: Stalls,
    /// A time in which some workers are slow.
    pub slow: Slow,
    /// The labels that tasks need and workers have.
    #[serde(skip_serializing_if = "LabelPlan::is_none")]
    pub labels: LabelPlan,
    /// How clients try again; it matters only if packets can be lost.
    pub retries: Retries,
    /// A fabric whose hosts are the workers, which send each other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricTestbed>,
}

/// Delays of links, one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkTimes {
    /// Between a client and the switch.
    #[serde(with = "span")]
    pub client: Nanos,
    /// Between the switch and a worker.
    #[serde(with = "span")]
    pub worker: Nanos,
}

/// The times and rates of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchTimes {
    /// From a packet's arrival to its departure.
    #[serde(with = "span")]
    pub pass: Nanos,
    /// From the end of a pass to the beginning of the next, for a recirculating packet.
    #[serde(with = "span")]
    pub recirculation: Nanos,
    /// The bandwidth of the recirculation port in Gb/s; without it, any number of packets recirculate at
    /// once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recirculation_gbps: Option<f64>,
    /// How many bytes a packet takes of that port.
    pub packet_bytes: u32,
    /// How many bytes the packet of a large task takes of that port.
    pub large_packet_bytes: u32,
}

/// The time of a worker's core for a packet; a core does one thing at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerTimes {
    #[serde(with = "span")]
    pub receive: Nanos,
    #[serde(with = "span")]
    pub send: Nanos,
}

/// Servers. Workers belong to them in equal blocks, in the order of their numbers. Without servers each
/// worker has a link of its own, and nothing is written ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Servers {
    pub count: u16,
    /// The bandwidth of the link from the switch to each server in Gb/s; without it, any number of packets
    /// is under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gbps: Option<f64>,
    /// How fast a worker copies a task that was written ahead, in Gb/s; without it, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_gbps: Option<f64>,
    /// How many adaptive agents there are, each for a block of workers; without it, one for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u16>,
    /// Makes each server one of many cores behind an orchestrator, whose cores are the workers. The number
    /// is how many tasks of one priority each core has room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// How often faults happen to packets of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// The longest delay of a packet that is out of order.
    #[serde(with = "span")]
    pub reorder_by: Nanos,
    pub submit: Rates,
    pub dispatch: Rates,
    pub reply: Rates,
    /// TOKENs, also as polls.
    pub token: Rates,
    pub reject: Rates,
    pub probe: Rates,
    /// ANSWERs, also to polls.
    pub answer: Rates,
    /// UPDATEs of racks' switches to their spines.
    #[serde(skip_serializing_if = "Rates::are_none")]
    pub update: Rates,
}

/// The shares of a kind's packets that meet each fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// The share that never arrives.
    pub loss: f64,
    /// The share that arrives twice.
    pub duplicate: f64,
    /// The share that arrives late, and so perhaps after later ones.
    pub reorder: f64,
}

/// Times in which a worker's core does something else; its present work takes so much longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stalls {
    /// Stalls per second and worker, at random times; zero for none.
    pub per_s: f64,
    #[serde(with = "span")]
    pub length: Nanos,
    /// The workers, by number from 0; empty for all.
    pub workers: Vec<u32>,
}

/// A time in which the cores of some workers take longer for everything, because another program runs
/// beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Slow {
    /// The workers, by number from 0; empty for all.
    pub workers: Vec<u32>,
    /// By which factor everything takes longer.
    pub factor: f64,
    #[serde(with = "span")]
    pub from: Nanos,
    /// The length of the slow time.
    #[serde(with = "span")]
    pub length: Nanos,
}

impl Default for Slow {
    fn default() -> Self {
        Self { workers: Vec::new(), factor: 1.0, from: Nanos(0), length: Nanos(0) }
    }
}

/// The timeouts of clients and workers, if packets can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// The timeout of the first try; it doubles with each further try.
    #[serde(with = "span")]
    pub first_timeout: Nanos,
    /// The largest timeout.
    #[serde(with = "span")]
    pub timeout_max: Nanos,
    /// After this time a task ends unknown.
    #[serde(with = "span")]
    pub deadline: Nanos,
}

fn unnamed() -> String {
    "unnamed".to_owned()
}

impl Default for Testbed {
    fn default() -> Self {
        Self {
            name: "ideal".to_owned(),
            workers: 32,
            clients: 1,
            client_weights: Vec::new(),
            queue: 8_192,
            sizes: Sizes::default(),
            links: LinkTimes::default(),
            switch: SwitchTimes::default(),
            racks: RackLayout::default(),
            worker: WorkerTimes::default(),
            servers: Servers::default(),
            cores: CoreTimes::default(),
            faults: Faults::default(),
            stalls: Stalls::default(),
            slow: Slow::default(),
            labels: LabelPlan::default(),
            retries: Retries::default(),
            fabric: None,
        }
    }
}

impl Default for SwitchTimes {
    fn default() -> Self {
        Self {
            pass: Nanos(0),
            recirculation: Nanos(0),
            recirculation_gbps: None,
            packet_bytes: 150,
            large_packet_bytes: 790,
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        let none = Rates::default();
        Self {
            reorder_by: Nanos::from_micros(20),
            submit: none,
            dispatch: none,
            reply: none,
            token: none,
            reject: none,
            probe: none,
            answer: none,
            update: none,
        }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            first_timeout: Nanos::from_millis(1),
            timeout_max: Nanos::from_millis(32),
            deadline: Nanos::from_millis(100),
        }
    }
}

impl Testbed {
    /// The classes of these tasks by size, for a policy that tells so many classes apart.
    pub fn sizes_of<'c>(&self, tasks: impl Iterator<Item = &'c Class>, classes: u8) -> Sizes {
        match classes {
            1 => Sizes::default(),
            _ if !self.sizes.is_none() => self.sizes,
            classes => equal_spans(tasks, classes),
        }
    }

    /// The testbed of the Rain paper.
    pub fn rain() -> Self {
        Self::parse(RAIN).expect("the file is part of this crate, and a test reads it")
    }

    /// The testbed of the Rain paper with the costs of RDMA: the servers' links, and copies out of their
    /// memory.
    pub fn rain_rdma() -> Self {
        Self::parse(RAIN_RDMA).expect("the file is part of this crate, and a test reads it")
    }

    /// The server of the RingLeader paper, with the costs of orchestrating its cores.
    pub fn ringleader() -> Self {
        Self::parse(RINGLEADER).expect("the file is part of this crate, and a test reads it")
    }

    /// The fabric of the HF²T paper: a fat-tree with 16 hosts.
    pub fn hf2t() -> Self {
        Self::parse(HF2T).expect("the file is part of this crate, and a test reads it")
    }

    /// The network of theory: only services take time, and there are no faults.
    pub fn ideal() -> Self {
        Self::default()
    }

    /// Reads a testbed's TOML. An error names the line, and for an unknown key the nearest known one.
    pub fn parse(text: &str) -> Result<Self, TestbedError> {
        let mut testbed: Self =
            read_toml(text).map_err(|said| TestbedError { place: said.place(), why: said.why })?;
        testbed.check()?;
        testbed.measure_links();
        Ok(testbed)
    }

    /// The same testbed with some keys changed, as a plan may state them.
    pub fn changed(&self, by: &toml::Table) -> Result<Self, TestbedError> {
        let mut table = toml::Table::try_from(self).expect("a testbed is a table");
        toml_text::overlay(&mut table, by);
        Self::parse(&table.to_string())
    }

    /// The whole testbed as TOML, defaults included.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a testbed is a table")
    }

    /// The time from a request's departure to its reply's arrival in an idle rack, without the service.
    pub fn zero_load(&self) -> Nanos {
        self.way_in() + self.worker.receive + self.way_home()
    }

    /// The time from the end of a service to its reply's arrival in an idle rack.
    pub fn way_home(&self) -> Nanos {
        self.worker.send + self.way_back()
    }

    /// The time from a task's end to the start of the next at the same worker, if that task waits in the
    /// switch for the worker's only token.
    pub fn refill(&self) -> Nanos {
        let costs = self.worker.receive + self.worker.send.times(2);
        costs + self.links.worker.times(2) + self.switch.pass
    }

    /// The round trip between a worker and a client, with its cost at the worker.
    pub fn fetch(&self) -> Nanos {
        self.way_back().times(2) + self.worker.send + self.worker.receive
    }

    /// Whether packets can be lost, arrive twice or overtake each other, or switches can fail.
    pub fn has_faults(&self) -> bool {
        let may_lose = self.background().is_some_and(|(fabric, _)| !fabric.pfc);
        !self.faults.are_none() || !self.racks.outages.is_empty() || may_lose
    }

    /// The nodes and links of the fabric below racks, with the ports of the racks' switches; an error is
    /// one line that says what to change.
    pub fn joined_topology(&self) -> Option<Result<Topology, String>> {
        let (fabric, _) = self.background()?;
        Some(if self.racks.are_none() {
            fabric.rack(self.servers.count, self.clients).map(|hosts| hosts.topology)
        } else {
            self.tiers()?.map(|hosts| hosts.topology)
        })
    }

    /// The hosts of racks below spines on their fabric, if there is one; an error is one line that says
    /// what to change.
    pub fn tiers(&self) -> Option<Result<TierHosts, String>> {
        let (fabric, _) = self.background()?;
        let Self { racks, workers, clients, .. } = self;
        Some(fabric.tiers(&Tiers {
            racks: racks.sizes(*workers),
            spines: racks.spines.into(),
            clients: (*clients).into(),
        }))
    }

    /// Sets the links of racks on a fabric to the fabric's delays.
    fn measure_links(&mut self) {
        let (Some((fabric, _)), bytes) = (self.background(), self.switch.packet_bytes) else { return };
        let idle = |topology: &Topology| Idle::new(topology, FrameSizes::default());
        if self.racks.are_none() {
            let Ok(hosts) = fabric.rack(self.servers.count, self.clients) else { return };
            let Ok(idle) = idle(&hosts.topology) else { return };
            let [client, worker] = hosts.links(&idle, bytes);
            self.links = LinkTimes { client, worker };
        } else {
            let Some(Ok(hosts)) = self.tiers() else { return };
            let Ok(idle) = idle(&hosts.topology) else { return };
            let [client, hop, worker] = hosts.links(&idle, bytes);
            (self.links, self.racks.hop) = (LinkTimes { client, worker }, hop);
        }
    }

    /// The fabric below a rack, and its other traffic.
    pub fn background(&self) -> Option<(&FabricTestbed, &BackgroundFlows)> {
        let fabric = self.fabric.as_ref()?;
        fabric.background.as_ref().map(|background| (fabric, background))
    }

    /// The time from a client's send to a worker's NIC.
    pub fn way_in(&self) -> Nanos {
        self.links.client + self.above() + self.through_rack()
    }

    /// The time between a client's link and a leaf, if there are spines.
    pub fn above(&self) -> Nanos {
        if self.racks.spines > 0 { self.switch.pass + self.racks.hop } else { Nanos(0) }
    }

    /// The time from a worker's send to the client.
    pub fn way_back(&self) -> Nanos {
        self.through_rack() + self.above() + self.links.client
    }

    /// The time between a rack's switch and a worker, through the leaf, wherever the leaf runs.
    fn through_rack(&self) -> Nanos {
        self.racks.detour.times(2) + self.switch.pass + self.links.worker
    }
}

impl Slow {
    /// Whether any worker is ever slow.
    pub fn is_any(&self) -> bool {
        self.factor > 1.0 && self.length > Nanos(0)
    }

    /// When a worker is slow, and by which factor; `None` if it never is.
    pub fn of(&self, worker: u32) -> Option<SlowTime> {
        let time = SlowTime { factor: self.factor, from: self.from, until: self.from + self.length };
        let is_slow = self.workers.is_empty() || self.workers.contains(&worker);
        (self.is_any() && is_slow).then_some(time)
    }
}

impl Rates {
    /// Whether packets of the kind meet no fault.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Faults {
    /// Whether no packets meet a fault.
    pub fn are_none(&self) -> bool {
        self.kinds().iter().all(Rates::are_none)
    }

    fn kinds(&self) -> [Rates; 8] {
        let Self { submit, dispatch, reply, token, reject, probe, answer, update, .. } = *self;
        [submit, dispatch, reply, token, reject, probe, answer, update]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_testbed_takes_five_microseconds_there_and_back() {
        let rain = Testbed::rain();
        assert_eq!(rain.zero_load(), Nanos(5_000));
        assert_eq!(rain.refill(), Nanos(3_700));
        assert_eq!((rain.name.as_str(), rain.workers), ("rain", 32));
        assert_eq!(Testbed::ideal().zero_load(), Nanos(0));
    }

    #[test]
    fn what_was_written_is_read_again() {
        for testbed in [Testbed::rain(), Testbed::ideal()] {
            assert_eq!(Testbed::parse(&testbed.to_toml()).unwrap(), testbed);
        }
    }

    #[test]
    fn every_testbed_in_the_folder_can_be_used_and_a_file_without_a_name_is_not_taken_for_another() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/testbeds");
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(Testbed::parse(&text).unwrap().name != "unnamed");
        }
        assert_eq!(Testbed::parse("").unwrap(), Testbed { name: unnamed(), ..Testbed::ideal() });
    }

    #[test]
    fn a_plan_changes_single_keys() {
        let by = "workers = 4\n[faults.reply]\nloss = 0.5".parse().unwrap();
        let changed = Testbed::rain().changed(&by).unwrap();
        assert_eq!((changed.workers, changed.links), (4, Testbed::rain().links));
        assert!(changed.has_faults());
        assert!(Testbed::rain().changed(&"wrokers = 4".parse().unwrap()).is_err());
    }
}
