//! The last second of a load, for the live view.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use sluice_wire::Nanos;

use super::histograms::{histogram, record};
use super::tally::{Ending, SLOWDOWN_SCALE, TaskEnd};
use crate::board::{KindNow, LoadNow};

/// The percentiles that are shown.
const SHOWN: [f64; 3] = [0.5, 0.99, 0.999];

/// Two halves of a window: the one that fills, and the one before it.
pub(super) struct Window {
    names: Vec<String>,
    filling: Half,
    before: Half,
}

struct Half {
    span: Nanos,
    kinds: Vec<KindHalf>,
    /// The time that tasks spent at each worker, in ns.
    spent: BTreeMap<u16, u64>,
}

#[derive(Clone)]
struct KindHalf {
    due: u64,
    replied: u64,
    latency: Histogram<u64>,
    slowdown: Histogram<u64>,
}

impl Window {
    /// Nothing seen yet.
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let names: Vec<String> = names.collect();
        let (filling, before) = (Half::new(names.len()), Half::new(names.len()));
        Self { names, filling, before }
    }

    /// A task was due.
    pub(super) fn due(&mut self, kind: usize) {
        self.filling.kinds[kind].due += 1;
    }

    pub(super) fn ended(&mut self, ended: &TaskEnd) {
        let Ending::Reply { failed: false, worker_wait, service, .. } = ended.ending else { return };
        let latency = ended.at.since(ended.due);
        let kind = &mut self.filling.kinds[ended.kind];
        kind.replied += 1;
        record(&mut kind.latency, latency.0);
        let slowdown = latency.0 as f64 / service.0.max(1) as f64;
        record(&mut kind.slowdown, (slowdown * SLOWDOWN_SCALE) as u64);
        if let Some(worker) = ended.worker {
            *self.filling.spent.entry(worker).or_default() += (worker_wait + service).0;
        }
    }

    /// Returns both halves together, and starts the next half. The filling half took `span`.
    pub(super) fn turn(&mut self, span: Nanos) -> LoadNow {
        self.filling.span = span;
        let seconds = (self.filling.span + self.before.span).0.max(1) as f64 / 1e9;
        let view = LoadNow {
            kinds: (0..self.names.len()).map(|kind| self.kind(kind, seconds)).collect(),
            depths: self.depths(seconds),
            ..LoadNow::default()
        };
        self.before = std::mem::replace(&mut self.filling, Half::new(self.names.len()));
        view
    }

    fn kind(&self, kind: usize, seconds: f64) -> KindNow {
        let (filling, before) = (&self.filling.kinds[kind], &self.before.kinds[kind]);
        let both = |one: &Histogram<u64>, other: &Histogram<u64>| {
            let mut both = one.clone();
            // Both histograms resize themselves, so one can always be added to the other.
            both.add(other).ok();
            SHOWN.map(|share| both.value_at_quantile(share))
        };
        KindNow {
            name: self.names[kind].clone(),
            due_per_s: (filling.due + before.due) as f64 / seconds,
            replied_per_s: (filling.replied + before.replied) as f64 / seconds,
            latency_ns: both(&filling.latency, &before.latency),
            slowdown: both(&filling.slowdown, &before.slowdown).map(|value| value as f64 / SLOWDOWN_SCALE),
        }
    }

    /// By Little's law, the mean number of tasks at a worker is the time that they spend there, divided by
    /// the elapsed time.
    fn depths(&self, seconds: f64) -> Vec<f64> {
        let halves = [&self.filling.spent, &self.before.spent];
        let last = halves.iter().filter_map(|half| half.keys().last()).max();
        let spent = |worker: u16| halves.iter().filter_map(|half| half.get(&worker)).sum::<u64>();
        let workers = last.map_or(0, |last| last + 1);
        (0..workers).map(|worker| spent(worker) as f64 / 1e9 / seconds).collect()
    }
}

impl Half {
    fn new(kinds: usize) -> Self {
        let kind = KindHalf { due: 0, replied: 0, latency: histogram(), slowdown: histogram() };
        Self { span: Nanos(0), kinds: vec![kind; kinds], spent: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_shown_with_its_rates_and_depths() {
        let mut window = Window::new(["get".to_owned()].into_iter());
        for reply in 0..100 {
            window.due(0);
            let due = Nanos(reply * 5_000_000);
            let service = Nanos::from_millis(5);
            let ending =
                Ending::Reply { failed: false, switch_wait: Nanos(0), worker_wait: Nanos(0), service };
            let (at, worker, complaint) = (due + service, Some(1), None);
            window.ended(&TaskEnd { kind: 0, due, at, attempts: 1, worker, ending, complaint });
        }
        let view = window.turn(Nanos::from_millis(500));
        assert!((view.kinds[0].replied_per_s - 200.0).abs() < 1e-6);
        assert_eq!(view.kinds[0].latency_ns[0] / 1_000_000, 5);
        assert!((view.kinds[0].slowdown[0] - 1.0).abs() < 0.01);
        assert!(view.depths[0] < 1e-9);
        assert!((view.depths[1] - 1.0).abs() < 0.01);
        window.turn(Nanos::from_millis(500));
        assert!(window.turn(Nanos::from_millis(500)).kinds[0].replied_per_s.abs() < 1e-9);
    }
}
