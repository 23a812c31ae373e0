//! The switch: a model of its pipeline, and the schedulers written against it.
//!
//! [`pipeline`] states what a switch chip allows (stages in order, one access to each register array a pass) and
//! accounts for what a program takes; [`rain`] is the scheduler. A program takes packets and the time as
//! arguments and gives back what leaves: it has no I/O.
//!
//! Left out: the RDMA engine; a payload that is too long for a queue entry waits in the driver's memory.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod pipeline;
pub mod rain;
