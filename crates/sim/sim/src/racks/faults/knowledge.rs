//! Checks what a spine knows of its racks when nothing is under way. This is promise 4 for tasks to come: a
//! rack that its spine believes busy gets none.
//!
//! The spine has to know what the rack's leaf knows. A leaf of Rain knows when all of its workers are
//! idle, since a worker repeats a lost token. A leaf of Horus may not know it: by the published design a
//! worker whose reply was lost counts as busy until its next reply. A spine may list a busy rack as idle
//! until it sends that rack a task, because the rack then reports that it is busy.

use sluice_events::Address;
use sluice_switch::Program;
use sluice_switch::horus::{LoadsTold, PolicyParts};
use sluice_wire::tables::{TableAnswer, TableOp, WorkerState};
use sluice_wire::{SliceId, WorkerId};

use super::oracle::HopOracle;
use crate::racks::switch::SwitchProgram;
use crate::racks::world::SimulatedRacks;
use crate::system::System;

const POOL: SliceId = SliceId(0);
/// A mean that is less than the spine's by at least so many tasks is told.
const TOLD_FROM: f64 = 1.0;

/// What renewals have told since the last task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewals {
    /// There were no renewals: the spine knows only what replies told.
    None,
    /// There were enough renewals to tell everything.
    Many,
}

/// What is known of a rack.
#[derive(Clone, Copy, Debug)]
struct RackLoad {
    is_idle: bool,
    /// Tasks before each of the rack's workers.
    mean: f64,
}

/// What a live spine believes wrongly of a rack while nothing is under way; `None` if all is right.
pub(super) fn wrong(
    system: System,
    datacenter: &mut SimulatedRacks<HopOracle>,
    since: Renewals,
) -> Option<String> {
    let (System::Horus(reading) | System::Rain { reading, .. }) = system else { return None };
    if reading.as_published || reading.parts != PolicyParts::Both {
        return None;
    }
    // An UPDATE that a rack is idle tells no mean, and implies one only if loads are told when they are one
    // task off.
    let tells_means = since == Renewals::Many || reading.told == LoadsTold::ByOne;
    (0..datacenter.spines.len()).find_map(|spine| {
        let racks = racks(datacenter, spine)?;
        let SwitchProgram::HorusSpine(program) = &datacenter.spines[spine].scheduler else { return None };
        let entries = usize::from(program.idle_racks(POOL));
        let is_listed = |leaf: &u16| program.takes_for_idle(POOL, WorkerId(*leaf));
        let listed = racks.iter().filter(|(leaf, _)| is_listed(leaf)).count();
        if entries != listed {
            return Some(format!("a list is wrong: spine {spine} has {entries} entries for {listed} racks"));
        }
        if let Some((leaf, _)) = racks.iter().find(|(leaf, rack)| rack.is_idle && !is_listed(leaf)) {
            return Some(format!("promise 4: spine {spine} takes rack {leaf} for busy, which is idle"));
        }
        let known = |leaf| program.known_load(POOL, WorkerId(leaf)).to_f64();
        let wrong = racks.iter().find(|(leaf, rack)| tells_means && known(*leaf) - rack.mean >= TOLD_FROM);
        wrong.map(|(leaf, RackLoad { mean, .. })| {
            let known = known(*leaf);
            format!("promise 4: spine {spine} takes the mean of rack {leaf} for {known:.1}: it is {mean:.1}")
        })
    })
}

/// The racks of a live spine, by their numbers there, and what their leaves know.
fn racks(datacenter: &mut SimulatedRacks<HopOracle>, spine: usize) -> Option<Vec<(u16, RackLoad)>> {
    let SimulatedRacks { spines, leaves, .. } = datacenter;
    let SwitchProgram::HorusSpine(program) = &mut spines[spine].scheduler else { return None };
    let mut racks = Vec::new();
    for number in program.racks(POOL).to_vec() {
        let TableAnswer::Worker(WorkerState { row: Some(row), .. }) =
            program.table(TableOp::ReadWorker(WorkerId(number)))
        else {
            continue;
        };
        let stand = match &leaves[Address::of(&row.at).place() as usize].scheduler {
            SwitchProgram::HorusLeaf(leaf) => {
                RackLoad { is_idle: leaf.idle_entries(POOL) > 0, mean: leaf.average(POOL)?.to_f64() }
            }
            _ => RackLoad { is_idle: true, mean: 0.0 },
        };
        racks.push((number, stand));
    }
    spines[spine].lives.then_some(racks)
}
