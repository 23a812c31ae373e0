//! A server of many cores behind one dispatcher, in real time (RingLeader §3–§6).
//!
//! The [`CoreDispatcher`] replaces the NIC: it runs the logic of [`sluice_host::orchestrator`] on the
//! thread that owns the socket. Behind it, [`CoreThreads`] run the cores. A core takes descriptors from a
//! ring of atomic words. It runs requests as stackful coroutines, which never change threads and yield
//! after 5 µs ([`Yielding::pause`]). It reports ended requests by cumulative counts per priority, in a
//! cache line of its own ([`rings`]). With dilation, a core has its own virtual time, so that many cores
//! can share a thread.
//!
//! The caller decides what a request is and who answers it: requests are values of the caller's type in a
//! [`RequestTable`], named by number. Left out: sockets and services (`net` joins both).
#![forbid(unsafe_code)]

mod batch;
mod bell;
mod coroutines;
mod descriptor;
mod dispatcher;
mod error;
mod one_core;
mod requests;
pub mod rings;
mod threads;
mod watch;

pub use coroutines::{Coroutines, Handler, ServingCoroutine, SliceRun, StackOf, Yielding};
pub use dispatcher::{CoreDispatcher, CoreDispatcherSettings, CoreRings, EndedRequest, ServiceOfCores};
pub use error::CoresError;
pub use one_core::CorePace;
pub use requests::RequestTable;
pub use threads::{CoreThreads, ThreadSettings};
pub use watch::Overdue;
