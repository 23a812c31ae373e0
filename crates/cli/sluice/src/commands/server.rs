//! `sluice server`: a machine's registered memory, into which the switch writes tasks ahead.

use std::thread;

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sluice_experiment::policies;
use sluice_launcher::parent;
use sluice_net::agent::{AgentOptions, LINES, LINES_FILE, Lines, RunningAgent, start_agent};
use sluice_net::metrics::{MetricsOutlets, ServerMetrics};
use sluice_net::program::read_anew_on_hangup;
use sluice_net::rdma::Mtu;
use sluice_net::server::{Server, ServerOptions, ServerStopper};
use sluice_netem::FaultPlan;
use sluice_support::adaptation;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Changes, Plan};
use sluice_support::print;
use sluice_support::service_manager::ReadyService;

use super::with_metrics;
use crate::args::ServerCommandArgs as Args;

/// Runs until a signal.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    parent::die_with(args.parent)?;
    let process = args.name.as_ref().map_or_else(|| "server".to_owned(), |name| format!("server {name}"));
    args.log.start(&process, &args.output);
    let plan = plan(args)?;
    let mut options = options(args, &plan)?;
    let outlets = MetricsOutlets::bind(args.metrics.metrics, args.metrics.report_metrics.as_deref())?;
    let metrics_at = outlets.local();
    options.metrics = outlets.are_wanted().then(ServerMetrics::default);
    let _metrics = outlets.serve(options.metrics.iter().map(ServerMetrics::source).collect())?;
    let server = Server::new(&options)?;
    let _agent = agent(&plan, &options)?;
    stop_on_signals(server.stopper())?;
    read_anew_on_hangup()?;
    if args.output.json {
        let line = json!({ "schema": "sluice.listening.v1", "roce": server.local() });
        print::line(with_metrics(line, metrics_at))?;
    }
    let ready = ReadyService::tell();
    let report = server.run()?;
    drop(ready);
    print::to_stderr(&report);
    if args.output.json {
        print::line(serde_json::to_string(&report).map_err(Failure::broken)?)?;
    }
    Ok(())
}

/// The plan, or an empty one, with the flags' changes.
fn plan(args: &Args) -> Outcome<Plan> {
    let given = args.plan.as_deref().map_or_else(|| Ok(Plan::empty()), |path| Plan::load(Some(path)))?;
    let mut plan = given.with(&Changes {
        policy: policies::at_most_one("server", &args.policy)?,
        dilation: args.dilate,
        faults: args.faults.clone(),
        ..Changes::default()
    })?;
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.switch.testbed_delays |= args.testbed_delays;
    if let Some(bytes) = args.mtu {
        plan.rdma.mtu = Mtu::of_bytes(bytes).ok_or_else(|| {
            let why = "it is one of 256, 512, 1024, 2048 and 4096";
            Failure::bad_input(format!("an RDMA MTU of {bytes} bytes: {why}"))
        })?;
    }
    plan.rdma.reliable |= args.reliable;
    plan.rdma.icrc &= !args.no_icrc;
    plan.rdma.tiny_slots = args.tiny_slots.or(plan.rdma.tiny_slots);
    Ok(plan)
}

fn options(args: &Args, plan: &Plan) -> Outcome<ServerOptions> {
    let mut options = ServerOptions::of(args.controller.remote()?, args.memory.clone());
    if let Some(name) = &args.name {
        options.name.clone_from(name);
    }
    options.listen = args.listen;
    options.mtu = plan.rdma.mtu;
    options.reliable = plan.rdma.reliable;
    options.icrc = plan.rdma.icrc;
    options.slots = plan.rdma.tiny_slots;
    options.pcap.clone_from(&args.pcap);
    options.pin = args.pin;
    if let Some(faults) = plan.socket_faults() {
        options.faults = FaultPlan::both(plan.seed, &options.name, faults.parse()?);
    }
    Ok(options)
}

/// The agent that finds the workers' depths, if the policy uses one.
fn agent(plan: &Plan, server: &ServerOptions) -> Outcome<Option<RunningAgent>> {
    let Some(adaptive) = plan.program().traits().adaptive else { return Ok(None) };
    let way = if plan.switch.testbed_delays {
        adaptation::way_of_testbed()
    } else {
        adaptation::way_of_loopback(plan.dilation)
    };
    let options = AgentOptions {
        controller: server.controller.clone(),
        server: server.name.clone(),
        lines: Lines::make(&server.memory.join(LINES_FILE), LINES)?,
        settings: adaptation::settings(adaptive, way, plan.dilation),
        begins: None,
    };
    Ok(Some(start_agent(options)?))
}

fn stop_on_signals(stopper: ServerStopper) -> Outcome<()> {
    let failed = |why| Failure::broken(format!("cannot listen for signals: {why}"));
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(failed)?;
    thread::spawn(move || signals.forever().for_each(|_| stopper.stop()));
    Ok(())
}
