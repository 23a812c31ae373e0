//! The command line.

mod gateway;
mod senders;
mod served;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use sluice_faults::Only;
use sluice_live::args::{LiveArgs, VersusArgs};
use sluice_net::program::{ControllerArgs, TlsArgs, TraceArgs, WorkerArgs};
use sluice_report::FigureSize;
use sluice_services::kv::{KV, KvRole};
use sluice_services::rocks::RocksArgs;
use sluice_services::rocks::measure::MeasureArgs;
use sluice_sim::Within;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::{ExportArgs, Io, LogArgs, Output, TableServer};
use sluice_support::plan::{RateStages, Threshold};
use sluice_support::running::RackArgs;
use sluice_support::{print, units};
use sluice_switch::registry::Choice;
use sluice_wire::Nanos;

use crate::{study, words};

pub(crate) use gateway::GatewayArgs;
pub(crate) use senders::{ArrivalsArg, FLOWS_MAX, LoadArgs, WaitArg, WriteArgs};
pub(crate) use served::{GuardArgs, MetricsArgs};

/// Schedules microsecond-scale tasks inside the network: a task meets a worker's token in the switch.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 110, after_help = words::of_all())]
pub(crate) struct Sluice {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole rack on this machine: switch, workers, a load, and the faults of its plan.
    #[command(after_help = words::UP)]
    Up(UpArgs),
    /// Run a switch, with the controller in it.
    #[command(after_help = words::SWITCH)]
    Switch(SwitchArgs),
    /// Run a controller on its own, for a switch that was started with --controller-apart.
    #[command(after_help = words::CONTROLLER)]
    Controller(ControllerCommandArgs),
    /// Run a worker of one of our services, or of a program of yours.
    #[command(after_help = words::WORKER)]
    Worker(WorkerCommandArgs),
    /// Run a server: memory of this machine that the switch writes waiting tasks into, for the workers beside
    /// it.
    #[command(after_help = words::SERVER)]
    Server(ServerCommandArgs),
    /// Send a load to a rack and measure what comes of it.
    #[command(after_help = words::LOAD)]
    Load(LoadArgs),
    /// Write over RDMA (RoCEv2) at a rate, as a host that makes pauses between flowlets (HF²T), and look at
    /// the gaps; or take what another one writes.
    #[command(after_help = words::WRITE)]
    Write(WriteArgs),
    /// Show how a rack stands: its switch, slices, workers, servers and clients.
    #[command(after_help = words::STATUS)]
    Status(StatusArgs),
    /// Serve a page that shows racks as they run, and changes them (what status, move and map do), a study as
    /// it grows, or two results.
    #[command(after_help = words::DASHBOARD)]
    Dashboard(DashboardArgs),
    /// Stand before a rack for clients of Redis (RESP), HTTP and gRPC, and make tasks of what they ask.
    #[command(after_help = words::GATEWAY)]
    Gateway(GatewayArgs),
    /// Move a worker to another slice (a queue in the switch, with its types and workers) while it runs.
    #[command(after_help = words::MOVE)]
    Move(MoveArgs),
    /// Send a type of tasks to another slice (a queue in the switch) while the rack runs.
    #[command(after_help = words::MAP)]
    Map(MapArgs),
    /// Compare Rain with what stands in front of services today (nginx, shared addresses), on the same tasks.
    #[command(after_help = words::VERSUS)]
    Versus(VersusArgs),
    /// Say what this machine can do, and what to do about the rest.
    #[command(after_help = words::DOCTOR)]
    Doctor(DoctorArgs),
    /// List the policies (schedulers) with what they do and what they take.
    #[command(after_help = words::POLICIES)]
    Policies(PoliciesArgs),
    /// Show how much of a switch's stages and memory a scheduler takes.
    #[command(after_help = words::RESOURCES)]
    Resources(ResourcesArgs),
    /// Measure how long a real service takes here, as a workload for the simulator.
    #[command(after_help = words::PROFILE)]
    Profile(ProfileArgs),
    /// Simulate one policy under a load.
    #[command(after_help = words::SIM)]
    Sim(study::args::CurvesCommand),
    /// Simulate several policies under several loads, each on the same tasks.
    #[command(after_help = words::SWEEP)]
    Sweep(study::slurm::SweepCommand),
    /// Simulate two policies on the same tasks, and say whether they really differ.
    #[command(after_help = words::COMPARE)]
    Compare(study::args::CurvesCommand),
    /// Find the highest rate at which policies keep a limit.
    #[command(after_help = words::THROUGHPUT)]
    Throughput(study::args::ThroughputCommand),
    /// Run the papers' figures, and hold their numbers against ours.
    #[command(after_help = words::REPRODUCE)]
    Reproduce(study::args::ReproduceArgs),
    /// Hold all policies for a rack against each other on six workloads.
    #[command(after_help = words::TABLE)]
    Table(study::args::TableArgs),
    /// Make the page and the tables of a study anew from its JSON.
    #[command(after_help = words::REPORT)]
    Report(ReportArgs),
    /// Hold two results against each other, and say what is noise.
    #[command(after_help = words::DIFF)]
    Diff(DiffArgs),
    /// Tell what happens in one fault run, packet by packet.
    #[command(after_help = words::REPLAY_FAULT)]
    ReplayFault(ReplayFaultArgs),
    /// Run racks in virtual time under failures, seed after seed, until one breaks a promise.
    #[command(after_help = words::FAULT_RUNS)]
    FaultRuns(FaultRunsArgs),
    /// Print what makes a shell complete this command's words.
    #[command(after_help = words::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write this command's manual pages.
    #[command(after_help = words::MAN)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// The plan [default: the demo].
    pub(crate) plan: Option<PathBuf>,
    /// Where results go, instead of the plan's folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Tasks per second, instead of the plan's.
    #[arg(long, value_name = "TASKS/S", value_parser = units::rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// A rate that changes with time, and how long to measure, instead of the plan's:
    /// 10k:5s,10k..50k:5s,50k:10s is 10,000 tasks per second, a ramp, and 50,000.
    #[arg(long, value_name = "RATE:SPAN,…", conflicts_with_all = ["rate", "length", "sweep"])]
    pub(crate) stages: Option<RateStages>,
    /// How long to measure, instead of the plan's.
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pub(crate) length: Option<Duration>,
    /// For how long a task is worth beginning, from when it is due: 200us. One that has nothing left of its
    /// budget is refused at its client, in the switch or at a worker [default: no limit, but for types that
    /// have one in the plan].
    #[arg(long, value_name = "SPAN", value_parser = sluice_workload::read_budget)]
    pub(crate) budget: Option<Nanos>,
    /// The latency within which an answer is in time: 200us, or one for each type: get=100us,scan=1ms. With
    /// it, answers in time a second (goodput) are counted [default: the plan's].
    #[arg(long, value_name = "LATENCY", conflicts_with = "sweep")]
    pub(crate) within: Option<Within>,
    /// A bound that the run must hold, else the exit code is 3: get.p99<5ms, refused<1%, rate>9k, or without
    /// a type of all tasks; give it again for more. It goes before the plan's bound on the same number.
    #[arg(long = "threshold", value_name = "NUMBER<BOUND", conflicts_with = "sweep")]
    pub(crate) thresholds: Vec<Threshold>,
    /// Stretch all times by this factor, service too, instead of the plan's: this machine's own delays then
    /// weigh less.
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) dilate: Option<u32>,
    /// Lose, double and reorder these shares of the packets in every socket, instead of the plan's:
    /// loss=0.01,dup=0.01,reorder=0.05.
    #[arg(long, value_name = "RATES")]
    pub(crate) faults: Option<String>,
    /// Where packets are switched, instead of the plan's: on a socket of the switch's process, in the
    /// kernel, or on BMv2; the last two on links between network namespaces (takes root).
    #[arg(long, value_name = "WHERE", conflicts_with = "sweep")]
    pub(crate) io: Option<Io>,
    /// With bmv2: which of its servers takes the program's tables, instead of the plan's.
    #[arg(long, value_name = "SERVER", conflicts_with = "sweep")]
    pub(crate) runtime: Option<TableServer>,
    /// Split the workers over this many racks, each with a switch of its own (a leaf), below a spine to which
    /// all tasks go; the policy is then dc-horus.
    #[arg(long, value_name = "COUNT", conflicts_with = "sweep")]
    pub(crate) racks: Option<u16>,
    /// With --racks, how many spines there are: each has a block of racks, and stands in for those that are
    /// gone.
    #[arg(long, value_name = "COUNT", conflicts_with = "sweep")]
    pub(crate) spines: Option<u16>,
    /// Write what the switch writes into servers' memory into captures for Wireshark (RoCE), in this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "sweep")]
    pub(crate) pcap: Option<PathBuf>,
    /// Serve what all processes of the rack count for Prometheus on this address, at /metrics, instead of the
    /// plan's.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, conflicts_with = "sweep")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Serve a page about the run on this address of this machine, for a browser.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, conflicts_with = "sweep")]
    pub(crate) dashboard: Option<SocketAddr>,
    /// Run the plan a second time, on plain pools of threads over one queue each in place of its servers of
    /// many cores, and hold the p99 of the most important tasks to theirs.
    #[arg(long, conflicts_with = "sweep")]
    pub(crate) beside_pool: bool,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// The plan whose switch and slices these are [default: the demo].
    pub(crate) plan: Option<PathBuf>,
    /// Where packets come in, instead of the plan's address.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Where the controller is asked, instead of the plan's address [default: the plan's, else
    /// 127.0.0.1:7400].
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    pub(crate) control: Option<SocketAddr>,
    /// The folder for what must outlive the switch, instead of the plan's.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// All times multiplied, instead of the plan's factor.
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: Option<u32>,
    /// The scheduler instead of the plan's, such as rain:2 (Rain, at most two tasks at a worker), r2p2:2 or
    /// racksched:2,tracked; `sluice policies` lists all.
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Vec<String>,
    /// Where packets are switched, instead of the plan's: on a socket of this process, in the kernel, or on
    /// BMv2; the last two on links.
    #[arg(long, value_name = "WHERE")]
    pub(crate) io: Option<Io>,
    /// With bmv2: which of its servers takes the program's tables, instead of the plan's.
    #[arg(long, value_name = "SERVER")]
    pub(crate) runtime: Option<TableServer>,
    /// With bmv2: the P4Runtime server of one that runs already, instead of starting one.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    #[arg(requires = "thrift", conflicts_with = "runtime")]
    pub(crate) p4runtime: Option<SocketAddr>,
    /// With --p4runtime: its Thrift server, for what P4Runtime has not.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, requires = "p4runtime")]
    pub(crate) thrift: Option<SocketAddr>,
    /// With --p4runtime: its device number.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "p4runtime")]
    pub(crate) device: u32,
    /// With xdp and bmv2: an interface that is a link of the switch; give it again for more.
    #[arg(long = "interface", value_name = "NAME")]
    pub(crate) interfaces: Vec<String>,
    /// With xdp: let the kernel's stack carry the program even where a driver could; slower, for drivers that
    /// do it wrong.
    #[arg(long)]
    pub(crate) generic: bool,
    /// With xdp: where its maps and links are pinned [default: /sys/fs/bpf/sluice/ and the plan's name].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pins: Option<PathBuf>,
    /// With xdp: take the program off its links, with all that waits in it, and end.
    #[arg(long)]
    pub(crate) detach: bool,
    /// With udp: after SIGTERM or SIGINT, take no new tasks and wait until those that are here have left, at
    /// most for so long.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = units::span)]
    pub(crate) drain_limit: Duration,
    /// Faults in its socket, instead of the plan's, such as loss=0.01,dup=0.01,reorder=0.05.
    #[arg(long, value_name = "RATES")]
    pub(crate) faults: Option<String>,
    /// Leave the controller to a process of its own, of several spines to one for all; the control address
    /// then serves the tables.
    #[arg(long, conflicts_with = "leaf")]
    pub(crate) controller_apart: bool,
    /// Be the spine of the plan's racks, or with a number that one of several.
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(conflicts_with = "leaf")]
    pub(crate) spine: Option<u16>,
    /// Be the leaf of the plan's rack of this number, which registers with the spine's controller; it is
    /// called rack-NUMBER there.
    #[arg(long, value_name = "NUMBER", requires = "above")]
    pub(crate) leaf: Option<u16>,
    /// Where the spine's controller is, for a leaf; behind it, with commas between, those of other spines,
    /// which stand in for it. A controller of its own above all spines needs one address only.
    #[arg(long, value_name = "ADDRESS", requires = "leaf", value_delimiter = ',')]
    pub(crate) above: Vec<String>,
    /// For a leaf on a server of its rack: the rack's switch, which forwards all of its packets.
    #[arg(long, hide = true, value_name = "ADDRESS", requires = "leaf", value_parser = units::address)]
    pub(crate) behind: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    /// End when our parent, the process with this number, ends.
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerCommandArgs {
    /// The plan whose slices these are [default: the demo].
    pub(crate) plan: Option<PathBuf>,
    /// Where the switch is asked: the control address of one that was started with --controller-apart; of
    /// several spines that of each, with commas between.
    #[arg(long, value_name = "ADDRESS", required = true, value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Wait while another controller leads the rack, and lead once it ends or is silent for a second. Start
    /// each controller of a rack so; without this it takes the switch over at once. With --etcd each
    /// controller waits anyway.
    #[arg(long)]
    pub(crate) standby: bool,
    /// Above spines: several such controllers may run. The one to which this etcd grants a lease leads, and
    /// keeps there where hosts are. HOST:PORT, http://HOST:PORT or https://HOST:PORT of each member, with
    /// commas between.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) etcd: Vec<String>,
    /// PEM file of the authority that signed etcd's certificate; turns TLS on.
    #[arg(long, value_name = "FILE", requires = "etcd")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// PEM files of the certificate to show to etcd, and of its key.
    #[arg(long, value_names = ["CERTIFICATE", "KEY"], num_args = 2, requires = "etcd_ca")]
    pub(crate) etcd_identity: Option<Vec<PathBuf>>,
    /// The user of etcd to log in as.
    #[arg(long, value_name = "NAME", requires = "etcd", requires = "etcd_password")]
    pub(crate) etcd_user: Option<String>,
    /// File whose first line is the password of etcd's user; read anew for each connection.
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    pub(crate) etcd_password: Option<PathBuf>,
    /// Where the controller is asked, instead of the plan's address [default: the plan's, else
    /// 127.0.0.1:7400]; above several spines once for each, with commas between [default: any port but for
    /// the first].
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, value_delimiter = ',')]
    pub(crate) control: Vec<SocketAddr>,
    /// All times multiplied, instead of the plan's factor.
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: Option<u32>,
    /// The scheduler instead of the plan's: what the switch was told.
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Vec<String>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// End when the process of this number, our parent, does.
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

