//! What a server counts, for Prometheus. Its thread publishes once a batch, and only if somebody wants it.

use std::sync::Arc;

use sluice_host::rdma::{RdmaCounts, RoceRefusal};
use sluice_metrics::{CountRow, MetricFamily, MetricSource, ThreadMeter, ThreadMetrics};

/// What a server counts, for Prometheus; clones share it.
#[derive(Clone, Debug)]
pub struct ServerMetrics(Arc<ThreadMetrics>);

impl Default for ServerMetrics {
    fn default() -> Self {
        Self(Arc::new(ThreadMetrics::new(server_counts(), Vec::new())))
    }
}

impl ServerMetrics {
    /// What gives the values when they are scraped.
    pub fn source(&self) -> Arc<dyn MetricSource> {
        self.0.clone()
    }
}

fn server_counts() -> Vec<CountRow> {
    let plain = [
        MetricFamily::ServerWrites,
        MetricFamily::ServerWritten,
        MetricFamily::ServerResynchronised,
        MetricFamily::ServerReconnected,
        MetricFamily::ServerRings,
        MetricFamily::ServerMemory,
    ];
    let refused = |why: RoceRefusal| (MetricFamily::ServerRefused, Some(("reason", why.name())));
    plain.map(|metric| (metric, None)).into_iter().chain(RoceRefusal::ALL.map(refused)).collect()
}

/// A server's side of its metrics.
pub(super) struct ServerMeter(Option<ThreadMeter>);

impl ServerMeter {
    pub(super) fn new(metrics: Option<&ServerMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Publishes what the server counted.
    pub(super) fn publish(&mut self, counts: &RdmaCounts, reconnected: u32, (rings, bytes): (usize, u64)) {
        let Some(meter) = &mut self.0 else { return };
        let of =
            [counts.placed, counts.bytes, counts.resynchronised, reconnected.into(), rings as u64, bytes];
        let refused = RoceRefusal::ALL.map(|why| counts.refused(why));
        meter.publish(&of.into_iter().chain(refused).collect::<Vec<_>>());
    }
}
