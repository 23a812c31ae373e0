//! The `[[worker]]` sections of a plan: one worker, several alike, or a server of many cores.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_net::served::{
    LANE_CORES_MAX, LANE_DEPTH, LANE_DEPTH_MAX, LANE_LAMBDA, ServedSlice, check_balance,
};
use sluice_workload::TomlStep;

use super::conflict::PlanConflict;
use super::keys;
use super::parts::{CoresPlan, ServicePlan, WorkerPlan};

/// The most workers that one section may stand for.
const COUNT_MAX: usize = 1024;

/// A `[[worker]]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerForm {
    name: String,
    #[serde(default, deserialize_with = "keys::some_whole::<_, _, 0, { COUNT_MAX as u64 }>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slice: Option<String>,
    #[serde(default, deserialize_with = "keys::some_whole::<_, _, 1, { LANE_CORES_MAX as u64 }>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    serves: Vec<ServedSlice>,
    #[serde(default, deserialize_with = "keys::some_whole::<_, _, 1, { LANE_DEPTH_MAX as u64 }>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    lambda: Option<Lambda>,
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    assignment: Option<Assignment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<bool>,
    #[serde(default, deserialize_with = "keys::some_whole::<_, _, 1, 65534>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rack: Option<u16>,
    #[serde(default, deserialize_with = "keys::labels", skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(default, serialize_with = "keys::some_path", skip_serializing_if = "Option::is_none")]
    exec: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    #[serde(default, deserialize_with = "keys::quota", skip_serializing_if = "Option::is_none")]
    quota: Option<u8>,
    #[serde(default, deserialize_with = "keys::core", skip_serializing_if = "Option::is_none")]
    pin: Option<usize>,
    #[serde(default, deserialize_with = "keys::faults", skip_serializing_if = "Option::is_none")]
    faults: Option<String>,
}

