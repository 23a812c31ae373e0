//! The tasks of an open-loop load: when each is due, its type, and its bytes. One seed gives one load.
//!
//! Arrivals and types are drawn as in the simulator: with the same seed, both are the same.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_events::dice::Dice;
use sluice_net::client::Urgency;
use sluice_services::rocks::{GET_KEYS_MAX, codec};
use sluice_services::{hold, spin};
use sluice_testrig::schedule::Planned;
use sluice_wire::{Nanos, TaskType};
use sluice_workload::{Class, LARGE_BYTES, Requests, Service, Trace, Workload};

use crate::fail::{Failure, Outcome};
use crate::plan::{Arrivals, LoadPlan, RateStages, Request, Spread};

/// A task to be sent; its kind is its index in the mix.
pub type Task = Planned<usize, Vec<u8>>;

/// The largest number of types in a mix.
const TYPES_MAX: usize = 256;

/// All tasks of a load, in the order in which they are due.
#[derive(Debug)]
pub struct Source {
    requests: Requests,
    /// Whether the tasks come from a trace, and how many it has.
    is_traced: bool,
    /// The requests that tasks carry, by type.
    carried: Vec<Request>,
    dice: Dice,
    keys: u64,
    end: Nanos,
}

impl Source {
    /// The tasks of `plan`, for a database of `keys` keys.
    pub fn new(plan: &LoadPlan, seed: u64, keys: u64) -> Outcome<Self> {
        if plan.mix.len() > TYPES_MAX {
            let why = format!("a mix of {} types: it may have {TYPES_MAX} at most", plan.mix.len());
            return Err(Failure::bad_input(why));
        }
        let peak = plan.arrivals.stages().map(RateStages::peak_per_s);
        let rate_per_s = peak.or(plan.arrivals.rate()).unwrap_or_default();
        Ok(Self {
            requests: Requests::new(&workload(plan)?, rate_per_s, seed, 0),
            is_traced: matches!(plan.arrivals, Arrivals::Trace(_)),
            carried: plan.mix.iter().map(|(name, _)| request_of(plan, name)).collect(),
            dice: Dice::named(seed, "bytes", 0),
            keys,
            end: Nanos((plan.warm_up + plan.length).as_nanos() as u64),
        })
    }
}

impl Source {
    /// How many tasks of a trace come after the load's end; zero for drawn tasks, which never end.
    pub fn cut_off(&self) -> u64 {
        let late = |requests: &Requests| requests.clone().filter(|request| request.at >= self.end).count();
        if self.is_traced { late(&self.requests) as u64 } else { 0 }
    }
}

impl Iterator for Source {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let request = self.requests.next().filter(|request| request.at < self.end)?;
        let kind = usize::from(request.class);
        let (bytes, urgency) = draw(&self.carried[kind], self.keys, &mut self.dice);
        Some(Task { due: request.at, kind, urgency, bytes })
    }
}

/// The arrival process and the mix of types. Service times depend on the rack.
fn workload(plan: &LoadPlan) -> Outcome<Workload> {
    let arrivals = match &plan.arrivals {
        Arrivals::Poisson(_) => sluice_workload::Arrivals::Poisson,
        Arrivals::Constant(_) => sluice_workload::Arrivals::Even,
        Arrivals::Stages(stages) => sluice_workload::Arrivals::Plan(stages.arrivals(plan.warm_up)),
        Arrivals::Trace(path) => sluice_workload::Arrivals::Trace(Arc::new(trace(path, plan)?)),
    };
    let unknown = Service::parse("const:1ns").map_err(Failure::broken)?;
    let classes = plan.mix.iter().enumerate().map(|(place, (name, share))| Class {
        name: name.clone(),
        task_type: TaskType(place as u16),
        share: *share,
        service: unknown.clone(),
        large: 0.0,
        bytes: LARGE_BYTES,
        priority: None,
        budget: None,
    });
    Ok(Workload { classes: classes.collect(), arrivals })
}

