//! A service as a program: its `main` is one call.
//!
//! [`run_service`] reads the flags that all workers share, registers, serves until SIGTERM or SIGINT,
//! finishes what it holds, and prints a summary (stderr; with `--json` on stdout, on every way out). A second
//! signal ends it at once.

mod connect;

use std::ffi::c_int;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sluice_wire::sizes::QUOTA_LIMIT;

use crate::NetError;
use crate::agent::LINES_FILE;
use crate::exit::Kind;
use crate::faults::FaultPlan;
use crate::first::FirstPacket;
use crate::service::Service;
use crate::udp::Waiting;
use crate::worker::{ServerMemory, Stopper, Worker, WorkerOptions, WorkerReport};

pub use connect::{CONTROLLER_DEFAULT, ClientArgs, ControllerArgs, TlsArgs};

/// The flags that every worker understands.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkerArgs {
    /// Where the controller is, and how it and this worker know each other.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// The worker's name, unlike all others [default: worker-PID, behind the name in its certificate].
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
    /// The longest packet, in bytes, that the links between switch and workers carry (their MTU).
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
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
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    pub json: bool,
    /// Say nothing but errors and the summary.
    #[arg(long, short)]
    pub quiet: bool,
}

/// How a thread waits for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
    /// The worker that these flags ask for.
    ///
    /// # Errors
    /// What is wrong with an address, a certificate or the faults.
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
            pin: self.pin,
            name,
            faults,
            ..WorkerOptions::of(controller)
        })
    }
}

/// Runs a service as a worker: the whole `main` of a service that has no flags of its own.
pub fn run_service<S: Service>(service: S) -> ExitCode {
    #[derive(Clone, Debug, clap::Args)]
    struct None {}
    run_service_with(|_: &None| Ok::<S, NetError>(service))
}

/// As [`run_service`], for a service with flags `A` of its own, from which `open` makes it.
pub fn run_service_with<A, S, E>(open: impl FnOnce(&A) -> Result<S, E>) -> ExitCode
where
    A: clap::Args,
    S: Service,
    E: fmt::Display,
{
    #[derive(Debug, Parser)]
    #[command(about = "A worker of a Sluice rack", long_about = None)]
    struct Flags<A: clap::Args> {
        #[command(flatten)]
        own: A,
        #[command(flatten)]
        worker: WorkerArgs,
    }
    let flags = match Flags::<A>::try_parse() {
        Ok(flags) => flags,
        Err(why) => return Failure::flags(&why).report(std::env::args().any(|arg| arg == "--json")),
    };
    run_worker(&flags.worker, || open(&flags.own))
}

/// As [`run_service_with`], for a program that has read its flags already.
pub fn run_worker<S, E>(args: &WorkerArgs, open: impl FnOnce() -> Result<S, E>) -> ExitCode
where
    S: Service,
    E: fmt::Display,
{
    log(args.quiet);
    let served = open()
        .map_err(|why| Failure { kind: Some(Kind::BadInput), message: why.to_string() })
        .and_then(|service| serve(args, service).map_err(|why| Failure::net(&why)));
    match served {
        Ok(report) => finish(&report, args.json),
        Err(failure) => failure.report(args.json),
    }
}

/// Runs `service` as the worker that `args` ask for, until SIGTERM or SIGINT.
///
/// # Errors
/// What is wrong with `args`, and what ends the worker early.
pub fn serve<S: Service>(args: &WorkerArgs, service: S) -> Result<WorkerReport, NetError> {
    let worker = Worker::new(&args.options()?, service)?;
    stop_on_signals(worker.stopper())?;
    worker.run()
}

/// Sends log lines to stderr, in colour on a terminal only; with `quiet` errors alone.
pub fn log(quiet: bool) {
    let level = if quiet { tracing::Level::ERROR } else { tracing::Level::INFO };
    let colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A program that set up its own logging before keeps it.
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(colour)
        .with_target(false)
        // Whoever closed stderr wants no complaint there either.
        .log_internal_errors(false)
        .try_init()
        .ok();
}

fn stop_on_signals(stopper: Stopper) -> Result<(), NetError> {
    const NAME: &str = "sluice-signals";
    const SIGNALS: [c_int; 2] = [SIGTERM, SIGINT];
    let failed = |why| NetError::Thread { name: NAME, why };
    let mut signals = Signals::new(SIGNALS).map_err(failed)?;
    let listen = move || signals.forever().for_each(|_| stopper.stop());
    thread::Builder::new().name(NAME.to_owned()).spawn(listen).map_err(failed)?;
    Ok(())
}

fn finish(report: &WorkerReport, json: bool) -> ExitCode {
    writeln!(io::stderr(), "{report}").ok();
    let mut code = ExitCode::SUCCESS;
    if json {
        let text = serde_json::to_string(report).expect("numbers and text have a JSON form");
        code = printed(writeln!(io::stdout(), "{text}"));
    }
    if report.drained { code } else { Kind::Aborted.into() }
}

/// Prints a result on stdout, and says how the program ends: whoever closed the other end early has seen
/// enough, and a full disk is a failure.
pub fn print(result: impl fmt::Display) -> ExitCode {
    printed(writeln!(io::stdout(), "{result}"))
}

/// Tells whoever looks on, on stderr, why there is no result, and says how the program ends.
pub fn fail(why: impl fmt::Display) -> ExitCode {
    writeln!(io::stderr(), "{why}").ok();
    ExitCode::FAILURE
}

/// How a program ends whose result was written like this: a reader that is gone does not make the run a
/// failure.
fn printed(written: io::Result<()>) -> ExitCode {
    match written.and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
            writeln!(io::stderr(), "what was found cannot be written to stdout: {why}").ok();
            Kind::Broken.into()
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Why a program does not run; without a kind it only gave its help.
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

    fn report(&self, json: bool) -> ExitCode {
        let Some(kind) = self.kind else { return printed(write!(io::stdout(), "{}", self.message)) };
        let message = one_line(&self.message);
        writeln!(io::stderr(), "{message}").ok();
        if json {
            let error = json!({ "kind": kind.name(), "exit_code": kind.code(), "message": message });
            writeln!(io::stdout(), "{}", json!({ "schema": "sluice.error.v1", "error": error })).ok();
        }
        kind.into()
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
    fn no_flags_ask_for_a_worker_on_this_machine() {
        let options = args(&[]).expect("legal").options().expect("legal");
        assert_eq!((options.quota, options.dilation), (2, 1));
        assert!(options.listen.ip().is_loopback() && options.faults.is_none());
        assert!(options.name.starts_with("worker-"));
    }

    #[test]
    fn a_quota_outside_one_to_eight_or_a_dilation_below_one_is_refused() {
        for wrong in [["--quota", "0"], ["--quota", "9"], ["--dilate", "0"], ["--waiting", "sleep"]] {
            assert!(args(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn faults_that_make_no_sense_are_bad_input() {
        let wrong = args(&["--faults", "lost=1"]).expect("clap does not look inside").options();
        assert!(wrong.expect_err("no such fault").is_bad_input());
    }
}
