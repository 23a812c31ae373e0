//! What threads that make spans share with the one that sends them.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crossbeam_queue::ArrayQueue;

use crate::span::TaskSpan;

/// What the tracer and its exporter share.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    pub(crate) one_in: NonZeroU32,
    pub(crate) queue: ArrayQueue<TaskSpan>,
    pub(crate) sent: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) is_over: AtomicBool,
}
