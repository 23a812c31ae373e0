//! The request and reply that `spin` and `hold` share: one span of time.

use sluice_net::service::ServiceError;
use sluice_wire::Nanos;

/// The longest span that a task may ask for: a worker taken for longer would look dead.
pub(crate) const SPAN_MAX: Nanos = Nanos::from_millis(10_000);

/// Writes a request, or a reply: the span in nanoseconds, 8 bytes, big-endian.
pub(crate) const fn encode(span: Nanos) -> [u8; 8] {
    span.0.to_be_bytes()
}

/// Reads a request; anything but 8 bytes that name at most [`SPAN_MAX`] is refused.
pub(crate) fn decode(bytes: &[u8]) -> Result<Nanos, ServiceError> {
    let bytes: [u8; 8] = bytes
        .try_into()
        .map_err(|_| ServiceError::new(format!("a span takes 8 bytes, not {}", bytes.len())))?;
    let span = Nanos(u64::from_be_bytes(bytes));
    if span > SPAN_MAX {
        return Err(ServiceError::new(format!("{} ns is longer than {} ns", span.0, SPAN_MAX.0)));
    }
    Ok(span)
}
