//! A server of many cores behind one dispatcher, in real time (RingLeader §3–§6).
//!
//! The [`CoreDispatcher`] stands in the NIC's place: it runs the logic of [`sluice_host::orchestrator`] and
//! is called by whoever owns the socket. Behind it [`CoreThreads`] run cores: each takes descriptors from a
//! ring of atomic words, runs requests as stackful coroutines that never change threads and yield after 5 µs
//! ([`Yielding::pause`]), and raises cumulative counts per priority in a cache line of its own ([`rings`]).
//! Under dilation a core has a time of its own, so that many can share a thread.
//!
//! What a request is, and who answers it, is the caller's: requests are values of its own type in
//! [`RequestTable`], named by number. Left out: sockets, and what a service is (`net` joins both).
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
pub use dispatcher::{CoreDispatcher, CoreDispatcherSettings, CoreSeat, EndedRequest, ServiceOfCores};
pub use error::CoresError;
pub use one_core::CorePace;
pub use requests::RequestTable;
pub use threads::{CoreThreads, ThreadSettings};
pub use watch::Overdue;
