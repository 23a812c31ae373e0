//! Studies: many points of many policies under the same load, and what came of them.
//!
//! A [`plan::Plan`] says what is run and what the paper found, a [`bench::Bench`] makes points of it, a
//! [`run::Study`] runs them, and [`tell::tell`] gives the [outcome](sluice_outcome::study): the result as a
//! value, which every page, table and file is made from. Left out: how any of it is shown, and the wall
//! clock.
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

pub use course::Course;
pub use error::StudyError;
pub use finding::shown;
pub use gauge::Gauge;
pub use known::{Known, PointId};
pub use verdict::growth;
