//! The port that Prometheus scrapes: HTTP/1, `GET` and `HEAD` of `/metrics`, and nothing else.
//!
//! Each connection answers one request and is closed. It has little time for that, and there are few at
//! once, so that nobody keeps a rack from being watched, or the process from its work.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::error::MetricsError;
use crate::source::MetricSource;
use crate::text::{TextForm, written};

/// Where metrics are.
const PATH: &str = "/metrics";
/// How many connections are served at once; further ones are told to come back.
const CONNECTIONS_MAX: usize = 16;
/// How long a connection may take to ask.
const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may take altogether.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes that a request's head may have.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// The pause after a connection that could not be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The answer to a connection that finds no place.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// An address that is bound and not yet served: who asks meanwhile waits.
#[derive(Debug)]
pub struct MetricsPort {
    listener: TcpListener,
    local: SocketAddr,
}

impl MetricsPort {
    /// Takes the address.
    ///
    /// # Errors
    /// [`MetricsError::Bind`] for an address that cannot be had.
    pub fn bind(at: SocketAddr) -> Result<Self, MetricsError> {
        let failed = |why| MetricsError::Bind { at, why };
        let listener = TcpListener::bind(at).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local })
    }

    /// The address, with the port that the kernel chose if port 0 was asked for.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Answers requests until it is dropped.
    pub(crate) async fn serve(self, source: Arc<dyn MetricSource>) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(why) => {
                let at = self.local;
                sluice_log::log!(MetricsFailed, %at, %why, "metrics are not served on {at}: {why}");
                return;
            }
        };
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                // A connection whose first bytes cannot be sent at once hears nothing.
                stream.try_write(FULL).ok();
                continue;
            };
            let source = Arc::clone(&source);
            tokio::spawn(async move {
                let _place = place;
                // Who is too slow is hung up on.
                timeout(PATIENCE, converse(stream, source)).await.ok();
            });
        }
    }
}

async fn converse(stream: TcpStream, source: Arc<dyn MetricSource>) {
    let answers = service_fn(move |request| {
        let source = Arc::clone(&source);
        async move { Ok::<_, Infallible>(answer(&request, &*source).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASK_PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answers)
        .await;
    // A caller that hangs up or speaks no HTTP is no event for this process.
    served.unwrap_or_default();
}

async fn answer(request: &Request<Incoming>, source: &dyn MetricSource) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return told(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut refused = told(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET or HEAD\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let form = TextForm::accepted(accept);
    let Ok(text) = written(source.collect().await, form) else {
        return told(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n");
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    response
}

fn told(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
