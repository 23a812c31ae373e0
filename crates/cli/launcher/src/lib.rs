//! `sluice up`: a whole rack on this machine, with its load in this process and its faults on schedule.
//!
//! Every part runs as a process of its own, so it can be killed alone. This code never sleeps for a fixed
//! time to wait for a part: it polls.
#![forbid(unsafe_code)]

pub mod bmv2;
mod child;
mod forwarding;
mod metric_reports;
mod network;
pub mod parent;
mod processes;
mod script;
mod servers;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_dashboard::{Dashboard, DashboardPort, Watched};
use sluice_net::ClientOptions;
use sluice_net::client::SpineClients;
use sluice_net::clock::Clock;
use sluice_net::metrics::{ClientMetrics, MetricSource, MetricsOutlets, labelled};
use sluice_net::program::TraceArgs;
use sluice_net::traces::Tracer;
use sluice_netem::FaultPlan;
use sluice_outcome::run::RunResult;
use sluice_services::rocks;
use sluice_support::board::{Board, NoteKind};
use sluice_support::controller_caller::Reporter;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::{Io, Output};
use sluice_support::load::{self, LoadRun, Source, Tally, Target as LoadTarget};
use sluice_support::plan::{LoadPlan, Plan, ServicePlan};
use sluice_support::print;
use sluice_support::results::kept::{HeldFolder, Keeper};
use sluice_support::results::{self, Label, ResultPlaces, RunInputs, export, files};
use sluice_support::rocksdb;
use sluice_support::running::RackFile;
use sluice_support::stop::Stop;
use sluice_support::view::{Heading, View, ViewContent};
use sluice_wire::{Nanos, TaskType};

use metric_reports::MetricReports;
use network::Network;
use processes::{Files, Processes};
use script::{FaultSchedule, Step};

/// How often processes and the schedule are checked.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How a plan is run.
pub struct UpSettings<'u> {
    /// Stores the plan beside the results.
    pub keeper: &'u Keeper,
    /// How results are printed.
    pub output: &'u Output,
    /// The file for the result's tables in Markdown.
    pub markdown: Option<&'u Path>,
    /// Which tasks the load, the switches and the workers trace.
    pub traces: &'u TraceArgs,
    /// Where a page about the run is served, if it is.
    pub dashboard: Option<SocketAddr>,
}

/// Runs a plan after storing it beside the results, where all processes read it. Returns the result of its
/// load, if it has one.
///
/// # Errors
/// An invalid plan, a process that died, or a gate that was not passed.
pub fn up(plan: &Plan, args: &UpSettings<'_>, stop: &Stop) -> Outcome<Option<RunResult>> {
    let shown = ViewContent::fitting(args.output.quiet || args.output.json);
    export::check(args.markdown)?;
    let outlets = MetricsOutlets::bind(plan.metrics, None)?;
    let metrics_at = outlets.local();
    // Bound before the network is divided, where a browser can reach it.
    let page = args.dashboard.map(|at| DashboardPort::bind(at, None)).transpose()?;
    let logs = plan.out.join("logs");
    files::make(&logs)?;
    if let Some(folder) = &plan.rdma.pcap {
        files::make(folder)?;
    }
    let _held = HeldFolder::take(&plan.out)?;
    clear(&logs);
    files::clear(&plan.out);
    let plan_file = args.keeper.keep(plan)?;
    let source =
        plan.load.as_ref().map(|load| Source::new(load, plan.seed, plan.rocksdb.keys)).transpose()?;
    let network = Network::of(plan)?;
    load_data(plan, shown, stop)?;
    let program = std::env::current_exe().map_err(|why| Failure::broken(format!("who am I? {why}")))?;
    let board = Board::default();
    board.name_slices(plan.slices.iter().map(|slice| slice.name.clone()).collect());
    let files = Files { program, plan: plan_file, logs };
    if shown == ViewContent::Screen {
        // The screen is drawn only once the rack is ready.
        print::to_stderr(format_args!(
            "starting the rack; its logs are in {}",
            plan.out.join("logs").display()
        ));
    }
    let reports = metrics_at.map(|_| MetricReports::of(plan)).transpose()?;
    let of_load = metrics_at.and(plan.load.as_ref()).map(|_| ClientMetrics::default());
    let mut tracer = None;
    let _traced = args.traces.start("load", &mut tracer)?;
    let _metrics = outlets.serve(sources(reports.as_ref(), of_load.as_ref(), tracer.as_ref()))?;
    let mut processes = Processes::start(plan, files, network, (reports, args.traces.flags()))?;
    processes.wait_until_ready(stop)?;
    let controller = processes.known_controller()?;
    let metrics = metrics_at.map(|at| format!(", metrics at http://{at}/metrics"));
    let dashboard = page.as_ref().map(|page| format!(", dashboard at {}", page.url()));
    let outlets = [metrics, dashboard].into_iter().flatten().collect::<String>();
    board.note(NoteKind::Back, format!("{}; the controller is at {controller}{outlets}", ready(plan)));
    let _dashboard = page.map(|page| watch(plan, page, &processes, &board)).transpose()?;
    let reporter = Reporter::start(processes.controllers()?, board.clone())?;
    // A controller in a namespace cannot be reached from outside, so it is not announced.
    let all = processes::listed(&processes.known_controllers()?);
    let told = (!plan.switch.io.is_on_links()).then(|| RackFile::running(&plan.name, &all));
    let heading = Heading { what: title(plan), place: format!("controller at {controller}") };
    let view = View::start(shown, heading, board.clone(), stop.clone());
    let done = match plan.load.as_ref().zip(source) {
        Some((load, source)) => {
            run_load(plan, (load, of_load, tracer), source, &mut processes, &board, stop).map(Some)
        }
        None => idle(&mut processes, &board, stop).map(|()| None),
    };
    drop(told);
    drop(reporter);
    drop(view);
    if let Some(done) = processes.network().link_faults_done().filter(|_| !args.output.quiet) {
        print::to_stderr(done);
    }
    processes.end();
    let Some(UpResult { result, tally, ended }) = done? else { return Ok(None) };
    let (folder, markdown, json) = (Some(plan.out.as_path()), args.markdown, args.output.json);
    results::tell(&result, &tally, ResultPlaces { folder, markdown, json }, ended)?;
    Ok(Some(result))
}

