//! A plan as TOML: the keys of each section, and the conversion to [`Plan`] and back. The same forms read and
//! write, so a plan that was changed by flags is written to read as the same plan again. Keys with a default
//! are written, too: the written plan keeps its meaning if a default changes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_net::client::deadline_default;
use sluice_services::kv::KvArgs;
use sluice_services::rocks::RocksArgs;
use sluice_sim::Within;
use sluice_wire::Nanos;
use sluice_workload::{TomlComplaint, TomlStep, check_budget, read_toml};

use super::conflict::PlanConflict;
use super::keys;
use super::parts::{
    Arrivals, Event, FAILED_MAX, LoadPlan, POLICY_DEFAULT, POLICY_OF_CORES, Plan, REFUSED_MAX, RacksPlan,
    SlicePlan, SwitchPlan, state_in,
};
use super::rdma::RdmaPlan;
use super::request::Request;
use super::runs_live::FABRIC_POLICY;
use super::stages::RateStages;
use super::threshold::Threshold;
use super::types::Types;
use super::workers::{WorkerForm, workers, written};
use crate::fail::{Failure, Outcome};
use crate::file_name::file_name;
use crate::units;

/// Reads a whole plan; `name` names the plan in errors.
pub(super) fn read(name: &str, text: &str) -> Outcome<Plan> {
    let complain =
        |said: TomlComplaint| Failure::bad_input(format!("plan {name}{}: {}", said.place(), said.why));
    let form: PlanForm = read_toml(text).map_err(complain)?;
    form.plan().map_err(|conflict| complain(TomlComplaint::of(text, &conflict.path, &conflict.why)))
}

pub(super) fn write(plan: &Plan) -> Result<String, String> {
    toml::to_string(&PlanForm::of(plan)).map_err(|why| why.to_string())
}

/// How long a load is measured, unless the plan says.
const LENGTH_DEFAULT: Duration = Duration::from_secs(10);

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanForm {
    #[serde(default = "unnamed", deserialize_with = "keys::shown")]
    name: String,
    #[serde(default, deserialize_with = "keys::policy")]
    policy: Option<String>,
    #[serde(default = "one", deserialize_with = "keys::whole::<_, _, 0, { i64::MAX as u64 - 1 }>")]
    seed: u64,
    #[serde(default = "real_time", deserialize_with = "keys::dilation")]
    dilation: u32,
    #[serde(default, deserialize_with = "keys::faults", skip_serializing_if = "Option::is_none")]
    faults: Option<String>,
    #[serde(default, serialize_with = "keys::some_path")]
    out: Option<PathBuf>,
    #[serde(default, serialize_with = "keys::some_path")]
    state: Option<PathBuf>,
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    racks: Option<RacksPlan>,
    #[serde(default)]
    switch: SwitchPlan,
    #[serde(default)]
    rdma: RdmaPlan,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    types: BTreeMap<String, TypeNumber>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slice: Vec<SlicePlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    worker: Vec<WorkerForm>,
    #[serde(default, with = "RocksTable")]
    rocksdb: RocksArgs,
    #[serde(default, with = "KvTable")]
    kv: KvArgs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load: Option<LoadForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    event: Vec<Event>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct TypeNumber(#[serde(deserialize_with = "keys::whole::<_, _, 1, 65535>")] u16);

/// The database behind `rocksdb` workers.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RocksArgs", deny_unknown_fields, default = "RocksArgs::default")]
struct RocksTable {
    #[serde(rename = "path", serialize_with = "keys::path")]
    db: PathBuf,
    #[serde(deserialize_with = "keys::whole::<_, _, 1, 1_000_000_000>")]
    keys: u64,
    #[serde(deserialize_with = "keys::whole::<_, _, 1, { 1 << 20 }>")]
    item_bytes: u32,
    #[serde(deserialize_with = "keys::whole::<_, _, 0, { 1 << 20 }>")]
    cache_mib: u32,
}

/// The store of `kv` workers.
#[derive(Serialize, Deserialize)]
#[serde(remote = "KvArgs", deny_unknown_fields, default = "KvArgs::default")]
struct KvTable {
    #[serde(rename = "path", serialize_with = "keys::path")]
    db: PathBuf,
    #[serde(deserialize_with = "keys::whole::<_, _, 0, { 1 << 20 }>")]
    cache_mib: u32,
    sync: bool,
}

/// The load of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadForm {
    #[serde(default, deserialize_with = "keys::rate", serialize_with = "keys::some_float")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Spacing>,
    #[serde(default, serialize_with = "keys::some_path", skip_serializing_if = "Option::is_none")]
    trace: Option<PathBuf>,
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    stages: Option<RateStages>,
    mix: String,
    #[serde(default = "warm_up", with = "keys::text")]
    warm_up: Duration,
    #[serde(default, with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    length: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    #[serde(default, with = "keys::some_text")]
    deadline: Option<Duration>,
    #[serde(default = "yes", with = "keys::retry")]
    retry: bool,
    #[serde(default = "behind_max", with = "keys::text")]
    behind_max: Duration,
    #[serde(default = "failed_max", deserialize_with = "keys::share", serialize_with = "keys::float")]
    failed_max: f64,
    #[serde(default = "refused_max", deserialize_with = "keys::share", serialize_with = "keys::float")]
    refused_max: f64,
    #[serde(default, with = "keys::texts", skip_serializing_if = "Vec::is_empty")]
    thresholds: Vec<Threshold>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    request: BTreeMap<String, Request>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    budget: BTreeMap<String, BudgetSpan>,
}

/// The budget of a type's tasks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct BudgetSpan(#[serde(with = "keys::text")] Duration);

/// How a load's tasks are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spacing {
    Poisson,
    Constant,
}

