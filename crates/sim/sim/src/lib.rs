//! Points in virtual time: all real state machines together, in one thread, replayed from one seed.
//!
//! A [`point`](point::Point) is one [`policy`] on a [testbed](sluice_testbed::Testbed) under a
//! [workload](sluice_workload::Workload); what its runs measure is `sluice_stats`'. `racks` is one rack
//! packet by packet, or several below spines; it drives the nodes that fault runs drive.
#![forbid(unsafe_code)]

pub mod datacenter;
mod error;
pub mod fabric;
mod jobs;
pub mod point;
pub mod policy;
mod racks;
mod replicate;

pub use error::SimError;
pub use jobs::run_jobs;

use sluice_events as events;
use sluice_events::dice;
use sluice_faults as faults;
use sluice_nodes::{self as nodes, names};
use sluice_stats as stats;
use sluice_testbed as testbed;
use sluice_testbed::{agents, capacity, cores_layout, suits};
use sluice_workload as workload;
