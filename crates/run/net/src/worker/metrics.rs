//! What a worker counts, for Prometheus. Its thread publishes once a batch, and only if somebody wants it.

use std::sync::Arc;

use sluice_host::worker::WorkerStats;
use sluice_metrics::{CountRow, MetricFamily, MetricSource, ThreadMeter, ThreadMetrics};
use sluice_wire::Nanos;

use super::report::{Dropped, Served};
use crate::udp::SocketCounts;

/// What workers count, for Prometheus; clones share it.
#[derive(Clone, Debug)]
pub struct WorkerMetrics(Arc<ThreadMetrics>);

impl Default for WorkerMetrics {
    fn default() -> Self {
        Self(Arc::new(ThreadMetrics::new(
            worker_counts(),
            vec![MetricFamily::WorkerService, MetricFamily::WorkerWait],
        )))
    }
}

impl WorkerMetrics {
    /// What gives the values when they are scraped.
    pub fn source(&self) -> Arc<dyn MetricSource> {
        self.0.clone()
    }
}

fn worker_counts() -> Vec<CountRow> {
    let outcome = |outcome| (MetricFamily::WorkerServed, Some(("outcome", outcome)));
    let dropped = |reason| (MetricFamily::WorkerDropped, Some(("reason", reason)));
    let plain = |metric| (metric, None);
    vec![
        outcome("done"),
        outcome("failed"),
        outcome("panicked"),
        plain(MetricFamily::WorkerRefusedLate),
        plain(MetricFamily::WorkerRepeated),
        plain(MetricFamily::WorkerWrittenOff),
        plain(MetricFamily::WorkerTokensLost),
        plain(MetricFamily::WorkerHeld),
        plain(MetricFamily::WorkerRegistered),
        plain(MetricFamily::WorkerCopied),
        plain(MetricFamily::WorkerMissed),
        plain(MetricFamily::WorkerReceived),
        plain(MetricFamily::WorkerSent),
        dropped("unreadable"),
        dropped("foreign"),
        dropped("duplicate"),
        dropped("unwanted"),
        dropped("no_room"),
    ]
}

/// A worker's side of its metrics; it does nothing if nobody wants them.
pub(super) struct WorkerMeter(Option<ThreadMeter>);

impl WorkerMeter {
    pub(super) fn new(metrics: Option<&WorkerMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Counts a task whose service ended.
    pub(super) fn ended(&mut self, service: Nanos, wait: Nanos) {
        if let Some(meter) = &mut self.0 {
            meter.record(0, service.0);
            meter.record(1, wait.0);
        }
    }

    /// Publishes what the worker counted; `counts` is asked only if somebody wants it.
    pub(super) fn publish(
        &mut self,
        counts: impl FnOnce() -> (Served, WorkerStats, (u64, u64), Dropped, SocketCounts),
    ) {
        let Some(meter) = &mut self.0 else { return };
        let (served, stats, (copied, missed), dropped, socket) = counts();
        meter.publish(&[
            served.tasks - served.failed - served.panicked,
            served.failed,
            served.panicked,
            stats.over_budget,
            stats.repeated_tasks,
            stats.written_off.into(),
            stats.repeated_tokens.into(),
            stats.held.into(),
            stats.serving.into(),
            copied,
            missed,
            socket.received,
            socket.sent,
            dropped.unreadable + socket.oversized,
            dropped.foreign,
            stats.duplicates,
            stats.dropped.into(),
            dropped.no_room,
        ]);
    }
}
