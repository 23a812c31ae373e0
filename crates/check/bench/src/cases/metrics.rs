//! What a task costs its worker and its client beside their own work when Prometheus wants their metrics. The
//! dearest case: each task is a batch of its own, so each publishes all counters.

use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sluice_metrics::{CountRow, MetricFamily, MetricSource, MetricValue, ThreadMetrics};
use sluice_net::metrics::{ClientMetrics, WorkerMetrics};

use crate::scale::on_the_scale;

/// A worker records a service and a wait.
pub(super) fn worker(tasks: u32) {
    publish(tasks, sizes(&WorkerMetrics::default().source()));
}

/// A client records a latency, the time that the task waited in the switch, and the service.
pub(super) fn client(tasks: u32) {
    publish(tasks, sizes(&ClientMetrics::default().source()));
}

/// How many counters and how many histograms a source has.
fn sizes(source: &Arc<dyn MetricSource>) -> (usize, usize) {
    let Poll::Ready(samples) = source.collect().as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("what a thread has published needs no waiting");
    };
    let histograms = samples.iter().filter(|of| matches!(of.value(), MetricValue::Spans(_))).count();
    (samples.len() - histograms, histograms)
}

fn publish(tasks: u32, (counters, histograms): (usize, usize)) {
    let row: CountRow = (MetricFamily::ClientSubmitted, None);
    let metrics = ThreadMetrics::new(vec![row; counters], vec![MetricFamily::ClientLatency; histograms]);
    let mut meter = metrics.meter();
    let mut counts = vec![0; counters];
    for task in 1..=u64::from(tasks) {
        let (task, counts) = (black_box(task), black_box(&mut counts));
        on_the_scale(|| {
            (0..histograms).for_each(|histogram| meter.record(histogram, task * 37));
            counts.fill(task);
            meter.publish(counts);
        });
    }
}
