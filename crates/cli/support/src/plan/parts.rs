//! The parts of a plan, and values that follow from them.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_net::first::FirstPacket;
use sluice_net::served::ServedSlice;
use sluice_services::kv::{KvArgs, KvRole};
use sluice_services::rocks::RocksArgs;
use sluice_sim::Within;
use sluice_switch::registry::Choice;
use sluice_testbed::LabelNeed;
use sluice_testbed::toml_text::sizes;
use sluice_wire::registrations::Sizes;
use sluice_wire::{Nanos, TaskType};

use super::keys;
use super::rdma::RdmaPlan;
use super::request::Request;
use super::runs_live::live_program;
use super::stages::RateStages;
use super::target::Target;
use super::threshold::{LoadNumber, Threshold};
use super::types::Types;
use crate::flags::{Io, TableServer};

/// The default policy: on most workloads it is within a few per cent of Rain's best settings
/// (docs/manual/ranks.md).
pub const POLICY_DEFAULT: &str = "rain:2,patient,early";
/// The default policy of a plan with servers of many cores: their cores' room replaces depth, patience and
/// early tokens.
pub const POLICY_OF_CORES: &str = "rain:1";

/// A rack, its load and its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The rack's name in results.
    pub name: String,
    /// The scheduler, in its written form.
    pub policy: String,
    /// The seed of load and injected faults.
    pub seed: u64,
    /// The factor by which all times are stretched.
    pub dilation: u32,
    /// The folder of the switch's persistent state.
    pub state: PathBuf,
    pub out: PathBuf,
    /// The faults of every socket, in the form that [`sluice_netem::Rates`] reads.
    pub faults: Option<String>,
    /// Where `sluice up` serves the metrics of all that it runs, if it does.
    pub metrics: Option<SocketAddr>,
    /// The racks, if they are below a spine.
    pub racks: Option<RacksPlan>,
    /// The switch and its controller.
    pub switch: SwitchPlan,
    /// The servers for large waiting tasks.
    pub rdma: RdmaPlan,
    /// The names of task types.
    pub types: Types,
    pub slices: Vec<SlicePlan>,
    pub workers: Vec<WorkerPlan>,
    /// The database behind `rocksdb` workers.
    pub rocksdb: RocksArgs,
    /// The store of `kv` workers.
    pub kv: KvArgs,
    /// The load; without one the rack only runs.
    pub load: Option<LoadPlan>,
    /// Faults of the rack during the load.
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
    /// How BMv2 gets the program's tables.
    pub runtime: TableServer,
    /// Where packets come in; port 0 lets the kernel choose.
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where the controller is asked.
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub control: Option<SocketAddr>,
    /// Where the switch's process serves metrics; `sluice up` has a key of its own.
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// Whether the controller runs in a process of its own.
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
    /// Whether packets are delayed as in the paper's testbed.
    pub testbed_delays: bool,
    /// The core that it stays on.
    #[serde(deserialize_with = "keys::core", skip_serializing_if = "Option::is_none")]
    pub pin: Option<usize>,
}

impl Default for SwitchPlan {
    fn default() -> Self {
        Self {
            io: Io::Udp,
            runtime: TableServer::Thrift,
            listen: None,
            control: None,
            metrics: None,
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
    /// The longest wait in the switch that is worth having.
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub target: Option<Duration>,
    /// The latency that tasks should have at the 99th percentile; the target follows from it.
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Duration>,
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
    /// The worker's name; unique.
    pub name: String,
    pub slice: String,
    /// The worker's rack, from 1, if the plan says; only for racks below a spine.
    pub rack: Option<u16>,
    pub labels: Vec<String>,
    pub service: ServicePlan,
    /// How many tasks the worker may have granted or held, if the plan says.
    pub quota: Option<u8>,
    /// The cores, if the worker is a server of many.
    pub cores: Option<CoresPlan>,
    /// The core to which the worker is pinned.
    pub pin: Option<usize>,
    /// The faults of its socket, instead of the plan's `faults`.
    pub faults: Option<String>,
}

/// A server of many cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoresPlan {
    pub cores: u16,
    /// The slices that it serves, with their priorities.
    pub serves: Vec<ServedSlice>,
    /// How many tasks of a priority each core has room for.
    pub depth: u32,
    /// λ: how much a task of a lower priority counts when a core is chosen.
    pub lambda: Lambda,
    /// Which slices run on which cores.
    pub assignment: Assignment,
    /// Whether it is a plain pool of threads with one queue instead, for comparison.
    pub pool: bool,
    /// Whether idle cores do the service's batch work.
    pub batch: bool,
}

/// The service of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePlan {
    /// A built-in service, by name.
    Ours(String),
    /// A program of the user, with its own arguments.
    Program {
        exec: PathBuf,
        /// Arguments before the common flags.
        args: Vec<String>,
    },
}