impl ControllerCommandArgs {
    /// Whether the controller waits until it may lead.
    pub(crate) const fn waits(&self) -> bool {
        self.standby || !self.etcd.is_empty()
    }
}

#[derive(Debug, Args)]
pub(crate) struct WorkerCommandArgs {
    /// What to serve: rocksdb, kv, spin or hold.
    #[arg(required_unless_present_any = ["exec", "plan"])]
    pub(crate) service: Option<String>,
    /// Be what this plan says of the worker called --name; other flags say the rest, and what is different.
    #[arg(long, value_name = "FILE", requires = "name",
          conflicts_with_all = ["service", "exec", "db", "keys", "item_bytes", "cache_mib", "role", "sync"])]
    pub(crate) plan: Option<PathBuf>,
    /// A program to become instead; what follows `--` is handed to it.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "service")]
    pub(crate) exec: Option<PathBuf>,
    /// Where RocksDB keeps its data, and how much of it there is.
    #[command(flatten)]
    pub(crate) data: RocksArgs,
    /// What a worker of a kv store does; a store has one writer, and readers beside it.
    #[arg(long, value_name = "ROLE", required_if_eq("service", KV))]
    pub(crate) role: Option<KvRole>,
    /// Have each write of a kv store on the disk before it is answered, so that a power cut loses none.
    #[arg(long)]
    pub(crate) sync: bool,
    #[command(flatten)]
    pub(crate) common: WorkerArgs,
    /// The program's arguments.
    #[arg(last = true, requires = "exec")]
    pub(crate) args: Vec<OsString>,
    /// End when the process of this number, our parent, does.
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerCommandArgs {
    /// The rack's plan: what it says of rdma, its scheduler, dilation, faults and seed [default: what a plan
    /// has that says nothing].
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) controller: ControllerArgs,
    /// The server's name, unlike all others [default: server-PID-CHANCE].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Where RDMA writes come in: an address of its own, which the switch can reach.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4791")]
    pub(crate) listen: SocketAddr,
    /// The folder of the memory that its workers share, best one in memory such as /dev/shm/sluice.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) memory: PathBuf,
    /// How many bytes one write into its memory may bring (the RDMA MTU), instead of the plan's [default:
    /// 2048].
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<usize>,
    /// Acknowledge each write (a reliable connection, RC); otherwise none is (UC).
    #[arg(long)]
    pub(crate) reliable: bool,
    /// Do not check the writes' checksum (RoCE's iCRC).
    #[arg(long)]
    pub(crate) no_icrc: bool,
    /// Slots of each ring, instead of what the slices need; refused unless the rack's plan has `tiny_slots`.
    #[arg(long, value_name = "SLOTS", hide = true)]
    pub(crate) tiny_slots: Option<u32>,
    /// The rack's scheduler, instead of the plan's [default: rain]; with rain:adaptive an agent finds how
    /// many tasks each worker here may hold at once.
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// The factor by which the rack's times are stretched, instead of the plan's [default: 1].
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: Option<u32>,
    /// The switch holds packets back for as long as in the paper's rack: let the agent reckon with that.
    #[arg(long)]
    pub(crate) testbed_delays: bool,
    /// Write every RoCE packet that comes and goes into this file, for tshark or Wireshark.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Keep the thread on this core.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
    /// Faults to inject, instead of the plan's, such as loss=0.01,dup=0.01,reorder=0.05.
    #[arg(long, value_name = "RATES")]
    pub(crate) faults: Option<String>,
    /// Seeds the faults, instead of the plan's [default: 1].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// End when the process of this number, our parent, does.
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// The shortest interval at which `status --watch` asks a rack.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(50);

