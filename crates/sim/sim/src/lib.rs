//! Points in virtual time: all real state machines together, in one thread, determined by one seed.
//!
//! A [`point`](point::Point) is one [`policy`] on a [testbed](sluice_testbed::Testbed) under a
//! [workload](sluice_workload::Workload); `sluice_stats` holds the measurements of its runs. `racks` is one
//! rack packet by packet, or several below spines; it drives the same nodes as fault runs.
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
mod within;

pub use error::SimError;
pub use jobs::run_jobs;
pub use within::Within;
