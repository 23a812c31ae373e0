//! `sluice controller`: the controller in a process of its own, beside a switch that serves its tables.

use std::thread;

use serde_json::json;
use sluice_ground::fail::{Failure, Outcome};
use sluice_ground::plan::{Changes, Plan, SwitchRole};
use sluice_ground::policies;
use sluice_ground::print;
use sluice_ground::running::Told;
use sluice_ground::seed::random_seed;
use sluice_ground::stop::Stop;
use sluice_ground::units;
use sluice_hub::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_net::program::{CONTROLLER_DEFAULT, log};
use sluice_supervise::parent;
use sluice_wire::Endpoint;

use super::{LOOK_EVERY, control_plan, guard, reached_at};
use crate::args::Controller;

/// Runs until a signal comes.
pub(crate) fn run(args: &Controller) -> Outcome<()> {
    parent::die_with(args.parent)?;
    let stop = Stop::on_signals()?;
    log(args.output.quiet);
    let plan = plan(args)?;
    if plan.racks.is_some() {
        let why = "racks below a spine have their controllers in their switches: start `sluice switch` with \
                   --spine or --leaf";
        return Err(Failure::bad_input(why));
    }
    let at = match plan.switch.control {
        Some(at) => at,
        None => units::address(CONTROLLER_DEFAULT).map_err(Failure::bad_input)?,
    };
    let server = start_controller(ControllerOptions {
        at,
        guard: guard(&args.guard)?,
        // The switch itself says where it is.
        plan: control_plan(&plan, Endpoint::default(), SwitchRole::Alone),
        seed: random_seed()?,
        switch: SwitchLink::There(args.tls.remote(&args.tables)?),
    })?;
    let control = server.local();
    if args.output.json {
        print::line(json!({ "schema": "sluice.listening.v1", "control": control }))?;
    } else if !args.output.quiet {
        print::aside(format_args!(
            "controller on {control}, switch tables at {}; Ctrl-C ends it",
            args.tables
        ));
    }
    let alone = args.parent.is_none();
    let _told = alone.then(|| Told::running(&plan.name, &reached_at(&server, &args.guard)));
    while !stop.is_asked() && server.is_running() {
        thread::sleep(LOOK_EVERY);
    }
    if stop.is_asked() { Ok(()) } else { Err(Failure::broken("the controller's thread ended; see above")) }
}

/// The plan, with what the flags say instead.
fn plan(args: &Controller) -> Outcome<Plan> {
    Plan::load(args.plan.as_deref())?.with(&Changes {
        policy: policies::at_most_one("controller", &args.policy)?,
        dilation: args.dilate,
        control: args.control,
        ..Changes::default()
    })
}
