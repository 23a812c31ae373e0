//! Where the metrics of a process go, and the thread that gives them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::error::MetricsError;
use crate::families::MetricFamily;
use crate::measured::MetricSample;
use crate::port::MetricsPort;
use crate::report::ReportSocket;
use crate::source::{Collecting, MetricSource};

/// Where the metrics of a process go. All is bound before anything is served, so that an address that cannot
/// be had ends a process before it does anything else.
#[derive(Debug, Default)]
pub struct MetricsOutlets {
    port: Option<MetricsPort>,
    report: Option<ReportSocket>,
}

impl MetricsOutlets {
    /// Binds the address that Prometheus scrapes, and the socket of a launcher.
    ///
    /// # Errors
    /// [`MetricsError::Bind`] and [`MetricsError::Report`] for one that cannot be had.
    pub fn bind(port: Option<SocketAddr>, report: Option<&Path>) -> Result<Self, MetricsError> {
        let port = port.map(MetricsPort::bind).transpose()?;
        Ok(Self { port, report: report.map(ReportSocket::bind).transpose()? })
    }

    /// Whether anybody wants metrics.
    pub const fn are_wanted(&self) -> bool {
        self.port.is_some() || self.report.is_some()
    }

    /// The address that Prometheus scrapes.
    pub fn local(&self) -> Option<SocketAddr> {
        self.port.as_ref().map(MetricsPort::local)
    }

    /// Serves what the sources give on a thread of its own; starts none if nobody wants metrics.
    ///
    /// # Errors
    /// [`MetricsError::Thread`] if the system has no thread left.
    pub fn serve(self, sources: Vec<Arc<dyn MetricSource>>) -> Result<ServedMetrics, MetricsError> {
        if !self.are_wanted() {
            return Ok(ServedMetrics(None));
        }
        let failed = |why| MetricsError::Thread { why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        if let Some(at) = self.local() {
            sluice_log::log!(MetricsServed, %at, "metrics at http://{at}/metrics");
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let source: Arc<dyn MetricSource> = Arc::new(AllSources(sources));
        let run = move || {
            runtime.block_on(async {
                if let Some(report) = self.report {
                    tokio::spawn(report.serve(Arc::clone(&source)));
                }
                if let Some(port) = self.port {
                    tokio::spawn(port.serve(source));
                }
                // Dropping the sender stops the thread, with all that it answers, as a message does.
                stopped.await.ok();
            });
        };
        let thread = thread::Builder::new().name("sluice-metrics".to_owned()).spawn(run).map_err(failed)?;
        Ok(ServedMetrics(Some((stop, thread))))
    }
}

/// The thread that serves metrics; dropping it stops it.
#[derive(Debug)]
#[must_use = "metrics are served until it is dropped"]
pub struct ServedMetrics(Option<(oneshot::Sender<()>, JoinHandle<()>)>);

impl Drop for ServedMetrics {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // A panic of the thread has been printed; there is nothing left to stop.
            thread.join().ok();
        }
    }
}

struct AllSources(Vec<Arc<dyn MetricSource>>);

impl MetricSource for AllSources {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(async {
            let build = env!("CARGO_PKG_VERSION");
            let mut values = vec![MetricSample::level(MetricFamily::ProcessBuild, 1).with("build", build)];
            for source in &self.0 {
                values.extend(source.collect().await);
            }
            values
        })
    }
}
