//! Notices forks: a child has copies of its parent's clients and queues, but none of their threads.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

/// How many forks are between this process and the one that imported the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Says in which process something was made. Cheaper than to ask the system for the process's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMark(u32);

impl ProcessMark {
    /// The mark of this process.
    pub(crate) fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is the process of the mark.
    pub(crate) fn is_here(self) -> bool {
        self == Self::here()
    }
}

/// Called by the interpreter in the child of a fork.
#[pyfunction]
pub(crate) fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
