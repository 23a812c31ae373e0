//! A task's way as OpenTelemetry spans, for one task in N.
//!
//! Which tasks are traced, and the name of their trace, follow from the task's id alone. So a client, a
//! switch and a worker that were started with the same N write spans of the same tasks into the same traces,
//! and no packet says so. Spans go through a bounded queue to a thread that sends them to a collector; what
//! does not fit is counted and dropped.
#![forbid(unsafe_code)]

mod answer;
mod endpoint;
mod exporter;
mod otlp;
mod queue;
mod span;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crossbeam_queue::ArrayQueue;
use queue::{SpanQueue, SpanSources};
use sluice_metrics::{MetricFamily, MetricSample, MetricSource};
use sluice_wire::TaskId;

pub use endpoint::{TraceEndpoint, TracesError};
pub use span::{AttributeValue, SpanKind, TaskSpan, TraceId, task_name};

/// How many spans wait for the exporter at most; further ones are dropped.
const QUEUE_SPANS: usize = 8_192;

/// Takes the spans of one task in N; clones share the queue.
#[derive(Clone, Debug)]
pub struct Tracer(Arc<SpanQueue>);

impl Tracer {
    /// Starts a thread that sends the spans of one task in `one_in` to `endpoint`, as those of `process`.
    ///
    /// # Errors
    /// [`TracesError::Thread`] if the system has no thread left.
    pub fn start(
        endpoint: TraceEndpoint,
        one_in: NonZeroU32,
        process: &str,
    ) -> Result<(Self, RunningExporter), TracesError> {
        let queue = ArrayQueue::new(QUEUE_SPANS);
        let (sent, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        let (sources, ended) = (SpanSources::default(), OnceLock::new());
        let shared = Arc::new(SpanQueue { one_in, queue, sources, sent, dropped, ended });
        let failed = |why| TracesError::Thread { why };
        let tracer = Self(Arc::clone(&shared));
        let export = exporter::SpanExporter::new(Arc::clone(&shared), endpoint, process).map_err(failed)?;
        let thread = thread::Builder::new().name("sluice-traces".to_owned());
        let thread = thread.spawn(move || export.run()).map_err(failed)?;
        Ok((tracer, RunningExporter { shared, thread: Some(thread) }))
    }

    /// Whether this task is one of those that are traced.
    #[inline]
    pub fn takes(&self, task: TaskId) -> bool {
        let (low, sequence) = task.kept();
        sequence.0.wrapping_add(low).is_multiple_of(self.0.one_in.get())
    }

    /// Hands a span to the exporter. Never waits: a span for which the queue has no room is dropped.
    pub fn push(&self, span: TaskSpan) {
        if self.0.queue.push(span).is_err() {
            self.lost(1);
        }
    }

    /// Counts spans that were dropped before they were made.
    pub fn lost(&self, spans: u64) {
        self.0.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Lets the exporter's thread ask for spans whenever it looks at its queue, and once more at the end. For
    /// a thread that has no time to make its spans itself.
    pub fn ask(&self, source: impl FnMut(&Self) + Send + 'static) {
        let (mut source, shared) = (source, Arc::downgrade(&self.0));
        self.0.sources.add(Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                source(&Self(shared));
            }
        }));
    }

    /// What gives the counts of spans to Prometheus.
    pub fn source(&self) -> Arc<dyn MetricSource> {
        let shared = Arc::clone(&self.0);
        Arc::new(move || {
            let of = |outcome, count: &AtomicU64| {
                let count = count.load(Ordering::Relaxed);
                MetricSample::count(MetricFamily::ProcessSpans, count).with("outcome", outcome)
            };
            vec![of("sent", &shared.sent), of("dropped", &shared.dropped)]
        })
    }

    /// How many spans were sent, and how many dropped.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.sent.load(Ordering::Relaxed), self.0.dropped.load(Ordering::Relaxed))
    }
}

/// The thread that sends spans. Dropping it sends what waits, if that takes no longer than a second.
#[derive(Debug)]
#[must_use = "spans are sent until it is dropped"]
pub struct RunningExporter {
    shared: Arc<SpanQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for RunningExporter {
    fn drop(&mut self) {
        self.shared.ended.get_or_init(Instant::now);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the exporter is in the log; spans are lost, and nothing else.
            thread.join().ok();
        }
    }
}
