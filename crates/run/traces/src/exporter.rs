//! The thread that sends spans to the collector.
//!
//! It looks at the queue from time to time, so that whoever puts a span into it need not wake it. While the
//! collector cannot be reached it keeps one batch, tries it again and again, and the queue behind it fills.

use std::io;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use http::{Request, header};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::answer::{ExportFailure, TakenSpans, taken};
use crate::endpoint::TraceEndpoint;
use crate::otlp::{SpanResource, request};
use crate::queue::SpanQueue;

/// How often the queue is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most spans in one request.
const BATCH_SPANS: usize = 512;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what waits may take once the process ends.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

pub(crate) struct SpanExporter {
    shared: Arc<SpanQueue>,
    endpoint: TraceEndpoint,
    resource: SpanResource,
    runtime: Runtime,
    /// Why the collector takes nothing, as the log says.
    complained: Option<String>,
}

impl SpanExporter {
    pub(crate) fn new(shared: Arc<SpanQueue>, endpoint: TraceEndpoint, process: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { shared, endpoint, resource: SpanResource::of(process), runtime, complained: None })
    }

    pub(crate) fn run(mut self) {
        loop {
            let is_over = self.time_left().is_some();
            self.shared.sources.ask();
            let shared = &self.shared;
            let spans: Vec<_> = iter::from_fn(|| shared.queue.pop()).take(BATCH_SPANS).collect();
            if spans.is_empty() {
                if is_over {
                    break;
                }
                thread::park_timeout(LOOK_EVERY);
                continue;
            }
            let count = spans.len() as u64;
            let body = Bytes::from(request(&self.resource, spans.into_iter()));
            let taken = self.deliver(&body, count);
            self.shared.sent.fetch_add(taken, Ordering::Relaxed);
            self.shared.dropped.fetch_add(count - taken, Ordering::Relaxed);
        }
        // A host's name may still be looked up, which can take the system half a minute.
        self.runtime.shutdown_background();
    }

    /// Once the process ends: how long it still waits for spans.
    fn time_left(&self) -> Option<Duration> {
        let ended = self.shared.ended.get()?;
        Some(LAST_PATIENCE.saturating_sub(ended.elapsed()))
    }

    /// Waits until the process has been ending for so long that nothing is sent any more.
    async fn ending(&self) {
        loop {
            match self.time_left() {
                Some(Duration::ZERO) => return,
                Some(left) => sleep(left).await,
                None => {
                    self.shared.sources.ask();
                    sleep(LOOK_EVERY).await;
                }
            }
        }
    }

    /// Sends a batch until it was taken, can never be, or the process has ended. Returns how many of its
    /// spans were taken.
    fn deliver(&mut self, body: &Bytes, count: u64) -> u64 {
        let mut pause = PAUSE_MIN;
        loop {
            let sent = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    sent = timeout(PATIENCE, self.send(body.clone())) => sent,
                    () = self.ending() => Ok(Err(ExportFailure::later("it did not answer before the end"))),
                }
            });
            let failure = match sent.unwrap_or_else(|_| Err(ExportFailure::later("it does not answer"))) {
                Ok(TakenSpans::All) => {
                    self.reached();
                    return count;
                }
                Ok(TakenSpans::AllBut { refused, why }) => {
                    self.complain(&format!("it left {refused} out{why}"), "these are dropped");
                    return count.saturating_sub(refused);
                }
                Err(failure) => failure,
            };
            if failure.is_final {
                self.complain(&failure.why, "these are dropped, and the next are tried");
                return 0;
            }
            if self.time_left().is_none() || self.complained.is_none() {
                self.complain(&failure.why, "trying again, and dropping what does not fit");
            }
            if self.time_left() == Some(Duration::ZERO) {
                return 0;
            }
            self.rest(pause.max(failure.not_before).min(PAUSE_MAX));
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits before the next try. Once the process ends, tries follow each other quickly.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while self.time_left().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.shared.sources.ask();
            thread::park_timeout(left.min(LOOK_EVERY));
        }
        thread::sleep(PAUSE_MIN / 10);
    }

    async fn send(&self, body: Bytes) -> Result<TakenSpans, ExportFailure> {
        let stream = TcpStream::connect(&self.endpoint.authority).await;
        let stream = stream.map_err(|why| ExportFailure::of(&why))?;
        let Some((tls, name)) = &self.endpoint.tls else { return self.post(stream, body).await };
        let stream = TlsConnector::from(tls.config()).connect(name.clone(), stream).await;
        self.post(stream.map_err(|why| ExportFailure::of(&why))?, body).await
    }

    async fn post<S>(&self, stream: S, body: Bytes) -> Result<TakenSpans, ExportFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let TraceEndpoint { authority, path, .. } = &self.endpoint;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| ExportFailure::of(&why))?;
        let asked = Request::post(path.as_str())
            .header(header::HOST, authority.as_str())
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::USER_AGENT, concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|why| ExportFailure::of(&why).for_good())?;
        // Beside the request, since a connection may end with the answer's last byte. Its errors are the
        // request's, too.
        tokio::spawn(connection);
        let answer = sender.send_request(asked).await.map_err(|why| ExportFailure::of(&why))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        taken(&head, &body.map(Collected::to_bytes).unwrap_or_default())
    }

    /// Says why the collector does not take spans, once for each reason.
    fn complain(&mut self, why: &str, next: &str) {
        if self.complained.as_deref() != Some(why) {
            self.complained = Some(why.to_owned());
            let at = &self.endpoint.authority;
            sluice_log::log!(
                TracesUnsent,
                collector = at,
                why,
                "the collector at {at} does not take spans: {why}; {next}"
            );
        }
    }

    fn reached(&mut self) {
        if self.complained.take().is_some() {
            let at = &self.endpoint.authority;
            sluice_log::log!(TracesSent, collector = at, "the collector at {at} takes spans again");
        }
    }
}

#[cfg(test)]
mod tests;
