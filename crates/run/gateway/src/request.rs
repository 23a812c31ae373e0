//! What requests of HTTP and gRPC have in common: a body with a task's bytes, and headers with spans.
//!
//! A body is read before its request is answered, also if the request is refused. A server may answer
//! earlier, but then it ends the stream or the connection while the client sends, and a client may miss the
//! answer.

use std::fmt;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};
use hyper::header::{EXPECT, HeaderName};
use sluice_units::span;
use sluice_wire::TASK_BYTES_MAX;
use tokio::time::timeout;

/// The longest deadline that a caller may ask for.
pub(crate) const DEADLINE_MAX: Duration = Duration::from_hours(1);
/// For how long a task is worth beginning.
pub(crate) const BUDGET: HeaderName = HeaderName::from_static("sluice-budget");
/// How long a request's body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How long the body of a request that is refused may take.
const DISCARD_PATIENCE: Duration = Duration::from_secs(1);
/// A body that is longer than wanted is read up to here, so that its sender can read why not.
const DISCARDED_MAX: usize = 1 << 20;

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// It has more bytes than wanted.
    TooLong,
    /// It did not come in time.
    Slow,
    /// It ended before its end.
    Broken,
}

impl fmt::Display for NoBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => {
                write!(f, "a task has at most {TASK_BYTES_MAX} bytes: send less, or in several tasks")
            }
            Self::Slow => {
                write!(f, "the bytes did not come within {} s: send them again", BODY_PATIENCE.as_secs())
            }
            Self::Broken => f.write_str("the bytes ended before their end: send them again"),
        }
    }
}

/// The whole body, if it has at most so many bytes.
pub(crate) async fn body(body: Incoming, most: usize) -> Result<Vec<u8>, NoBody> {
    if body.size_hint().lower() > DISCARDED_MAX as u64 {
        return Err(NoBody::TooLong);
    }
    timeout(BODY_PATIENCE, collect(body, most)).await.unwrap_or(Err(NoBody::Slow))
}

/// Reads the body of a request that is refused. A client that asks before it sends a body (`Expect`) waits
/// for the refusal, and so may a client that has not ended its body.
pub(crate) async fn discard(headers: &HeaderMap, of: Incoming) {
    if !headers.contains_key(EXPECT) {
        timeout(DISCARD_PATIENCE, body(of, 0)).await.ok();
    }
}

async fn collect(mut body: Incoming, most: usize) -> Result<Vec<u8>, NoBody> {
    let (mut whole, mut count) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| NoBody::Broken)?;
        let bytes = frame.data_ref().map_or(&[][..], |bytes| bytes);
        count += bytes.len();
        if count <= most {
            whole.extend_from_slice(bytes);
        } else if count > DISCARDED_MAX {
            break;
        }
    }
    if count <= most { Ok(whole) } else { Err(NoBody::TooLong) }
}

/// A span in a header, such as `200ms`; an error is a sentence.
pub(crate) fn span_of(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Duration>, String> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let read = value.to_str().map_err(|_| "it has letters that no span has".to_owned()).and_then(span);
    match read {
        Ok(span) if span.0 > 0 => Ok(Some(Duration::from_nanos(span.0))),
        Ok(_) => Err(format!("{name} is zero: give some time")),
        Err(why) => Err(format!("{name}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_in_a_header_is_some_time() {
        let read = |bytes: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(BUDGET, hyper::header::HeaderValue::from_bytes(bytes).expect("a value"));
            span_of(&headers, &BUDGET)
        };
        assert_eq!(span_of(&HeaderMap::new(), &BUDGET), Ok(None));
        assert_eq!(read(b"200us"), Ok(Some(Duration::from_micros(200))));
        assert_eq!(read(b"0s"), Err("sluice-budget is zero: give some time".to_owned()));
        for wrong in [&b""[..], b"soon", b"-1s", b"200", b"\xff"] {
            assert!(read(wrong).is_err_and(|why| why.starts_with("sluice-budget: ")), "{wrong:?}");
        }
    }
}