fn ready(plan: &Plan) -> String {
    match plan.workers.len() {
        0 => "the rack is ready for workers".to_owned(),
        workers => format!("{workers} workers are ready"),
    }
}

/// Serves the page about the run.
fn watch(plan: &Plan, page: DashboardPort, processes: &Processes<'_>, board: &Board) -> Outcome<Dashboard> {
    let (title, controllers, board) = (plan.name.clone(), processes.watched()?, Some(board.clone()));
    Dashboard::start(page, Watched::Racks { title, controllers, board })
}

/// What gives the metrics of all processes, and of the load in this one.
fn sources(
    reports: Option<&MetricReports>,
    load: Option<&ClientMetrics>,
    tracer: Option<&Tracer>,
) -> Vec<Arc<dyn MetricSource>> {
    let all = reports.map(|reports| -> Arc<dyn MetricSource> { Arc::new(reports.source()) });
    let load = load.map(ClientMetrics::source).into_iter().chain(tracer.map(Tracer::source));
    let load = load.map(|source| labelled("process", "load".to_owned(), source));
    all.into_iter().chain(load).collect()
}

/// The measurements of a load, and the error that ended it early, if any; a signal is not an error.
struct UpResult {
    result: RunResult,
    tally: Tally,
    ended: Outcome<()>,
}

/// Removes logs of an earlier run, which could be taken for this one's.
fn clear(logs: &Path) {
    let Ok(entries) = std::fs::read_dir(logs) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|ending| ending == "log") {
            // A log that cannot be removed is appended to.
            std::fs::remove_file(path).ok();
        }
    }
}

/// Loads the workers' data, once, before any of them starts.
fn load_data(plan: &Plan, shown: ViewContent, stop: &Stop) -> Outcome<()> {
    if !plan.workers.iter().any(|worker| worker.service == ServicePlan::Ours(rocks::NAME.to_owned())) {
        return Ok(());
    }
    rocksdb::load(&plan.rocksdb, matches!(shown, ViewContent::Nothing), stop)
}

fn title(plan: &Plan) -> String {
    let (name, policy, workers) = (&plan.name, &plan.policy, plan.workers.len());
    let dilated = if plan.dilation > 1 { format!(", dilated x {}", plan.dilation) } else { String::new() };
    let faults = plan.faults.as_ref().map_or_else(String::new, |faults| format!(", faults {faults}"));
    let io = match plan.switch.io {
        Io::Udp => "",
        Io::Xdp => " in XDP",
        Io::Bmv2 => " on BMv2",
    };
    format!("sluice up {name}: {policy}{io}, {workers} workers{dilated}{faults}")
}

