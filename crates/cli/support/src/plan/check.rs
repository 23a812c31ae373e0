//! Conditions between the parts of a plan.

use sluice_control::check_name;
use sluice_switch::Config;
use sluice_wire::tables::Feed;

use super::parts::{Plan, SlicePlan, WorkerPlan};
use super::target::Target;

/// The largest number of slices in the switch.
const SLICES_MAX: usize = 64;

/// Why a live rack cannot bypass the kernel.
pub const SIMULATED_ONLY: &str = "goes past the kernel in simulations only; leave `bypass` out";

/// Checks a plan whose parts are valid one by one.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    slices(plan)?;
    workers(plan)?;
    // Checks that depend on the scheduler come later: only after these is it known to be one for racks
    // below a spine or for one switch.
    super::racks::check(plan)?;
    super::cores::check(plan)?;
    super::store::check(plan)?;
    quotas(plan)?;
    rings(plan)?;
    classes(plan)?;
    software(plan)?;
    super::labels::check(plan)?;
    load(plan)?;
    super::waits::check(plan)?;
    adaptive(plan)?;
    events(plan)
}

/// Adaptive depths need an agent in each server.
pub(super) fn adaptive(plan: &Plan) -> Result<(), String> {
    if plan.program().traits().adaptive.is_none() || !plan.servers().is_empty() {
        return Ok(());
    }
    let policy = &plan.policy;
    Err(format!(
        "`{policy}` needs a server, whose agent finds the depths: give `servers = 1` or more in [rdma]"
    ))
}

fn slices(plan: &Plan) -> Result<(), String> {
    if plan.slices.is_empty() {
        return Err("there is no slice; add a [[slice]] with `name` and `types`".to_owned());
    }
    if plan.slices.len() > SLICES_MAX {
        return Err(format!("{} slices are more than {SLICES_MAX}; merge some", plan.slices.len()));
    }
    for (i, slice) in plan.slices.iter().enumerate() {
        check_name(&slice.name).map_err(|why| format!("a slice: {why}"))?;
        if plan.slices[..i].iter().any(|earlier| earlier.name == slice.name) {
            return Err(format!("two slices are called `{}`; rename one", slice.name));
        }
        for name in &slice.types {
            if let Some(other) = plan.slices[..i].iter().find(|earlier| earlier.types.contains(name)) {
                let (first, second) = (&other.name, &slice.name);
                return Err(format!("type `{name}` goes to slices `{first}` and `{second}`; keep it in one"));
            }
        }
    }
    Ok(())
}

fn workers(plan: &Plan) -> Result<(), String> {
    let names: Vec<&str> = plan.slices.iter().map(|slice| slice.name.as_str()).collect();
    for (i, worker) in plan.workers.iter().enumerate() {
        check_name(&worker.name).map_err(|why| format!("a worker: {why}"))?;
        if plan.workers[..i].iter().any(|earlier| earlier.name == worker.name) {
            return Err(format!("two workers are called `{}`; rename one", worker.name));
        }
        let served = worker.cores.iter().flat_map(|of| &of.serves).map(|served| &served.slice);
        if let Some(slice) = served.chain([&worker.slice]).find(|slice| !names.contains(&slice.as_str())) {
            let why = sluice_units::unknown("slice", slice, &names);
            return Err(format!("worker `{}`: {why}", worker.name));
        }
    }
    Ok(())
}

/// Sizes must not distinguish more classes than the policy has. A policy without classes ignores sizes, so
/// that a plan works with any policy.
fn classes(plan: &Plan) -> Result<(), String> {
    let classes = plan.program().traits().classes;
    let too_many = |slice: &&SlicePlan| classes > 1 && slice.sizes.ends().len() >= usize::from(classes);
    let Some(slice) = plan.slices.iter().find(too_many) else { return Ok(()) };
    Err(format!(
        "slice `{}` has {} sizes, and `{}` tells {classes} classes apart: give {} at most, or raise classes",
        slice.name,
        slice.sizes.ends().len(),
        plan.policy,
        classes - 1
    ))
}

/// A worker's quota must not exceed the policy's: the switch refuses token counts that are further ahead.
fn quotas(plan: &Plan) -> Result<(), String> {
    let most = plan.program().quota_max();
    let too_many = |worker: &&WorkerPlan| plan.quota(worker) > most;
    let Some(worker) = plan.workers.iter().find(too_many) else { return Ok(()) };
    Err(format!(
        "worker `{}` has a quota of {}, and a switch with `{}` believes {most} at most; lower it",
        worker.name,
        plan.quota(worker),
        plan.policy
    ))
}

