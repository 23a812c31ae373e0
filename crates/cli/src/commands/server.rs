//! `sluice server`: a machine's registered memory, into which the switch writes tasks ahead.

use std::thread;

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sluice_ground::adaptation;
use sluice_ground::fail::{Failure, Outcome};
use sluice_ground::policies;
use sluice_ground::print;
use sluice_net::agent::{AgentOptions, LINES, LINES_FILE, Lines, RunningAgent, start_agent};
use sluice_net::faults::FaultPlan;
use sluice_net::program::log;
use sluice_net::rdma::Mtu;
use sluice_net::server::{Server, ServerOptions, ServerStopper};
use sluice_sim::agents;
use sluice_sim::testbed::Testbed;
use sluice_supervise::parent;
use sluice_switch::registry::Choice;

use crate::args::Server as Args;

/// Runs until a signal comes.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    parent::die_with(args.parent)?;
    log(args.output.quiet);
    let options = options(args)?;
    let server = Server::new(&options)?;
    let _agent = agent(args, &options)?;
    stop_on_signals(server.stopper())?;
    if args.output.json {
        print::line(json!({ "schema": "sluice.listening.v1", "roce": server.local() }))?;
    }
    let report = server.run()?;
    print::aside(&report);
    if args.output.json {
        print::line(serde_json::to_string(&report).map_err(Failure::broken)?)?;
    }
    Ok(())
}

fn options(args: &Args) -> Outcome<ServerOptions> {
    let mut options = ServerOptions::of(args.controller.remote()?, args.memory.clone());
    if let Some(name) = &args.name {
        options.name.clone_from(name);
    }
    options.listen = args.listen;
    options.mtu = Mtu::of_bytes(args.mtu).ok_or_else(|| {
        let mtu = args.mtu;
        Failure::bad_input(format!("an RDMA MTU of {mtu} bytes: it is one of 256, 512, 1024, 2048 and 4096"))
    })?;
    options.reliable = args.reliable;
    options.icrc = !args.no_icrc;
    options.slots = args.tiny_slots;
    options.pcap.clone_from(&args.pcap);
    options.pin = args.pin;
    options.faults = FaultPlan::both(args.seed, &options.name, args.faults.parse()?);
    Ok(options)
}

/// The agent that finds the workers' depths, if the policy asks for one.
fn agent(args: &Args, server: &ServerOptions) -> Outcome<Option<RunningAgent>> {
    let policy = policies::at_most_one("server", [&args.policy])?.unwrap_or_default();
    let choice = Choice::parse(&policy).map_err(Failure::bad_input)?;
    let Some(adaptive) = choice.adaptive() else { return Ok(None) };
    let way = if args.testbed_delays {
        agents::way(&Testbed::rain())
    } else {
        adaptation::way_of_loopback(args.dilate)
    };
    let options = AgentOptions {
        controller: server.controller.clone(),
        server: server.name.clone(),
        lines: Lines::make(&server.memory.join(LINES_FILE), LINES)?,
        settings: adaptation::settings(adaptive, way, args.dilate),
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
