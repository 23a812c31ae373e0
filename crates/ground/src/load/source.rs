//! The tasks of an open-loop load: when each is due, its type, and its bytes. One seed gives one load.

use std::path::Path;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_apps::rocks::{GET_KEYS_MAX, codec};
use sluice_apps::{hold, spin};
use sluice_wire::Nanos;

use crate::fail::{Failure, Outcome};
use crate::plan::{Arrivals, LoadPlan, Request, Spread};

/// One task that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// When it is due, from the start of the load.
    pub due: Nanos,
    /// Its place in the mix.
    pub kind: usize,
    /// What it carries.
    pub bytes: Vec<u8>,
}

/// All tasks of a load, in the order in which they are due.
#[derive(Debug)]
pub struct Source {
    clock: Clock,
    kinds: Vec<Kind>,
    pick: ChaCha8Rng,
    make: ChaCha8Rng,
    keys: u64,
    end: Nanos,
}

#[derive(Debug)]
struct Kind {
    up_to: f64,
    request: Request,
}

#[derive(Debug)]
enum Clock {
    Poisson { mean_ns: f64, at_ns: f64, random: Box<ChaCha8Rng> },
    Constant { gap_ns: f64, sent: u64 },
    Trace(std::vec::IntoIter<(Nanos, usize)>),
}

impl Source {
    /// The tasks of `plan`, on a database of `keys` keys.
    pub fn new(plan: &LoadPlan, seed: u64, keys: u64) -> Outcome<Self> {
        let clock = match &plan.arrivals {
            Arrivals::Poisson(rate) => {
                Clock::Poisson { mean_ns: 1e9 / rate, at_ns: 0.0, random: Box::new(stream(seed, 0)) }
            }
            Arrivals::Constant(rate) => Clock::Constant { gap_ns: 1e9 / rate, sent: 0 },
            Arrivals::Trace(path) => {
                let names: Vec<&str> = plan.mix.iter().map(|(name, _)| name.as_str()).collect();
                Clock::Trace(read_trace(path, &names)?.into_iter())
            }
        };
        let mut up_to = 0.0;
        let kinds = plan.mix.iter().map(|(name, share)| {
            up_to += share;
            Kind { up_to, request: request_of(plan, name) }
        });
        let kinds = kinds.collect();
        let end = Nanos((plan.warm_up + plan.length).as_nanos() as u64);
        Ok(Self { clock, kinds, pick: stream(seed, 1), make: stream(seed, 2), keys, end })
    }
}

impl Iterator for Source {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let (due, kind) = match &mut self.clock {
            Clock::Poisson { mean_ns, at_ns, random } => {
                *at_ns += *mean_ns * exponential(random);
                (Nanos(*at_ns as u64), None)
            }
            Clock::Constant { gap_ns, sent } => {
                *sent += 1;
                (Nanos((*gap_ns * *sent as f64) as u64), None)
            }
            Clock::Trace(lines) => lines.next().map(|(due, kind)| (due, Some(kind)))?,
        };
        if due >= self.end {
            return None;
        }
        let kind = kind.unwrap_or_else(|| self.draw_kind());
        let bytes = bytes(&self.kinds[kind].request, self.keys, &mut self.make);
        Some(Task { due, kind, bytes })
    }
}

impl Source {
    fn draw_kind(&mut self) -> usize {
        let drawn = unit(&mut self.pick);
        self.kinds.iter().position(|kind| drawn < kind.up_to).unwrap_or(self.kinds.len() - 1)
    }
}

/// What a type's tasks carry when the plan does not say.
fn request_of(plan: &LoadPlan, name: &str) -> Request {
    if let Some((_, request)) = plan.requests.iter().find(|(known, _)| known == name) {
        return request.clone();
    }
    match name {
        "get" => Request::Get { keys: 1, spread: Spread::Constant },
        "scan" => Request::Scan { rows: 100, spread: Spread::Constant },
        "spin" | "hold" => Request::Busy { span: Duration::from_micros(10), spread: Spread::Exponential },
        _ => Request::Text(String::new()),
    }
}

