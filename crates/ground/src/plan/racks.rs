//! Racks below a spine: what a plan says of them, which worker is in which, and what a plan with some cannot
//! have.

use sluice_control::Tier;
use sluice_sim::datacenter::System;
use sluice_sim::policy::Policy;
use sluice_switch::horus::FabricReading;

use super::parts::{Plan, RacksPlan, SlicePlan, Target, WorkerPlan};
use super::section::Section;
use crate::fail::Outcome;
use crate::flags::Io;

/// The policy of racks below a spine, if nobody names one.
pub(super) const FABRIC_POLICY: &str = "dc-horus";
/// The most racks of one live spine.
pub const RACKS_MAX: u16 = 64;

/// Which of a plan's switches one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRole {
    /// The only one.
    Alone,
    /// The spine.
    Spine,
    /// The leaf of this rack, from 1 on.
    Leaf(u16),
}

impl SwitchRole {
    /// Where such a switch stands for its controller.
    pub const fn tier(self) -> Tier {
        match self {
            Self::Alone => Tier::Rack,
            Self::Spine => Tier::Spine,
            Self::Leaf(_) => Tier::Leaf,
        }
    }
}

impl Plan {
    /// How its spine and leaves read Horus, if it has some.
    pub fn reading(&self) -> Option<FabricReading> {
        self.racks.and_then(|_| reading(&self.policy).ok().flatten())
    }

    /// The rack of a worker, from 1 on: as the plan says, else they are dealt out in turn. `None` without
    /// racks.
    pub fn rack_of(&self, worker: &WorkerPlan) -> Option<u16> {
        let count = self.racks?.count;
        let place = self.workers.iter().position(|known| known.name == worker.name)?;
        Some(worker.rack.unwrap_or((place % usize::from(count)) as u16 + 1))
    }

    /// What a leaf is called above its rack.
    pub fn leaf_name(rack: u16) -> String {
        format!("rack-{rack}")
    }

    /// The names by which the spine knows what is below it: a leaf's, for each pool that its rack has.
    pub fn pools_below(&self) -> Vec<(u16, &str)> {
        let racks = 1..=self.racks.map_or(0, |racks| racks.count);
        let of = |rack| {
            let has = move |slice: &str| {
                self.workers.iter().any(|worker| self.rack_of(worker) == Some(rack) && worker.is_of(slice))
            };
            let names = self.slices.iter().map(|slice| slice.name.as_str());
            names.filter(move |slice| has(slice)).map(move |slice| (rack, slice))
        };
        racks.flat_map(of).collect()
    }
}

/// Reads `[racks]`.
pub(super) fn read(section: &Section<'_>) -> Outcome<RacksPlan> {
    let count = section.whole("count", 0..u64::from(u16::MAX))?;
    let count = count.ok_or_else(|| section.complain("`count` is missing; say how many racks there are"))?;
    let spines = section.whole("spines", 0..u64::from(u16::MAX))?.unwrap_or(1);
    Ok(RacksPlan { count: count as u16, spines: spines as u16 })
}

/// How a policy of racks below a spine reads Horus; `None` for a policy of one switch.
pub(super) fn reading(policy: &str) -> Result<Option<FabricReading>, String> {
    if !policy.starts_with("dc-") {
        return Ok(None);
    }
    match Policy::parse(policy) {
        Ok(Policy::Datacenter(System::Horus(reading))) => Ok(Some(reading)),
        Ok(_) => {
            Err(format!("`{policy}` runs in simulations only: racks below a live spine run {FABRIC_POLICY}"))
        }
        Err(why) => Err(why.to_string()),
    }
}

/// Checks racks, policy and switch against each other.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let policy = &plan.policy;
    let Some(RacksPlan { count, spines }) = plan.racks else {
        return match (reading(policy)?, plan.workers.iter().find(|worker| worker.rack.is_some())) {
            (Some(_), _) => Err(format!(
                "`{policy}` schedules racks below a spine, and there are none: give `count` in [racks], or \
                 --racks"
            )),
            (None, Some(worker)) => Err(format!(
                "worker `{}` has a `rack`, and there are none: give `count` in [racks], or --racks",
                worker.name
            )),
            (None, None) => Ok(()),
        };
    };
    if reading(policy)?.is_none() {
        return Err(format!(
            "`{policy}` schedules one rack, and there are {count} below a spine: ask for {FABRIC_POLICY}, or \
             leave racks out"
        ));
    }
    sizes(count, spines)?;
    let switch = &plan.switch;
    let refused = [
        (switch.io == Io::Xdp, "the switch in the kernel is one rack's: leave io = \"xdp\" out, or racks"),
        (
            switch.controller_apart,
            "each switch has its controller in it: leave controller_apart out, or racks",
        ),
        (
            switch.testbed_delays,
            "no link between spine and leaf is held up: leave testbed_delays out, or racks",
        ),
    ];
    let refused = refused.iter().find(|(is_so, _)| *is_so);
    refused.map_or(Ok(()), |(_, why)| Err(format!("racks below a spine: {why}")))?;
    pools(plan, count)
}

fn sizes(count: u16, spines: u16) -> Result<(), String> {
    if count == 0 {
        return Err("there are no racks below the spine: give 1 at least, or leave racks out".to_owned());
    }
    if count > RACKS_MAX {
        return Err(format!("{count} racks are more than the {RACKS_MAX} of one live spine: take some out"));
    }
    match spines {
        0 => Err(format!("the leaves of {count} racks are linked to no spine: give spines = 1")),
        1 => Ok(()),
        _ => Err(format!(
            "{spines} spines are more than live racks have: give spines = 1, or simulate {FABRIC_POLICY} on \
             a testbed with more"
        )),
    }
}

/// Each pool has workers, and each rack.
fn pools(plan: &Plan, count: u16) -> Result<(), String> {
    if let Some(worker) =
        plan.workers.iter().find(|worker| worker.rack.is_some_and(|rack| !(1..=count).contains(&rack)))
    {
        let rack = worker.rack.unwrap_or_default();
        return Err(format!("worker `{}` is in rack {rack}, and racks are 1 to {count}", worker.name));
    }
    if plan.workers.is_empty() {
        return Ok(());
    }
    let has_none = |slice: &&SlicePlan| !plan.workers.iter().any(|worker| worker.is_of(&slice.name));
    if let Some(slice) = plan.slices.iter().find(has_none) {
        return Err(format!(
            "pool `{}` has no workers in any rack: add a [[worker]] for it, or take the slice out",
            slice.name
        ));
    }
    let is_empty = |rack: &u16| !plan.workers.iter().any(|worker| plan.rack_of(worker) == Some(*rack));
    match (1..=count).find(is_empty) {
        Some(rack) => Err(format!(
            "rack {rack} of {count} has no workers, so that its leaf weighs nothing and is linked to no \
             spine: add some, or take the rack out"
        )),
        None => Ok(()),
    }
}

/// Whether an event may kill this leaf.
pub(super) fn check_killed(plan: &Plan, target: &Target) -> Result<(), String> {
    let count = plan.racks.map_or(0, |racks| racks.count);
    match target {
        Target::Leaf(rack) if !(1..=count).contains(rack) => {
            Err(format!("an event kills leaf {rack}, and there are {count} racks below a spine"))
        }
        _ => Ok(()),
    }
}