/// Reads a trace, and refuses one with fields that a load ignores.
fn trace(path: &Path, plan: &LoadPlan) -> Outcome<Trace> {
    let names: Vec<String> = plan.mix.iter().map(|(name, _)| name.clone()).collect();
    let trace = Trace::read(path, Some(&names)).map_err(Failure::bad_input)?;
    if trace.tasks().iter().any(|task| task.service.is_some()) {
        let shown = path.display();
        return Err(Failure::bad_input(format!(
            "trace {shown} says how long tasks take: here the plan says what they carry; leave \
             MICROSECONDS,TYPE on each line"
        )));
    }
    Ok(trace)
}

/// The default request of a type.
fn request_of(plan: &LoadPlan, name: &str) -> Request {
    if let Some((_, request)) = plan.requests.iter().find(|(known, _)| known == name) {
        return request.clone();
    }
    match name {
        "get" => Request::Get { keys: 1, spread: Spread::Constant, each: None },
        "scan" => Request::Scan { rows: 100, spread: Spread::Constant, each: None },
        "spin" | "hold" => Request::Busy { span: Duration::from_micros(10), spread: Spread::Exponential },
        _ => Request::Text(String::new()),
    }
}

/// Draws a task's bytes, and what the client states about its size.
fn draw(request: &Request, keys: u64, dice: &mut Dice) -> (Vec<u8>, Urgency) {
    let (mut bytes, mut urgency) = (Vec::new(), Urgency::Unstated);
    match request {
        Request::Get { keys: count, spread, each } => {
            let count =
                sized(f64::from(*count), *spread, dice).round().clamp(1.0, f64::from(GET_KEYS_MAX)) as u32;
            codec::encode_get((0..count).map(|_| dice.below(keys)), &mut bytes);
            urgency = sized_as(count, *each);
        }
        Request::Scan { rows, spread, each } => {
            let most = f64::from(codec::SCAN_ROWS_MAX);
            let rows = sized(f64::from(*rows), *spread, dice).round().clamp(1.0, most) as u32;
            let last = keys.saturating_sub(rows.into()).max(1);
            codec::encode_scan(dice.below(last), rows, &mut bytes);
            urgency = sized_as(rows, *each);
        }
        Request::Busy { span, spread } => {
            let span = Nanos(sized(span.as_nanos() as f64, *spread, dice).max(1.0) as u64);
            // `spin` and `hold` share one encoding.
            debug_assert_eq!(spin::request(Nanos(1)), hold::request(Nanos(1)));
            bytes.extend(spin::request(span));
            urgency = Urgency::Work(span);
        }
        Request::Text(given) => bytes.extend(given.as_bytes()),
    }
    (bytes, urgency)
}

/// The expected work for `count` keys or rows, if the time for one is known.
fn sized_as(count: u32, each: Option<Duration>) -> Urgency {
    each.map_or(Urgency::Unstated, |each| Urgency::Work(Nanos(each.as_nanos() as u64).times(count.into())))
}

