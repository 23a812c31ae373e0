//! Which policies real racks can run.

use sluice_sim::policy::Policy;
use sluice_sim::system::System;
use sluice_switch::horus::FabricReading;
use sluice_switch::registry::Choice;

/// The default policy of racks below a spine.
pub(super) const FABRIC_POLICY: &str = "dc-horus";

/// The program of a policy's switches, if real racks can run it; below a spine, the leaf's program.
pub fn live_program(policy: &str) -> Result<Choice, String> {
    if let Some((_, leaf)) = below_spines(policy)? {
        return Ok(leaf);
    }
    match Policy::parse(policy) {
        // For an unknown name, the error lists the programs only.
        Ok(Policy::Program(_)) | Err(_) => live(Choice::parse(policy).map_err(|why| why.to_string())?),
        Ok(_) => Err(format!(
            "`{policy}` runs in simulations only, as it is no program of a switch: ask for one that is \
             (`sluice policies` says which run live), or simulate it with `sluice sweep {policy}`"
        )),
    }
}

/// How a policy of racks below a spine reads Horus, and the program of their leaves; `None` for a policy of
/// one switch.
pub(super) fn below_spines(policy: &str) -> Result<Option<(FabricReading, Choice)>, String> {
    let Some(system) = System::parse(policy).transpose()? else {
        return named_almost_so(policy).map(|()| None);
    };
    system.live().map(Some).ok_or_else(|| {
        format!(
            "`{policy}` runs in simulations only: ask for {FABRIC_POLICY} or dc-rain, which racks below a \
             live spine run, or simulate it with `sluice sweep {policy}` on a testbed with racks"
        )
    })
}

/// Refuses a misspelt policy of racks below a spine: only this function knows their names.
fn named_almost_so(policy: &str) -> Result<(), String> {
    let name = policy.split(':').next().unwrap_or(policy);
    let near = sluice_units::nearest(name, Policy::all().map(|about| about.name));
    if near.is_none_or(|near| System::parse(near).is_none()) {
        return Ok(());
    }
    Policy::parse(policy).map(drop).map_err(|why| why.to_string())
}

/// Refuses a choice that real racks cannot run.
fn live(choice: Choice) -> Result<Choice, String> {
    if choice.traits().early.is_some_and(|early| !early.is_perfect()) {
        return Err(format!(
            "`{choice}`: only the simulator makes estimates worse; ask for `early`, and services say what they know"
        ));
    }
    if choice.traits().size_error > 0 {
        return Err(format!(
            "`{choice}`: only the simulator makes sizes worse; leave `sizes` out: clients say what they know"
        ));
    }
    Ok(choice)
}
