//! Sluice for Python: the extension module `sluice._sluice`.
//!
//! The package `sluice` beside it, in `python`, has what is easier to say in Python. No thread but Python's
//! own ever runs Python code: outcomes wait in queues until a thread, or the loop that watches the queue's
//! descriptor, takes them. So an interpreter may end while clients are open.
#![deny(unsafe_code)]
// The arguments of functions for Python are those that Python gives.
#![allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unnecessary_wraps)]

mod arguments;
mod ask;
mod blocking;
mod bytes_like;
mod client;
mod connection;
mod errors;
mod forks;
mod loop_tasks;
mod reply;
mod service;
mod stoppable;
mod study;

/// What `sluice` is built on. Its users import `sluice`.
// A free-threaded interpreter turns its lock on when it imports this: bytes are read in place, and only the
// lock keeps other threads from writing to them meanwhile.
#[pyo3::pymodule(gil_used = true)]
mod _sluice {
    #[pymodule_export]
    use crate::client::ClientCore;
    #[pymodule_export]
    use crate::forks::note_fork;
    #[pymodule_export]
    use crate::loop_tasks::LoopTasks;
    #[pymodule_export]
    use crate::reply::PyReply;
    #[pymodule_export]
    use crate::service::run_worker;
    #[pymodule_export]
    use crate::study::{StudyCore, figure_names};

    /// The version of the library.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python names it so")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
