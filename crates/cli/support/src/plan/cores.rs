//! A plan's worker that is a server of many cores: the slices that it serves, and the settings that it does
//! not support.

use sluice_net::served::lanes_of_service;

use super::parts::{CoresPlan, Plan, WorkerPlan};

impl WorkerPlan {
    /// Whether the worker serves a slice.
    pub fn is_of(&self, slice: &str) -> bool {
        self.lanes(slice) > 0
    }

    /// The number of workers of this slice that the switch sees: one, or a server's lanes.
    pub fn lanes(&self, slice: &str) -> usize {
        match &self.cores {
            None => usize::from(self.slice == slice),
            Some(of) if of.serves.iter().any(|served| served.slice == slice) => of.lanes_of_slice(),
            Some(_) => 0,
        }
    }

    /// The number of workers that the switch sees, in all slices together.
    pub fn all_lanes(&self) -> usize {
        self.cores.as_ref().map_or(1, |of| of.serves.len() * of.lanes_of_slice())
    }
}

impl CoresPlan {
    fn lanes_of_slice(&self) -> usize {
        lanes_of_service(self.cores.into(), self.depth)
    }
}

/// What servers of many cores have no use for.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let Some(worker) = plan.workers.iter().find(|worker| worker.cores.is_some()) else { return Ok(()) };
    if let Some(what) = plan.program().unfit_for_cores() {
        return Err(format!(
            "worker `{}` has cores of its own, whose room says how many tasks it takes, and `{}` has {what}: \
             choose a policy without, such as rain:1",
            worker.name, plan.policy
        ));
    }
    let with_quota = plan.workers.iter().find(|worker| worker.cores.is_some() && worker.quota.is_some());
    with_quota.map_or(Ok(()), |worker| {
        Err(format!(
            "worker `{}` has cores of its own, whose room says how many tasks it takes: leave `quota` out",
            worker.name
        ))
    })
}