/// A rack without a load runs until it is stopped.
fn idle(processes: &mut Processes<'_>, board: &Board, stop: &Stop) -> Outcome<()> {
    board.begin("the rack was ready");
    let (mut script, start) = (FaultSchedule::new(&[]), Clock::start().now());
    while !stop.is_asked() {
        supervise(processes, &mut script, start, board)?;
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Runs the load on a thread of its own, and the plan's faults on the calling thread: child processes die
/// with the thread that started them. Returns the measurements whatever ends the run.
fn run_load(
    plan: &Plan,
    (load, metrics, traces): (&LoadPlan, Option<ClientMetrics>, Option<Tracer>),
    source: Source,
    processes: &mut Processes<'_>,
    board: &Board,
    stop: &Stop,
) -> Outcome<UpResult> {
    let options = ClientOptions { metrics, traces, ..client_options(plan, processes)? };
    let client = SpineClients::connect(&options, &processes.controllers()?, plan.seed)?;
    let types = load.mix.iter().filter_map(|(name, _)| plan.types.number(name)).map(TaskType);
    let started = SystemTime::now();
    let mut target = LoadTarget::new(client, types.collect(), load.budgets_of_mix());
    let start = target.start();
    board.begin("the load began");
    let mut script = FaultSchedule::new(&plan.events);
    let (ran, supervised) = thread::scope(|scope| {
        let running = scope.spawn(|| load::run(load, source, &mut target, board, stop));
        let mut supervised = Ok(());
        while !running.is_finished() {
            if supervised.is_ok() {
                supervised = supervise(processes, &mut script, start, board);
                if supervised.is_err() {
                    stop.ask();
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        let ran = running.join().map_err(|_| Failure::broken("the load's thread panicked; see above"));
        ran.map(|ran| (ran, supervised))
    })?;
    let LoadRun { tally, ended } = ran;
    let ended = supervised.and(ended);
    let abort_reason = ended.as_ref().err().map(ToString::to_string);
    let closed = target.into_client().close().map(drop).map_err(Failure::from);
    let decided = board.decided().clone();
    // Agents use the wall clock: a report from the future shows that the clock was set, and is dropped.
    let lasted = since(start);
    let (mut depths, mut decisions) = (decided.depths(unix_ns(started), 1), decided.kept(unix_ns(started)));
    depths.retain(|row| Duration::from_nanos(row.at_ns) <= lasted);
    decisions.retain(|decision| decision.at_s <= lasted.as_secs_f64());
    let run = RunInputs {
        label: Label { io: Some(plan.switch.io), ..Label::of(plan) },
        load,
        aborted: stop.is_asked() || ended.is_err(),
        abort_reason,
        events: script.results(&tally.timeline, tally.measured_time().end),
        started,
        slices: plan.slices.iter().map(|slice| slice.name.clone()).collect(),
        leaf_trips: processes.leaf_trips(),
        depths,
        decisions,
    };
    let ended = ended.and(closed);
    // If no task was answered, only the error matters.
    let ended = if tally.everything().replied == 0 { Ok(ended?) } else { ended };
    Ok(UpResult { result: run.result(&tally), tally, ended })
}

fn client_options(plan: &Plan, processes: &Processes<'_>) -> Outcome<ClientOptions> {
    let faults = plan.socket_faults().map(|text| text.parse()).transpose()?;
    Ok(ClientOptions {
        name: "load".to_owned(),
        listen: processes.network().host(plan, None),
        retry: plan.load.as_ref().is_none_or(|load| load.retry),
        datagram_max: plan.first_packet().datagram_max,
        dilation: plan.dilation,
        faults: faults.map_or_else(FaultPlan::none, |rates| FaultPlan::both(plan.seed, "load", rates)),
        ..ClientOptions::new(processes.controller()?.url())?
    })
}

/// Checks processes and the schedule once. A process that died outside the plan is started again, unless it
/// keeps dying.
fn supervise(
    processes: &mut Processes<'_>,
    script: &mut FaultSchedule,
    start: Nanos,
    board: &Board,
) -> Outcome<()> {
    while let Some((target, why)) = processes.take_dead() {
        board.note(NoteKind::Fault, format!("{why}, which the plan did not want"));
        if !script.on_death(&target, format!("{why} (unplanned)"), since(start)) {
            let again = "it dies again and again, so that it was not started once more; see its log";
            return Err(why.and(&Failure::broken(again)));
        }
    }
    while let Some((event, step)) = script.next(since(start)) {
        let now = since(start);
        match &step {
            Step::Kill(target) => {
                processes.kill(target);
                board.note(NoteKind::Kill, format!("killed {target} with -9"));
            }
            // The process was started again meanwhile.
            Step::Start(target) if processes.is_started(target) => {}
            Step::Start(target) => {
                processes.start_again(target)?;
                board.note(NoteKind::Back, format!("started {target} again"));
            }
        }
        script.on_done(event, &step, now);
    }
    Ok(())
}

fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn since(start: Nanos) -> Duration {
    Duration::from_nanos(Clock::start().now().since(start).0)
}
