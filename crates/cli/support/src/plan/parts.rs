//! What a plan consists of, and what follows from it.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_net::first::FirstPacket;
use sluice_net::served::ServedSlice;
use sluice_services::rocks::RocksArgs;
use sluice_switch::registry::Choice;
use sluice_testbed::LabelNeed;
use sluice_testbed::toml_text::sizes;
use sluice_wire::registrations::Sizes;

use super::keys;
use super::rdma::RdmaPlan;
use super::request::Request;
use super::runs_live::live_program;
use super::target::Target;
use super::types::Types;
use crate::flags::Io;

/// The policy of whoever names none: of all settings of Rain it is within a few per cent of the best on most
/// workloads (docs/manual/ranks.md).
pub const POLICY_DEFAULT: &str = "rain:2,patient,early";
/// The policy of a plan with servers of many cores that names none: their cores' room takes the place of
/// depth, patience and early tokens.
pub const POLICY_OF_CORES: &str = "rain:1";

/// A rack, its load and its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What results call it.
    pub name: String,
    /// The scheduler, as it is written.
    pub policy: String,
    /// Seeds load and injected faults.
    pub seed: u64,
    /// How many times slower everything runs.
    pub dilation: u32,
    /// Where the switch keeps what must outlive it.
    pub state: PathBuf,
    pub out: PathBuf,
    /// What every socket does to its packets, as [`sluice_netem::Rates`] reads it.
    pub faults: Option<String>,
    /// The racks, if they are below a spine.
    pub racks: Option<RacksPlan>,
    /// The switch and its controller.
    pub switch: SwitchPlan,
    /// Where large tasks wait.
    pub rdma: RdmaPlan,
    /// The names of task types.
    pub types: Types,
    pub slices: Vec<SlicePlan>,
    /// The workers, one by one.
    pub workers: Vec<WorkerPlan>,
    /// The database behind `rocksdb` workers.
    pub rocksdb: RocksArgs,
    /// The load; without one the rack just runs.
    pub load: Option<LoadPlan>,
    /// What happens to the rack under that load.
    pub events: Vec<Event>,
}

/// Racks below a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RacksPlan {
    /// How many, each with a leaf.
    #[serde(deserialize_with = "keys::whole::<_, _, 0, 65534>")]
    pub count: u16,
    #[serde(default = "one", deserialize_with = "keys::whole::<_, _, 0, 65534>")]
    pub spines: u16,
    /// Whether each leaf runs on a server of its rack, whose switch only forwards then.
    #[serde(rename = "leaf", default, with = "keys::leaf", skip_serializing_if = "is_false")]
    pub on_servers: bool,
}

/// The switch and its controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchPlan {
    /// Where packets are switched.
    pub io: Io,
    /// Where packets come in; port 0 lets the kernel choose.
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where the controller is asked.
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub control: Option<SocketAddr>,
    /// Whether the controller runs as a process of its own.
    pub controller_apart: bool,
    /// Tasks that can wait in each slice's ring; a power of two.
    #[serde(deserialize_with = "keys::ring")]
    pub tasks_per_slice: u32,
    /// Tokens that can park in each slice's ring; a power of two.
    #[serde(deserialize_with = "keys::ring")]
    pub tokens_per_slice: u32,
    /// Tasks that each client may have outstanding; a power of two.
    #[serde(deserialize_with = "keys::ring")]
    pub replay_cells: u32,
    /// Memory for long payloads that wait, or that go round while servers hold what waits, in bytes.
    #[serde(rename = "payload_memory", with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<usize>,
    /// How it waits for packets: `adaptive`, `spin` or `block`.
    #[serde(deserialize_with = "keys::waiting")]
    pub waiting: String,
    /// Whether packets are held for the delays of the paper's testbed.
    pub testbed_delays: bool,
    /// The core that it stays on.
    #[serde(deserialize_with = "keys::core", skip_serializing_if = "Option::is_none")]
    pub pin: Option<usize>,
}

impl Default for SwitchPlan {
    fn default() -> Self {
        Self {
            io: Io::Udp,
            listen: None,
            control: None,
            controller_apart: false,
            tasks_per_slice: 8_192,
            tokens_per_slice: 4_096,
            replay_cells: 4_096,
            payload_bytes: None,
            waiting: keys::WAITINGS[0].to_owned(),
            testbed_delays: false,
            pin: None,
        }
    }
}

