//! What a spine has to know of its racks once nothing waits anywhere: promise 4 for tasks to come, as a rack
//! that its spine takes for busy gets none.

use sluice_switch::horus::PolicyParts;
use sluice_wire::{SliceId, WorkerId};

use crate::datacenter::switches::{DatacenterSwitch, SwitchProgram};
use crate::datacenter::system::System;

/// The only pool.
const POOL: SliceId = SliceId(0);
/// Tasks before each worker of a rack that has none: one less than a whole one is not told, and one task's
/// share may have been counted since.
const MEAN_MAX: f64 = 2.0;

/// What a spine that lives takes for true and is not, where racks are idle.
pub(super) fn wrong(system: System, switch: &DatacenterSwitch) -> Option<String> {
    let (System::Horus(reading) | System::Rain { reading, .. }) = system else { return None };
    let SwitchProgram::HorusSpine(spine) = &switch.scheduler else { return None };
    let tells_all = !reading.as_published && reading.idle_from == 1 && reading.parts == PolicyParts::Both;
    if !switch.lives || !tells_all {
        return None;
    }
    let (racks, idle) = (spine.racks(POOL), usize::from(spine.idle_racks(POOL)));
    if idle != racks.len() {
        return Some(format!(
            "promise 4: a spine's list has {idle} idle racks, and all of {} are",
            racks.len()
        ));
    }
    let mean = |leaf: &u16| spine.known_load(POOL, WorkerId(*leaf)).to_f64();
    let busiest = racks.iter().map(|leaf| (leaf, mean(leaf))).find(|(_, mean)| *mean > MEAN_MAX);
    busiest.map(|(leaf, mean)| {
        format!(
            "promise 4: a spine takes {mean:.1} tasks to be before each worker of rack {leaf}, which is idle"
        )
    })
}
