//! Which of a plan's switches this process is, and the settings that follow.

use std::net::SocketAddr;
use std::path::PathBuf;

use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Plan, SwitchRole};
use sluice_switchd::switch::SwitchPlace;

use crate::args::SwitchArgs;

/// The role in the flags; with racks, a plan has several switches.
pub(super) fn of(args: &SwitchArgs, plan: &Plan) -> Outcome<SwitchRole> {
    let no = |why: String| Err(Failure::bad_input(why));
    match (plan.racks, args.spine, args.leaf) {
        (None, None, None) => Ok(SwitchRole::Alone),
        (None, ..) => {
            no(format!("plan {} has no racks below a spine: leave --spine and --leaf out", plan.name))
        }
        (Some(racks), Some(spine), _) if (1..=racks.spines).contains(&spine) => Ok(SwitchRole::Spine(spine)),
        (Some(racks), Some(spine), _) => {
            no(format!("--spine={spine}: plan {} has spines 1 to {}", plan.name, racks.spines))
        }
        (Some(racks), _, Some(rack)) if (1..=racks.count).contains(&rack) => Ok(SwitchRole::Leaf(rack)),
        (Some(racks), _, Some(rack)) => {
            no(format!("--leaf {rack}: plan {} has racks 1 to {}", plan.name, racks.count))
        }
        (Some(_), None, None) => no(format!(
            "plan {} has racks below a spine: say which switch this is, --spine, or --leaf 1 --above ADDRESS",
            plan.name
        )),
    }
}

/// The name of the process in logs, as plans call it when they kill it.
pub(super) fn process(args: &SwitchArgs) -> String {
    match (args.leaf, args.spine) {
        (Some(rack), _) => format!("leaf {rack}"),
        (None, Some(spine @ 2..)) => format!("spine {spine}"),
        _ => "switch".to_owned(),
    }
}

/// The state folder; each switch has its own.
pub(super) fn state(args: &SwitchArgs, plan: &Plan, role: SwitchRole) -> PathBuf {
    match role {
        SwitchRole::Leaf(_) | SwitchRole::Spine(2..) if args.state.is_none() => plan.state.join(name(role)),
        _ => plan.state.clone(),
    }
}

pub(super) fn place(plan: &Plan, role: SwitchRole) -> SwitchPlace {
    let reading = plan.reading().unwrap_or_default();
    match role {
        SwitchRole::Alone => SwitchPlace::Alone,
        SwitchRole::Spine(_) => SwitchPlace::Spine(reading),
        SwitchRole::Leaf(_) => SwitchPlace::Leaf(reading),
    }
}

/// The address for packets. A plan's address is the first spine's; other switches take theirs from a flag.
pub(super) fn listen(args: &SwitchArgs, plan: &Plan, role: SwitchRole) -> Option<SocketAddr> {
    if is_planned(role) { plan.switch.listen } else { args.listen }
}

/// The address of the controller, by the same rule; other switches get ports that the kernel chooses.
pub(super) fn control(args: &SwitchArgs, plan: &Plan, role: SwitchRole) -> Option<SocketAddr> {
    if is_planned(role) {
        return plan.switch.control;
    }
    args.control.or(Some(SocketAddr::from(([127, 0, 0, 1], 0))))
}

/// The address of the metrics, by the same rule; without one there are none.
pub(super) fn metrics(args: &SwitchArgs, plan: &Plan, role: SwitchRole) -> Option<SocketAddr> {
    let of_plan = plan.switch.metrics.filter(|_| is_planned(role));
    args.metrics.metrics.or(of_plan)
}

/// The name of the switch's folder; it also selects the random stream of its faults.
pub(super) fn name(role: SwitchRole) -> String {
    match role {
        SwitchRole::Alone | SwitchRole::Spine(..=1) => "switch".to_owned(),
        SwitchRole::Spine(spine) => format!("spine-{spine}"),
        SwitchRole::Leaf(rack) => Plan::leaf_name(rack),
    }
}

/// Whether the addresses in a plan are this switch's.
const fn is_planned(role: SwitchRole) -> bool {
    matches!(role, SwitchRole::Alone | SwitchRole::Spine(..=1))
}