/// The load of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// The arrival process.
    pub arrivals: Arrivals,
    /// The types, each with its share; the shares add up to 1.
    pub mix: Vec<(String, f64)>,
    /// What a task of each type carries.
    pub requests: Vec<(String, Request)>,
    /// For how long a task of each type is worth beginning, from when it is due; types without one have no
    /// limit.
    pub budgets: Vec<(String, Duration)>,
    /// The latency within which an answer is in time, if goodput is asked for; types go by their names.
    pub within: Option<Within>,
    /// How long the load runs before the measurement.
    pub warm_up: Duration,
    /// How long the load is measured.
    pub length: Duration,
    /// The time after the intended send time at which a task's outcome becomes Unknown.
    pub deadline: Duration,
    /// Whether tasks may be retried.
    pub retry: bool,
    /// The largest allowed 99th percentile of the sender's lateness.
    pub behind_max: Duration,
    /// The largest allowed share of replies whose service failed.
    pub failed_max: f64,
    /// The share of tasks below which refused tasks must stay.
    pub refused_max: f64,
    /// Further bounds on the load's numbers; types go by their names.
    pub thresholds: Vec<Threshold>,
}

impl LoadPlan {
    /// Gives this budget to the tasks of all types that have none.
    pub fn limit(&mut self, budget: Duration) {
        for (name, _) in &self.mix {
            if !self.budgets.iter().any(|(known, _)| known == name) {
                self.budgets.push((name.clone(), budget));
            }
        }
        self.budgets.sort_by(|(a, _), (b, _)| a.cmp(b));
    }

    /// The latency within which an answer to each type of the mix is in time, in order; `None` if nobody
    /// asks for goodput.
    pub fn limits(&self) -> Option<Vec<Nanos>> {
        let names: Vec<&str> = self.mix.iter().map(|(name, _)| name.as_str()).collect();
        self.within.as_ref()?.limits_of("type", &names).ok()
    }

    /// Names the types of the limits as the mix does.
    ///
    /// # Errors
    /// A type that is unknown, or one of the mix without a limit.
    pub fn name_limits(&mut self, types: &mut Types) -> Result<(), String> {
        if let Some(Within::Each(each)) = &mut self.within {
            for (name, _) in each {
                *name = types.called(name)?;
            }
        }
        let names: Vec<&str> = self.mix.iter().map(|(name, _)| name.as_str()).collect();
        self.within.as_ref().map_or(Ok(()), |within| within.limits_of("type", &names).map(drop))
    }

    /// Adds thresholds. Each replaces an earlier one on the same side of the same number, also if it names
    /// the type by its number.
    pub fn bound(&mut self, thresholds: &[Threshold], types: &mut Types) {
        let mut named = |threshold: &Threshold| {
            let class =
                threshold.class.as_ref().map(|class| types.called(class).unwrap_or_else(|_| class.clone()));
            Threshold { class, ..threshold.clone() }
        };
        let new: Vec<Threshold> = thresholds.iter().map(&mut named).collect();
        self.thresholds.retain(|known| !new.iter().any(|new| new.is_of(known)));
        self.thresholds.extend(new);
    }

    /// Names the types of the thresholds as the mix does.
    ///
    /// # Errors
    /// A threshold on a type that the load does not send, or on a number that it does not measure.
    pub fn name_thresholds(&mut self, types: &mut Types) -> Result<(), String> {
        let names: Vec<&str> = self.mix.iter().map(|(name, _)| name.as_str()).collect();
        for threshold in &mut self.thresholds {
            let text = threshold.to_string();
            if let Some(class) = &mut threshold.class {
                let named = types.called(class).unwrap_or_else(|_| class.clone());
                if !names.contains(&named.as_str()) {
                    let why = sluice_units::unknown("type of this load", class, &names);
                    return Err(format!("threshold `{text}`: {why}"));
                }
                *class = named;
            }
            if threshold.number == LoadNumber::Goodput && self.within.is_none() {
                return Err(format!("threshold `{text}`: goodput needs `within`, when an answer is in time"));
            }
        }
        Ok(())
    }