impl PlanForm {
    fn plan(self) -> Result<Plan, PlanConflict> {
        let mut types = Types::built_in();
        for (name, number) in &self.types {
            let named = types.name(name, number.0);
            named.map_err(|why| PlanConflict::new(["types".into(), name.as_str().into()], why))?;
        }
        let workers = workers(self.worker)?;
        let mut slices = self.slice;
        for (place, slice) in slices.iter_mut().enumerate() {
            let conflict = |(key, why)| PlanConflict::new(["slice".into(), place.into(), key], why);
            name_types(slice, &mut types).map_err(conflict)?;
        }
        let usual = match (self.racks, workers.iter().any(|worker| worker.cores.is_some())) {
            (Some(_), _) => FABRIC_POLICY,
            (None, true) => POLICY_OF_CORES,
            (None, false) => POLICY_DEFAULT,
        };
        let load = self.load.map(|load| load.plan(self.dilation, &mut types, &slices)).transpose()?;
        let out = self.out.unwrap_or_else(|| PathBuf::from("out").join(file_name(&self.name)));
        Ok(Plan {
            policy: self.policy.unwrap_or_else(|| usual.to_owned()),
            state: self.state.unwrap_or_else(|| state_in(&out)),
            name: self.name,
            seed: self.seed,
            dilation: self.dilation,
            faults: self.faults,
            metrics: self.metrics,
            racks: self.racks,
            switch: self.switch,
            rdma: self.rdma,
            rocksdb: self.rocksdb,
            kv: self.kv,
            events: self.event,
            types,
            slices,
            workers,
            load,
            out,
        })
    }

    fn of(plan: &Plan) -> Self {
        let Plan { name, policy, seed, dilation, state, out, faults, metrics, switch, rdma, .. } = plan;
        let Plan { types, racks, slices, workers, rocksdb, kv, load, events, .. } = plan;
        Self {
            name: name.clone(),
            policy: Some(policy.clone()),
            seed: *seed,
            dilation: *dilation,
            faults: faults.clone(),
            metrics: *metrics,
            out: Some(out.clone()),
            state: Some(state.clone()),
            racks: *racks,
            switch: switch.clone(),
            rdma: rdma.clone(),
            types: types.added().map(|(name, number)| (name.clone(), TypeNumber(*number))).collect(),
            slice: slices.clone(),
            worker: written(workers),
            rocksdb: rocksdb.clone(),
            kv: kv.clone(),
            load: load.as_ref().map(|load| LoadForm::of(load, types)),
            event: events.clone(),
        }
    }
}

