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

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::endpoint::TraceEndpoint;
use crate::otlp::{ExportAnswer, SpanResource, request};
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
    /// Whether the log says that the collector takes nothing.
    complained: bool,
}

/// Why a batch was not taken.
enum ExportFailure {
    /// It may be taken later.
    Later(String),
    /// It never will.
    Never(String),
}

impl SpanExporter {
    pub(crate) fn new(shared: Arc<SpanQueue>, endpoint: TraceEndpoint, process: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { shared, endpoint, resource: SpanResource::of(process), runtime, complained: false })
    }

    pub(crate) fn run(mut self) {
        let mut give_up = None;
        loop {
            let is_over = self.is_over();
            if is_over {
                give_up.get_or_insert_with(|| Instant::now() + LAST_PATIENCE);
            }
            let spans: Vec<_> = iter::from_fn(|| self.shared.queue.pop()).take(BATCH_SPANS).collect();
            if spans.is_empty() {
                if is_over {
                    return;
                }
                thread::park_timeout(LOOK_EVERY);
                continue;
            }
            let count = spans.len() as u64;
            let body = Bytes::from(request(&self.resource, spans.into_iter()));
            let taken = self.deliver(&body, count, &mut give_up);
            self.shared.sent.fetch_add(taken, Ordering::Relaxed);
            self.shared.dropped.fetch_add(count - taken, Ordering::Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire)
    }

    /// Waits until the process has been ending for so long that nothing is sent any more.
    async fn ending(&self) {
        while !self.is_over() {
            sleep(LOOK_EVERY).await;
        }
        sleep(LAST_PATIENCE).await;
    }

    /// Sends a batch until it was taken, can never be, or the process has ended. Returns how many of its
    /// spans were taken.
    fn deliver(&mut self, body: &Bytes, count: u64, give_up: &mut Option<Instant>) -> u64 {
        let mut pause = PAUSE_MIN;
        loop {
            let patience = give_up.map_or(PATIENCE, |at| at.saturating_duration_since(Instant::now()));
            let sent = self.runtime.block_on(async {
                tokio::select! {
                    sent = timeout(patience, self.send(body.clone())) => sent,
                    () = self.ending() => Ok(Err(ExportFailure::Later("this process ends".to_owned()))),
                }
            });
            let late = || Err(ExportFailure::Later(format!("it did not answer within {patience:.0?}")));
            match sent.unwrap_or_else(|_| late()) {
                Ok(refused) => {
                    self.reached();
                    return count.saturating_sub(refused);
                }
                Err(ExportFailure::Never(why)) => {
                    self.complain(&why);
                    return 0;
                }
                Err(ExportFailure::Later(why)) => self.complain(&why),
            }
            if !self.is_over() {
                thread::park_timeout(pause);
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
            if Instant::now() >= *give_up.get_or_insert_with(|| Instant::now() + LAST_PATIENCE) {
                return 0;
            }
            thread::sleep(PAUSE_MIN / 10);
        }
    }

    /// Sends one request. Returns how many of its spans the collector refused.
    async fn send(&self, body: Bytes) -> Result<u64, ExportFailure> {
        let TraceEndpoint { authority, path } = &self.endpoint;
        let later = |why: &dyn std::error::Error| ExportFailure::Later(why.to_string());
        let stream = TcpStream::connect(authority).await.map_err(|why| later(&why))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| later(&why))?;
        let asked = Request::post(path.as_str())
            .header(header::HOST, authority.as_str())
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::USER_AGENT, concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|why| ExportFailure::Never(why.to_string()))?;
        // Beside the request, since a connection may end with the answer's last byte. Its errors are the
        // request's, too.
        tokio::spawn(connection);
        let answer = sender.send_request(asked).await.map_err(|why| later(&why))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        taken(status, &body.map(Collected::to_bytes).unwrap_or_default())
    }

    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.complained, true) {
            let at = &self.endpoint.authority;
            sluice_log::log!(
                TracesUnsent,
                collector = at,
                why,
                "the collector at {at} takes no spans: {why}; trying again, and dropping what does not fit"
            );
        }
    }

    fn reached(&mut self) {
        if std::mem::take(&mut self.complained) {
            let at = &self.endpoint.authority;
            sluice_log::log!(TracesSent, collector = at, "the collector at {at} takes spans again");
        }
    }
}

/// What an answer says: how many spans were refused of those that the collector took.
fn taken(status: StatusCode, body: &[u8]) -> Result<u64, ExportFailure> {
    if status.is_success() {
        let refused = ExportAnswer::decode(body).ok().and_then(|answer| answer.partial);
        return Ok(refused.map_or(0, |refused| u64::try_from(refused.rejected).unwrap_or(0)));
    }
    let why = format!("it answers {status}");
    // OTLP names these: all others are final.
    let again = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    if again.contains(&status) { Err(ExportFailure::Later(why)) } else { Err(ExportFailure::Never(why)) }
}
