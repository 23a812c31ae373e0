//! A plan's worker that is a server of many cores: the slices that it serves, and the settings that it does
//! not support.

use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_net::served::{
    LANE_CORES_MAX, LANE_DEPTH, LANE_DEPTH_MAX, LANE_LAMBDA, ServedSlice, check_balance, lanes_of_service,
};

use super::parts::{CoresPlan, Plan, WorkerPlan};
use super::section::Section;
use crate::fail::Outcome;

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

/// Reads the slice that a worker joins, and its cores if it is a server of many.
pub(super) fn read(section: &Section<'_>) -> Outcome<(String, Option<CoresPlan>)> {
    let slice = section.text("slice")?;
    let cores = section.whole("cores", 1..LANE_CORES_MAX as u64 + 1)?;
    let served = |text: &str| text.parse().map_err(|why: String| section.complain_of("serves", why));
    let serves: Vec<ServedSlice> =
        section.texts("serves")?.into_iter().map(served).collect::<Outcome<_>>()?;
    let depth = section.whole("depth", 1..u64::from(LANE_DEPTH_MAX) + 1)?;
    let lambda = section.parsed("lambda", |text| text.parse::<Lambda>().map_err(|why| why.to_string()))?;
    let assignment =
        section.parsed("assignment", |text| text.parse::<Assignment>().map_err(|why| why.to_string()))?;
    let (pool, batch) = (section.flag("pool")?, section.flag("batch")?);
    let Some(cores) = cores else {
        let said = [
            ("serves", !serves.is_empty()),
            ("depth", depth.is_some()),
            ("lambda", lambda.is_some()),
            ("assignment", assignment.is_some()),
            ("pool", pool.is_some()),
            ("batch", batch.is_some()),
        ];
        return match said.into_iter().find(|(_, is_said)| *is_said) {
            None => Ok((slice.unwrap_or_default().to_owned(), None)),
            Some((key, _)) => {
                let instead = if key == "serves" { ", or `slice` instead" } else { "" };
                Err(section.complain_of(key, format!("is for servers of many cores: give `cores`{instead}")))
            }
        };
    };
    let depth = depth.map_or(LANE_DEPTH, |depth| depth as u32);
    let lambda = lambda.unwrap_or_else(usual_lambda);
    check_balance(cores as usize, depth, lambda).map_err(|why| section.complain_of("lambda", why))?;
    let serves = match slice {
        Some(_) if !serves.is_empty() => {
            return Err(
                section.complain_of("slice", "stands beside `serves`, which names slices, too: keep one")
            );
        }
        Some(slice) => vec![ServedSlice::new(slice.to_owned(), 0)],
        None => serves,
    };
    let first = serves.first().map(|served| served.slice.clone());
    let none = || section.complain_of("cores", "needs `serves`, such as [\"get=1\", \"scan=0\"], or `slice`");
    let (pool, batch) = (pool.unwrap_or(false), batch.unwrap_or(false));
    if pool && batch {
        return Err(
            section.complain_of("batch", "is nothing for a pool, whose threads run tasks to their end")
        );
    }
    let assignment = assignment.unwrap_or(Assignment::CompleteShare);
    if pool && assignment != Assignment::CompleteShare {
        return Err(
            section.complain_of("assignment", "is nothing for a pool, whose threads take all slices' tasks")
        );
    }
    let needed = match assignment {
        Assignment::CompleteShare => 1,
        Assignment::Dedicated => serves.len(),
        Assignment::Hybrid(shared) => shared,
    };
    if needed > cores as usize {
        return Err(
            section.complain_of("assignment", format!("needs {needed} cores at least: give it as many"))
        );
    }
    Ok((
        first.ok_or_else(none)?,
        Some(CoresPlan { cores: cores as u16, serves, depth, lambda, assignment, pool, batch }),
    ))
}

fn usual_lambda() -> Lambda {
    let (numerator, denominator) = LANE_LAMBDA;
    Lambda::new(numerator, denominator).expect("the paper's")
}

/// Refuses settings that servers of many cores do not support.
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
