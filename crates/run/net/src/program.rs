//! A service as a program: its `main` is one call.
//!
//! [`run_service`] reads the flags that all workers share, registers, serves until SIGTERM or SIGINT, drains
//! (it takes no more tasks, and finishes those that it holds or that are on their way to it), and prints a
//! summary (stderr; with `--json` on stdout, on every way out). A second signal or `--drain-limit` ends it at
//! once; SIGHUP has it read its certificates anew.

mod as_text;
mod connect;
mod stopping;
mod traced;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_host::orchestrator::{Assignment, Balancing, Lambda, Priority};
use sluice_log::{LogEvent, tell};
use sluice_netem::FaultPlan;
use sluice_system::{Attempt, advice};
use sluice_traces::Tracer;
use sluice_wire::sizes::QUOTA_LIMIT;

use crate::NetError;
use crate::agent::LINES_FILE;
use crate::exit::Kind;
use crate::first::{FirstPacket, LINK_MTU_MAX, LINK_MTU_MIN};
use crate::metrics::{MetricsOutlets, ServedMetrics, WorkerMetrics};
use crate::served::{LANE_CORES_MAX, LANE_DEPTH, LANE_DEPTH_MAX, ServedSlice};
use crate::service::Service;
use crate::udp::Waiting;
use crate::worker::{
    LaneServer, LaneServerOptions, LaneService, ServerMemory, Worker, WorkerOptions, WorkerReport,
};

pub use connect::{CONTROLLER_DEFAULT, ClientArgs, ControllerArgs, TlsArgs};
pub use sluice_log::LogForm;
use stopping::stop_on_signals;
pub use stopping::{DrainLimit, ToldSignals, read_anew_on_hangup, tell_signal};
pub use traced::TraceArgs;

/// The exit code of success.
const WELL: u8 = 0;
/// Cores that a server may have.
const CORES: RangeInclusive<i64> = 1..=LANE_CORES_MAX as i64;
/// MTUs of links.
const LINK_MTUS: RangeInclusive<i64> = LINK_MTU_MIN as i64..=LINK_MTU_MAX as i64;
/// Tasks of a priority that a core may have room for.
const DEPTHS: RangeInclusive<i64> = 1..=LANE_DEPTH_MAX as i64;
/// Sizes that a coroutine's stack may have.
const STACKS: RangeInclusive<i64> = 16..=65_536;

