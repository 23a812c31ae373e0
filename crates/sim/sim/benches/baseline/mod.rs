//! The baseline: an event loop as one writes it in an hour, over the standard library's binary heap.
//!
//! It draws the same tasks from the same streams and fills the same histogram. It has one queue and
//! identical workers, and no warm-up, classes, slowdowns, averages over time or checks.

mod median;
mod timing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sluice_stats::Distribution;
use sluice_workload::Request;

pub(crate) use median::median;
pub(crate) use timing::timed;

/// Serves the first `tasks` of `requests` with so many workers, first come first served, and returns their
/// latencies.
pub(crate) fn serve(requests: impl IntoIterator<Item = Request>, workers: usize, tasks: u64) -> Distribution {
    let mut requests = requests.into_iter();
    let mut latencies = Distribution::new();
    let mut events = BinaryHeap::new();
    let mut waiting = VecDeque::new();
    let mut idle = workers;
    if let Some(first) = requests.next() {
        events.push(Reverse((first.at.0, Event::Arrives { service: first.service.0 })));
    }
    while latencies.count() < tasks {
        let Some(Reverse((now, event))) = events.pop() else { break };
        match event {
            Event::Arrives { service } => {
                if idle > 0 {
                    idle -= 1;
                    events.push(Reverse((now + service, Event::Ends { came: now })));
                } else {
                    waiting.push_back((now, service));
                }
                if let Some(next) = requests.next() {
                    events.push(Reverse((next.at.0, Event::Arrives { service: next.service.0 })));
                }
            }
            Event::Ends { came } => {
                latencies.record(now - came);
                match waiting.pop_front() {
                    Some((came, service)) => events.push(Reverse((now + service, Event::Ends { came }))),
                    None => idle += 1,
                }
            }
        }
    }
    latencies
}

/// As [`serve`], with the usual optimization: the next arrival stays out of the heap.
pub(crate) fn serve_lean(
    requests: impl IntoIterator<Item = Request>,
    workers: usize,
    tasks: u64,
) -> Distribution {
    let mut requests = requests.into_iter();
    let mut latencies = Distribution::new();
    let mut ends: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut waiting = VecDeque::new();
    let mut next = requests.next();
    while latencies.count() < tasks {
        let end = ends.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        if let Some(request) = next.filter(|request| request.at.0 < end) {
            let (now, service) = (request.at.0, request.service.0);
            if ends.len() < workers {
                ends.push(Reverse((now + service, now)));
            } else {
                waiting.push_back((now, service));
            }
            next = requests.next();
        } else {
            let Some(Reverse((now, came))) = ends.pop() else { break };
            latencies.record(now - came);
            if let Some((came, service)) = waiting.pop_front() {
                ends.push(Reverse((now + service, came)));
            }
        }
    }
    latencies
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives { service: u64 },
    Ends { came: u64 },
}
