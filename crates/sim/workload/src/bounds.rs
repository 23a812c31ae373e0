//! The longest service times.

use sluice_wire::Nanos;

/// The longest service, 4.29 s: the times in packets cannot be longer.
pub const SERVICE_MAX: Nanos = Nanos(u32::MAX as u64);

/// The largest mean of a distribution without an upper end: with it, no exponential draw comes near
/// [`SERVICE_MAX`].
pub const MEAN_MAX: Nanos = Nanos::from_millis(90);