/// One slice: a queue in the switch and the types that go there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicePlan {
    pub name: String,
    /// The types that it serves.
    #[serde(default)]
    pub types: Vec<String>,
    /// How many tasks may wait.
    #[serde(default, deserialize_with = "keys::some_whole::<_, _, 1, { 1 << 20 }>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where classes of tasks end that go by size, if the policy has classes.
    #[serde(default, with = "sizes", skip_serializing_if = "Sizes::is_none")]
    pub sizes: Sizes,
    /// The labels that tasks of some types need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<LabelNeed>,
    /// The sets of labels that its workers may have; those of the plan's workers if there are none.
    #[serde(default, with = "keys::texts", skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Vec<String>>,
    /// Whether tasks only wish for their labels.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wished: bool,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlan {
    /// Its name, unlike all others.
    pub name: String,
    pub slice: String,
    /// Its rack, from 1 on, if the plan says; there are racks below a spine then.
    pub rack: Option<u16>,
    /// The labels that it has.
    pub labels: Vec<String>,
    pub service: ServicePlan,
    /// How many tasks it may have granted or held, if the plan says.
    pub quota: Option<u8>,
    /// Its cores, if it is a server of many.
    pub cores: Option<CoresPlan>,
    /// The core that it stays on.
    pub pin: Option<usize>,
    /// What its socket does to its packets, instead of the plan's `faults`.
    pub faults: Option<String>,
}

/// A server of many cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoresPlan {
    pub cores: u16,
    /// The slices that it serves, and how important each is.
    pub serves: Vec<ServedSlice>,
    /// Tasks of a priority that each core has room for.
    pub depth: u32,
    /// What a task of a lower priority counts when a core is chosen.
    pub lambda: Lambda,
    /// Which slices run on which cores.
    pub assignment: Assignment,
    /// Whether it is a plain pool of threads over one queue instead, to compare.
    pub pool: bool,
    /// Whether cores without tasks do the service's batch work.
    pub batch: bool,
}

/// What a worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePlan {
    /// One of ours, by name.
    Ours(String),
    /// A program of yours, with its own arguments.
    Program {
        exec: PathBuf,
        /// What it is told before the common flags.
        args: Vec<String>,
    },
}

/// The load of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// When tasks are sent.
    pub arrivals: Arrivals,
    /// Which types, each with its share; the shares add up to 1.
    pub mix: Vec<(String, f64)>,
    /// What a task of each type carries.
    pub requests: Vec<(String, Request)>,
    /// How long it runs before anything is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub length: Duration,
    /// After this a task's outcome is Unknown; counted from its intended send time.
    pub deadline: Duration,
    /// Whether a task may be tried again.
    pub retry: bool,
    /// How far the sender may be behind at its 99th percentile.
    pub behind_max: Duration,
    /// The share of the replies whose service may have failed.
    pub failed_max: f64,
}

/// When tasks are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At random moments, this many a second.
    Poisson(f64),
    /// At even distances, this many a second.
    Constant(f64),
    /// At the moments that a file names.
    Trace(PathBuf),
}

/// The share of failed services that passes if nobody says.
pub const FAILED_MAX: f64 = 0.01;

impl Arrivals {
    /// Tasks per second; unknown for a trace.
    pub const fn rate(&self) -> Option<f64> {
        match self {
            Self::Poisson(rate) | Self::Constant(rate) => Some(*rate),
            Self::Trace(_) => None,
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson(rate) => write!(f, "Poisson, {rate} tasks/s"),
            Self::Constant(rate) => write!(f, "constant, {rate} tasks/s"),
            Self::Trace(path) => write!(f, "trace {}", path.display()),
        }
    }
}

/// What happens to the rack under load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, from the start of the load.
    #[serde(with = "keys::text")]
    pub at: Duration,
    /// Who is killed (with -9).
    #[serde(with = "keys::text")]
    pub kill: Target,
    /// When it is started again, from then on; never if missing.
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub return_after: Option<Duration>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

const fn one() -> u16 {
    1
}

impl Plan {
    /// The scheduler that workers work for: below a spine, their leaf's.
    pub fn program(&self) -> Choice {
        live_program(&self.policy).expect("it was read once")
    }

    /// How many tasks a worker may have granted or held: as the plan says, or as the scheduler has it.
    pub fn quota(&self, worker: &WorkerPlan) -> u8 {
        worker.quota.unwrap_or_else(|| self.program().quota().max(1))
    }

    /// What sockets do to their packets; nothing around a switch in the kernel, where links do it.
    pub fn socket_faults(&self) -> Option<&String> {
        self.faults.as_ref().filter(|_| self.switch.io == Io::Udp)
    }

    /// The names of its servers: none under a scheduler that writes nothing ahead, and none below spines.
    pub fn servers(&self) -> Vec<String> {
        let writes_ahead = self.racks.is_none() && self.program().writes_ahead();
        let count = if writes_ahead { self.rdma.servers } else { 0 };
        (1..=count).map(|number| format!("server-{number}")).collect()
    }

    /// The server whose memory a worker shares: they are dealt out in turn.
    pub fn server_of(&self, worker: &WorkerPlan) -> Option<String> {
        let place = self.workers.iter().position(|known| known.name == worker.name)?;
        let servers = self.servers();
        (!servers.is_empty()).then(|| servers[place % servers.len()].clone())
    }

    /// What the first packet of a task may bring.
    pub fn first_packet(&self) -> FirstPacket {
        FirstPacket::fitting(self.rdma.link_mtu, (!self.servers().is_empty()).then_some(self.rdma.mtu))
    }
}

/// Where the switch keeps what must outlive it, if nobody says: beside the results.
pub(super) fn state_in(out: &Path) -> PathBuf {
    out.join("state")
}
