//! Studies: many points of many policies under the same load, and their results.
//!
//! A [`plan::Plan`] says what to run and what the paper found. A [`bench::CheckedPlan`] turns it into
//! points, and a [`run::Study`] runs them. [`tell::outcome`] returns the
//! [outcome](sluice_outcome::study), a value from which every page, table and file is made. Left out:
//! presentation, and the wall clock.
#![forbid(unsafe_code)]

pub mod bench;
pub mod journal;
pub mod limit;
pub mod numbers;
pub mod plan;
pub mod run;
pub mod tell;

mod course;
mod desk;
mod error;
mod figure;
mod finding;
mod gauge;
mod hint;
mod known;
mod rounds;
mod seek;
mod verdict;

pub use course::TimeCourse;
pub use error::StudyError;
pub use finding::shown;
pub use gauge::Gauge;
pub use known::{KnownPoints, PointId};
pub use verdict::growth;