/// Reads the interval of `status --watch`.
fn look_every(text: &str) -> Result<Duration, String> {
    let every = units::span(text)?;
    let least = LOOK_EVERY_MIN.as_millis();
    if every >= LOOK_EVERY_MIN {
        Ok(every)
    } else {
        Err(format!("`{text}` is shorter than {least}ms: write {least}ms or more"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Ask again and again, until q or Ctrl-C: the screen is drawn anew, and without a terminal each look is
    /// a line.
    #[arg(long)]
    pub(crate) watch: bool,
    /// How often, with --watch.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = look_every, requires = "watch")]
    pub(crate) every: Duration,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    /// Where the page is served. Without --tls only this machine can be served.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, default_value = "127.0.0.1:7410")]
    pub(crate) listen: SocketAddr,
    /// Show the study in this folder as it grows, instead of a rack.
    #[arg(long, value_name = "FOLDER", conflicts_with = "controller")]
    pub(crate) study: Option<PathBuf>,
    /// Show two results beside each other: two study.json, two result.json, or their folders.
    #[arg(long, value_names = ["ONE", "OTHER"], num_args = 2, conflicts_with_all = ["controller", "study"])]
    pub(crate) results: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The worker's name.
    pub(crate) worker: String,
    /// The slice that it is to serve.
    pub(crate) slice: String,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// The type: its number, or the name of one of ours.
    #[arg(value_name = "TYPE")]
    pub(crate) task_type: String,
    /// The slice that is to take it; without one its tasks are refused.
    pub(crate) slice: Option<String>,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The state folder to try.
    #[arg(long, value_name = "FOLDER", default_value = "out/state")]
    pub(crate) state: PathBuf,
    /// The certificates of callers that run here, to see when they end.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Those of a switch or controller.
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    /// The scheduler, such as rain; without one, a line for each.
    pub(crate) program: Option<String>,
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The study.json of a run, or the folder that has it; several come into one page, in the folder that
    /// --out names.
    #[arg(required = true, value_name = "STUDY")]
    pub(crate) studies: Vec<PathBuf>,
    /// Where page and CSV go, instead of beside the JSON; with --figure the file, ending .svg or .pdf, or a
    /// folder for both.
    #[arg(long, value_name = "FOLDER|FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Draw a latency that must be kept as a line, such as 100us.
    #[arg(long, value_name = "TIME", value_parser = units::span, allow_negative_numbers = true)]
    pub(crate) slo: Option<Duration>,
    /// Write one picture of the page alone, as SVG and PDF for a paper; `list` names them, `all` writes all.
    #[arg(long, value_name = "NAME", conflicts_with = "export_markdown")]
    pub(crate) figure: Option<String>,
    /// The figure's width, as 3.3in, 84mm or 240pt, or its width and height, as 3.3inx2in.
    #[arg(
        long,
        value_name = "SIZE",
        requires = "figure",
        default_value = "3.3in",
        allow_hyphen_values = true
    )]
    pub(crate) size: FigureSize,
    /// Show only these series of the figure.
    #[arg(long, value_name = "SERIES,…", requires = "figure", default_value = "", hide_default_value = true)]
    pub(crate) only: String,
    /// Write this text for a series of the figure; may be repeated.
    #[arg(long, value_name = "SERIES=TEXT", requires = "figure")]
    pub(crate) label: Vec<String>,
    /// Let the figure's vertical axis begin at zero.
    #[arg(long, requires = "figure")]
    pub(crate) linear: bool,
    /// The figure's font, instead of the built-in Noto Sans.
    #[arg(long, value_name = "FILE.ttf", requires = "figure")]
    pub(crate) font: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A study.json or a result.json, or the folder that has it.
    #[arg(value_name = "A")]
    pub(crate) one: PathBuf,
    /// Another one of the same kind.
    #[arg(value_name = "B")]
    pub(crate) other: PathBuf,
    /// End with exit code 3 if a number differs by more than noise, or only one result has a point.
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Show all numbers, however many there are, also those that do not differ.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// What to measure: rocksdb.
    pub(crate) service: String,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// The profile's file.
    #[arg(long, value_name = "FILE", default_value = "out/profile-rocksdb.toml")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayFaultArgs {
    /// The run's seed, as `sluice fault-runs` names it.
    pub(crate) seed: u64,
    /// Tell only what worker:2, client:0, server:1, switch or controller does or suffers, or what becomes of
    /// task:0.17; and what happens to all.
    #[arg(long, value_name = "WHO", value_parser = str::parse::<Only>)]
    pub(crate) only: Option<Only>,
    #[command(flatten)]
    pub(crate) runs: FaultRunsOfArgs,
}

/// What the switch of a fault run runs.
#[derive(Debug, Args)]
pub(crate) struct FaultRunsOfArgs {
    /// What the switch runs. Workers' quotas and early tokens are drawn by the seed, whatever this says of
    /// them.
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<Choice>, default_value = "rain")]
    pub(crate) policy: Choice,
    /// Workers are the lanes of servers of many cores, which live and die together.
    #[arg(long)]
    pub(crate) cores: bool,
    /// Some tasks are worth beginning for a while only, and refused afterwards.
    #[arg(long)]
    pub(crate) budgets: bool,
    /// The rack has two controllers, of which one leads while the switch lets it.
    #[arg(long)]
    pub(crate) standbys: bool,
    /// The controllers also need a lease from a store, such as etcd.
    #[arg(long, requires = "standbys")]
    pub(crate) store: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FaultRunsArgs {
    /// The first seed; each seed is one run.
    #[arg(long, default_value_t = 0)]
    pub(crate) from: u64,
    /// How many runs [default: until Ctrl-C].
    #[arg(long)]
    pub(crate) count: Option<u64>,
    /// Begin with the seed that this file names for the policy, and write into it how far the runs came; at
    /// --from if it names none. A seed that broke a promise is met again until it keeps all.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: FaultRunsOfArgs,
    /// Print JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that is to complete words.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where the pages go: sluice.1, and one for each command.
    pub(crate) folder: PathBuf,
}

/// Reads the command line; `None` after printing help that was asked for.
pub(crate) fn read() -> Outcome<Option<Sluice>> {
    match Sluice::try_parse() {
        Ok(sluice) => Ok(Some(sluice)),
        Err(why) if why.use_stderr() && why.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::bad_input(sluice_experiment::one_line(&why)))
        }
        Err(why) => {
            let printed = why.print().and_then(|()| io::stdout().flush());
            // Help that was not asked for goes to stderr, since it is no result.
            if why.use_stderr() { Ok(None) } else { print::outcome_of_write(printed).map(|()| None) }
        }
    }
}

/// Whether JSON was asked for, for the case that the command line cannot be parsed.
pub(crate) fn json_was_asked() -> bool {
    std::env::args_os().any(|arg| arg == "--json")
}