/// Replaces types' numbers by their names. An unknown type is an error, with the key that has it.
fn name_types(slice: &mut SlicePlan, types: &mut Types) -> Result<(), (TomlStep, String)> {
    let named = slice.types.iter_mut().map(|name| ("types", name));
    for (key, name) in named.chain(slice.needs.iter_mut().map(|need| ("needs", &mut need.class))) {
        *name = types.called(name).map_err(|why| (key.into(), unknown_type(&why)))?;
    }
    Ok(())
}

fn unknown_type(why: &str) -> String {
    format!("{why}; new names go into [types]")
}

impl LoadForm {
    fn plan(self, dilation: u32, types: &mut Types, slices: &[SlicePlan]) -> Result<LoadPlan, PlanConflict> {
        let of = |key: &str, why: &str| PlanConflict::new(["load".into(), key.into()], why);
        let mix = units::mix(&self.mix).map_err(|why| of("mix", &why))?;
        let mix = types.named_mix(mix).map_err(|why| of("mix", &unknown_type(&why)))?;
        let within =
            self.within.as_deref().map(str::parse).transpose().map_err(|why: String| of("within", &why))?;
        let within = within.or_else(|| latencies_of(slices, &mix));
        let requests = requests(self.request, types)?;
        let budgets = budgets(self.budget, types)?;
        let deadline = self.deadline.unwrap_or_else(|| deadline_default(dilation));
        if self.length.is_some_and(|length| length.is_zero()) {
            return Err(of("length", "is zero; measure for a second at least"));
        }
        if deadline.is_zero() {
            return Err(of("deadline", "is zero; give tasks some time"));
        }
        let arrivals = match (self.rate, self.trace, self.stages) {
            (Some(rate), None, None) if self.arrivals == Some(Spacing::Constant) => Arrivals::Constant(rate),
            (Some(rate), None, None) => Arrivals::Poisson(rate),
            (None, Some(path), None) => Arrivals::Trace(path),
            (None, None, Some(stages)) => Arrivals::Stages(stages),
            _ => {
                let why = "needs one of `rate` (tasks per second), `trace` (a file) and `stages`";
                return Err(PlanConflict::new(["load".into()], why));
            }
        };
        let length = match (arrivals.stages(), self.length) {
            (Some(_), Some(_)) => {
                return Err(of("length", "stages have a length of their own: leave one out"));
            }
            (Some(_), None) if self.arrivals == Some(Spacing::Constant) => {
                return Err(of("arrivals", "the tasks of stages come at random moments: leave it out"));
            }
            (Some(stages), None) => stages.length(),
            (None, length) => length.unwrap_or(LENGTH_DEFAULT),
        };
        let Self { warm_up, retry, behind_max, failed_max, refused_max, thresholds, .. } = self;
        let mut load = LoadPlan {
            arrivals,
            mix,
            requests,
            budgets,
            within,
            warm_up,
            length,
            deadline,
            retry,
            behind_max,
            failed_max,
            refused_max,
            thresholds,
        };
        load.name_limits(types).map_err(|why| of("within", &why))?;
        load.name_thresholds(types).map_err(|why| of("thresholds", &why))?;
        Ok(load)
    }

    fn of(load: &LoadPlan, types: &Types) -> Self {
        let LoadPlan { arrivals, mix, requests, .. } = load;
        let share = |(name, share): &(String, f64)| format!("{}={share}", in_mix(name, types));
        let (spacing, trace) = match arrivals {
            Arrivals::Poisson(_) => (Some(Spacing::Poisson), None),
            Arrivals::Constant(_) => (Some(Spacing::Constant), None),
            Arrivals::Stages(_) => (None, None),
            Arrivals::Trace(path) => (None, Some(path.clone())),
        };
        let stages = arrivals.stages();
        Self {
            rate: arrivals.rate().filter(|_| stages.is_none()),
            arrivals: spacing,
            trace,
            stages: stages.cloned(),
            mix: mix.iter().map(share).collect::<Vec<_>>().join(","),
            warm_up: load.warm_up,
            length: stages.is_none().then_some(load.length),
            within: load.within.as_ref().map(|within| in_within(within, types).to_string()),
            deadline: Some(load.deadline),
            retry: load.retry,
            behind_max: load.behind_max,
            failed_max: load.failed_max,
            refused_max: load.refused_max,
            thresholds: load.thresholds.iter().map(|threshold| in_threshold(threshold, types)).collect(),
            request: requests.iter().cloned().collect(),
            budget: load.budgets.iter().map(|(name, span)| (name.clone(), BudgetSpan(*span))).collect(),
        }
    }
}