/// The flags that every worker understands. Programs of ours hand them on as a value.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct WorkerArgs {
    /// Where the controller is, and how it and this worker know each other.
    #[command(flatten)]
    #[serde(flatten)]
    pub controller: ControllerArgs,
    /// The worker's name, unlike all others [default: worker-PID-CHANCE, behind the name in its certificate].
    #[arg(long)]
    pub name: Option<String>,
    /// The slice to join, a queue in the switch with the types that go there [default: the first whose types
    /// this service understands].
    #[arg(long, default_value = "", hide_default_value = true)]
    pub slice: String,
    /// What it has that some tasks need, as the plan calls it; several with commas.
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// How many tasks may be at this worker at once, served or waiting: its tokens, the N of rain:N.
    #[arg(long, value_name = "TASKS", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(QUOTA_LIMIT)))]
    pub quota: u8,
    /// Tasks per second that it can serve [default: as measured].
    #[arg(long, value_name = "RATE")]
    pub capacity: Option<u32>,
    /// Where to listen; others must be able to reach this address.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The server of this machine whose memory this worker shares.
    #[arg(long, value_name = "NAME", requires = "memory")]
    pub server: Option<String>,
    /// The folder of that memory.
    #[arg(long, value_name = "FOLDER", requires = "server")]
    pub memory: Option<PathBuf>,
    /// The longest packet, in bytes, that this worker sends: what the links carry (their MTU). It takes
    /// longer ones too.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(LINK_MTUS))]
    pub link_mtu: u16,
    /// Stretch service times, and times of the network, by this factor.
    #[arg(long, value_name = "FACTOR", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub dilate: u32,
    /// Ask for the next task before the running one ends, where the service or tasks of the same type tell
    /// when that is.
    #[arg(long)]
    pub early: bool,
    /// Ask for one task at a time, until so many wait in the switch; 0: always for as many as --quota says.
    #[arg(long, value_name = "TASKS", default_value_t = 0)]
    pub patience: u8,
    /// Let the server's agent find how many tasks may be here at once, beginning with --quota.
    #[arg(long, requires = "memory")]
    pub adaptive: bool,
    /// Be a server of so many cores behind one socket, which takes tasks by the room that they have, and not
    /// by --quota.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(CORES))]
    pub cores: Option<u16>,
    /// The slices that such a server serves, each with a priority, 0 to 7, a larger one first, such as
    /// get=1,scan=0 [default: --slice, with priority 0]; with get=1,scan=0,list=0*3 a core takes three of
    /// list's tasks for one of scan's where both wait.
    #[arg(long, value_name = "SLICES", value_delimiter = ',', requires = "cores")]
    pub serves: Vec<ServedSlice>,
    /// Tasks of a priority that each of its cores has room for.
    #[arg(long, value_name = "TASKS", requires = "cores")]
    #[arg(default_value_t = LANE_DEPTH, value_parser = clap::value_parser!(u32).range(DEPTHS))]
    pub depth: u32,
    /// What a task of a lower priority counts when a core is chosen: JBSRQ's λ, a ratio from 0 to 1.
    #[arg(long, value_name = "RATIO", default_value = "1/5", requires = "cores")]
    #[serde(with = "as_text")]
    pub lambda: Lambda,
    /// Which slices run on which of its cores: `shared`, all on all; `dedicated`, one slice a core; or
    /// `hybrid=4`, four cores at least of all slices. Cores move to slices whose tasks wait.
    #[arg(long, value_name = "HOW", default_value = "shared", requires = "cores")]
    #[serde(with = "as_text")]
    pub assignment: Assignment,
    /// Instead of such a server be a plain pool of as many threads, to compare: they take tasks of all slices
    /// from one queue, as they came, and run each to its end.
    #[arg(long, requires = "cores")]
    pub pool: bool,
    /// Let cores that have no task do the service's batch work, such as RocksDB's reading of all rows.
    #[arg(long, requires = "cores", conflicts_with = "pool")]
    pub batch: bool,
    /// The stack of a task on such a server, in KiB.
    #[arg(long, value_name = "KIB", default_value_t = 256, value_parser = value_parser!(u32).range(STACKS))]
    pub stack: u32,
    /// After SIGTERM or SIGINT, finish the tasks that are here for so long at most; then end without them.
    #[arg(long, value_name = "SPAN", default_value_t)]
    #[serde(with = "as_text")]
    pub drain_limit: DrainLimit,
    /// Keep the thread on this core.
    #[arg(long, value_name = "CORE")]
    pub pin: Option<usize>,
    /// How to wait for packets.
    #[arg(long, value_name = "HOW", default_value = "adaptive")]
    pub waiting: WaitingArg,
    /// Faults to inject, such as loss=0.01,dup=0.01,reorder=0.05.
    #[arg(long, value_name = "RATES", default_value = "", hide_default_value = true)]
    pub faults: String,
    /// Seeds the faults.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Serve what the worker counts for Prometheus on this address, at /metrics.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Report the same to a launcher, at this Unix socket.
    #[arg(long, hide = true, value_name = "PATH")]
    pub report_metrics: Option<PathBuf>,
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    pub json: bool,
    /// Say nothing but errors and the summary.
    #[arg(long, short)]
    pub quiet: bool,
    /// Which tasks are traced, and where their spans go.
    #[command(flatten)]
    #[serde(flatten)]
    pub traces: TraceArgs,
    /// How log lines are written; RUST_LOG says which.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub log: LogForm,
}

/// How a thread waits for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitingArg {
    /// Spin a little if there are cores to spare, then sleep.
    Adaptive,
    /// Never sleep.
    Spin,
    /// Sleep at once.
    Block,
}

impl From<WaitingArg> for Waiting {
    fn from(arg: WaitingArg) -> Self {
        match arg {
            WaitingArg::Adaptive => Self::Adaptive,
            WaitingArg::Spin => Self::Spin,
            WaitingArg::Block => Self::Block,
        }
    }
}

