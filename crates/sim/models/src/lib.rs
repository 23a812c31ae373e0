//! Models of whole policies, beside the racks that run the real state machines. [`ideal`] has references
//! without a switch's limits; [`server`] has one server whose requests are spread over its cores;
//! [`overload`] has servers that refuse; [`sparrow`] has software schedulers that reserve places at workers.
//!
//! Each takes a stream of requests and tells a recorder what became of them.
#![forbid(unsafe_code)]

pub mod ideal;
pub mod overload;
mod queued_event;
pub mod server;
pub mod sparrow;
