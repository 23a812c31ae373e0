//! The load of the rack that this process runs: the last second's latencies by type, and the last minutes.

use std::collections::VecDeque;

use serde_json::{Value, json};
use sluice_outcome::study::Unit;
use sluice_report::{RunningChart, RunningLine};
use sluice_support::board::{KindNow, LoadNow};
use tokio::time::Instant;

use super::limits::{SAMPLES_MAX, SPAN_MIN_S};

/// The load now, and its last minutes.
#[derive(Default)]
pub(crate) struct LoadHistory {
    now: Option<LoadNow>,
    samples: VecDeque<(Instant, Vec<KindNow>)>,
}

/// What the charts show of a type.
type KindValue = fn(&KindNow) -> Option<f64>;

/// A latency of zero is one of no task.
const CHARTS: [(&str, Unit, KindValue); 3] = [
    ("latency, p99 of each second", Unit::Ns, |kind| known_ns(kind.latency_ns[1])),
    ("latency, p99.9 of each second", Unit::Ns, |kind| known_ns(kind.latency_ns[2])),
    ("replies a second", Unit::PerS, |kind| Some(kind.replied_per_s)),
];

fn known_ns(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}

impl LoadHistory {
    /// Takes the state of the load.
    pub(crate) fn take(&mut self, now: Option<LoadNow>) {
        if let Some(now) = &now {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back((Instant::now(), now.kinds.clone()));
        }
        self.now = now;
    }

    /// The figures, as a piece of HTML.
    pub(crate) fn figures(&self) -> String {
        let Some((last, kinds)) = self.samples.back() else { return String::new() };
        let ago_s = |at: &Instant| last.duration_since(*at).as_secs_f64();
        let span_s = self.samples.iter().map(|(at, _)| ago_s(at)).fold(SPAN_MIN_S, f64::max);
        let figure = |(title, unit, of): &(&str, Unit, KindValue)| {
            let line = |kind: &'_ KindNow| {
                let value =
                    |kinds: &[KindNow]| kinds.iter().find(|known| known.name == kind.name).and_then(of);
                self.samples.iter().map(|(at, kinds)| (ago_s(at), value(kinds))).collect()
            };
            let lines = kinds.iter().map(|kind| RunningLine { name: &kind.name, values: line(kind) });
            let lines = lines.collect();
            RunningChart { title, unit: *unit, span_s, lines, silences_s: Vec::new() }.figure()
        };
        CHARTS.iter().map(figure).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let Some(now) = &self.now else { return Value::Null };
        let kind = |kind: &KindNow| {
            let [p50, p99, p999] = kind.latency_ns.map(|ns| (ns > 0).then_some(ns));
            json!({
                "name": kind.name, "due_per_s": kind.due_per_s, "replied_per_s": kind.replied_per_s,
                "latency_p50_ns": p50, "latency_p99_ns": p99, "latency_p999_ns": p999,
            })
        };
        json!({
            "elapsed_s": now.elapsed.as_secs_f64(), "length_s": now.length.as_secs_f64(),
            "warm_up_s": now.warm_up.as_secs_f64(), "sent": now.sent, "replied": now.replied,
            "refused": now.refused, "late": now.late, "unknown": now.unknown, "outstanding": now.outstanding,
            "types": now.kinds.iter().map(kind).collect::<Vec<_>>(),
        })
    }
}
