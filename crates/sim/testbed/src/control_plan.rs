//! What a controller is told of a rack that stands for a testbed, simulated or live: its slices and labels.
//! How long things may take is said by whoever runs it.

use sluice_control::{Plan, SlicePlan};
use sluice_wire::Endpoint;
use sluice_wire::serving::Serving;
use sluice_workload::Class;

use crate::Testbed;
use crate::compatibility::LabelCompatibility;

impl Testbed {
    /// A slice for tasks of these classes, in a switch that tells so many classes apart.
    pub fn slice_plan<'c>(
        &self,
        name: String,
        classes: impl Iterator<Item = &'c Class> + Clone,
        tells_apart: u8,
        limit: u32,
    ) -> SlicePlan {
        SlicePlan {
            name,
            types: classes.clone().map(|class| class.task_type).collect(),
            limit: Some(limit),
            sizes: self.sizes_of(classes, tells_apart),
            serving: Serving::default(),
            target: None,
            service: None,
        }
    }
}

/// The plan of a rack with these slices, whose workers and tasks have these labels.
pub fn control_plan(
    switch: Endpoint,
    mut slices: Vec<SlicePlan>,
    suits: Option<&LabelCompatibility>,
) -> Plan {
    let Some(suits) = suits else { return Plan::new(switch, slices) };
    for (slice, suited) in slices.iter_mut().zip(&suits.slices) {
        slice.serving = suited.serving;
    }
    Plan { labels: suits.names.all().to_vec(), needs: suits.needs.clone(), ..Plan::new(switch, slices) }
}
