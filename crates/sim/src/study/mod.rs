//! Studies: many points of many policies under the same load, and what came of them.
//!
//! [`outcome`] is the result of a study as a value, which every page, table and file is made from.

pub mod outcome;
