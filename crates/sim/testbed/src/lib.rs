//! The rack as hardware: how far hosts are apart, what a packet costs them, and what goes wrong.
//!
//! A testbed is a TOML file that users copy and change (`experiments/testbeds/`). Every key has a default,
//! the one of the network without delays, costs and faults; unknown keys are refused.
#![forbid(unsafe_code)]

pub mod agents;
pub mod capacity;
pub mod control_plan;
pub mod cores_layout;
pub mod suits;

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

/// The paper's testbed, as the file that users copy.
const RAIN: &str = include_str!("../../../../experiments/testbeds/rain.toml");
/// The same with its servers' links and memory.
const RAIN_RDMA: &str = include_str!("../../../../experiments/testbeds/rain-rdma.toml");

/// The fabric of the HF²T paper.
const HF2T: &str = include_str!("../../../../experiments/testbeds/hf2t.toml");

/// One server of the RingLeader paper.
const RINGLEADER: &str = include_str!("../../../../experiments/testbeds/ringleader.toml");

/// A rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Testbed {
    /// What reports call it.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Workers, each with a core of its own.
    pub workers: u32,
    /// Clients; requests go to them in turn.
    pub clients: u16,
    /// Tasks that may wait in each slice (C).
    pub queue: u32,
    /// What a class of tasks is, where the policy has classes: the largest size of each but the last.
    /// Without, each spans the same factor of the sizes that there are.
    #[serde(default, skip_serializing_if = "Sizes::is_none", with = "sizes")]
    pub sizes: Sizes,
    pub links: LinkTimes,
    /// The switch; each, where there are many.
    pub switch: SwitchTimes,
    /// The racks that workers are in, and the spines above them.
    #[serde(skip_serializing_if = "RackLayout::are_none")]
    pub racks: RackLayout,
    pub worker: WorkerTimes,
    /// The servers that workers share.
    pub servers: Servers,
    /// What it costs to orchestrate the workers as one server's cores.
    #[serde(skip_serializing_if = "CoreTimes::are_none")]
    pub cores: CoreTimes,
    /// What the network does to packets.
    pub faults: Faults,
    /// What takes the workers' cores away from time to time.
    pub stalls: Stalls,
    /// What makes some workers slow for a while.
    pub slow: Slow,
    /// What some tasks need of their workers, and which workers have it.
    #[serde(skip_serializing_if = "LabelPlan::is_none")]
    pub labels: LabelPlan,
    /// How clients try again; matters only where packets can be lost.
    pub retries: Retries,
    /// A fabric, whose hosts the workers are: they send each other flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricTestbed>,
}

/// One way over a link.
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

/// What the switch takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchTimes {
    /// From a packet's arrival to its departure.
    #[serde(with = "span")]
    pub pass: Nanos,
    /// From the end of a pass to the beginning of the next, for a packet that goes round.
    #[serde(with = "span")]
    pub recirculation: Nanos,
    /// The bandwidth of the port that packets go round through; without it, any number go round at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recirculation_gbps: Option<f64>,
    /// What a packet takes of it.
    pub packet_bytes: u32,
    /// What the packet of a large task takes of it.
    pub large_packet_bytes: u32,
}

/// What a packet costs a worker's core, which does one thing at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerTimes {
    #[serde(with = "span")]
    pub receive: Nanos,
    #[serde(with = "span")]
    pub send: Nanos,
}

/// Servers: workers belong to them in equal blocks, in the order of their numbers. Without any, each worker
/// has a link of its own, and nothing is written ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Servers {
    pub count: u16,
    /// The bandwidth of the link from the switch to each; without it, any number of packets is under way at
    /// once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gbps: Option<f64>,
    /// How fast a worker copies what was written ahead; without it, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_gbps: Option<f64>,
    /// How many adaptive agents look after the workers, each after a block of them; without it, one after
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u16>,
    /// Where each is one server of many cores behind an orchestrator, and the workers are their cores: so
    /// many tasks of a priority each core has room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// How often something happens to packets of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// A packet that is out of order is late by up to so much.
    #[serde(with = "span")]
    pub reorder_by: Nanos,
    /// Tasks to the switch.
    pub submit: Rates,
    /// Tasks to workers.
    pub dispatch: Rates,
    /// Replies.
    pub reply: Rates,
    /// Tokens and polls.
    pub token: Rates,
    /// The switch's refusals, to clients.
    pub reject: Rates,
    /// Workers' questions to the switch.
    pub probe: Rates,
    /// Their answers, also to polls.
    pub answer: Rates,
    /// What racks' switches tell those above them.
    #[serde(skip_serializing_if = "Rates::are_none")]
    pub update: Rates,
}

/// Shares of a kind's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// Never arrive.
    pub loss: f64,
    /// Arrive twice.
    pub duplicate: f64,
    /// Arrive late, and so perhaps after younger ones.
    pub reorder: f64,
}

/// Times in which a worker's core does something else: what it was at takes so much longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stalls {
    /// Stalls a second, each worker, at random times; none if it is zero.
    pub per_s: f64,
    /// How long each lasts.
    #[serde(with = "span")]
    pub length: Nanos,
    /// Which workers, by number from 0; all if none is named.
    pub workers: Vec<u32>,
}

