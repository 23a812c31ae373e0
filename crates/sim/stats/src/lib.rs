//! Statistics of simulations: the measurements of one replication, and the summary of many.
//!
//! An engine tells a [`Recorder`] about each task. The recorder leaves out the warm-up and returns a
//! [`Measured`], which is small enough to be kept. [`summarize`] makes a [`Summary`] of a point's
//! replications: distributions are **merged**, and quantiles are never averaged. A 95 % interval lies
//! between merged values, as many ranks apart as chance moves them according to the runs' [`Parts`].
//! [`paired`] compares two policies on the same tasks, and [`throughput_at_slo`] searches the highest rate
//! that keeps a limit. This crate reads no clock.
#![forbid(unsafe_code)]

mod caveat;
mod chance;
mod distribution;
mod independent;
mod interval;
mod interval_tasks;
mod level;
mod measured;
mod paired;
mod parts;
mod pool;
mod recorder;
mod slo;
mod summary;
mod sustained;
mod task_log;
mod throughput;
mod warmup;

pub use distribution::Distribution;
pub use independent::{difference, for_all_of};
pub use interval::{estimate, mean_of_either_sign, student_t};
pub use interval_tasks::IntervalTasks;
pub use level::Level;
pub use measured::{Backlog, ClassMeasured, ClassParts, EIGHTHS, Measured};
pub use paired::{NumberInParts, Paired, paired};
pub use parts::{PARTS, Parts};
pub use recorder::{Mark, Observer, Outcome, Recorder, Recording, Replied, float};
pub use slo::{SloFound, SloSearch, throughput_at_slo};
pub use summary::{ClassSummary, ReplicationSummary, Summary, summarize};
pub use sustained::{RunPart, sustained_in_parts};
pub use task_log::{LoggedTask, TaskLog};
pub use warmup::Warmup;

pub use sluice_outcome::study::{
    Counts, Estimate, Gauges, Measure, Method, Metric, Part, SliceDepths, Spread, Sustained, Times,
};
