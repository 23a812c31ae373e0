//! Virtual time: all real state machines together, in one thread, replayed from one seed.
//!
//! [`faults`] runs a whole rack (switch, controller, workers, clients) through losses, crashes and
//! restarts and holds it to the protocol's promises; `rack` measures one packet by packet; both drive the
//! same `nodes`. A [`point`](point::Point) is one [`policy`] on a [testbed](sluice_testbed::Testbed) under a
//! [workload](sluice_workload::Workload); what its runs measure is `sluice_stats`'.
#![forbid(unsafe_code)]

pub mod datacenter;
mod error;
pub mod fabric;
pub mod faults;
mod jobs;
mod names;
mod nodes;
pub mod point;
pub mod policy;
mod rack;
mod replicate;

pub use error::SimError;
pub use jobs::run_jobs;

use sluice_events as events;
use sluice_events::dice;
use sluice_stats as stats;
use sluice_testbed as testbed;
use sluice_testbed::{agents, capacity, cores_layout, suits};
use sluice_workload as workload;
