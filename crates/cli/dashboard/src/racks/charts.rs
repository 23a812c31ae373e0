//! A rack's charts: its last minutes, slice by slice.

use sluice_outcome::study::Unit;
use sluice_report::{RunningChart, RunningLine};

use super::limits::SPAN_MIN_S;
use super::samples::{RackSample, Samples, SliceSample};

/// What the charts of a rack show.
type SliceValue = fn(&SliceSample) -> Option<f64>;

const CHARTS: [(&str, Unit, SliceValue); 4] = [
    ("balance: tokens parked above zero, tasks waiting below", Unit::Count, |slice| {
        slice.balance.map(f64::from)
    }),
    ("tasks a second", Unit::PerS, |slice| slice.tasks_per_s),
    ("wait at the worker, mean", Unit::Ns, |slice| slice.wait_ns),
    ("service, mean", Unit::Ns, |slice| slice.service_ns),
];

/// The figures of a rack, as a piece of HTML.
pub(crate) fn figures(samples: &Samples) -> String {
    let Some(last) = samples.last() else { return String::new() };
    let ago_s = |sample: &RackSample| last.at.duration_since(sample.at).as_secs_f64();
    let span_s = samples.iter().map(ago_s).fold(SPAN_MIN_S, f64::max);
    let figure = |(title, unit, of): &(&str, Unit, SliceValue)| {
        let line = |name| RunningLine {
            name,
            values: samples.iter().map(|sample| (ago_s(sample), value(sample, name, *of))).collect(),
        };
        let lines = samples.names().into_iter().map(line).collect();
        RunningChart { title, unit: *unit, span_s, lines, silences_s: silences(samples, ago_s) }.figure()
    };
    CHARTS.iter().map(figure).collect()
}

fn value(sample: &RackSample, name: &str, of: SliceValue) -> Option<f64> {
    sample.slices.as_ref()?.iter().find(|slice| slice.name == name).and_then(of)
}

/// The times without an answer, from the last one before to the first one after.
fn silences(samples: &Samples, ago_s: impl Fn(&RackSample) -> f64) -> Vec<(f64, f64)> {
    let mut silences: Vec<(f64, f64)> = Vec::new();
    let (mut heard_s, mut is_silent) = (None, false);
    for sample in samples.iter() {
        let at_s = ago_s(sample);
        match (&sample.slices, is_silent, silences.last_mut()) {
            (None, false, _) => silences.push((heard_s.unwrap_or(at_s), at_s)),
            (_, true, Some(last)) => last.1 = at_s,
            _ => {}
        }
        is_silent = sample.slices.is_none();
        heard_s = Some(at_s);
    }
    silences
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluice_rpc::v1::{SliceStatus, StatusResponse};
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_silence_lasts_from_the_last_answer_to_the_next() {
        let slice = SliceStatus { name: "get".into(), balance: Some(1), ..SliceStatus::default() };
        let status = StatusResponse { slices: vec![slice], ..StatusResponse::default() };
        let (mut samples, began) = (Samples::default(), Instant::now());
        for (second, is_heard) in [true, false, false, true, true, false].into_iter().enumerate() {
            samples.add(began + Duration::from_secs(second as u64), is_heard.then_some(&status));
        }
        let ago_s = |sample: &RackSample| 5.0 - sample.at.duration_since(began).as_secs_f64();
        assert_eq!(silences(&samples, ago_s), [(5.0, 2.0), (1.0, 0.0)]);
        assert_eq!(figures(&samples).matches("<figure>").count(), CHARTS.len());
        assert_eq!(figures(&Samples::default()), "");
    }
}
