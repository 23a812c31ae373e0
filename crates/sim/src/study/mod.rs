//! Studies: many points of many policies under the same load, and what came of them.
//!
//! A [`plan::Plan`] says what is run and what the paper found; [`outcome`] is the result as a value, which every page,
//! table and file is made from. Left out: how any of it is shown, and the wall clock.

pub mod journal;
pub mod limit;
pub mod numbers;
pub mod outcome;
pub mod plan;

mod error;
mod hint;

pub use error::StudyError;
