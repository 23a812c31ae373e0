//! What workers, servers and clients count, for Prometheus. Their threads publish once a batch, and only if
//! somebody wants it: if the options of a [`Worker`](crate::Worker), a [`Client`](crate::Client) or a
//! [`Server`](crate::server::Server) have a value of these types, whose clones share what it holds.
//!
//! ```no_run
//! # fn main() -> Result<(), sluice_net::NetError> {
//! use sluice_net::metrics::{ClientMetrics, MetricsOutlets};
//! let metrics = ClientMetrics::default();
//! let mut options = sluice_net::ClientOptions::new("127.0.0.1:7400")?;
//! options.metrics = Some(metrics.clone());
//! let address = "127.0.0.1:9100".parse().expect("an address");
//! let _served = MetricsOutlets::bind(Some(address), None)?.serve(vec![metrics.source()])?;
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use sluice_host::rdma::{RdmaCounts, RoceRefusal};
use sluice_host::worker::WorkerStats;
use sluice_metrics::{CountRow, Metric, ThreadMeter, ThreadMetrics};
use sluice_wire::Nanos;

use crate::client::{ClientReport, TaskReply};
use crate::udp::SocketCounts;
use crate::worker::Dropped;

pub use sluice_metrics::{
    MetricSource, MetricsError, MetricsOutlets, ReportedProcesses, ServedMetrics, labelled,
};

macro_rules! hosts {
    ($($(#[$about:meta])* $name:ident: $counts:ident, $spans:expr;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $name(Arc<ThreadMetrics>);

        impl Default for $name {
            fn default() -> Self {
                Self(Arc::new(ThreadMetrics::new($counts(), $spans)))
            }
        }

        impl $name {
            /// What gives the values when they are scraped.
            pub fn source(&self) -> Arc<dyn MetricSource> {
                self.0.clone()
            }
        }
    )*};
}

hosts! {
    /// What workers count.
    WorkerMetrics: worker_counts, vec![Metric::WorkerService, Metric::WorkerWait];
    /// What a server counts.
    ServerMetrics: server_counts, Vec::new();
    /// What clients count.
    ClientMetrics: client_counts, vec![Metric::ClientLatency, Metric::ClientSwitchWait, Metric::ClientService];
}

fn worker_counts() -> Vec<CountRow> {
    let outcome = |outcome| (Metric::WorkerServed, Some(("outcome", outcome)));
    let dropped = |reason| (Metric::WorkerDropped, Some(("reason", reason)));
    let plain = |metric| (metric, None);
    vec![
        outcome("done"),
        outcome("failed"),
        outcome("panicked"),
        plain(Metric::WorkerRefusedLate),
        plain(Metric::WorkerRepeated),
        plain(Metric::WorkerWrittenOff),
        plain(Metric::WorkerHeld),
        plain(Metric::WorkerRegistered),
        plain(Metric::WorkerCopied),
        plain(Metric::WorkerMissed),
        plain(Metric::WorkerReceived),
        plain(Metric::WorkerSent),
        dropped("unreadable"),
        dropped("foreign"),
        dropped("duplicate"),
        dropped("unwanted"),
        dropped("no_room"),
    ]
}

/// How the services of a worker's tasks ended so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServedCounts {
    /// All of them.
    pub(crate) tasks: u64,
    pub(crate) failed: u64,
    pub(crate) panicked: u64,
}

/// A worker's side of its metrics; it does nothing if nobody wants them.
pub(crate) struct WorkerMeter(Option<ThreadMeter>);

impl WorkerMeter {
    pub(crate) fn new(metrics: Option<&WorkerMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Counts a task whose service ended.
    pub(crate) fn ended(&mut self, service: Nanos, wait: Nanos) {
        if let Some(meter) = &mut self.0 {
            meter.record(0, service.0);
            meter.record(1, wait.0);
        }
    }

    /// Publishes what the worker counted; `counts` is asked only if somebody wants it.
    pub(crate) fn publish(
        &mut self,
        counts: impl FnOnce() -> (ServedCounts, WorkerStats, (u64, u64), Dropped, SocketCounts),
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
            stats.held.into(),
            stats.serving.into(),
            copied,
            missed,
            socket.received,
            socket.sent,
            dropped.unreadable,
            dropped.foreign,
            stats.duplicates,
            stats.dropped.into(),
            dropped.no_room,
        ]);
    }
}

fn server_counts() -> Vec<CountRow> {
    let plain = [
        Metric::ServerWrites,
        Metric::ServerWritten,
        Metric::ServerResynchronised,
        Metric::ServerReconnected,
        Metric::ServerRings,
        Metric::ServerMemory,
    ];
    let refused = |why: RoceRefusal| (Metric::ServerRefused, Some(("reason", why.name())));
    plain.map(|metric| (metric, None)).into_iter().chain(RoceRefusal::ALL.map(refused)).collect()
}

/// A server's side of its metrics.
pub(crate) struct ServerMeter(Option<ThreadMeter>);

impl ServerMeter {
    pub(crate) fn new(metrics: Option<&ServerMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Publishes what the server counted.
    pub(crate) fn publish(&mut self, counts: &RdmaCounts, reconnected: u32, (rings, bytes): (usize, u64)) {
        let Some(meter) = &mut self.0 else { return };
        let of = [
            counts.placed,
            counts.bytes,
            counts.resynchronised,
            reconnected.into(),
            rings as u64,
            bytes,
        ];
        let refused = RoceRefusal::ALL.map(|why| counts.refused(why));
        meter.publish(&of.into_iter().chain(refused).collect::<Vec<_>>());
    }
}

fn client_counts() -> Vec<CountRow> {
    let outcome = |outcome| (Metric::ClientEnded, Some(("outcome", outcome)));
    let retry = |kind| (Metric::ClientRetries, Some(("kind", kind)));
    let plain = |metric| (metric, None);
    vec![
        plain(Metric::ClientSubmitted),
        outcome("replied"),
        outcome("refused"),
        outcome("unknown"),
        plain(Metric::ClientOutstanding),
        plain(Metric::ClientWaiting),
        plain(Metric::ClientAttempts),
        retry("paid"),
        retry("free"),
        retry("probing"),
        plain(Metric::ClientTimeouts),
        plain(Metric::ClientRejects),
        plain(Metric::ClientReceived),
        plain(Metric::ClientSent),
    ]
}

/// A client's side of its metrics.
pub(crate) struct ClientMeter(Option<ThreadMeter>);

impl ClientMeter {
    pub(crate) fn new(metrics: Option<&ClientMetrics>) -> Self {
        Self(metrics.map(|metrics| metrics.0.meter()))
    }

    /// Counts a task that ended in a reply.
    pub(crate) fn replied(&mut self, latency: Nanos, reply: &TaskReply) {
        if let Some(meter) = &mut self.0 {
            meter.record(0, latency.0);
            meter.record(1, reply.switch_wait.0);
            meter.record(2, reply.service.0);
        }
    }

    /// Publishes what the client counted; `report` is asked only if somebody wants it.
    pub(crate) fn publish(&mut self, report: impl FnOnce() -> ClientReport) {
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