fn sized(mean: f64, spread: Spread, dice: &mut Dice) -> f64 {
    match spread {
        Spread::Constant => mean,
        Spread::Exponential => mean * dice.exponential(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arrivals: Arrivals) -> LoadPlan {
        LoadPlan {
            arrivals,
            mix: vec![("get".to_owned(), 0.9), ("scan".to_owned(), 0.1)],
            requests: Vec::new(),
            budgets: Vec::new(),
            within: None,
            warm_up: Duration::from_secs(1),
            length: Duration::from_secs(9),
            deadline: Duration::from_secs(5),
            retry: true,
            behind_max: Duration::from_millis(10),
            failed_max: 0.01,
            refused_max: 0.01,
            thresholds: Vec::new(),
        }
    }

    fn tasks(arrivals: Arrivals, seed: u64) -> Vec<Task> {
        Source::new(&plan(arrivals), seed, 1_000).expect("it is a legal load").collect()
    }

    #[test]
    fn one_seed_gives_one_load() {
        assert_eq!(tasks(Arrivals::Poisson(500.0), 1), tasks(Arrivals::Poisson(500.0), 1));
        assert_ne!(tasks(Arrivals::Poisson(500.0), 1), tasks(Arrivals::Poisson(500.0), 2));
    }

    #[test]
    fn arrivals_and_types_are_the_simulators() {
        let workload = Workload::parse("get=0.9@exp:8us+scan=0.1@exp:107us").expect("legal");
        let simulated = Requests::new(&workload, 500.0, 1, 0).map(|request| (request.at, request.class));
        let tasks = tasks(Arrivals::Poisson(500.0), 1);
        assert!(tasks.len() > 4_000);
        assert!(tasks.iter().map(|task| (task.due, task.kind as u8)).eq(simulated.take(tasks.len())));
    }

    #[test]
    fn poisson_arrivals_keep_rate_spread_and_mix() {
        let tasks = tasks(Arrivals::Poisson(2_000.0), 3);
        let count = tasks.len() as f64;
        assert!((count - 20_000.0).abs() < 600.0, "{count}");
        let gaps: Vec<f64> = tasks.windows(2).map(|two| (two[1].due.0 - two[0].due.0) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let spread = variance.sqrt() / mean;
        assert!((spread - 1.0).abs() < 0.05, "{spread}");
        let scans = tasks.iter().filter(|task| task.kind == 1).count() as f64;
        assert!((scans / count - 0.1).abs() < 0.01);
    }

    #[test]
    fn constant_arrivals_come_at_even_distances() {
        let tasks = tasks(Arrivals::Constant(1_000.0), 1);
        assert_eq!(tasks.len(), 9_999);
        assert!(tasks.windows(2).all(|two| two[1].due.0 - two[0].due.0 == 1_000_000));
    }

    #[test]
    fn stages_are_kept_one_after_the_other_behind_the_warm_up() {
        let stages = "1k:3s,1k..3k:2s,0:1s,500:3s".parse().expect("legal");
        let tasks = tasks(Arrivals::Stages(stages), 3);
        let within = |from_s: u64, to_s: u64| {
            let is_within = |task: &&Task| (from_s..to_s).contains(&(task.due.0 / 1_000_000_000));
            tasks.iter().filter(is_within).count() as f64
        };
        for ((from_s, to_s), due) in
            [((0, 1), 1e3), ((1, 4), 3e3), ((4, 5), 1.5e3), ((5, 6), 2.5e3), ((6, 7), 0.0), ((7, 10), 1.5e3)]
        {
            let found = within(from_s, to_s);
            assert!((found - due).abs() <= 4.0 * due.sqrt(), "from {from_s} s: {found} for {due}");
        }
        assert!(tasks.len() as f64 - within(0, 10) < 1.0);
    }

    #[test]
    fn a_trace_is_followed_and_its_faults_are_named_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.csv");
        std::fs::write(&path, "# two tasks\n100,get\n250.5,scan\n").expect("written");
        let read = tasks(Arrivals::Trace(path.clone()), 1);
        assert_eq!(
            read.iter().map(|task| (task.due.0, task.kind)).collect::<Vec<_>>(),
            [(100_000, 0), (250_500, 1)]
        );
        std::fs::write(&path, "5,get\n9999999,get\n10000000,get\n600000000,scan\n").expect("written");
        let source = Source::new(&plan(Arrivals::Trace(path.clone())), 1, 1_000).expect("legal");
        assert_eq!((source.cut_off(), source.count()), (2, 2), "the load ends after 10 s");
        for (text, reason) in [
            ("100;get", "trace.csv:1:1: `100;get` has no comma"),
            ("x,get", "trace.csv:1:1: "),
            ("5,get\n4,get", "trace.csv:2:1: 4 comes after a later time"),
            ("5,gte", "unknown class `gte`; did you mean `get`?"),
            ("5,get,8", "says how long tasks take"),
            ("", "there are no tasks"),
        ] {
            std::fs::write(&path, text).expect("written");
            let failure =
                Source::new(&plan(Arrivals::Trace(path.clone())), 1, 10).expect_err("it is refused");
            assert!(failure.to_string().contains(reason), "{failure}");
        }
    }
}