impl WorkerArgs {
    /// Sends log lines to stderr as these flags say.
    pub fn start_log(&self) {
        sluice_log::start(&self.process(), self.log, self.quiet);
    }

    /// The process's name in logs and traces.
    fn process(&self) -> String {
        self.name.as_ref().map_or_else(|| "worker".to_owned(), |name| format!("worker {name}"))
    }

    /// The options of the worker that these flags describe.
    ///
    /// # Errors
    /// An invalid address, certificate or list of faults.
    pub fn options(&self) -> Result<WorkerOptions, NetError> {
        let controller = self.controller.remote()?;
        let name = self.name.clone().unwrap_or_else(|| controller.own_name("worker"));
        let faults = FaultPlan::both(self.seed, &name, self.faults.parse()?);
        Ok(WorkerOptions {
            listen: self.listen,
            slice: self.slice.clone(),
            labels: self.labels.clone(),
            quota: self.quota,
            capacity: self.capacity.unwrap_or(0),
            memory: self
                .server
                .clone()
                .zip(self.memory.clone())
                .map(|(server, folder)| ServerMemory { server, folder }),
            datagram_max: FirstPacket::fitting(self.link_mtu, None).datagram_max,
            dilation: self.dilate,
            early: self.early,
            patience: self.patience,
            agent: self.memory.as_ref().filter(|_| self.adaptive).map(|folder| folder.join(LINES_FILE)),
            waiting: self.waiting.into(),
            drain_limit: self.drain_limit.0,
            pin: self.pin,
            name,
            faults,
            ..WorkerOptions::of(controller)
        })
    }

    /// The values of these names as flags, for a program that is not ours. A value that is off or empty gives
    /// no flag. A flag and its value are two words, or one word if the value begins with a dash.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub fn flags(&self, called: &[impl AsRef<str>]) -> Result<Vec<String>, serde_json::Error> {
        let Value::Object(all) = serde_json::to_value(self)? else { return Ok(Vec::new()) };
        let is_called = |name: &str| called.iter().any(|known| known.as_ref() == name);
        let flags = all.into_iter().filter(|(name, _)| is_called(name)).flat_map(|(name, value)| {
            let flag = format!("--{}", name.replace('_', "-"));
            let texts = match value {
                Value::Null | Value::Bool(false) => return Vec::new(),
                Value::Bool(true) => Vec::new(),
                Value::Array(list) if list.is_empty() => return Vec::new(),
                // A certificate and its key are two words.
                Value::Array(list) if name == "identity" => list.iter().map(shown).collect(),
                Value::Array(list) => vec![list.iter().map(shown).collect::<Vec<_>>().join(",")],
                value => vec![shown(&value)],
            };
            match &texts[..] {
                [text] if text.starts_with('-') => vec![format!("{flag}={text}")],
                _ => [flag].into_iter().chain(texts).collect(),
            }
        });
        Ok(flags.collect())
    }

    /// The options of the server of many cores that these values describe; `None` if they describe a worker
    /// of one core.
    ///
    /// # Errors
    /// As for [`Self::options`].
    pub fn lane_options(&self) -> Result<Option<LaneServerOptions>, NetError> {
        let Some(cores) = self.cores else { return Ok(None) };
        let own = [ServedSlice::new(self.slice.clone(), 0)];
        let served = if self.serves.is_empty() { &own[..] } else { &self.serves };
        let service = |served: &ServedSlice| {
            let priority = Priority::new(served.priority).expect("a flag holds none above");
            LaneService { slice: served.slice.clone(), priority, weight: served.weight }
        };
        let services = served.iter().map(service).collect();
        let options = LaneServerOptions::new(self.options()?, cores.into(), services)?;
        let (depth, balancing) = (self.depth, Balancing::Jbsrq(self.lambda));
        let (pool, batch) = (self.pool, self.batch);
        Ok(Some(LaneServerOptions {
            depth,
            balancing,
            assignment: self.assignment,
            pool,
            batch,
            stack_bytes: self.stack as usize * 1_024,
            ..options
        }))
    }
}

/// A text without its quotes; another value as it is.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Runs a service as a worker: the whole `main` of a service that has no flags of its own.
pub fn run_service<S: Service>(service: S) -> ExitCode {
    run_service_with(|_: &NoFlags| Ok::<S, NetError>(service))
}