fn bytes(request: &Request, keys: u64, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    match request {
        Request::Get { keys: count, spread } => {
            let count =
                sized(f64::from(*count), *spread, random).round().clamp(1.0, f64::from(GET_KEYS_MAX)) as u32;
            codec::encode_get((0..count).map(|_| random.next_u64() % keys), &mut bytes);
        }
        Request::Scan { rows, spread } => {
            let most = f64::from(codec::SCAN_ROWS_MAX);
            let rows = sized(f64::from(*rows), *spread, random).round().clamp(1.0, most) as u32;
            let last = keys.saturating_sub(rows.into()).max(1);
            codec::encode_scan(random.next_u64() % last, rows, &mut bytes);
        }
        Request::Busy { span, spread } => {
            let ns = sized(span.as_nanos() as f64, *spread, random);
            // `spin` and `hold` share one encoding.
            debug_assert_eq!(spin::request(Nanos(1)), hold::request(Nanos(1)));
            bytes.extend(spin::request(Nanos(ns.max(1.0) as u64)));
        }
        Request::Text(given) => bytes.extend(given.as_bytes()),
    }
    bytes
}

fn sized(mean: f64, spread: Spread, random: &mut ChaCha8Rng) -> f64 {
    match spread {
        Spread::Constant => mean,
        Spread::Exponential => mean * exponential(random),
    }
}

/// Exponential with mean 1; from `libm`, so that every machine draws the same.
fn exponential(random: &mut ChaCha8Rng) -> f64 {
    -libm::log(1.0 - unit(random))
}

/// From 0 to just under 1.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}

/// Reads lines of `MICROSECONDS,TYPE`, in order of time.
fn read_trace(path: &Path, names: &[&str]) -> Outcome<Vec<(Nanos, usize)>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|why| {
        Failure::bad_input(format!(
            "trace {shown} cannot be read: {why}; give a file of MICROSECONDS,TYPE lines"
        ))
    })?;
    let mut tasks: Vec<(Nanos, usize)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let complain = |why: String| Failure::bad_input(format!("trace {shown} line {}: {why}", i + 1));
        let (at, kind) = line
            .split_once(',')
            .ok_or_else(|| complain(format!("`{line}` has no comma; write MICROSECONDS,TYPE")))?;
        let at: f64 =
            at.trim().parse().ok().filter(|at| (0.0..1e15).contains(at)).ok_or_else(|| {
                complain(format!("`{at}` is not a time; write microseconds from the start"))
            })?;
        let kind = names.iter().position(|name| *name == kind.trim()).ok_or_else(|| {
            complain(format!(
                "{}; the mix names the types of a trace",
                sluice_units::unknown("type", kind.trim(), names)
            ))
        })?;
        let due = Nanos((at * 1e3) as u64);
        if tasks.last().is_some_and(|(last, _)| *last > due) {
            return Err(complain(format!("{at} comes after a later time; sort the lines")));
        }
        tasks.push((due, kind));
    }
    if tasks.is_empty() {
        return Err(Failure::bad_input(format!("trace {shown} has no tasks; add MICROSECONDS,TYPE lines")));
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arrivals: Arrivals) -> LoadPlan {
        LoadPlan {
            arrivals,
            mix: vec![("get".to_owned(), 0.9), ("scan".to_owned(), 0.1)],
            requests: Vec::new(),
            warm_up: Duration::from_secs(1),
            length: Duration::from_secs(9),
            deadline: Duration::from_secs(5),
            retry: true,
            behind_max: Duration::from_millis(10),
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
    fn a_trace_is_followed_and_its_faults_are_named_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.csv");
        std::fs::write(&path, "# two tasks\n100,get\n250.5,scan\n").expect("written");
        let read = tasks(Arrivals::Trace(path.clone()), 1);
        assert_eq!(
            read.iter().map(|task| (task.due.0, task.kind)).collect::<Vec<_>>(),
            [(100_000, 0), (250_500, 1)]
        );
        for (text, reason) in [
            ("100;get", "line 1: `100;get` has no comma"),
            ("x,get", "line 1: `x` is not a time"),
            ("5,get\n4,get", "line 2: 4 comes after a later time"),
            ("5,gte", "line 1: unknown type `gte`; did you mean `get`?"),
            ("", "has no tasks"),
        ] {
            std::fs::write(&path, text).expect("written");
            let failure =
                Source::new(&plan(Arrivals::Trace(path.clone())), 1, 10).expect_err("it is refused");
            assert!(failure.to_string().contains(reason), "{failure}");
        }
    }
}
