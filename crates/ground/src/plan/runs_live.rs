//! Which policies real racks can carry out.

use sluice_sim::policy::Policy;
use sluice_switch::registry::Choice;

use super::racks::below_spines;

/// The program that a policy's switches run, if real racks can carry it out: below a spine a leaf's.
pub fn live_program(policy: &str) -> Result<Choice, String> {
    if let Some((_, leaf)) = below_spines(policy)? {
        return Ok(leaf);
    }
    match Policy::parse(policy) {
        // Who names none at all is told the programs only.
        Ok(Policy::Program(_)) | Err(_) => live(Choice::parse(policy).map_err(|why| why.to_string())?),
        Ok(_) => Err(format!(
            "`{policy}` runs in simulations only, as it is no program of a switch: ask for one that is \
             (`sluice policies` says which run live), or simulate it with `sluice sweep {policy}`"
        )),
    }
}

/// A choice that real racks can carry out.
fn live(choice: Choice) -> Result<Choice, String> {
    if choice.early().is_some_and(|early| !early.is_perfect()) {
        return Err(format!(
            "`{choice}`: only the simulator makes estimates worse; ask for `early`, and services say what they know"
        ));
    }
    if choice.size_error() > 0 {
        return Err(format!(
            "`{choice}`: only the simulator makes sizes worse; leave `sizes` out: clients say what they know"
        ));
    }
    Ok(choice)
}