/// Like [`run_service`], for a service with flags `A` of its own, from which `open` makes it.
pub fn run_service_with<A, S, E>(open: impl FnOnce(&A) -> Result<S, E>) -> ExitCode
where
    A: clap::Args,
    S: Service,
    E: fmt::Display,
{
    run_flags(std::env::args_os().collect(), open).into()
}

/// Like [`run_service`], for a `main` in another language: with its arguments, of which the first is the
/// program's name. Returns the exit code as a number.
pub fn run_service_of<S: Service>(args: Vec<OsString>, service: S) -> u8 {
    run_flags(args, |_: &NoFlags| Ok::<S, NetError>(service))
}

/// A service's own flags, if it has none.
#[derive(Clone, Debug, clap::Args)]
struct NoFlags {}

fn run_flags<A, S, E>(args: Vec<OsString>, open: impl FnOnce(&A) -> Result<S, E>) -> u8
where
    A: clap::Args,
    S: Service,
    E: fmt::Display,
{
    // Without a group: a service's own flags may be called `Flags`, too, and groups are known by their names.
    #[derive(Debug, Parser)]
    #[command(about = "A worker of a Sluice rack", long_about = None)]
    #[group(skip)]
    struct Flags<A: clap::Args> {
        #[command(flatten)]
        own: A,
        #[command(flatten)]
        worker: WorkerArgs,
    }
    let json = args.iter().any(|arg| arg == "--json");
    match Flags::<A>::try_parse_from(args) {
        Ok(flags) => run(&flags.worker, || open(&flags.own), |service| serve(&flags.worker, service)),
        Err(why) => Failure::flags(&why).report(json),
    }
}

/// Like [`run_service_with`], for a program that has read its flags already.
pub fn run_worker<S, E>(args: &WorkerArgs, open: impl FnOnce() -> Result<S, E>) -> ExitCode
where
    S: Service,
    E: fmt::Display,
{
    run(args, open, |service| serve(args, service)).into()
}

/// Like [`run_worker`], for a service that can be cloned: with `--cores`, each task on a core, running or
/// paused, has a clone of its own.
pub fn run_worker_on_cores<S, E>(args: &WorkerArgs, open: impl FnOnce() -> Result<S, E>) -> ExitCode
where
    S: Service + Clone + Sync + 'static,
    E: fmt::Display,
{
    run(args, open, |service| serve_on_cores(args, move || service.clone())).into()
}

fn run<S, E: fmt::Display>(
    args: &WorkerArgs,
    open: impl FnOnce() -> Result<S, E>,
    serve: impl FnOnce(S) -> Result<WorkerReport, NetError>,
) -> u8 {
    args.start_log();
    let served = open()
        .map_err(|why| Failure { kind: Some(Kind::BadInput), message: why.to_string() })
        .and_then(|service| serve(service).map_err(|why| Failure::net(&why)));
    match served {
        Ok(report) => finish(&report, args.json),
        Err(failure) => failure.report(args.json),
    }
}

/// Runs `service` as the worker that `args` describe, until SIGTERM or SIGINT.
///
/// # Errors
/// Invalid `args`, and the error that ends the worker early.
pub fn serve<S: Service>(args: &WorkerArgs, service: S) -> Result<WorkerReport, NetError> {
    if args.cores.is_some() {
        let why = "it has one instance, and each task there needs its own (`serve_on_cores`)";
        return Err(NetError::NotForCores { what: "service such as this program's", why });
    }
    let mut options = args.options()?;
    // Dropped last: signals also end a worker that cannot get rid of its traces.
    let _signals;
    let _traced = args.traces.start(&args.process(), &mut options.traces)?;
    let _served = serve_metrics(args, &mut options)?;
    let worker = Worker::new(&options, service)?;
    _signals = stop_on_signals(worker.stopper(), args.drain_limit)?;
    worker.run()
}

