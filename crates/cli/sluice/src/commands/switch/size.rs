//! The table sizes of a plan's switch.

use sluice_support::plan::{Plan, SERVERS_MAX, SwitchRole};
use sluice_switch::Config;
use sluice_wire::{Epoch, Serial, Term};

/// The number of replay cells of all clients together.
const REPLAY_CELLS: u32 = 128 * 1024;
/// The number of leaf indices in a spine: one for each rack and pool.
const LEAVES: u16 = 1024;
/// The most clients.
const CLIENTS_MAX: u32 = 32;

pub(super) fn size(plan: &Plan, role: SwitchRole, epoch: Epoch, term: Term) -> Config {
    let size = in_rack(plan, epoch, term);
    match role {
        SwitchRole::Alone => size,
        SwitchRole::Spine(_) => Config { workers: LEAVES, ..size },
        // A leaf has no table of clients.
        SwitchRole::Leaf(_) => Config { clients: 1, replay_cells: 1, ..size },
    }
}

fn in_rack(plan: &Plan, epoch: Epoch, term: Term) -> Config {
    let switch = &plan.switch;
    Config {
        slices: plan.slices.len() as u16,
        clients: (REPLAY_CELLS / switch.replay_cells).clamp(1, CLIENTS_MAX) as u16,
        tasks_per_slice: switch.tasks_per_slice,
        tokens_per_slice: switch.tokens_per_slice,
        replay_cells: switch.replay_cells,
        counters_start: Serial(0),
        types: types(plan),
        seed: plan.seed,
        servers: if plan.servers().is_empty() { 0 } else { SERVERS_MAX },
        term,
        ..Config::full(epoch)
    }
}

/// Enough entries for the largest type number.
fn types(plan: &Plan) -> u16 {
    plan.types.largest().saturating_add(1).max(256)
}
