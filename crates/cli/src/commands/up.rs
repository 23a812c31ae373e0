//! `sluice up`: a rack on this machine, or with `--sweep` several, one after the other, beside the simulator.

use sluice_ground::fail::{Failure, Outcome};
use sluice_ground::plan::{Arrivals, Plan};
use sluice_ground::policies;
use sluice_ground::stop::Stop;
use sluice_live::Sweep;
use sluice_net::faults::Rates;

use crate::args::Up;

/// Runs what the flags ask for.
pub(crate) fn run(args: &Up) -> Outcome<()> {
    if args.live.sweep.is_some() {
        return sluice_live::run(&sweep(args));
    }
    let stop = Stop::on_signals()?;
    let how = sluice_supervise::Up { io: args.io, pcap: args.pcap.as_deref(), output: &args.output };
    sluice_supervise::up(&plan(args)?, &how, &stop)
}

fn sweep(args: &Up) -> Sweep<'_> {
    Sweep {
        live: &args.live,
        dilate: args.dilate,
        length: args.length,
        out: args.out.as_deref(),
        output: &args.output,
        commit: env!("SLUICE_COMMIT"),
    }
}

/// The plan, with what the flags say instead.
fn plan(args: &Up) -> Outcome<Plan> {
    let policy = policies::at_most_one("up without --sweep", &args.live.policy)?;
    let mut plan = Plan::load(args.plan.as_deref())?.dilated(args.dilate).under(policy.as_deref())?;
    if let Some(out) = &args.out {
        plan.out.clone_from(out);
    }
    if let Some(faults) = &args.faults {
        let rates: Rates = faults.parse()?;
        plan.faults = (!rates.is_none()).then(|| faults.clone());
    }
    if plan.workers.is_empty() && plan.load.is_some() {
        return Err(Failure::bad_input(
            "there are no workers for the plan's load; add a [[worker]] with a `count` of at least 1, or leave [load] out and \
             start workers and load beside the rack",
        ));
    }
    if let Some(load) = &mut plan.load {
        load.length = args.length.unwrap_or(load.length);
        if let Some(rate) = args.rate {
            load.arrivals = match &load.arrivals {
                Arrivals::Constant(_) => Arrivals::Constant(rate),
                _ => Arrivals::Poisson(rate),
            };
        }
    }
    Ok(plan)
}