/// A software scheduler uses the kernel's sockets only.
fn software(plan: &Plan) -> Result<(), String> {
    let bypasses = plan.program().traits().software.is_some_and(|software| software.bypasses);
    if bypasses { Err(format!("`{}` {SIMULATED_ONLY}", plan.policy)) } else { Ok(()) }
}

fn rings(plan: &Plan) -> Result<(), String> {
    let traits = plan.program().traits();
    let tasks = plan.switch.tasks_per_slice * u32::from(traits.classes);
    let tokens = plan.switch.tokens_per_slice * u32::from(traits.token_rings);
    let tasks_max = if plan.racks.is_some() && traits.feed == Feed::TOKENS {
        traits.tasks_max.min(Config::LEAF_TASKS)
    } else {
        traits.tasks_max
    };
    for (key, size, most) in
        [("tasks_per_slice", tasks, tasks_max), ("tokens_per_slice", tokens, traits.tokens_max)]
    {
        let slices = plan.slices.len();
        if slices > (most / size) as usize {
            return Err(format!(
                "{slices} slices of {size} entries are more than the {most} that the switch has room for; lower {key}"
            ));
        }
    }
    for slice in &plan.slices {
        let workers: usize = plan.workers.iter().map(|worker| worker.lanes(&slice.name)).sum();
        // A worker's tokens are counted at the policy's largest quota, whatever its own quota is.
        let (needed, room) =
            (workers * usize::from(plan.program().quota_max()), plan.switch.tokens_per_slice as usize);
        if needed > room {
            return Err(format!(
                "slice `{}` has {workers} workers, {needed} tokens, and its ring holds {room}; raise \
                 tokens_per_slice or take workers out",
                slice.name
            ));
        }
        let room = plan.switch.tasks_per_slice;
        if let Some(limit) = slice.limit.filter(|limit| *limit > room) {
            return Err(format!(
                "slice `{}` may keep {limit} tasks waiting and its ring holds {room}; raise tasks_per_slice or \
                 lower limit",
                slice.name
            ));
        }
    }
    Ok(())
}

fn load(plan: &Plan) -> Result<(), String> {
    let Some(load) = &plan.load else { return Ok(()) };
    for (name, _) in &load.mix {
        if !plan.slices.iter().any(|slice| slice.types.contains(name)) {
            return Err(format!("the load sends `{name}`, which no slice serves; add it to a slice's types"));
        }
    }
    // A plan without workers is for workers that are started by hand.
    let is_empty = |slice: &&SlicePlan| plan.workers.iter().all(|worker| worker.lanes(&slice.name) == 0);
    for slice in plan.slices.iter().filter(is_empty).filter(|_| !plan.workers.is_empty()) {
        let sent = load.mix.iter().find(|(name, share)| *share > 0.0 && slice.types.contains(name));
        if let Some((name, _)) = sent {
            return Err(format!(
                "the load sends `{name}` to slice `{0}`, which has no worker, so that all of it would be \
                 refused; add a [[worker]] with slice = \"{0}\", or leave the type out of the mix",
                slice.name
            ));
        }
    }
    Ok(())
}

fn events(plan: &Plan) -> Result<(), String> {
    if !plan.events.is_empty() && plan.load.is_none() {
        return Err("events happen under load, and there is none; add a [load] section".to_owned());
    }
    let names: Vec<&str> = plan.workers.iter().map(|worker| worker.name.as_str()).collect();
    for event in &plan.events {
        let end = plan.load.as_ref().map(|load| load.warm_up + load.length).unwrap_or_default();
        if event.at >= end {
            return Err(format!(
                "the event at {:?} comes after the load's end at {end:?}; bring it forward",
                event.at
            ));
        }
        super::racks::check_killed(plan, &event.kill)?;
        match &event.kill {
            Target::Worker(name) if !names.contains(&name.as_str()) => {
                return Err(format!("an event: {}", sluice_units::unknown("worker", name, &names)));
            }
            Target::Server(name) if !plan.servers().contains(name) => {
                let servers = plan.servers();
                let known: Vec<&str> = servers.iter().map(String::as_str).collect();
                return Err(format!("an event: {}", sluice_units::unknown("server", name, &known)));
            }
            Target::Controller if !plan.switch.controller_apart => {
                return Err("an event kills the controller, which lives in the switch's process; set \
                            controller_apart = true in [switch]"
                    .to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}
