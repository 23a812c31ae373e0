//! `sluice controller`: the controller in a process of its own, for a switch that serves its tables, or for
//! several spines that do.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;
use sluice_etcd::{Etcd, EtcdOptions};
use sluice_experiment::policies;
use sluice_launcher::parent;
use sluice_net::metrics::{MetricSource, MetricsOutlets, labelled};
use sluice_net::program::{CONTROLLER_DEFAULT, read_anew_on_hangup};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Changes, Plan, SwitchRole};
use sluice_support::print;
use sluice_support::running::RackFile;
use sluice_support::seed::random_seed;
use sluice_support::service_manager::ReadyService;
use sluice_support::stop::Stop;
use sluice_support::units;
use sluice_switchd::SwitchdError;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_above, start_controller};
use sluice_switchd::rpc::RpcServer;
use sluice_wire::Endpoint;

use super::{LOOK_EVERY, control_plan, guard, reached_at, with_metrics};
use crate::args::ControllerCommandArgs;

/// Runs until a signal.
pub(crate) fn run(args: &ControllerCommandArgs) -> Outcome<()> {
    parent::die_with(args.parent)?;
    let stop = Stop::on_signals()?;
    read_anew_on_hangup()?;
    args.log.start("controller", &args.output);
    let plan = plan(args)?;
    let metrics = MetricsOutlets::bind(args.metrics.metrics, args.metrics.report_metrics.as_deref())?;
    let metrics_at = metrics.local();
    let mut etcd = etcd(args, &plan)?;
    let servers = start(args, &plan, etcd.as_mut())?;
    let _metrics = metrics.serve(sources(&servers))?;
    print_addresses(args, &servers, metrics_at)?;
    let reached: Vec<_> = servers.iter().map(|server| reached_at(server, &args.guard)).collect();
    // A standby would be found in place of the leader.
    let alone = args.parent.is_none() && !args.waits();
    let _told = alone.then(|| RackFile::running(&plan.name, &reached.join(",")));
    let _ready = ReadyService::tell();
    while !stop.is_asked() && servers.iter().all(RpcServer::is_running) {
        thread::sleep(LOOK_EVERY);
    }
    // The switches hear first that the lead is free, then etcd.
    drop(servers);
    drop(etcd);
    if stop.is_asked() { Ok(()) } else { Err(Failure::broken("the controller's thread ended; see above")) }
}

/// The plan with the flags' changes.
fn plan(args: &ControllerCommandArgs) -> Outcome<Plan> {
    Plan::load(args.plan.as_deref())?.with(&Changes {
        policy: policies::at_most_one("controller", &args.policy)?,
        dilation: args.dilate,
        control: args.control.first().copied(),
        ..Changes::default()
    })
}

/// Starts the controller of the rack, or the one above its spines.
fn start(args: &ControllerCommandArgs, plan: &Plan, etcd: Option<&mut Etcd>) -> Outcome<Vec<RpcServer>> {
    let switches = usize::from(plan.spines().max(1));
    check(args, plan, switches)?;
    let options = (0..switches).map(|switch| options(args, plan, switch)).collect::<Outcome<Vec<_>>>()?;
    if plan.racks.is_some() {
        return Ok(start_above(options, plan.pods(), etcd)?);
    }
    Ok(options.into_iter().map(start_controller).collect::<Result<_, _>>()?)
}

/// Connects to etcd, if several controllers contend above the spines.
fn etcd(args: &ControllerCommandArgs, plan: &Plan) -> Outcome<Option<Etcd>> {
    match (plan.racks.is_some(), args.standby, args.etcd.is_empty()) {
        (true, true, true) => {
            return Err(Failure::bad_input(
                "--standby is for a rack, whose switch says who leads: several controllers above spines \
                 agree by etcd, name it with --etcd",
            ));
        }
        (false, _, false) => {
            return Err(Failure::bad_input(
                "--etcd is for controllers above spines, and the plan has no [racks]: a rack's switch says \
                 who leads, take --standby",
            ));
        }
        (_, _, true) => return Ok(None),
        (true, _, false) => {}
    }
    let identity = match args.etcd_identity.as_deref() {
        Some([certificate, key]) => Some((certificate.clone(), key.clone())),
        _ => None,
    };
    let options = EtcdOptions {
        endpoints: args.etcd.clone(),
        ca: args.etcd_ca.clone(),
        identity,
        user: args.etcd_user.clone().zip(args.etcd_password.clone()),
        name: plan.name.clone(),
        silence: Duration::from_nanos(control_plan(plan, Endpoint::default(), SwitchRole::Spine(1)).lease.0),
    };
    Ok(Some(Etcd::connect(options).map_err(SwitchdError::from)?))
}

/// Checks that each switch has the address of its tables, and at most one address for calls.
fn check(args: &ControllerCommandArgs, plan: &Plan, switches: usize) -> Outcome<()> {
    let (tables, controls) = (args.tables.len(), args.control.len());
    let (flag, given) = match () {
        () if tables != switches => ("--tables", tables),
        () if controls > switches => ("--control", controls),
        () => return Ok(()),
    };
    let what = if plan.racks.is_some() { "spines" } else { "switches" };
    Err(Failure::bad_input(format!(
        "{flag} has {given} addresses, and the {what} of plan {} are {switches}: give one for each, with \
         commas between",
        plan.name
    )))
}

/// The controller options for one switch; the switch itself reports its address.
fn options(args: &ControllerCommandArgs, plan: &Plan, switch: usize) -> Outcome<ControllerOptions> {
    let at = match (args.control.get(switch), switch) {
        (Some(at), _) => *at,
        (None, 0) => match plan.switch.control {
            Some(at) => at,
            None => units::address(CONTROLLER_DEFAULT).map_err(Failure::bad_input)?,
        },
        (None, _) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let role = plan.racks.map_or(SwitchRole::Alone, |_| SwitchRole::Spine(switch as u16 + 1));
    Ok(ControllerOptions {
        at,
        guard: guard(&args.guard)?,
        plan: control_plan(plan, Endpoint::default(), role),
        seed: random_seed()?,
        switch: SwitchLink::There(args.tls.remote(&args.tables[switch])?),
        standby: args.waits(),
        spine: role.spine(),
    })
}

/// What gives the metrics of all controllers; those above several spines have the label `spine`.
fn sources(servers: &[RpcServer]) -> Vec<Arc<dyn MetricSource>> {
    let several = servers.len() > 1;
    let of_spine = |(spine, server): (usize, &RpcServer)| {
        let named = move |source| if several { labelled("spine", spine.to_string(), source) } else { source };
        server.metrics().into_iter().map(named).collect::<Vec<_>>()
    };
    (1..).zip(servers).flat_map(of_spine).collect()
}

/// Prints the address of the controller; with several spines, one for each.
fn print_addresses(
    args: &ControllerCommandArgs,
    servers: &[RpcServer],
    metrics: Option<SocketAddr>,
) -> Outcome<()> {
    let controls: Vec<_> = servers.iter().map(RpcServer::local).collect();
    if args.output.json {
        let (schema, control) = ("sluice.listening.v1", controls[0]);
        let line = json!({ "schema": schema, "control": control, "controls": controls });
        print::line(with_metrics(line, metrics))?;
    } else if !args.output.quiet {
        let controls: Vec<_> = controls.iter().map(ToString::to_string).collect();
        print::to_stderr(format_args!(
            "controller on {}, switch tables at {}; {}Ctrl-C ends it",
            controls.join(","),
            args.tables.join(","),
            if args.waits() { "leads when no other controller does; " } else { "" }
        ));
    }
    Ok(())
}