/// Like [`serve`], for a service of which there can be many instances. With `--cores`, each task on a core,
/// running or paused, has an instance of its own on that core's thread.
///
/// # Errors
/// As for [`serve`].
pub fn serve_on_cores<S: Service + 'static>(
    args: &WorkerArgs,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Result<WorkerReport, NetError> {
    let Some(mut options) = args.lane_options()? else { return serve(args, make()) };
    let _signals;
    let _traced = args.traces.start(&args.process(), &mut options.worker.traces)?;
    let _served = serve_metrics(args, &mut options.worker)?;
    let server = LaneServer::new(&options, make)?;
    _signals = stop_on_signals(server.stopper(), args.drain_limit)?;
    server.run()
}

/// Serves what a worker counts if its flags want that. An address that cannot be had ends the worker before
/// it registers.
fn serve_metrics(args: &WorkerArgs, options: &mut WorkerOptions) -> Result<ServedMetrics, NetError> {
    let outlets = MetricsOutlets::bind(args.metrics, args.report_metrics.as_deref())?;
    let metrics = outlets.are_wanted().then(WorkerMetrics::default);
    let traces = options.traces.iter().map(Tracer::source);
    let sources = metrics.iter().map(WorkerMetrics::source).chain(traces).collect();
    options.metrics = metrics;
    Ok(outlets.serve(sources)?)
}

fn finish(report: &WorkerReport, json: bool) -> u8 {
    tell(LogEvent::Said, report);
    let mut code = WELL;
    if json {
        let text = serde_json::to_string(report).expect("numbers and text have a JSON form");
        code = printed(writeln!(io::stdout(), "{text}"));
    }
    if report.drained { code } else { Kind::Aborted.code() }
}

/// Prints a result on stdout, and returns the exit code. A closed pipe is no failure, since its reader has
/// seen enough; a full disk is.
pub fn print(result: impl fmt::Display) -> ExitCode {
    printed(writeln!(io::stdout(), "{result}")).into()
}

/// Prints on stderr why there is no result, and returns the exit code.
pub fn fail(why: impl fmt::Display) -> ExitCode {
    tell(LogEvent::Failed, why);
    ExitCode::FAILURE
}

/// The exit code after a result was written with this success. A closed pipe is no failure.
fn printed(written: io::Result<()>) -> u8 {
    match written.and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
            let helps = advice(Attempt::Print, &why);
            tell(
                LogEvent::Failed,
                format_args!("what was found cannot be written to stdout: {why}; {helps}"),
            );
            Kind::Broken.code()
        }
        _ => WELL,
    }
}

/// Why a program did not run; without a kind, it only printed its help.
struct Failure {
    kind: Option<Kind>,
    message: String,
}

impl Failure {
    fn flags(why: &clap::Error) -> Self {
        Self { kind: why.use_stderr().then_some(Kind::BadInput), message: why.render().to_string() }
    }

    fn net(why: &NetError) -> Self {
        let kind = if why.is_bad_input() { Kind::BadInput } else { Kind::Broken };
        Self { kind: Some(kind), message: why.to_string() }
    }

