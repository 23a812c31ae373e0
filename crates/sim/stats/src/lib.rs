//! Statistics that can be trusted: what one replication measured, and what many of them say together.
//!
//! An engine tells a [`Recorder`] of each task; the recorder leaves out the warm-up and gives a [`Measured`],
//! which is small enough to be kept. [`summarize`] makes a [`Summary`] of a point's replications:
//! distributions are **merged**, quantiles never averaged, and the 95 % intervals lie between merged values,
//! as many ranks apart as the runs' [`Parts`] say that chance moves them. [`paired`] holds two policies
//! against each other on the same tasks, [`throughput_at_slo`] searches the highest rate that keeps a limit.
//! Time stands still here: nothing reads a clock.
#![forbid(unsafe_code)]

mod caveat;
mod chance;
mod diary;
mod distribution;
mod ended;
mod interval;
mod level;
mod measured;
mod paired;
mod parts;
mod pool;
mod recorder;
mod slo;
mod summary;
mod sustained;
mod throughput;
mod warmup;

pub use diary::{Diary, DiaryEntry};
pub use distribution::Distribution;
pub use ended::Ended;
pub use interval::{estimate, mean_of_either_sign, student_t};
pub use level::Level;
pub use measured::{Backlog, ClassMeasured, ClassParts, EIGHTHS, Measured};
pub use paired::{NumberInParts, Paired, paired};
pub use parts::{PARTS, Parts};
pub use recorder::{Mark, Observer, Outcome, Recorder, Recording, Replied};
pub use slo::{SloFound, SloSearch, throughput_at_slo};
pub use summary::{ClassSummary, Each, Summary, summarize};
pub use sustained::{RunPart, sustained_in_parts};
pub use warmup::Warmup;

pub use sluice_outcome::study::{
    Counts, Depths, Estimate, Gauges, Measure, Method, Metric, Part, Spread, Sustained, Times,
};
