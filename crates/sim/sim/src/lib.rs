//! Points in virtual time: all real state machines together, in one thread, replayed from one seed.
//!
//! A [`point`](point::Point) is one [`policy`] on a [testbed](sluice_testbed::Testbed) under a
//! [workload](sluice_workload::Workload); what its runs measure is `sluice_stats`'. `racks` is one rack
//! packet by packet, or several below spines; it drives the nodes that fault runs drive.
#![forbid(unsafe_code)]

mod error;
pub mod fabric;
mod jobs;
pub mod point;
pub mod policy;
pub mod racks;
mod replicate;
mod software;
pub mod system;

pub use error::SimError;
pub use jobs::run_jobs;