    fn report(&self, json: bool) -> u8 {
        let Some(kind) = self.kind else { return printed(write!(io::stdout(), "{}", self.message)) };
        let message = one_line(&self.message);
        tell(LogEvent::Failed, &message);
        if json {
            let error = json!({ "kind": kind.name(), "exit_code": kind.code(), "message": message });
            writeln!(io::stdout(), "{}", json!({ "schema": "sluice.error.v1", "error": error })).ok();
        }
        kind.code()
    }
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        worker: WorkerArgs,
    }

    fn args(more: &[&str]) -> Result<WorkerArgs, clap::Error> {
        Flags::try_parse_from([&["service"], more].concat()).map(|flags| flags.worker)
    }

    #[test]
    fn values_are_written_as_the_flags_that_say_them_and_read_as_the_same_from_json() {
        let said = ["--slice=-a", "--labels", "gpu,ssd", "--early", "--ca", "ca", "--identity", "c", "k"];
        let cores = ["--cores", "4", "--serves", "a=1*3,b=0", "--lambda", "1/3", "--assignment", "hybrid=2"];
        let of = args(&[&said[..], &cores[..]].concat()).expect("legal");
        let json = serde_json::to_string(&of).expect("all is text");
        assert_eq!(serde_json::from_str::<WorkerArgs>(&json).expect("it was written so"), of);
        let called =
            ["slice", "labels", "early", "ca", "identity", "cores", "serves", "lambda", "assignment"];
        let flags = of.flags(&called).expect("all is text");
        assert_eq!(args(&flags.iter().map(String::as_str).collect::<Vec<_>>()).expect("legal"), of);
        assert_eq!(
            of.flags(&["pool", "quota", "server", "slice"]).expect("text"),
            ["--quota", "2", "--slice=-a"]
        );
    }

    #[test]
    fn a_service_may_call_its_flags_as_it_likes() {
        #[derive(Debug, clap::Args)]
        struct Flags {
            #[arg(long)]
            keys: u32,
        }
        let opened = std::cell::Cell::new(0);
        let args = ["service", "--keys", "7", "--quiet"].map(OsString::from);
        let code = run_flags(args.to_vec(), |flags: &Flags| {
            opened.set(flags.keys);
            Err::<Box<dyn Service>, _>("it opens nothing")
        });
        assert_eq!((opened.get(), code), (7, Kind::BadInput.code()));
    }

    #[test]
    fn no_flags_ask_for_a_worker_on_this_machine() {
        let options = args(&[]).expect("legal").options().expect("legal");
        assert_eq!((options.quota, options.dilation), (2, 1));
        assert!(options.listen.ip().is_loopback() && options.faults.is_none());
        assert!(options.name.starts_with("worker-"));
    }

    #[test]
    fn a_quota_outside_one_to_sixteen_or_a_dilation_below_one_is_refused() {
        for wrong in [["--quota", "0"], ["--quota", "17"], ["--dilate", "0"], ["--waiting", "sleep"]] {
            assert!(args(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_server_of_many_cores_is_asked_for_with_its_slices_and_their_priorities() {
        let asked = args(&["--cores", "4", "--serves", "get=1,scan=0", "--stack", "512"]).expect("legal");
        let options = asked.lane_options().expect("legal").expect("asked for");
        let served: Vec<_> = options.services.iter().map(|of| (&*of.slice, of.priority.index())).collect();
        assert_eq!(
            (options.cores, options.stack_bytes, served),
            (4, 512 * 1_024, vec![("get", 1), ("scan", 0)])
        );
        let weighed = args(&["--cores", "4", "--serves", "a=1,b=0*3", "--depth", "2", "--lambda", "1/3"]);
        let options = weighed.expect("legal").lane_options().expect("legal").expect("asked for");
        let lambda = Lambda::new(1, 3).expect("a ratio");
        assert_eq!((options.depth, options.balancing), (2, Balancing::Jbsrq(lambda)));
        assert_eq!(options.services.iter().map(|of| of.weight.get()).collect::<Vec<_>>(), [1, 3]);
        let one = args(&["--cores", "2", "--slice", "a"]).expect("legal").lane_options().expect("legal");
        assert_eq!(one.expect("asked for").services[0].slice, "a");
        assert!(args(&[]).expect("legal").lane_options().expect("legal").is_none());
        for wrong in ["get", "get=8", "=1", "get=x", "get=", "get=1*0", "get=1*", "get=1*x"] {
            assert!(args(&["--cores", "4", "--serves", wrong]).is_err(), "{wrong}");
        }
        for wrong in [&["--cores", "0"][..], &["--cores", "257"], &["--serves", "get=1"], &["--depth", "2"]] {
            assert!(args(wrong).is_err(), "{wrong:?}");
        }
        for wrong in [["--depth", "0"], ["--depth", "65"], ["--lambda", "2"], ["--lambda", "x"]] {
            assert!(args(&[&["--cores", "4"], &wrong[..]].concat()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_server_of_many_cores_takes_no_early_tokens() {
        let asked = args(&["--cores", "4", "--early"]).expect("clap takes both");
        let options = asked.lane_options().expect("legal").expect("asked for");
        let why = LaneServer::new(&options, || crate::service_fn(sluice_wire::TaskType(1), |_, _| Ok(())));
        let why = why.expect_err("refused").to_string();
        assert!(why.contains("takes no early tokens") && why.contains("leave it out"), "{why}");
    }

    #[test]
    fn faults_that_make_no_sense_are_bad_input() {
        let wrong = args(&["--faults", "lost=1"]).expect("clap does not look inside").options();
        assert!(wrong.expect_err("no such fault").is_bad_input());
    }
}