/// An error in a section, with its key; without a key the error is about the whole section.
type Complaint = (Option<&'static str>, String);

/// All workers, one by one.
pub(super) fn workers(forms: Vec<WorkerForm>) -> Result<Vec<WorkerPlan>, PlanConflict> {
    let mut workers = Vec::new();
    for (place, form) in forms.into_iter().enumerate() {
        let (count, name) = (form.count, form.name.clone());
        let one = form.plan().map_err(|(key, why)| {
            let section = ["worker".into(), TomlStep::Place(place)];
            let [list, place] = section.clone();
            key.map_or_else(
                || PlanConflict::new(section, why.clone()),
                |key| PlanConflict::new([list, place, key.into()], why.clone()),
            )
        })?;
        match count {
            None => workers.push(one),
            Some(count) => {
                workers
                    .extend((1..=count).map(|i| WorkerPlan { name: format!("{name}-{i}"), ..one.clone() }));
            }
        }
    }
    Ok(workers)
}

/// The sections of these workers. Workers called NAME-1, NAME-2 and so on that differ only in their names
/// become one section with a `count`.
pub(super) fn written(workers: &[WorkerPlan]) -> Vec<WorkerForm> {
    let mut sections = Vec::new();
    let mut left = workers;
    while let Some(first) = left.first() {
        let base = first.name.strip_suffix("-1").unwrap_or_default();
        let is_nth = |(place, worker): &(usize, &WorkerPlan)| {
            let name = format!("{base}-{}", place + 1);
            worker.name == name && **worker == WorkerPlan { name, ..first.clone() }
        };
        let together = left.iter().enumerate().take(COUNT_MAX).take_while(is_nth).count();
        let is_one = base.is_empty() || together < 2;
        sections.push(if is_one {
            WorkerForm::of(first)
        } else {
            WorkerForm { name: base.to_owned(), count: Some(together), ..WorkerForm::of(first) }
        });
        left = &left[if is_one { 1 } else { together }..];
    }
    sections
}

impl WorkerForm {
    fn of(worker: &WorkerPlan) -> Self {
        let WorkerPlan { name, slice, rack, labels, service, quota, cores, pin, faults } = worker.clone();
        let (service, exec, args) = match service {
            ServicePlan::Ours(name) => (Some(name), None, Vec::new()),
            ServicePlan::Program { exec, args } => (None, Some(exec), args),
        };
        let (is_server, of) = (cores.is_some(), cores.as_ref());
        Self {
            name,
            count: None,
            slice: (!is_server).then_some(slice),
            cores: of.map(|of| of.cores),
            serves: of.map_or_else(Vec::new, |of| of.serves.clone()),
            depth: of.map(|of| of.depth),
            lambda: of.map(|of| of.lambda),
            assignment: of.map(|of| of.assignment).filter(|of| *of != Assignment::CompleteShare),
            pool: of.and_then(|of| of.pool.then_some(true)),
            batch: of.and_then(|of| of.batch.then_some(true)),
            rack,
            labels,
            service,
            exec,
            args,
            quota,
            pin,
            faults,
        }
    }

    fn plan(self) -> Result<WorkerPlan, Complaint> {
        let (slice, cores) = self.cores()?;
        let Self { name, rack, labels, service, exec, args, quota, pin, faults, .. } = self;
        let service = service_plan(service, exec, args)?;
        Ok(WorkerPlan { name, slice, rack, labels, service, quota, cores, pin, faults })
    }

    /// The slice that the worker joins, and its cores if the worker is a server of many cores.
    fn cores(&self) -> Result<(String, Option<CoresPlan>), Complaint> {
        let no = |key, why: &str| Err((Some(key), why.to_owned()));
        let Some(cores) = self.cores else { return self.needs_no_cores() };
        let (numerator, denominator) = LANE_LAMBDA;
        let usual = || Lambda::new(numerator, denominator).expect("the paper's");
        let (depth, lambda) = (self.depth.unwrap_or(LANE_DEPTH), self.lambda.unwrap_or_else(usual));
        check_balance(cores.into(), depth, lambda).map_err(|why| (Some("lambda"), why))?;
        let serves = match &self.slice {
            Some(_) if !self.serves.is_empty() => {
                return no("slice", "stands beside `serves`, which names slices, too: keep one");
            }
            Some(slice) => vec![ServedSlice::new(slice.clone(), 0)],
            None => self.serves.clone(),
        };
        let (pool, batch) = (self.pool.unwrap_or(false), self.batch.unwrap_or(false));
        if pool && batch {
            return no("batch", "is nothing for a pool, whose threads run tasks to their end");
        }
        let assignment = self.assignment.unwrap_or(Assignment::CompleteShare);
        if pool && assignment != Assignment::CompleteShare {
            return no("assignment", "is nothing for a pool, whose threads take all slices' tasks");
        }
        let needed = match assignment {
            Assignment::CompleteShare => 1,
            Assignment::Dedicated => serves.len(),
            Assignment::Hybrid(shared) => shared,
        };
        if needed > cores.into() {
            return no("assignment", &format!("needs {needed} cores at least: give it as many"));
        }
        let Some(first) = serves.first().map(|served| served.slice.clone()) else {
            return no("cores", "needs `serves`, such as [\"get=1\", \"scan=0\"], or `slice`");
        };
        Ok((first, Some(CoresPlan { cores, serves, depth, lambda, assignment, pool, batch })))
    }

    fn needs_no_cores(&self) -> Result<(String, Option<CoresPlan>), Complaint> {
        let said = [
            ("serves", !self.serves.is_empty()),
            ("depth", self.depth.is_some()),
            ("lambda", self.lambda.is_some()),
            ("assignment", self.assignment.is_some()),
            ("pool", self.pool.is_some()),
            ("batch", self.batch.is_some()),
        ];
        match said.into_iter().find(|(_, is_said)| *is_said) {
            None => Ok((self.slice.clone().unwrap_or_default(), None)),
            Some((key, _)) => {
                let instead = if key == "serves" { ", or `slice` instead" } else { "" };
                Err((Some(key), format!("is for servers of many cores: give `cores`{instead}")))
            }
        }
    }
}

fn service_plan(
    ours: Option<String>,
    exec: Option<PathBuf>,
    args: Vec<String>,
) -> Result<ServicePlan, Complaint> {
    let known = sluice_services::SERVICES;
    match (ours, exec) {
        (Some(name), None) if !args.is_empty() => {
            Err((Some("args"), format!("belong to `exec`; `{name}` takes none")))
        }
        (Some(name), None) if known.contains(&&*name) => Ok(ServicePlan::Ours(name)),
        (Some(name), None) => Err((Some("service"), sluice_units::unknown("service", &name, &known))),
        (None, Some(exec)) => Ok(ServicePlan::Program { exec, args }),
        _ => Err((None, "needs either `service` (one of ours) or `exec` (your program)".to_owned())),
    }
}
