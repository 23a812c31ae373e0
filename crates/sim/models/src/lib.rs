//! Models that hold whole policies, beside the racks that run the real state machines: [`ideal`], references
//! without a switch's limits; [`server`], one server whose requests are spread over its cores; [`sparrow`],
//! schedulers in software that reserve places at workers.
//!
//! Each takes a stream of requests and tells a recorder what became of them.
#![forbid(unsafe_code)]

pub mod ideal;
pub mod server;
pub mod sparrow;
