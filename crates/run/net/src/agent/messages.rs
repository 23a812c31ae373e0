//! Turns an interval into a message, and into lines of text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sluice_host::agent::{Decision, Mode, Verdict};
use sluice_rpc::fields::number;
use sluice_rpc::{Malformed, v1};
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{SliceId, WorkerId};

use super::AgentOptions;
use super::server_agent::Interval;

/// How many workers a line names one by one.
const NAMED_MAX: usize = 8;

/// A whole worker, in the unit of idle shares (thousandths).
const WORKER_MILLI: u32 = 1_000;

pub(super) fn message(options: &AgentOptions, interval: &Interval, ended_unix_ns: u64) -> v1::AgentInterval {
    v1::AgentInterval {
        server: options.server.clone(),
        ended_unix_ns,
        lasted_ns: options.settings.interval.0,
        advises: options.settings.mode == Mode::Advise,
        slices: interval.tallies.iter().map(|tally| slice(interval, tally)).collect(),
        unseen: interval.unseen,
    }
}

fn slice(interval: &Interval, tally: &SliceTally) -> v1::SliceInterval {
    let judgements = interval.decisions.iter().filter(|decision| decision.slice == tally.slice);
    let slowdowns = interval.slowdowns.iter().find(|(slice, _)| *slice == tally.slice);
    let counts = slowdowns.iter().flat_map(|(_, slowdowns)| slowdowns.iter());
    v1::SliceInterval {
        slice: tally.slice.0.into(),
        overloads: tally.overloads,
        idle_milli: tally.idle_milli,
        workers: tally.depths.iter().map(|(worker, depth)| depth_of(*worker, *depth)).collect(),
        judgements: judgements.map(judgement).collect(),
        tasks: slowdowns.map_or(0, |(_, slowdowns)| slowdowns.tasks()),
        slowdowns: counts
            .map(|(at_least_milli, tasks)| v1::SlowdownCount { at_least_milli, tasks })
            .collect(),
    }
}

/// A worker and its depth.
pub fn depth_of(worker: WorkerId, depth: u8) -> v1::WorkerDepth {
    v1::WorkerDepth { worker: worker.0.into(), depth: depth.into() }
}

/// The message about what other servers' workers of a slice did.
pub fn others_of(others: &SliceOthers) -> v1::SliceOthers {
    let SliceOthers { slice, workers, heard, tasks } = *others;
    v1::SliceOthers { slice: slice.0.into(), workers, heard, tasks }
}

fn judgement(decision: &Decision) -> v1::Judgement {
    let verdict = match decision.verdict {
        Verdict::Shallower => v1::Verdict::Shallower,
        Verdict::Deeper => v1::Verdict::Deeper,
        Verdict::Overloaded => v1::Verdict::Overloaded,
        Verdict::Calm => v1::Verdict::Calm,
    };
    let numbers = &decision.numbers;
    v1::Judgement {
        worker: decision.worker.0.into(),
        from: decision.from.into(),
        to: decision.to.into(),
        verdict: verdict.into(),
        slowdown_p99: numbers.slowdown_p99,
        worker_share: numbers.worker_share,
        occupancy_p99: numbers.occupancy_p99,
        idle_share: numbers.idle_share,
        samples: numbers.samples,
        tasks: numbers.tasks,
    }
}

/// The tallies of an interval, for the controller's step. An error if a slice or a worker appears twice.
pub fn tallies(interval: &v1::AgentInterval) -> Result<Vec<SliceTally>, Malformed> {
    let tallies: Vec<SliceTally> = interval.slices.iter().map(tally).collect::<Result<_, _>>()?;
    let (mut slices, mut workers) = (BTreeSet::new(), BTreeSet::new());
    for tally in &tallies {
        if !slices.insert(tally.slice) {
            return Err(Malformed::new("slices.slice", format!("{} stands there twice", tally.slice)));
        }
        if let Some((worker, _)) = tally.depths.iter().find(|(worker, _)| !workers.insert(*worker)) {
            return Err(Malformed::new("slices.workers", format!("worker {worker} stands there twice")));
        }
    }
    Ok(tallies)
}

/// The indices of the workers in an interval.
pub fn workers_in(interval: &v1::AgentInterval) -> impl Iterator<Item = u32> {
    let of_slice = |slice: &v1::SliceInterval| {
        let depths = slice.workers.iter().map(|depth| depth.worker);
        depths.chain(slice.judgements.iter().map(|judgement| judgement.worker)).collect::<Vec<_>>()
    };
    interval.slices.iter().flat_map(of_slice)
}

/// Limits a host's report to its own workers, and counts of overloaded and idle workers to how many these
/// are.
pub fn keep_own(tallies: &mut [SliceTally], is_own: impl Fn(WorkerId) -> bool) {
    for tally in tallies {
        tally.depths.retain(|(worker, _)| is_own(*worker));
        let workers = u32::try_from(tally.depths.len()).unwrap_or(u32::MAX);
        tally.overloads = tally.overloads.min(workers);
        tally.idle_milli = tally.idle_milli.min(workers.saturating_mul(WORKER_MILLI));
    }
}

fn tally(slice: &v1::SliceInterval) -> Result<SliceTally, Malformed> {
    Ok(SliceTally {
        slice: SliceId(number("slices.slice", slice.slice)?),
        overloads: slice.overloads,
        idle_milli: slice.idle_milli,
        depths: slice.workers.iter().copied().map(worker_depth).collect::<Result<_, _>>()?,
        tasks: slice.tasks,
    })
}

/// Reads what other servers' workers did from its message.
pub(super) fn others(of: v1::SliceOthers) -> Result<SliceOthers, Malformed> {
    let v1::SliceOthers { slice, workers, heard, tasks } = of;
    Ok(SliceOthers { slice: SliceId(number("others.slice", slice)?), workers, heard, tasks })
}

