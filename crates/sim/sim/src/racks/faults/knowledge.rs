//! What a spine has to know of its racks once nothing is under way: promise 4 for tasks to come, as a rack
//! that its spine takes for busy gets none.
//!
//! It has to know what the rack's leaf knows. A leaf of Rain knows that all of its workers are idle, since a
//! worker whose token was lost asks for it. A leaf of Horus may not: by the published design a worker whose
//! reply was lost counts as busy until its next one. A rack that is taken for idle and is not tells so with
//! the first task that comes, so that it may stand on the list until then.

use sluice_events::Address;
use sluice_switch::Program;
use sluice_switch::horus::{LoadsTold, PolicyParts};
use sluice_wire::tables::{TableAnswer, TableOp, WorkerState};
use sluice_wire::{SliceId, WorkerId};

use super::oracle::HopOracle;
use crate::racks::switch::SwitchProgram;
use crate::racks::world::SimulatedRacks;
use crate::system::System;

/// The only pool.
const POOL: SliceId = SliceId(0);
/// A mean that is so much less than what its spine makes of it is told.
const TOLD_FROM: f64 = 1.0;

/// What renewals have told since the last task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewals {
    /// Nothing: what stands is what replies told.
    None,
    /// Everything.
    Many,
}

/// What is known of a rack.
#[derive(Clone, Copy, Debug)]
struct Stand {
    is_idle: bool,
    /// Tasks before each of its workers.
    mean: f64,
}

/// What a spine that lives takes for true of a rack and is not, where nothing is under way.
pub(super) fn wrong(
    system: System,
    datacenter: &mut SimulatedRacks<HopOracle>,
    since: Renewals,
) -> Option<String> {
    let (System::Horus(reading) | System::Rain { reading, .. }) = system else { return None };
    if reading.as_published || reading.parts != PolicyParts::Both {
        return None;
    }
    // A reply that tells that a rack is idle tells no mean, and implies one only where loads are told by one.
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
        wrong.map(|(leaf, Stand { mean, .. })| {
            let known = known(*leaf);
            format!("promise 4: spine {spine} takes the mean of rack {leaf} for {known:.1}: it is {mean:.1}")
        })
    })
}

/// The racks of a spine that lives, by their numbers there, and what their leaves know.
fn racks(datacenter: &mut SimulatedRacks<HopOracle>, spine: usize) -> Option<Vec<(u16, Stand)>> {
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
                Stand { is_idle: leaf.idle_entries(POOL) > 0, mean: leaf.average(POOL)?.to_f64() }
            }
            _ => Stand { is_idle: true, mean: 0.0 },
        };
        racks.push((number, stand));
    }
    spines[spine].lives.then_some(racks)
}
