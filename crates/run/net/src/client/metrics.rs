//! What a client counts, for Prometheus. Its thread publishes once a batch, and only if somebody wants it.

use std::sync::Arc;

use sluice_metrics::{CountRow, MetricFamily, MetricSource, ThreadMeter, ThreadMetrics};
use sluice_wire::Nanos;

use super::outcome::TaskReply;
use super::shared::ClientReport;

/// What clients count, for Prometheus; clones share it.
#[derive(Clone, Debug)]
pub struct ClientMetrics(Arc<ThreadMetrics>);

impl Default for ClientMetrics {
    fn default() -> Self {
        Self(Arc::new(ThreadMetrics::new(
            client_counts(),
            vec![MetricFamily::ClientLatency, MetricFamily::ClientSwitchWait, MetricFamily::ClientService],
        )))
    }
}

impl ClientMetrics {
    /// What gives the values when they are scraped.
    pub fn source(&self) -> Arc<dyn MetricSource> {
        self.0.clone()
    }
}

fn client_counts() -> Vec<CountRow> {
    let outcome = |outcome| (MetricFamily::ClientEnded, Some(("outcome", outcome)));
    let retry = |kind| (MetricFamily::ClientRetries, Some(("kind", kind)));
    let plain = |metric| (metric, None);
    vec![
        plain(MetricFamily::ClientSubmitted),
        outcome("replied"),
        outcome("refused"),
        outcome("unknown"),
        plain(MetricFamily::ClientOutstanding),
        plain(MetricFamily::ClientWaiting),
        plain(MetricFamily::ClientAttempts),
        retry("paid"),
        retry("free"),
        retry("probing"),
        plain(MetricFamily::ClientTimeouts),
        plain(MetricFamily::ClientRejects),
        plain(MetricFamily::ClientReceived),
        plain(MetricFamily::ClientSent),
    ]
}

/// A client's side of its metrics.
pub(super) struct ClientMeter(Option<ThreadMeter>);

impl ClientMeter {
    pub(super) fn new(metrics: Option<&ClientMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Counts a task that ended in a reply.
    pub(super) fn replied(&mut self, latency: Nanos, reply: &TaskReply) {
        if let Some(meter) = &mut self.0 {
            meter.record(0, latency.0);
            meter.record(1, reply.switch_wait.0);
            meter.record(2, reply.service.0);
        }
    }

    /// Publishes what the client counted; `report` is asked only if somebody wants it.
    pub(super) fn publish(&mut self, report: impl FnOnce() -> ClientReport) {
        let Some(meter) = &mut self.0 else { return };
        let ClientReport { tasks, outstanding, waiting, socket, .. } = report();
        meter.publish(&[
            tasks.submitted,
            tasks.replied,
            tasks.refused,
            tasks.unknown,
            outstanding as u64,
            waiting as u64,
            tasks.sent,
            tasks.retries_paid,
            tasks.retries_free,
            tasks.retries_probing,
            tasks.timeouts,
            tasks.rejects,
            socket.received,
            socket.sent,
        ]);
    }
}
