//! Plans: what a rack consists of, what load it gets and what goes wrong, in one TOML file.
//!
//! Reading a plan (`read`) gives values that are legal one by one and together (`check`); nothing later has
//! to doubt them. Left out as yet: ranges where a number stands.

mod check;
mod kind;
mod rdma;
mod read;
mod section;
mod types;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use kind::Kind;
pub use rdma::{RdmaPlan, SERVERS_MAX};
pub use types::Types;

use sluice_apps::rocks::RocksArgs;
use sluice_net::client::deadline_default;
use sluice_net::first::FirstPacket;
use sluice_switch::registry::Choice;

use crate::fail::{Failure, Outcome};
use crate::figures::is_figure;

/// The plan that `sluice up` runs when it is given none.
const DEMO: &str = include_str!("../../../../experiments/demo.toml");

/// A rack, its load and its faults.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The plan as it was read.
    pub text: String,
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
    /// Where results go.
    pub out: PathBuf,
    /// What every socket does to its packets, as [`sluice_net::faults::Rates`] reads it.
    pub faults: Option<String>,
    /// The switch and its controller.
    pub switch: SwitchPlan,
    /// Where large tasks wait.
    pub rdma: RdmaPlan,
    /// The names of task types.
    pub types: Types,
    /// The slices.
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

/// The switch and its controller.
#[derive(Clone, Debug)]
pub struct SwitchPlan {
    /// Where packets come in; port 0 lets the kernel choose.
    pub listen: Option<SocketAddr>,
    /// Where the controller is asked.
    pub control: Option<SocketAddr>,
    /// Whether the controller runs as a process of its own.
    pub controller_apart: bool,
    /// Tasks that can wait in each slice's ring; a power of two.
    pub tasks_per_slice: u32,
    /// Tokens that can park in each slice's ring; a power of two.
    pub tokens_per_slice: u32,
    /// Tasks that each client may have outstanding; a power of two.
    pub replay_cells: u32,
    /// Memory for long payloads that wait, or that go round while servers hold what waits, in bytes.
    pub payload_bytes: Option<usize>,
    /// How it waits for packets: `adaptive`, `spin` or `block`.
    pub waiting: String,
    /// Whether packets are held for the delays of the paper's testbed.
    pub testbed_delays: bool,
    /// The core that it stays on.
    pub pin: Option<usize>,
}

/// One slice: a queue in the switch and the types that go there.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// Its name.
    pub name: String,
    /// The types that it serves.
    pub types: Vec<String>,
    /// How many tasks may wait.
    pub limit: Option<u32>,
}

/// One worker.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    /// Its name, unlike all others.
    pub name: String,
    /// Its slice.
    pub slice: String,
    /// What it serves.
    pub service: ServicePlan,
    /// How many tasks it may have granted or held, if the plan says.
    pub quota: Option<u8>,
    /// The core that it stays on.
    pub pin: Option<usize>,
    /// What its socket does to its packets, instead of the plan's `faults`.
    pub faults: Option<String>,
}

/// What a worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePlan {
    /// One of ours, by name.
    Ours(String),
    /// A program of yours, with its own arguments.
    Program {
        /// The executable.
        exec: PathBuf,
        /// What it is told before the common flags.
        args: Vec<String>,
    },
}

/// The load of a run.
#[derive(Clone, Debug)]
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

/// What a task carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Keys to read.
    Get {
        /// How many; the mean if they are spread.
        keys: u32,
        /// How the number varies.
        spread: Spread,
    },
    /// Rows to scan from a random key on.
    Scan {
        /// How many; the mean if they are spread.
        rows: u32,
        /// How the number varies.
        spread: Spread,
    },
    /// A span for `spin` or `hold`.
    Busy {
        /// How long; the mean if it is spread.
        span: Duration,
        /// How the span varies.
        spread: Spread,
    },
    /// These bytes, for programs of your own.
    Bytes(Vec<u8>),
}

/// How the size of requests varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Not at all.
    Constant,
    /// Exponentially.
    Exponential,
}

/// What happens to the rack under load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, from the start of the load.
    pub at: Duration,
    /// Who is killed (with -9).
    pub kill: Target,
    /// When it is started again, from then on; never if missing.
    pub return_after: Option<Duration>,
}

/// Who can be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The switch's process.
    Switch,
    /// The controller's own process.
    Controller,
    /// The worker of this name.
    Worker(String),
    /// The server of this name.
    Server(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("switch"),
            Self::Controller => f.write_str("controller"),
            Self::Worker(name) => write!(f, "worker {name}"),
            Self::Server(name) => write!(f, "server {name}"),
        }
    }
}

impl Plan {
    /// The plan in `path`, or the demo's.
    pub fn load(path: Option<&Path>) -> Outcome<Self> {
        let Some(path) = path else { return Self::from_text("demo (built in)", DEMO) };
        let text = std::fs::read_to_string(path).map_err(|why| {
            let path = path.display().to_string();
            if is_figure(&path) {
                return Failure::bad_input(Kind::Study.is_no_other(&path));
            }
            if Choice::parse(&path).is_ok() {
                return Failure::bad_input(format!("{path} is a policy, not a plan: give --policy {path}"));
            }
            Failure::bad_input(format!("plan {path} cannot be read: {why}; give the path of a TOML plan"))
        })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// With all times multiplied by this factor instead of its own; a deadline that was left to it goes
    /// along.
    #[must_use]
    pub fn dilated(mut self, factor: Option<u32>) -> Self {
        if let Some(factor) = factor {
            let own = deadline_default(self.dilation);
            if let Some(load) = self.load.as_mut().filter(|load| load.deadline == own) {
                load.deadline = deadline_default(factor);
            }
            self.dilation = factor;
        }
        self
    }

    /// The plan that `text` describes; `name` is for complaints.
    pub fn from_text(name: &str, text: &str) -> Outcome<Self> {
        if Kind::of(text) == Some(Kind::Study) {
            return Err(Failure::bad_input(Kind::Study.is_no_other(name)));
        }
        let plan = read::read(section::Source { name, text })?;
        check::check(&plan).map_err(|why| Failure::bad_input(format!("plan {name}: {why}")))?;
        Ok(plan)
    }

    /// The scheduler.
    pub fn program(&self) -> Choice {
        Choice::parse(&self.policy).expect("it was read once")
    }

    /// How many tasks a worker may have granted or held: as the plan says, or as the scheduler has it.
    pub fn quota(&self, worker: &WorkerPlan) -> u8 {
        worker.quota.unwrap_or_else(|| self.program().quota().max(1))
    }

    /// The same plan with another scheduler instead of its own.
    pub fn under(mut self, policy: Option<&str>) -> Outcome<Self> {
        if let Some(policy) = policy {
            live(Choice::parse(policy).map_err(Failure::bad_input)?).map_err(Failure::bad_input)?;
            policy.clone_into(&mut self.policy);
            check::adaptive(&self).map_err(Failure::bad_input)?;
        }
        Ok(self)
    }

    /// The names of its servers: none under a scheduler that writes nothing ahead.
    pub fn servers(&self) -> Vec<String> {
        let count = if self.program().writes_ahead() { self.rdma.servers } else { 0 };
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

/// A choice that real racks can carry out.
pub fn live(choice: Choice) -> Result<Choice, String> {
    if choice.early().is_some_and(|early| !early.is_perfect()) {
        return Err(format!(
            "`{choice}`: only the simulator makes estimates worse; ask for `early`, and services say what they know"
        ));
    }
    Ok(choice)
}
