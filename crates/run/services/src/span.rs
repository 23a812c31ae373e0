//! The request and reply that `spin` and `hold` share: a time span, and the length of the reply.

use sluice_net::service::ServiceError;
use sluice_wire::Nanos;

/// The longest span that a task may ask for: a worker that is busy for longer would look dead.
pub(crate) const SPAN_MAX: Nanos = Nanos::from_millis(10_000);

/// Writes a request, or a reply: the span in nanoseconds, 8 bytes, big-endian.
pub(crate) const fn encode(span: Nanos) -> [u8; 8] {
    span.0.to_be_bytes()
}

/// Writes a request whose reply is padded to `reply_bytes`.
pub(crate) fn encode_with_reply(span: Nanos, reply_bytes: u32) -> [u8; 12] {
    let mut request = [0; 12];
    request[..8].copy_from_slice(&encode(span));
    request[8..].copy_from_slice(&reply_bytes.to_be_bytes());
    request
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) span: Nanos,
    reply_bytes: usize,
}

impl Request {
    /// Writes the reply: a span, then zeros up to the requested length.
    pub(crate) fn reply(&self, span: Nanos, reply: &mut Vec<u8>) {
        reply.extend(encode(span));
        reply.resize(self.reply_bytes.max(8), 0);
    }
}

/// Reads a request: 8 bytes that name at most [`SPAN_MAX`], and optionally 4 bytes for the reply's length.
/// Everything else is refused.
pub(crate) fn decode(bytes: &[u8], reply_max: usize) -> Result<Request, ServiceError> {
    let refused = || ServiceError::new(format!("a span takes 8 or 12 bytes, not {}", bytes.len()));
    let (span, rest) = bytes.split_first_chunk::<8>().ok_or_else(refused)?;
    let reply_bytes = match rest {
        [] => 0,
        rest => u32::from_be_bytes(rest.try_into().map_err(|_| refused())?) as usize,
    };
    if reply_bytes > reply_max {
        return Err(ServiceError::new(format!("no reply has {reply_bytes} bytes; {reply_max} at most")));
    }
    let span = Nanos(u64::from_be_bytes(*span));
    if span > SPAN_MAX {
        return Err(ServiceError::new(format!("{} ns is longer than {} ns", span.0, SPAN_MAX.0)));
    }
    Ok(Request { span, reply_bytes })
}