/// Reads a worker's depth from its message.
pub fn worker_depth(of: v1::WorkerDepth) -> Result<(WorkerId, u8), Malformed> {
    Ok((WorkerId(number("workers.worker", of.worker)?), number("workers.depth", of.depth)?))
}

/// An interval's decisions as lines of text; workers of a slice with the same decision share a line.
pub fn lines(interval: &v1::AgentInterval, slice_name: impl Fn(u32) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for slice in &interval.slices {
        let mut alike: BTreeMap<(i32, u32, u32), Vec<&v1::Judgement>> = BTreeMap::new();
        for judgement in &slice.judgements {
            alike.entry((judgement.verdict, judgement.from, judgement.to)).or_default().push(judgement);
        }
        for judged in alike.values_mut() {
            judged.sort_by_key(|judgement| judgement.worker);
        }
        let name = slice_name(slice.slice);
        lines.extend(alike.values().map(|judged| line(&name, interval.advises, judged)));
    }
    lines
}

fn line(slice: &str, advises: bool, judged: &[&v1::Judgement]) -> String {
    let Some(first) = judged.first() else { return String::new() };
    let (v1::Judgement { from, to, .. }, would) = (first, if advises { "would go from " } else { "" });
    let mut line = format!("slice {slice}: {}", workers(judged));
    // Writing to a string cannot fail.
    let _ = match first.verdict() {
        v1::Verdict::Overloaded => write!(line, " overloaded at depth {from}"),
        _ => write!(line, ": {would}depth {from} to {to}"),
    };
    let span = |of: fn(&v1::Judgement) -> f64, digits: usize| {
        let all = || judged.iter().map(|judgement| of(judgement));
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let [least, most] = [least, most].map(|number| format!("{number:.digits$}"));
        if least == most { least } else { format!("{least} to {most}") }
    };
    let _ = write!(
        line,
        ": p99 slowdown {}, {} % of the wait at the worker, p99 switch queue {}",
        span(|judgement| judgement.slowdown_p99, 1),
        span(|judgement| judgement.worker_share * 100.0, 0),
        span(|judgement| judgement.occupancy_p99.into(), 0)
    );
    line
}

fn workers(judged: &[&v1::Judgement]) -> String {
    let named: Vec<String> =
        judged.iter().take(NAMED_MAX).map(|judgement| judgement.worker.to_string()).collect();
    let more = judged.len() - named.len();
    let (noun, named) = (if judged.len() == 1 { "worker" } else { "workers" }, named.join(", "));
    if more == 0 { format!("{noun} {named}") } else { format!("{noun} {named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_says_of_no_more_workers_than_it_has_that_they_are_overloaded_or_idle() {
        let depths = vec![(WorkerId(0), 2), (WorkerId(1), 2), (WorkerId(2), 2)];
        let mut told = SliceTally { slice: SliceId(0), overloads: 9, idle_milli: 9_000, depths, tasks: 7 };
        let honest = SliceTally { overloads: 1, idle_milli: 1_999, ..told.clone() };
        keep_own(std::slice::from_mut(&mut told), |worker| worker != WorkerId(1));
        assert_eq!(told.depths, [(WorkerId(0), 2), (WorkerId(2), 2)]);
        assert_eq!((told.overloads, told.idle_milli), (2, 2_000));
        let mut kept = [honest.clone()];
        keep_own(&mut kept, |_| true);
        assert_eq!(kept, [honest]);
    }

    fn judgement(worker: u32, verdict: v1::Verdict, slowdown_p99: f64) -> v1::Judgement {
        let (from, to) = if verdict == v1::Verdict::Overloaded { (1, 1) } else { (2, 1) };
        let (verdict, worker_share, occupancy_p99) = (verdict.into(), 0.625, worker);
        v1::Judgement {
            worker,
            from,
            to,
            verdict,
            slowdown_p99,
            worker_share,
            occupancy_p99,
            ..Default::default()
        }
    }

    fn interval(advises: bool) -> v1::AgentInterval {
        let judgements =
            (0..10).map(|worker| judgement(worker, v1::Verdict::Shallower, 12.0 + f64::from(worker)));
        let judgements = judgements.chain([judgement(11, v1::Verdict::Overloaded, 33.33)]).collect();
        let slice = v1::SliceInterval { slice: 1, judgements, ..Default::default() };
        v1::AgentInterval { advises, slices: vec![slice], ..Default::default() }
    }

    #[test]
    fn workers_that_are_judged_alike_share_a_line_with_their_numbers() {
        let said = lines(&interval(false), |slice| format!("s{slice}"));
        assert_eq!(
            said,
            [
                "slice s1: workers 0, 1, 2, 3, 4, 5, 6, 7 and 2 more: depth 2 to 1: p99 slowdown 12.0 to 21.0, \
                 62 % of the wait at the worker, p99 switch queue 0 to 9",
                "slice s1: worker 11 overloaded at depth 1: p99 slowdown 33.3, 62 % of the wait at the worker, \
                 p99 switch queue 11",
            ]
        );
    }

    #[test]
    fn an_adviser_says_what_would_be() {
        let said = lines(&interval(true), |slice| format!("s{slice}"));
        assert!(said[0].contains("would go from depth 2 to 1"), "{said:?}");
    }

    #[test]
    fn a_worker_index_that_is_none_is_malformed() {
        let workers = vec![v1::WorkerDepth { worker: 70_000, depth: 1 }];
        let slices = vec![v1::SliceInterval { workers, ..Default::default() }];
        assert!(tallies(&v1::AgentInterval { slices, ..Default::default() }).is_err());
    }
}