/// What a task of each type carries, with types named.
fn requests(
    given: BTreeMap<String, Request>,
    types: &mut Types,
) -> Result<Vec<(String, Request)>, PlanConflict> {
    let name = |(name, request): (String, Request)| {
        let path = || ["load".into(), "request".into(), name.as_str().into()];
        let named = types.called(&name).map_err(|why| PlanConflict::new(path(), unknown_type(&why)))?;
        Ok((named, request))
    };
    given.into_iter().map(name).collect()
}

/// The budget of each type that has one, with types named.
fn budgets(
    given: BTreeMap<String, BudgetSpan>,
    types: &mut Types,
) -> Result<Vec<(String, Duration)>, PlanConflict> {
    let name = |(name, BudgetSpan(span)): (String, BudgetSpan)| {
        let wrong =
            |why: String| PlanConflict::new(["load".into(), "budget".into(), name.as_str().into()], why);
        let named = types.called(&name).map_err(|why| wrong(unknown_type(&why)))?;
        check_budget(Nanos(span.as_nanos() as u64)).map_err(wrong)?;
        Ok((named, span))
    };
    given.into_iter().map(name).collect()
}

/// The latencies of the slices to which the types of a mix go, if each of them has one.
fn latencies_of(slices: &[SlicePlan], mix: &[(String, f64)]) -> Option<Within> {
    let of = |(name, _): &(String, f64)| {
        let slice = slices.iter().find(|slice| slice.types.contains(name))?;
        Some((name.clone(), Nanos(slice.latency?.as_nanos() as u64)))
    };
    let each: Vec<_> = mix.iter().map(of).collect::<Option<_>>()?;
    let (_, first) = *each.first()?;
    let is_one = each.iter().all(|(_, limit)| *limit == first);
    Some(if is_one { Within::All(first) } else { Within::Each(each) })
}

/// Limits with types' names as a plan writes them.
fn in_within(within: &Within, types: &Types) -> Within {
    match within {
        Within::All(limit) => Within::All(*limit),
        Within::Each(each) => {
            Within::Each(each.iter().map(|(name, limit)| (in_mix(name, types), *limit)).collect())
        }
    }
}

/// A threshold with its type's name as a plan writes it.
fn in_threshold(threshold: &Threshold, types: &Types) -> Threshold {
    Threshold { class: threshold.class.as_ref().map(|name| in_mix(name, types)), ..threshold.clone() }
}

/// A type's name as a mix writes it; the type's number if the name has characters that separate a mix's
/// parts.
fn in_mix(name: &str, types: &Types) -> String {
    let number = types.number(name).filter(|_| name.contains([',', '=']) || name.trim() != name);
    let Some(number) = number else { return name.to_owned() };
    let mut text = number.to_string();
    // Another type may have this number as its name. A leading zero keeps the number and avoids that name.
    while types.number(&text).is_some_and(|other| other != number) {
        text.insert(0, '0');
    }
    text
}

fn unnamed() -> String {
    "rack".to_owned()
}

const fn one() -> u64 {
    1
}

const fn real_time() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

const fn warm_up() -> Duration {
    Duration::from_secs(1)
}

const fn behind_max() -> Duration {
    Duration::from_millis(10)
}

const fn refused_max() -> f64 {
    REFUSED_MAX
}

const fn failed_max() -> f64 {
    FAILED_MAX
}
