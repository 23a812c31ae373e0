//! Studies: many points of many policies under the same load, and their results.
//!
//! A [`plan::Plan`] says what to run and what the paper found. A [`checked_plan::CheckedPlan`] turns it into
//! points, and a [`run::Study`] runs them. [`outcome::outcome`] returns the
//! [outcome](sluice_outcome::study), a value from which every page, table and file is made. Left out:
//! presentation, and the wall clock.
#![forbid(unsafe_code)]

pub mod checked_plan;
pub mod journal;
pub mod limit;
pub mod numbers;
pub mod outcome;
pub mod plan;
pub mod run;

mod error;
mod evaluator;
mod finding;
mod gauge;
mod hint;
mod known_points;
mod policy_number;
mod rounds;
mod seek;
mod time_course;
mod verdict;

pub use error::StudyError;
pub use finding::shown;
pub use gauge::Gauge;
pub use known_points::{KnownPoints, PointId};
pub use time_course::TimeCourse;
pub use verdict::growth;
