//! Changes that cross each other. While the switch stands still, workers leave, die and are moved and types
//! are mapped, so that all of these are carried out at once. Or one worker is moved to and fro, faster than
//! its old tokens are swept.
//!
//! Drawn from a stream of its own: one seed in four has such a time besides its other faults.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use super::scenario::{GrayFailure, ProcessFailure, Scenario, just_room_for};

/// How many of a thousand seeds have changes that cross.
const SEEDS: u64 = 250;
/// The longest time that the switch stands still while changes wait.
const STALL_MAX: Nanos = Nanos::from_millis(2);

pub(super) fn cross(dice: &mut Dice, scenario: &mut Scenario) {
    if !dice.chance(SEEDS) {
        return;
    }
    if dice.chance(500) {
        fill_rings(scenario);
    }
    let at = dice.span(Nanos::from_millis(3), Nanos::from_millis(22));
    if dice.chance(500) {
        stall(dice, scenario, at);
    } else {
        move_back_and_forth(dice, scenario, at);
    }
}

/// Gives every worker the largest quota, and the rings just enough room.
fn fill_rings(scenario: &mut Scenario) {
    if scenario.program.traits().hosts_choose_depth {
        scenario.quotas.fill(8);
    }
    scenario.token_cells = just_room_for(&scenario.program, scenario.workers);
}

fn stall(dice: &mut Dice, scenario: &mut Scenario, at: Nanos) {
    let lasts = dice.span(Nanos::from_micros(50), STALL_MAX);
    scenario.gray_failures.push((at, GrayFailure::SwitchStall { lasts }));
    let worker = dice.below(scenario.workers as u64) as usize;
    for _ in 0..dice.between(2, 6) {
        let change = change(dice, scenario, worker);
        scenario.process_failures.push((at + dice.span(Nanos(0), lasts), change));
    }
}

fn move_back_and_forth(dice: &mut Dice, scenario: &mut Scenario, at: Nanos) {
    let worker = dice.below(scenario.workers as u64) as usize;
    let mut at = at;
    for step in 0..dice.between(3, 8) as usize {
        let slice = (worker + step + 1) % scenario.slices;
        scenario.process_failures.push((at, ProcessFailure::SliceMove { worker, slice }));
        at = at + dice.span(Nanos::from_micros(20), Nanos::from_micros(300));
    }
}

/// A change of this worker, or of its slice and those beside it.
fn change(dice: &mut Dice, scenario: &Scenario, worker: usize) -> ProcessFailure {
    let slices = scenario.slices as u64;
    let back_after = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
    match dice.below(6) {
        0 | 1 => ProcessFailure::WorkerLeave { worker, back_after },
        2 => ProcessFailure::WorkerCrash { worker, back_after },
        3 => ProcessFailure::SliceMove { worker, slice: dice.below(slices) as usize },
        4 => ProcessFailure::TypeMove {
            task_type: dice.below(slices) as u16,
            slice: dice.below(slices) as usize,
        },
        _ => {
            ProcessFailure::TypeMove { task_type: dice.below(slices) as u16, slice: worker % scenario.slices }
        }
    }
}