    /// The budget of each type of the mix, in order.
    pub fn budgets_of_mix(&self) -> Vec<Option<Duration>> {
        let of = |name: &str| self.budgets.iter().find(|(known, _)| known == name).map(|(_, budget)| *budget);
        self.mix.iter().map(|(name, _)| of(name)).collect()
    }
}

/// The arrival process.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At random moments, this many a second.
    Poisson(f64),
    /// At a constant rate, this many a second.
    Constant(f64),
    /// At random moments, at a rate that changes with time; the stages are the measured time.
    Stages(RateStages),
    /// At the times in a trace file.
    Trace(PathBuf),
}

/// The default of the allowed share of failed services.
pub const FAILED_MAX: f64 = 0.01;
/// The default of the share of tasks below which refused tasks must stay.
pub const REFUSED_MAX: f64 = 0.01;

impl Arrivals {
    /// Tasks per second, of stages on average; `None` for a trace.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Poisson(rate) | Self::Constant(rate) => Some(*rate),
            Self::Stages(stages) => Some(stages.mean_per_s()),
            Self::Trace(_) => None,
        }
    }

    /// The stages, if the rate changes with time.
    pub const fn stages(&self) -> Option<&RateStages> {
        match self {
            Self::Stages(stages) => Some(stages),
            Self::Poisson(_) | Self::Constant(_) | Self::Trace(_) => None,
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson(rate) => write!(f, "Poisson, {rate} tasks/s"),
            Self::Constant(rate) => write!(f, "constant, {rate} tasks/s"),
            Self::Stages(stages) => write!(f, "Poisson, stages {stages} in tasks/s"),
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
    /// The scheduler of the workers' switch; below a spine, their leaf's. Slices have targets in it if the
    /// plan gives any and the policy can have them.
    pub fn program(&self) -> Choice {
        let choice = live_program(&self.policy).expect("it was read once");
        let is_wanted = self.slices.iter().any(|slice| slice.target.or(slice.latency).is_some());
        if is_wanted { choice.with("target").unwrap_or(choice) } else { choice }
    }

    /// How many tasks a worker may have granted or held: from the plan, otherwise from the scheduler.
    pub fn quota(&self, worker: &WorkerPlan) -> u8 {
        worker.quota.unwrap_or_else(|| self.program().traits().quota.max(1))
    }

    /// The faults of sockets; `None` with a switch on links, which inject the faults.
    pub fn socket_faults(&self) -> Option<&String> {
        self.faults.as_ref().filter(|_| !self.switch.io.is_on_links())
    }

    /// The names of the servers; none under a scheduler that writes nothing ahead, and none below spines.
    pub fn servers(&self) -> Vec<String> {
        let writes_ahead = self.racks.is_none() && self.program().traits().writes_ahead;
        let count = if writes_ahead { self.rdma.servers } else { 0 };
        (1..=count).map(|number| format!("server-{number}")).collect()
    }

    /// The server whose memory a worker shares: workers are distributed over servers in turn.
    pub fn server_of(&self, worker: &WorkerPlan) -> Option<String> {
        let place = self.workers.iter().position(|known| known.name == worker.name)?;
        let servers = self.servers();
        (!servers.is_empty()).then(|| servers[place % servers.len()].clone())
    }

    /// What a `kv` worker does: in a slice with writes it is the writer.
    pub fn role_of(&self, worker: &WorkerPlan) -> KvRole {
        let slice = self.slices.iter().find(|slice| slice.name == worker.slice);
        let types = slice.iter().flat_map(|slice| &slice.types);
        KvRole::among(types.filter_map(|name| self.types.number(name)).map(TaskType))
    }

    /// How many bytes the first packet of a task may bring.
    pub fn first_packet(&self) -> FirstPacket {
        FirstPacket::fitting(self.rdma.link_mtu, (!self.servers().is_empty()).then_some(self.rdma.mtu))
    }
}

/// The default folder of the switch's state: beside the results.
pub(super) fn state_in(out: &Path) -> PathBuf {
    out.join("state")
}