/// A time in which some workers' cores take longer for everything: another program beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Slow {
    /// Which workers, by number from 0.
    pub workers: Vec<u32>,
    /// How many times as long.
    pub factor: f64,
    #[serde(with = "span")]
    pub from: Nanos,
    /// How long it lasts.
    #[serde(with = "span")]
    pub length: Nanos,
}

impl Default for Slow {
    fn default() -> Self {
        Self { workers: Vec::new(), factor: 1.0, from: Nanos(0), length: Nanos(0) }
    }
}

/// The clients' and workers' patience where packets can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// How long the first try may stay unanswered; it doubles with each further one.
    #[serde(with = "span")]
    pub first_timeout: Nanos,
    /// Where the doubling ends.
    #[serde(with = "span")]
    pub timeout_max: Nanos,
    /// After this time a task's outcome is unknown.
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
    /// What a class of these tasks is, where a policy tells so many classes apart.
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

    /// The testbed of the Rain paper with what RDMA costs: the servers' links, and copies out of their
    /// memory.
    pub fn rain_rdma() -> Self {
        Self::parse(RAIN_RDMA).expect("the file is part of this crate, and a test reads it")
    }

    /// The server of the RingLeader paper, with what it costs to orchestrate its cores.
    pub fn ringleader() -> Self {
        Self::parse(RINGLEADER).expect("the file is part of this crate, and a test reads it")
    }

    /// The fabric of the HF²T paper: a fat-tree with 16 hosts.
    pub fn hf2t() -> Self {
        Self::parse(HF2T).expect("the file is part of this crate, and a test reads it")
    }

    /// The network of theory: nothing takes any time but the tasks, and nothing goes wrong.
    pub fn ideal() -> Self {
        Self::default()
    }

    /// Reads a testbed's TOML. An error says where, and the nearest known key for one that is not.
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

    /// From a request's departure to its reply's arrival, when nobody else is there, beside the service
    /// itself.
    pub fn zero_load(&self) -> Nanos {
        self.way_in() + self.worker.receive + self.way_home()
    }

    /// From the end of a service to its reply's arrival, when nobody else is there.
    pub fn way_home(&self) -> Nanos {
        self.worker.send + self.way_back()
    }

    /// From a task's end to the next one's start at the same worker, when it waits in the switch for that
    /// worker's only token.
    pub fn refill(&self) -> Nanos {
        let costs = self.worker.receive + self.worker.send.times(2);
        costs + self.links.worker.times(2) + self.switch.pass
    }

    /// A round trip between a worker and a client, with what it costs the worker.
    pub fn fetch(&self) -> Nanos {
        self.way_back().times(2) + self.worker.send + self.worker.receive
    }

    /// Whether packets can be lost, come twice or overtake each other, or switches be out.
    pub fn has_faults(&self) -> bool {
        let may_lose = self.background().is_some_and(|(fabric, _)| !fabric.pfc);
        !self.faults.are_none() || !self.racks.outages.is_empty() || may_lose
    }

    /// The nodes and links of the fabric below racks, their switches' ports among them; an error is one line
    /// that says what to change.
    pub fn joined_topology(&self) -> Option<Result<Topology, String>> {
        let (fabric, _) = self.background()?;
        Some(if self.racks.are_none() {
            fabric.rack(self.servers.count, self.clients).map(|hosts| hosts.topology)
        } else {
            self.tiers()?.map(|hosts| hosts.topology)
        })
    }

    /// Where racks below spines are on their fabric, if they are on one; an error is one line that says what
    /// to change.
    pub fn tiers(&self) -> Option<Result<TierHosts, String>> {
        let (fabric, _) = self.background()?;
        let Self { racks, workers, clients, .. } = self;
        Some(fabric.tiers(&Tiers {
            racks: racks.sizes(*workers),
            spines: racks.spines.into(),
            clients: (*clients).into(),
        }))
    }

    /// Where racks are on a fabric, their links are as long as it is.
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

    /// The fabric below a rack, and what else crosses it.
    pub fn background(&self) -> Option<(&FabricTestbed, &BackgroundFlows)> {
        let fabric = self.fabric.as_ref()?;
        fabric.background.as_ref().map(|background| (fabric, background))
    }

    /// From a client's send to a worker's NIC.
    pub fn way_in(&self) -> Nanos {
        self.links.client + self.above() + self.through_rack()
    }

    /// Between a client's link and a leaf, where there are spines.
    pub fn above(&self) -> Nanos {
        if self.racks.spines > 0 { self.switch.pass + self.racks.hop } else { Nanos(0) }
    }

    /// From a worker's send to the client.
    pub fn way_back(&self) -> Nanos {
        self.through_rack() + self.above() + self.links.client
    }

    /// Between a rack's switch and a worker, through its leaf, wherever that runs.
    fn through_rack(&self) -> Nanos {
        self.racks.detour.times(2) + self.switch.pass + self.links.worker
    }
}

impl Slow {
    /// Whether any worker is ever slow.
    pub fn is_any(&self) -> bool {
        !self.workers.is_empty() && self.factor > 1.0 && self.length > Nanos(0)
    }

    /// When a worker is slow, and how much; `None` if it never is.
    pub fn of(&self, worker: u32) -> Option<SlowTime> {
        let time = SlowTime { factor: self.factor, from: self.from, until: self.from + self.length };
        (self.is_any() && self.workers.contains(&worker)).then_some(time)
    }
}

impl Rates {
    /// Whether nothing ever happens to a packet of the kind.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Faults {
    /// Whether nothing ever happens.
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
