//! HTTP/1.1: a task for each `POST /TYPE`, with its bytes as the body, and the reply's bytes as the answer.
//!
//! Requests of one connection are answered one after the other, in their order. The gateway is no place for
//! pages: a request that a browser sends for one (`Origin`) is refused, so that no page can send tasks
//! through the browser of somebody on this machine.

use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use sluice_net::TaskType;
use sluice_wire::TASK_BYTES_MAX;

use crate::counts::Protocol;
use crate::hall::Hall;
use crate::outcome::{NotDone, NotDoneKind};
use crate::rack::TaskLimits;
use crate::request::{BUDGET, DEADLINE_MAX, NoBody, body, discard, span_of};

/// How long a connection may say nothing, and how long a request's head may take.
const HEAD_PATIENCE: Duration = Duration::from_mins(1);
/// The most bytes that a request's head may have.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

/// The answer to a connection that finds no place.
pub(crate) const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

const DEADLINE: HeaderName = HeaderName::from_static("sluice-deadline");
const OUTCOME: HeaderName = HeaderName::from_static("sluice-outcome");
const WHY: HeaderName = HeaderName::from_static("sluice-why");

type Answer = Response<Full<Bytes>>;

/// A request that is no task: its status, a word, and a line for people.
struct NoTask(StatusCode, &'static str, String);

/// Answers requests until the connection ends. `refused` says why all of them are refused.
pub(crate) async fn converse(stream: impl Read + Write + Unpin, hall: Rc<Hall>, refused: Option<String>) {
    let refused = Rc::new(refused);
    let answers = service_fn(|request| {
        let (hall, refused) = (Rc::clone(&hall), Rc::clone(&refused));
        async move { Ok::<_, Infallible>(answer(request, &hall, refused.as_deref()).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .half_close(true)
        .serve_connection(stream, answers);
    let mut served = pin!(served);
    // A caller that hangs up or speaks no HTTP is no event for this process.
    tokio::select! {
        _ = served.as_mut() => return,
        () = hall.drains() => served.as_mut().graceful_shutdown(),
    }
    served.await.ok();
}

async fn answer(request: Request<Incoming>, hall: &Hall, refused: Option<&str>) -> Answer {
    let (head, sent) = request.into_parts();
    let done = match asked(&head, hall, refused) {
        Ok((of, limits)) => match body(sent, TASK_BYTES_MAX as usize).await {
            Ok(bytes) => Ok(hall.run(Protocol::Http, of, &bytes, limits).await),
            Err(why) => Err(no_body(why)),
        },
        Err(why) => {
            discard(&head.headers, sent).await;
            Err(why)
        }
    };
    match done {
        Ok(Ok(reply)) => of(StatusCode::OK, "done", "application/octet-stream", Bytes::from(reply)),
        Ok(Err(why)) => of_not_done(&why),
        Err(NoTask(status, word, why)) => {
            hall.malformed(Protocol::Http);
            let mut answer = told(status, "malformed", word, &why);
            if status == StatusCode::METHOD_NOT_ALLOWED {
                answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
            answer
        }
    }
}

/// What task a request is, but for its bytes.
fn asked(head: &Parts, hall: &Hall, refused: Option<&str>) -> Result<(TaskType, TaskLimits), NoTask> {
    let no = |status, word, why: &str| NoTask(status, word, why.to_owned());
    if let Some(why) = refused {
        return Err(no(StatusCode::FORBIDDEN, "no-role", why));
    }
    if head.headers.contains_key(ORIGIN) {
        let why = "this comes from a page in a browser: tasks come from programs";
        return Err(no(StatusCode::FORBIDDEN, "origin", why));
    }
    if head.method != Method::POST {
        let why = "a task is a POST of its bytes to /TYPE, where TYPE is the name or number of its type";
        return Err(no(StatusCode::METHOD_NOT_ALLOWED, "method", why));
    }
    let name = head.uri.path().strip_prefix('/').unwrap_or_default();
    let Some(of) = hall.rack().type_of(name) else {
        let why = format!(
            "the rack's plan has no type {}: POST to /TYPE, with its name there or its number",
            sluice_units::shown(name)
        );
        return Err(NoTask(StatusCode::NOT_FOUND, "no-type", why));
    };
    let limit = |name: HeaderName| {
        span_of(&head.headers, &name).map_err(|why| NoTask(StatusCode::BAD_REQUEST, "header", why))
    };
    let deadline = limit(DEADLINE)?.map(|deadline| deadline.min(DEADLINE_MAX));
    Ok((of, TaskLimits { deadline, budget: limit(BUDGET)? }))
}

fn no_body(why: NoBody) -> NoTask {
    let (status, word) = match why {
        NoBody::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "too-long"),
        NoBody::Slow => (StatusCode::REQUEST_TIMEOUT, "body"),
        NoBody::Broken => (StatusCode::BAD_REQUEST, "body"),
    };
    NoTask(status, word, why.to_string())
}

fn of_not_done(why: &NotDone) -> Answer {
    let (status, outcome) = match (why.kind, why.word) {
        (NotDoneKind::Busy, _) => (StatusCode::TOO_MANY_REQUESTS, "refused"),
        (NotDoneKind::NotNow, _) => (StatusCode::SERVICE_UNAVAILABLE, "refused"),
        (NotDoneKind::Never, "no-slice") => (StatusCode::NOT_FOUND, "refused"),
        (NotDoneKind::Never, "too-long") => (StatusCode::PAYLOAD_TOO_LARGE, "refused"),
        (NotDoneKind::Never, _) => (StatusCode::BAD_REQUEST, "refused"),
        (NotDoneKind::Unknown, _) => (StatusCode::GATEWAY_TIMEOUT, "unknown"),
        (NotDoneKind::Failed, _) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
    };
    let text = if why.kind == NotDoneKind::Failed { why.text.clone() } else { why.to_string() };
    let mut answer = told(status, outcome, why.word, &text);
    if let Some(after) = why.retry_after {
        // The header has whole seconds.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

fn told(status: StatusCode, outcome: &'static str, word: &'static str, why: &str) -> Answer {
    let text = Bytes::from(format!("{why}\n"));
    let mut answer = of(status, outcome, "text/plain; charset=utf-8", text);
    answer.headers_mut().insert(WHY, HeaderValue::from_static(word));
    answer
}

fn of(status: StatusCode, outcome: &'static str, media: &'static str, bytes: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(bytes));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(OUTCOME, HeaderValue::from_static(outcome));
    answer
}
