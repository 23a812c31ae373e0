//! `sluice switch`: the switch, with the controller in the same process unless it runs alone.

mod bmv2;
mod role;
mod size;
mod xdp;

use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_experiment::policies;
use sluice_launcher::parent;
use sluice_net::first::FirstPacket;
use sluice_net::metrics::MetricsOutlets;
use sluice_net::program::{CONTROLLER_DEFAULT, read_anew_on_hangup};
use sluice_net::traces::{RunningExporter, Tracer};
use sluice_net::udp::Waiting;
use sluice_netem::FaultPlan;
use sluice_report::table::Table;
use sluice_rpc::registrar::Controllers;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::{Changes, Plan, SwitchRole};
use sluice_support::running::RackFile;
use sluice_support::seed::{random_bits, random_seed};
use sluice_support::service_manager::ReadyService;
use sluice_support::stop::Stop;
use sluice_support::{print, units};
use sluice_switchd::controller::{ControllerOptions, Leaf, LeafOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{LocalSwitch, RpcServer, serve_tables};
use sluice_switchd::state::StateFolder;
use sluice_switchd::switch::{Delays, SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::{Epoch, Term};

use super::{LOOK_EVERY, control_plan, guard, reached_at, with_metrics};
use crate::args::SwitchArgs;
use size::size;

/// How often a switch that drains is asked whether it is empty.
const DRAIN_LOOK_EVERY: Duration = Duration::from_millis(1);

/// Memory for the payloads of recirculating tasks, if servers hold those of waiting tasks.
const IN_FLIGHT_BYTES: usize = 1 << 20;

/// A switch that is ready to run.
enum Driver {
    Udp(Box<SwitchDriver>),
    Xdp(Box<sluice_kernel::xdp::XdpDriver>),
    Bmv2(Box<sluice_bmv2::Bmv2Driver>),
}

impl Driver {
    fn handle(&self) -> SwitchHandle {
        match self {
            Self::Udp(driver) => driver.handle(),
            Self::Xdp(driver) => driver.handle(),
            Self::Bmv2(driver) => driver.handle(),
        }
    }

    fn spawn(self) -> Outcome<JoinHandle<Outcome<()>>> {
        Ok(match self {
            Self::Udp(driver) => driver.spawn()?,
            Self::Xdp(driver) => driver.spawn()?,
            Self::Bmv2(driver) => driver.spawn()?,
        })
    }
}

/// Runs until a signal.
pub(crate) fn run(args: &SwitchArgs) -> Outcome<()> {
    parent::die_with(args.parent)?;
    let stop = Stop::on_signals()?;
    read_anew_on_hangup()?;
    args.log.start(&role::process(args), &args.output);
    let plan = plan(args)?;
    if args.detach {
        return xdp::detach(args, &plan);
    }
    let role = role::of(args, &plan)?;
    let metrics =
        MetricsOutlets::bind(role::metrics(args, &plan, role), args.metrics.report_metrics.as_deref())?;
    let metrics_at = metrics.local();
    let mut tracer = None;
    let _traced = traces(args, &plan, &mut tracer)?;
    let mut state = StateFolder::open(role::state(args, &plan, role))?;
    let (driver, epoch) = driver(args, &plan, role, &mut state, tracer.clone())?;
    let handle = driver.handle();
    let serving = serve(args, &plan, role, &handle, state)?;
    let server = serving.server();
    print_addresses(args, (epoch, metrics_at), &plan, &handle, server)?;
    let _told = announce(args, &plan, role, server);
    let switching = driver.spawn()?;
    let traces = tracer.iter().map(Tracer::source);
    let sources = [handle.counters().metrics()].into_iter().chain(server.metrics()).chain(traces).collect();
    let _metrics = metrics.serve(sources)?;
    let ready = ReadyService::tell();
    while !stop.is_asked() && !switching.is_finished() && server.is_running() {
        thread::sleep(LOOK_EVERY);
    }
    let stopped = stop.is_asked();
    drop(ready);
    if stopped && plan.switch.io == Io::Udp {
        drain(args, &serving, &handle, || switching.is_finished());
    }
    drop(serving);
    handle.stop();
    switching.join().map_err(|_| Failure::broken("the switch's thread panicked; see above"))??;
    if !stopped {
        return Err(Failure::broken("the controller's thread ended; see above"));
    }
    if !args.output.quiet {
        print::to_stderr(counters(&handle).to_string().trim_end());
        if plan.switch.io == Io::Xdp {
            xdp::print_what_stays(args, &plan);
        }
    }
    Ok(())
}

/// Starts what sends the spans of traced tasks, if the flags ask for that.
fn traces(args: &SwitchArgs, plan: &Plan, to: &mut Option<Tracer>) -> Outcome<Option<RunningExporter>> {
    if args.traces.trace_one_in.is_some() && plan.switch.io != Io::Udp {
        let why = "--trace-one-in: only a switch on a socket writes spans; leave it out, or take --io udp";
        return Err(Failure::bad_input(why));
    }
    Ok(args.traces.start(&role::process(args), to)?)
}

/// Lets the tasks leave that are in the switch, for as long as the flags allow. A leaf first tells its spine.
fn drain(args: &SwitchArgs, serving: &Serving, handle: &SwitchHandle, has_ended: impl Fn() -> bool) {
    let until = Instant::now() + args.drain_limit;
    let wait_for = |is_so: &dyn Fn() -> bool| {
        while !is_so() && !has_ended() && Instant::now() < until {
            thread::sleep(DRAIN_LOOK_EVERY);
        }
    };
    if let Serving::Leaf(leaf) = serving {
        leaf.leave();
        wait_for(&|| leaf.has_left());
    }
    handle.drain();
    wait_for(&|| handle.rests());
    if !handle.rests() && !args.drain_limit.is_zero() && !has_ended() {
        let limit = units::span_text(args.drain_limit);
        print::to_stderr(format_args!(
            "tasks still wait after {limit} (--drain-limit): the switch ends without them, and their clients \
             submit them again to its next life"
        ));
    }
}

/// The plan with the flags' changes.
fn plan(args: &SwitchArgs) -> Outcome<Plan> {
    Plan::load(args.plan.as_deref())?.with(&Changes {
        policy: policies::at_most_one("switch", &args.policy)?,
        dilation: args.dilate,
        faults: args.faults.clone(),
        io: args.io,
        runtime: args.runtime,
        listen: args.listen,
        control: args.control,
        controller_apart: args.controller_apart,
        state: args.state.clone(),
        ..Changes::default()
    })
}

fn driver(
    args: &SwitchArgs,
    plan: &Plan,
    role: SwitchRole,
    state: &mut StateFolder,
    traces: Option<Tracer>,
) -> Outcome<(Driver, Epoch)> {
    if args.p4runtime.is_some() && plan.switch.io != Io::Bmv2 {
        return Err(Failure::bad_input("--p4runtime names a BMv2 that runs already: add --io bmv2"));
    }
    if plan.switch.io == Io::Xdp {
        let driver = xdp::driver(args, plan, state)?;
        let epoch = driver.epoch();
        return Ok((Driver::Xdp(Box::new(driver)), epoch));
    }
    if args.pins.is_some() {
        return Err(Failure::bad_input("--pins says where a switch in the kernel stays: add --io xdp"));
    }
    if plan.switch.io == Io::Bmv2 {
        let driver = bmv2::driver(args, plan, &role::state(args, plan, role), state)?;
        let epoch = driver.epoch();
        return Ok((Driver::Bmv2(Box::new(driver)), epoch));
    }
    if !args.interfaces.is_empty() {
        let why = "--interface names a link that is switched: add --io xdp, or --io bmv2";
        return Err(Failure::bad_input(why));
    }
    let (epoch, term) = (state.next_epoch()?, state.term()?);
    let config = SwitchConfig { traces, ..config(args, plan, role, (epoch, term))? };
    Ok((Driver::Udp(Box::new(SwitchDriver::new(&config)?)), epoch))
}

fn config(
    args: &SwitchArgs,
    plan: &Plan,
    role: SwitchRole,
    (epoch, term): (Epoch, Term),
) -> Outcome<SwitchConfig> {
    let switch = &plan.switch;
    let faults = plan.socket_faults().map(|text| text.parse()).transpose()?;
    let defaults = SwitchConfig::new(size(plan, role, epoch, term));
    let delays = if switch.testbed_delays { Delays::testbed(plan.dilation.into()) } else { Delays::NONE };
    Ok(SwitchConfig {
        program: plan.program(),
        place: role::place(plan, role),
        behind: args.behind,
        at: role::listen(args, plan, role).unwrap_or(defaults.at),
        slab_bytes: switch.payload_bytes.unwrap_or(if plan.servers().is_empty() {
            defaults.slab_bytes
        } else {
            IN_FLIGHT_BYTES
        }),
        datagram_max: plan.first_packet().datagram_max,
        waiting: match switch.waiting.as_str() {
            "spin" => Waiting::Spin,
            "block" => Waiting::Block,
            _ => Waiting::Adaptive,
        },
        core: switch.pin,
        delays,
        faults: faults
            .map_or_else(FaultPlan::none, |rates| FaultPlan::both(plan.seed, &role::name(role), rates)),
        ..defaults
    })
}

fn serve(
    args: &SwitchArgs,
    plan: &Plan,
    role: SwitchRole,
    handle: &SwitchHandle,
    state: StateFolder,
) -> Outcome<Serving> {
    let at = match role::control(args, plan, role) {
        Some(at) => at,
        None => units::address(CONTROLLER_DEFAULT).map_err(Failure::bad_input)?,
    };
    let guard = guard(&args.guard)?;
    let local = handle.local();
    if local.ip().is_unspecified() {
        return Err(Failure::bad_input(format!(
            "the switch listens on {local}, which no host can send to; give the address of one interface"
        )));
    }
    // The address that other hosts use for the switch.
    let reached = args.behind.unwrap_or(local).into();
    let switch = LocalSwitch::new(handle.clone(), reached).keeping(state);
    if plan.switch.controller_apart && !is_leaf(role) {
        return Ok(Serving::Alone(serve_tables(at, &guard, switch)?));
    }
    let options = ControllerOptions {
        at,
        guard,
        plan: control_plan(plan, reached, role),
        seed: random_seed()?,
        switch: SwitchLink::Here(switch),
        standby: false,
        spine: role.spine(),
    };
    match role {
        SwitchRole::Alone | SwitchRole::Spine(_) => Ok(Serving::Alone(start_controller(options)?)),
        SwitchRole::Leaf(rack) => {
            let mut above = args.above.iter().map(|at| args.tls.remote(at)).collect::<Result<Vec<_>, _>>()?;
            // A leaf has at least one controller above it.
            let home = above.remove(0);
            Ok(Serving::Leaf(Leaf::start(LeafOptions {
                rack: options,
                name: Plan::leaf_name(rack),
                at: reached,
                life: random_bits()?,
                above: Controllers::new(home, above),
                tables: handle.tables(),
            })?))
        }
    }
}

/// Whether the switch is a leaf, whose own controller is always in its process.
const fn is_leaf(role: SwitchRole) -> bool {
    matches!(role, SwitchRole::Leaf(_))
}

/// The gRPC services of a switch.
enum Serving {
    /// The controller or the tables.
    Alone(RpcServer),
    /// The controller, which is registered with the one above.
    Leaf(Leaf),
}

impl Serving {
    const fn server(&self) -> &RpcServer {
        match self {
            Self::Alone(server) => server,
            Self::Leaf(leaf) => leaf.server(),
        }
    }
}

/// Prints the addresses: as text, or as JSON for the process that started this one.
fn print_addresses(
    args: &SwitchArgs,
    (epoch, metrics): (Epoch, Option<SocketAddr>),
    plan: &Plan,
    handle: &SwitchHandle,
    server: &RpcServer,
) -> Outcome<()> {
    let (switch, control): (SocketAddr, SocketAddr) = (handle.local(), server.local());
    if args.output.json {
        let schema = "sluice.listening.v1";
        let line = json!({ "schema": schema, "epoch": epoch.0, "switch": switch, "control": control });
        print::line(with_metrics(line, metrics))?;
    } else if !args.output.quiet {
        let FirstPacket { bytes, limit, .. } = plan.first_packet();
        print::to_stderr(format_args!(
            "switch on {switch}, controller on {control}, epoch {epoch}; tasks of up to {bytes} B take one packet ({limit} \
             sets that), workers ask for the rest of longer ones; Ctrl-C ends it"
        ));
    }
    Ok(())
}

/// Announces a rack of its own to other commands. A part of a larger rack is found through that rack.
fn announce(args: &SwitchArgs, plan: &Plan, role: SwitchRole, server: &RpcServer) -> Option<RackFile> {
    let is_part = plan.switch.controller_apart || is_leaf(role);
    let is_alone = !is_part && args.parent.is_none();
    is_alone.then(|| RackFile::running(&plan.name, &reached_at(server, &args.guard)))
}

fn counters(handle: &SwitchHandle) -> Table {
    let mut table = Table::new(["the switch counted", ""]);
    for (name, value) in handle.counters().all().filter(|(_, value)| *value > 0) {
        table.row([name.to_owned(), value.to_string()]);
    }
    table
}
