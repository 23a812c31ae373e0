//! What threads that make spans share with the one that sends them.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crossbeam_queue::ArrayQueue;

use crate::span::TaskSpan;

/// What the tracer and its exporter share.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    pub(crate) one_in: NonZeroU32,
    pub(crate) queue: ArrayQueue<TaskSpan>,
    pub(crate) sources: SpanSources,
    pub(crate) sent: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// When the process began to end.
    pub(crate) ended: OnceLock<Instant>,
}

type SpanSource = Box<dyn FnMut() + Send>;

/// Who is asked for spans by the exporter's thread.
#[derive(Default)]
pub(crate) struct SpanSources(Mutex<Vec<SpanSource>>);

impl SpanSources {
    pub(crate) fn add(&self, source: SpanSource) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    pub(crate) fn ask(&self) {
        for source in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            source();
        }
    }
}

impl fmt::Debug for SpanSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanSources").finish_non_exhaustive()
    }
}
